"""Text of an LLVM module → frozen values, for both sides of a program.

`canonical` gives LLVM's own spelling, `Module` reads it as far as it is asked, `values` and `types` are the nouns.
"""
