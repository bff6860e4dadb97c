"""The buffers that objects of the interpreter are, with the names that the text has for them.

In: an object. Out: a `Buffer`, the same each time. An allocation is called as the variable that it is put into; in a
counted loop with the number of its trip. What code that is not followed gave is unknown memory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kesco.analysis.host.engine import Engine
from kesco.analysis.host.libraries import HANDLE
from kesco.analysis.host.values import Object
from kesco.analysis.host_regions.entries import MARK
from kesco.analysis.host_regions.texts import Texts
from kesco.ir import program as ir
from kesco.ir.access import UNKNOWN, Buffer, BufferKind
from kesco.ir.flow import Iteration
from kesco.source import Span

_FIRST = re.compile(r"\(\s*(?:\([^()]*\)\s*)?&\s*([\w.>\[\]-]+)\s*[,)]")  # what an allocation is put into
_KINDS = {
    "device": BufferKind.DEVICE, "managed": BufferKind.MANAGED, "pinned": BufferKind.PINNED, "entry": BufferKind.ENTRY,
    HANDLE: BufferKind.DEVICE,  # its workspace
}  # fmt: skip


@dataclass(slots=True)
class Buffers:
    """Answers for one engine; `made` has the trips of loops in which objects were made.

    `turned` is memory of a turn's own, by the operation that says where it is.
    """

    engine: Engine
    texts: Texts
    made: dict[Object, tuple[Iteration, ...]] = field(default_factory=dict)
    turned: dict[Object, int] = field(default_factory=dict)
    _known: dict[Object, Buffer] = field(default_factory=dict)

    def of(self, one: Object) -> Buffer:
        """The unit of aliasing that an object belongs to."""
        if one not in self._known:
            self._known[one] = self._buffer(one)
        return self._known[one]

    def _buffer(self, one: Object) -> Buffer:
        if one.kind in ("outside", "function"):
            return UNKNOWN
        if one.kind == "symbol":
            fixed = self.texts.program.is_fixed(one.name)
            return Buffer(one.name, one.name, BufferKind.SYMBOL, apart=not self._has_managed(), fixed=fixed)
        kind = _KINDS.get(one.kind, BufferKind.HOST)
        if one in self.turned:
            return self._of_turn(self.turned[one], kind)
        name, span = one.name, None
        if kind is not BufferKind.ENTRY and one.place >= 0:
            places = (one.place, *(call.place for call, _ in self.engine.chain(one.context)))
            here = [place for place in places if self.texts.offset(place) >= 0]
            called, span = self._called(here[0]) if here else ("", None)
            name = self._owner(here[1]) + called if called and len(here) > 1 else called or name
            for trip in self.made.get(one, ()):
                name = re.sub(rf"\b{trip.counter}\b", str(trip.value), name)
        if kind is BufferKind.ENTRY:
            function, _, name = name.partition(MARK)
            return Buffer(f"entry:{function}:{name}", name, kind)
        size = one.size if one.size >= 0 else None
        if one.kind == HANDLE:
            name = f"the workspace of {name}"
        return Buffer(f"{one.kind}:{one.number}", name, kind, span, size)

    def _of_turn(self, operation: int, kind: BufferKind) -> Buffer:
        """Memory of a turn's own, called as the variable that is told where it is."""
        span = self.texts.program.operations[operation].span
        written = self.texts.program.text[span.start : span.end].decode("utf-8", "replace")
        name = written.rpartition("&")[2].partition(")")[0].partition(",")[0].strip()
        return Buffer(f"alloc:{operation}:{name}", name, kind, span)

    def _has_managed(self) -> bool:
        return any(name == "managed" for name, _ in self.texts.program.constructs)

    def _owner(self, place: int) -> str:
        """The variable that is made by a call at a place, as it stands before its members."""
        offset = self.texts.offset(place)
        declared = (n for f in self.texts.program.functions if f.here and f.span.start <= offset < f.span.end
                    for n in ir.walk(f.body) if isinstance(n, ir.Declare))  # fmt: skip
        for one in declared:
            made = one.initial
            if isinstance(made, ir.Call) and made.constructs and made.span.start <= offset < made.span.end:
                return f"{one.variable.name}."
        return ""

    def _called(self, place: int) -> tuple[str, Span | None]:
        """The variable that an allocation at a place is put into, as the text says it, and where that stands."""
        offset = self.texts.offset(place)
        for function in self.texts.program.functions:
            if not (function.here and function.span.start <= offset < function.span.end):
                continue
            operation = self.texts.operation(function, place, "")
            if operation >= 0:
                span = self.texts.program.operations[operation].span
                written = self.texts.program.text[span.start : span.end].decode("utf-8", "replace")
                found = _FIRST.search(written)
                return found[1].strip() if found is not None else "", span
        return "", None
