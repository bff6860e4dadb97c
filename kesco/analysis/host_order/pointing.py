"""Values of the host → the memory, streams and events that they stand for.

In: what a call is given. Out: `Buffer`s with where in them, and `Handle`s. Memory is called as the variable that it is
put into, with where that is in the file that is compiled.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from kesco.analysis.host.engine import Engine
from kesco.analysis.host.leading import parts_of
from kesco.analysis.host.values import Object, Pointer, Value, scalar
from kesco.ir.access import UNKNOWN, Buffer, BufferKind
from kesco.ir.execution import LEGACY, THREAD, Argument, Handle
from kesco.llvm.locations import Place
from kesco.source import Span

_KINDS = {"device": BufferKind.DEVICE, "managed": BufferKind.MANAGED, "pinned": BufferKind.PINNED}
_INTO = re.compile(r"\(\s*(?:\([^()]*\)\s*)*&\s*([\w.>\[\]-]+)\s*[,)]")  # what a call puts something into
_OF = re.compile(r"([\w.\[\]]+?)(?:\.|->)$")  # whose method is called
_PER_THREAD = ("_ptsz", "_ptds")


@dataclass(slots=True)
class Pointing:
    """Answers for one engine. `blocking` has the flags of streams."""

    engine: Engine
    path: str
    blocking: dict[Object, bool | None] = field(default_factory=dict)
    per_thread: bool = False
    _buffers: dict[Object, Buffer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.per_thread = any(name.endswith(_PER_THREAD) for name in self.engine.module.names())

    # ---- memory

    def parts(self, value: Value) -> list[tuple[Buffer, int | None]]:
        """The buffers that a pointer may lead to, and where in them if that is known; a null pointer leads nowhere."""
        return parts_of(value, self.buffer)

    def argument(self, value: Value) -> Argument:
        """Memory that something is given: one buffer with where in it, or none."""
        atoms = list(scalar(value))
        if atoms == [0]:
            return Argument(words="null")
        atoms = [one for one in atoms if one != 0]  # a container's memory is null where it has no elements
        if len(atoms) != 1 or type(atoms[0]) is not Pointer:
            return Argument()
        one, (stride, rest) = atoms[0]
        buffer = self.buffer(one)
        return Argument() if buffer is UNKNOWN else Argument(buffer, None if stride else rest)

    def only(self, value: Value) -> tuple[Object, int] | None:
        """The one place that a pointer is, if it is that for certain."""
        atoms = list(scalar(value))
        if len(atoms) != 1 or type(atoms[0]) is not Pointer:
            return None
        one, (stride, rest) = atoms[0]
        return (one, rest) if not stride and not one.many else None

    def symbol(self, mangled: str) -> Buffer:
        """The buffer of a device symbol."""
        return self.buffer(self.engine.resource("symbol", mangled))

    def buffer(self, one: Object) -> Buffer:
        """The unit of aliasing that an object belongs to."""
        if one not in self._buffers:
            self._buffers[one] = self._buffer(one)
        return self._buffers[one]

    def _buffer(self, one: Object) -> Buffer:
        if one.kind in ("outside", "function"):
            return UNKNOWN
        if one.kind == "symbol":
            return Buffer(f"symbol:{one.name}", one.name, BufferKind.SYMBOL, apart=True)
        kind = _KINDS.get(one.kind, BufferKind.HOST)
        size = one.size if one.size >= 0 and not one.many else None
        return Buffer(f"{one.kind}:{one.number}", self._called(one), kind, self._span(one), size)

    def known(self) -> dict[Object, Buffer]:
        """All that were asked for."""
        return dict(self._buffers)

    # ---- streams and events

    def streams(self, value: Value) -> tuple[set[Handle], bool]:
        """What a value may be as a stream, and whether it may also be another one."""
        default = THREAD if self.per_thread else LEGACY
        named = {0: default, 1: LEGACY, 2: THREAD}
        return self._handles(value, "stream", named)

    def events(self, value: Value) -> tuple[set[Handle], bool]:
        """The same for events."""
        return self._handles(value, "event", {})

    def _handles(self, value: Value, kind: str, named: dict[int, Handle]) -> tuple[set[Handle], bool]:
        found: set[Handle] = set()
        atoms = scalar(value)
        astray = not atoms
        for atom in atoms:
            if type(atom) is Pointer and atom.object.kind == kind:
                one = atom.object
                found.add(Handle(f"{kind}:{one.number}", self._called(one), not one.many, self.blocking.get(one, None)))
            elif type(atom) is int and atom in named:
                found.add(named[atom])
            else:
                astray = True
        return found, astray

    # ---- names

    def _places(self, one: Object) -> list[Place]:
        numbers = (one.place, *(call.place for call, _ in self.engine.chain(one.context)))
        return [place for n in numbers if (place := self.engine.module.place(n)) is not None]

    def _called(self, one: Object) -> str:
        """What an object is called: what it is put into, or the variable that holds it."""
        same = sum(other.place == one.place and other.context == one.context for other in self._buffers)
        suffix = f"#{same + 1}" if same and one.kind not in ("global", "stack") else ""
        for place in self._places(one):
            if is_same_file(place.file, self.path):
                text = _line(place.file, place.line)
                return f"{_name(text, place.column)}{suffix} (line {place.line})"
        return one.name if not one.name.isdigit() else "a local variable"

    def _span(self, one: Object) -> Span | None:
        for place in self._places(one):
            if is_same_file(place.file, self.path):
                return span_of(place)
        return None


def _name(text: str, column: int) -> str:
    """What a line puts something into, by where the call stands in it."""
    begin, rest = text[: column - 1], text[column - 1 :]
    of, into = _OF.search(begin), _INTO.search(rest)
    if of is not None:
        return of[1]
    if into is not None:
        return into[1]
    word = re.match(r"\w+", rest)
    return word[0] if word is not None else text.strip()[:40]


def span_of(place: Place) -> Span:
    """A place as messages have it."""
    start = _offset(place.file, place.line) + place.column - 1
    return Span(place.file, start, start + 1, place.line, place.column)


def is_same_file(one: str, other: str) -> bool:
    """Whether two paths are of one file."""
    return one == other or _resolved(one) == _resolved(other)


@cache
def _resolved(path: str) -> str:
    return str(Path(path).resolve())


@cache
def _lines(path: str) -> tuple[str, ...]:
    try:
        return tuple(Path(path).read_text("utf-8", "replace").splitlines(keepends=True))
    except OSError:
        return ()


def _line(path: str, number: int) -> str:
    lines = _lines(path)
    return lines[number - 1] if 0 < number <= len(lines) else ""


def _offset(path: str, number: int) -> int:
    return sum(len(one.encode()) for one in _lines(path)[: number - 1])
