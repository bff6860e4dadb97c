"""Whether a source has work for the device that could overlap, as far as its words tell.

In: a text. Out: yes or no, in a millisecond. It is asked before anything is parsed: many sources of projects launch
one kernel, between copies for which the host waits, and then there is nothing that kesco could move. "No" leaves a
source as it is, so that a mistake could cost speed and nothing else; "yes" is the answer wherever the words do not
settle it.

1. Comments and literals go. 2. What gives the device work on streams is counted: kernel launches, asynchronous calls,
copies within the device, calls of CUDA's libraries. 3. A single launch has one place in the text and so one stream. It
can only overlap with itself, from one trip of a loop to the next, and only a loop around it in its own function counts:
from one call of a function to the next kesco does not.
"""

from __future__ import annotations

import re

_COMMENT = re.compile(
    rb'R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/',
    re.DOTALL,
)
_CONTINUED = re.compile(rb"\\[ \t]*\r?\n")
_UNCLEAR = re.compile(
    rb"cudaLaunch|Async|goto\b|\bkesco\b|#\s*pragma\s+omp|DeviceToDevice|\bcu(?!da)[a-z]+[A-Z]\w*\s*\("
    rb"|^[ \t]*#[ \t]*define\b[^\n]*<<<",
    re.MULTILINE,
)
_COPY = re.compile(rb"\bcudaMemcpy(?:2D|3D|2DToArray|2DFromArray|ToArray|FromArray)?\s*\(")
_DIRECTION = re.compile(rb"\bcudaMemcpy(?:HostToDevice|DeviceToHost|HostToHost)\b")
_LOOP = re.compile(rb"\b(?:for|while|do)\b")
_AROUND = re.compile(rb"\bnamespace\b|\bextern\s*$")


def may_overlap(text: bytes) -> bool:
    """Whether something on the device may run beside something else of this text."""
    bare = _COMMENT.sub(b" ", _CONTINUED.sub(b"", text))
    launches = bare.count(b"<<<")
    if launches > 1 or _UNCLEAR.search(bare) or len(_COPY.findall(bare)) > len(_DIRECTION.findall(bare)):
        return True
    if not launches:
        return False
    at = bare.index(b"<<<")
    begin = _function(bare, at)
    return begin is None or _LOOP.search(bare, begin, at) is not None


def _function(bare: bytes, at: int) -> int | None:
    """Where the body begins of the function, or of the class, that has this place; None if the braces do not say."""
    opened: list[int] = []
    for match in re.finditer(rb"[{}]", bare[:at]):
        if match[0] == b"{":
            opened.append(match.start())
        elif opened:
            opened.pop()
        else:
            return None
    for brace in opened:
        before = max(bare.rfind(c, 0, brace) for c in (b";", b"{", b"}"))
        if not _AROUND.search(bare, before + 1, brace):
            return brace
    return None
