"""Macros that launch: ``LAUNCH(k, n, …)`` whose body holds the ``<<<…>>>``.

In: the text of the file, and a statement that uses one. Out: a `LaunchMacro`: what a variant that takes a stream looks
like. The definition stays as it is, for those who use it elsewhere; the variant stands behind it.

It refuses macros that are defined again or taken back, those of headers, those whose body launches twice, states a
stream, or leaves open how many settings it has, and uses in which another macro stands in front.
"""

from __future__ import annotations

import re

from kesco.ir.program import LaunchMacro

_DEFINE = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)\(([^()]*)\)((?:[^\\\n]|\\\r?\n|\\.)*)", re.MULTILINE)
_OTHER = re.compile(rb"^[ \t]*#[ \t]*(?:define|undef)[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_SETTINGS = re.compile(rb"<<<(.*?)>>>", re.DOTALL)
_STREAM = "stream"
_TAKEN = re.compile(rb"\bstream\b|//|/\*|\"|'|push_macro")
_MOST = 3  # grid, block, shared memory


def launch_macro(text: bytes, start: int, end: int) -> LaunchMacro | None:
    """The macro of the file that a statement uses, which begins and ends there."""
    used = re.compile(rb"([A-Za-z_]\w*)[ \t]*\(").match(text, start)
    if used is None or b"<<<" in text[start:end]:
        return None
    name = used[1]
    found = [m for m in _DEFINE.finditer(text) if m[1] == name]
    if len(found) != 1 or sum(m[1] == name for m in _OTHER.finditer(text)) != 1 or found[0].start() > start:
        return None
    parameters, body = found[0][2].strip(), found[0][3].rstrip()
    called = name + b"_ON"
    if _TAKEN.search(parameters + body) or not parameters or called in text:
        return None
    settings = _SETTINGS.findall(body)
    if len(settings) != 1 or body.count(b"<<<") != 1 or b"__VA_ARGS__" in settings[0]:
        return None
    given = _count(settings[0])
    if not 2 <= given <= _MOST:
        return None
    more = b"".join(b", 0" for _ in range(_MOST - given)) + b", " + _STREAM.encode()
    variant = (
        b"#define " + called + b"(" + _STREAM.encode() + b", " + parameters + b")" + body.replace(b">>>", more + b">>>")
    )
    at = found[0].start() + len(found[0][0].rstrip(b"\r"))
    return LaunchMacro((used.start(1), used.end(1)), called.decode(), variant.decode("utf-8", "replace"), at)


def _count(settings: bytes) -> int:
    """How many settings there are between the brackets."""
    depth, found = 0, 1
    for byte in settings:
        depth += (byte in b"([{") - (byte in b")]}")
        found += byte == ord(",") and depth == 0
    return found
