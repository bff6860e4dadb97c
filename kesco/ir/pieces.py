"""Several files in one text: a source in which headers of the user's stand in the place of their ``#include`` lines.

In: bytes. Out: where in which file an offset is, as a person would say it, and the text parted into its files again.
All stages read and edit one text, so a header whose functions are to be edited is put into it. What is put there is
marked in comments, which no edit touches: any text made from it says of itself which of it is the header's.

1. `put_in` replaces one ``#include`` by marks around the header's text. 2. `Pieces` finds the marks; a mark counts as
the line that it stands for. 3. `parted` takes the headers out again. One that was not edited is included as it was; of
the others there is a copy, which is included in their place.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from pathlib import PurePath
from typing import Any

from kesco.source import Span

_MARK = re.compile(rb"/\*kesco:begin (\[[^\n]*\])\*/\n|\n/\*kesco:end\*/")
_END = b"\n/*kesco:end*/"
Kept = tuple[int, int, int]
"""A stretch of one text that is in another one: begin and end there, begin here."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A header in a text: its path, the directive it stands for, and the ranges with its marks and without them."""

    path: str
    directive: str
    outer: tuple[int, int]
    inner: tuple[int, int]
    around: int = -1
    """The piece in which it stands, by number."""


@dataclass(frozen=True, slots=True)
class Copy:
    """An edited header: the user's own file, the name under which the output includes it, and its text.

    `directive` is the user's own ``#include``. `kept` are the stretches of the text that it was taken out of, as piece
    `number`; or those of `before`, the user's file with its own includes as they must be in the source's folder.
    """

    path: str
    name: str
    text: bytes
    directive: str
    kept: tuple[Kept, ...]
    number: int
    before: bytes = b""


def put_in(text: bytes, start: int, end: int, path: str, header: bytes) -> bytes:
    """The text with the ``#include`` in a range replaced by what it includes."""
    what = json.dumps([path, text[start:end].decode()]).encode()
    return text[:start] + b"/*kesco:begin " + what + b"*/\n" + header + _END + text[end:]


def has_marks(text: bytes) -> bool:
    """Whether there is anything in a text that `put_in` might have put there."""
    return b"/*kesco:begin " in text or b"/*kesco:end*/" in text


@dataclass(frozen=True, slots=True)
class _Stretch:
    """What stands between two marks: from where in the text, of which piece, and what it begins with in its file."""

    start: int
    piece: int
    offset: int
    line: int
    column: int


class Pieces:
    """The files of one text; `path` is that of the source."""

    def __init__(self, path: str, text: bytes) -> None:
        self.path, self.text = path, text
        self.every: tuple[Piece, ...] = ()
        self._stretches: list[_Stretch] = []
        if has_marks(text):
            self._find()

    def _find(self) -> None:
        found: list[Piece] = []
        here, stack = _Stretch(0, -1, 0, 1, 1), list[_Stretch]()
        self._stretches.append(here)
        for mark in _MARK.finditer(self.text):
            after = self._after(here, mark.start())
            if mark[1] is not None:
                path, directive = json.loads(mark[1])
                size = len(directive.encode())
                stack.append(replace(after, offset=after.offset + size, column=after.column + size))
                around = here.piece
                here = _Stretch(mark.end(), len(found), 0, 1, 1)
                found.append(Piece(path, directive, mark.span(), mark.span(), around))
            elif stack:
                one = found[here.piece]
                found[here.piece] = replace(one, outer=(one.outer[0], mark.end()), inner=(one.inner[1], mark.start()))
                here = replace(stack.pop(), start=mark.end())
            self._stretches.append(here)
        self.every = tuple(found)

    def _after(self, here: _Stretch, end: int) -> _Stretch:
        """A stretch as it goes on at a later offset."""
        line, column = self._place(here, end)
        return replace(here, start=end, offset=here.offset + end - here.start, line=line, column=column)

    def _place(self, here: _Stretch, at: int) -> tuple[int, int]:
        lines = self.text.count(b"\n", here.start, at)
        begin = self.text.rfind(b"\n", here.start, at)
        return here.line + lines, at - begin if lines else here.column + at - here.start

    def _stretch(self, at: int) -> _Stretch:
        return self._stretches[max(bisect_right(self._stretches, at, key=lambda one: one.start) - 1, 0)]

    def place(self, at: int) -> tuple[int, int]:
        """The line and column of an offset in its file."""
        if not self.every:
            return self.text.count(b"\n", 0, at) + 1, at - self.text.rfind(b"\n", 0, at)
        return self._place(self._stretch(at), at)

    def span(self, start: int, end: int) -> Span:
        """A range of the text, with the line and column in its file."""
        return Span(self.path, start, end, *self.place(start))

    def own(self, span: Span) -> Span:
        """A range of the text as one of its file: what people and their tools are told."""
        if span.path != self.path or not self.every:
            return span
        here = self._stretch(span.start)
        path = self.path if here.piece < 0 else self.every[here.piece].path
        start = here.offset + max(0, span.start - here.start)
        return Span(path, start, start + span.end - span.start, *self._place(here, max(span.start, here.start)))

    def kept(self, piece: int) -> tuple[Kept, ...]:
        """Which stretches of a file are in the text; -1 is the source."""
        ends = (*(one.start for one in self._stretches[1:]), len(self.text))
        found = ((one, end) for one, end in zip(self._stretches, ends, strict=True) if one.piece == piece)
        return tuple((one.offset, one.offset + end - one.start, one.start) for one, end in found)

    def file(self, piece: int) -> bytes:
        """The text of a file, with its ``#include`` lines; -1 is the source."""
        start, end = (0, len(self.text)) if piece < 0 else self.every[piece].inner
        result = b""
        for one in (p for p in self.every if p.around == piece):
            result += self.text[start : one.outer[0]] + one.directive.encode()
            start = one.outer[1]
        return result + self.text[start:end]

    def outermost(self, at: int) -> int:
        """Where the ``#include`` of the source itself begins that brings what is at an offset; else the offset."""
        piece = self._stretch(at).piece if self.every else -1
        while piece >= 0 and self.every[piece].around >= 0:
            piece = self.every[piece].around
        return at if piece < 0 else self.every[piece].outer[0]

    def is_header(self, at: int) -> bool:
        """Whether what is at an offset is a header's."""
        return bool(self.every) and self._stretch(at).piece >= 0


