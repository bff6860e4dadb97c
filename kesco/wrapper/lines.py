"""Lines of the rewritten text that lead to the user's file.

In: the source, the rewritten text, and which stretches of the one are kept in the other. Out: the text with ``#line``
directives, so that messages, ``__LINE__``, assertions and debuggers name the line that the author knows. What kesco
inserted counts as the line at which it stands. Nothing but whole lines is added: without them it is the proven text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence


def with_lines(source: bytes, text: bytes, kept: Sequence[tuple[int, int, int]], name: str) -> bytes:
    """The text with directives; each of `kept` is where a stretch begins and ends in `source`, and begins in `text`."""
    at_line = [0]
    while (found := source.find(b"\n", at_line[-1])) >= 0:
        at_line.append(found + 1)
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    result = [f'#line 1 "{quoted}"\n'.encode()]
    starts = [start for _, _, start in kept]
    expected, last, begin, after_backslash = 1, 1, 0, False
    for line in _lines(text):
        origin = _origin(line, begin, kept, starts)
        wanted = last if origin is None else bisect_right(at_line, origin)
        if wanted != expected and not after_backslash:
            result.append(f'#line {wanted} "{quoted}"\n'.encode())
            expected = wanted
        result.append(line)
        last, expected, begin = wanted, expected + 1, begin + len(line)
        after_backslash = line.rstrip(b"\r\n").endswith(b"\\")
    return b"".join(result)


def without_lines(text: bytes, name: str) -> bytes:
    """The text of `with_lines` without its directives."""
    quoted = name.replace("\\", "\\\\").replace('"', '\\"').encode()
    return b"".join(
        line for line in _lines(text) if not (line.startswith(b"#line ") and line.endswith(b' "' + quoted + b'"\n'))
    )


def _lines(text: bytes) -> list[bytes]:
    """The lines as a compiler counts them: a carriage return alone ends none."""
    parts = text.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _origin(line: bytes, begin: int, kept: Sequence[tuple[int, int, int]], starts: list[int]) -> int | None:
    """Where in the source a line's first kept byte comes from, rather one that is no white space."""
    end = begin + len(line)
    at = max(bisect_right(starts, begin) - 1, 0)
    first = None
    while at < len(kept) and kept[at][2] < end:
        start, stop, place = kept[at]
        low, high = max(place, begin), min(place + stop - start, end)
        if low < high:
            piece = line[low - begin : high - begin]
            blank = len(piece) - len(piece.lstrip())
            if blank < len(piece):
                return start + low - place + blank
            first = start + low - place if first is None else first
        at += 1
    return first
