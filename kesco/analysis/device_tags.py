"""Device LLVM IR → where the source itself says that what is loaded is a pointer.

In: a module's text, as LLVM prints it. Out: for each function's loads of pointers, in the order of the text, yes or no.
LLVM's own types do not tell: it loads a pointer, too, where the source reads a union that holds an address as an
integer, or copies bytes. clang's tags for type-based alias analysis do: there is one of a pointer type only where an
object of that type is read. A load without a tag may be of anything.
"""

from __future__ import annotations

import re

from kesco.analysis.device_names import NAME, bare

_POINTER_LOAD = re.compile(
    rf"^define\b[^\n@]*{NAME}\(|^ +%[^\n]* = load (?:atomic |volatile )*ptr\b([^\n]*)", re.MULTILINE
)
_TAG = re.compile(r", !tbaa !(\d+)")
_ACCESSED = re.compile(r"^!(\d+) = !\{!\d+, !(\d+), i64 ", re.MULTILINE)  # the type that a tag says is there
_OF_POINTER = re.compile(r'^!(\d+) = !\{!"(?:any pointer|vtable pointer|p\d+ [^"]*)", ', re.MULTILINE)


def declared_pointers(text: str) -> dict[str, list[bool]]:
    """Of each function's loads of pointers, in the order of the text, whether their tag says that one is there."""
    pointers = set(_OF_POINTER.findall(text))
    tags = {tag for tag, accessed in _ACCESSED.findall(text) if accessed in pointers}
    found: dict[str, list[bool]] = {}
    current: list[bool] = []
    for name, rest in _POINTER_LOAD.findall(text):
        if name:
            current = found[bare(name)] = []
        else:
            tag = _TAG.search(rest)
            current.append(tag is not None and tag[1] in tags)
    return found