@lru_cache(maxsize=8)
def pieces(path: str, text: bytes) -> Pieces:
    """The files of a text, found once."""
    return Pieces(path, text)


@dataclass(slots=True)
class _Parting:
    """Takes a text apart; `before` is that in which nothing was edited."""

    before: bytes
    text: bytes
    stem: str
    copies: dict[str, Copy]

    def file(self, number: int, start: int, end: int) -> tuple[bytes, tuple[Kept, ...]]:
        """A file of the text, without what it includes, and which stretches of the text are in it."""
        first, every = pieces("", self.before).every, pieces("", self.text).every
        result, kept = b"", list[Kept]()
        for n, one in enumerate(every):
            if one.around == number:
                kept.append((start, one.outer[0], len(result)))
                same = self.text[slice(*one.inner)] == self.before[slice(*first[n].inner)]
                result += self.text[start : one.outer[0]]
                result += one.directive.encode() if same else include_of(self._copy(n, one))
                start = one.outer[1]
        kept.append((start, end, len(result)))
        return result + self.text[start:end], tuple(kept)

    def _copy(self, number: int, one: Piece) -> str:
        text, kept = self.file(number, *one.inner)
        name, n = f"{self.stem}.{PurePath(one.path).name}", 1
        while name in self.copies:
            n += 1
            name = f"{self.stem}.{n}.{PurePath(one.path).name}"
        self.copies[name] = Copy(one.path, name, text, one.directive, kept, number)
        return name


def include_of(name: str) -> bytes:
    """The line that includes a copy."""
    return f'#include "{name}"'.encode()


def parted(before: bytes, text: bytes, stem: str) -> tuple[bytes, tuple[Kept, ...], tuple[Copy, ...]]:
    """The source with its ``#include`` lines, and a copy of each header that is another one than in `before`.

    Copies are named ``STEM.HEADER``, so that they may stand beside the source and beside those of other sources.
    """
    parting = _Parting(before, text, stem, {})
    source, kept = parting.file(-1, 0, len(text))
    return source, kept, tuple(parting.copies.values())


def is_whole(text: bytes, source: bytes, copies: Sequence[Copy]) -> bool:
    """Whether a source and its copies, put together again, are the text, but for the headers that were not edited."""
    every, own = pieces("", text).every, {one.number for one in copies}
    for one in reversed(copies):  # a copy stands behind those that it includes
        marks = text[slice(*every[one.number].outer)].split(b"\n", 1)[0] + b"\n"
        source = source.replace(include_of(one.name), marks + one.text + _END)
    for number, piece in reversed([*enumerate(every)]):
        if number not in own and (piece.around < 0 or piece.around in own):
            text = text[: piece.outer[0]] + piece.directive.encode() + text[piece.outer[1] :]
    return source == text


def placed(value: Any, at: Callable[[Span], Span]) -> Any:
    """A frozen value with all places in it changed."""
    known: dict[int, Any] = {}

    def changed(one: Any) -> Any:
        if isinstance(one, Span):
            return at(one)
        if not isinstance(one, (tuple, frozenset)) and not is_dataclass(one):
            return one
        if id(one) not in known:
            known[id(one)] = inside(one)
        return known[id(one)]

    def inside(one: Any) -> Any:
        if isinstance(one, (tuple, frozenset)):
            parts = [changed(part) for part in one]
            same = all(a is b for a, b in zip(parts, one, strict=True))
            return one if same else type(one)(parts)
        old = {field.name: getattr(one, field.name) for field in fields(one)}
        new = {name: changed(part) for name, part in old.items()}
        different = {name: part for name, part in new.items() if part is not old[name]}
        return replace(one, **different) if different else one

    return changed(value)
