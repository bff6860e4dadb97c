"""The proof: reads what was emitted and shows that every dependence of the serial program is still ordered.

It shares nothing but `kesco.ir` with the stages that chose streams and events: a second opinion.
"""
