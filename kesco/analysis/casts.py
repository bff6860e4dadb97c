"""Pointers that are taken for pointers to something else, and what that means for the memory behind them.

In: a pointer's value, what it pointed to and what it is to point to. Out: its value as the other pointer. Apart from
other expressions because here the shape of what the store knows is lost: fields and elements have other names.

1. Memory that is used as what it was made as stays followed, behind a ``void*`` and as a base class, too. 2. As another
class it is forgotten, and what it holds has escaped. 3. So it is otherwise, but the memory itself is still known.
"""

from __future__ import annotations

from kesco.analysis.memory import Place, Value
from kesco.analysis.places import Places
from kesco.analysis.state import State
from kesco.ir import program as ir

_FOLLOWED = (ir.Shape.RECORD, ir.Shape.POINTER, ir.Shape.ARRAY)


class Casts(Places):
    """Follows pointers through casts; other expressions are left to the subclass."""

    def __init__(self, program: ir.Program) -> None:
        super().__init__(program)
        self.layouts: dict[str, str] = {}  # host allocation → what it is used as

    def _is_base(self, base: str, record: str) -> bool:
        """Whether a class is one of another's bases; its fields are then the other's, by the same names."""
        found = self.program.records.get(record) if base and record else None
        return found is not None and any(one == base or self._is_base(base, one) for one in found.bases)

    def _was_made_as(self, place: Place, to: ir.Type) -> bool:
        """Whether host memory behind a ``void*`` holds what it is taken for; an allocation, what it was at first."""
        one = place.object
        if one.key in self.variables:
            kind = self.type_at(place)
            return _same_layout(kind, to) if kind is not None else to.shape not in _FOLLOWED
        kept = self.layouts.setdefault(one.key, _plain(to.spelling))
        return kept == _plain(to.spelling) or (to.shape is ir.Shape.POINTER and kept.endswith("*"))

    def type_at(self, place: Place, *, inside: bool = False) -> ir.Type | None:
        """What a variable was declared to hold at a place; None where that is not known.

        `inside`: or where it may be past the end of an array.
        """
        variable = self.variables.get(place.object.key)
        kind = variable.type if variable is not None else None
        while kind is not None and kind.shape is ir.Shape.REFERENCE:
            kind = kind.element
        for step in place.path:
            if kind is None or isinstance(step, str):
                record = self.program.records.get(kind.record) if kind is not None else None
                kind = next((f.type for f in record.fields if f.name == step), None) if record is not None else None
            elif kind.shape is not ir.Shape.ARRAY:
                kind = kind.holds
            else:
                kind = None if inside and not (step is not None and 0 <= step < kind.count) else kind.element
        return kind

    def reinterpreted(self, state: State, value: Value, to: ir.Type | None, source: ir.Type | None) -> Value:
        """A pointer cast to another pointee: fields and elements are no longer what they were, on the host's side."""
        if to is None or source is None or _is_void(to) or self._is_base(to.record, source.record):
            return value
        hosts = [p for p in value.places if p.object.laid_out]
        if _is_void(source):
            hosts = [p for p in hosts if not self._was_made_as(p, to)]
        elif _same_layout(to, source):
            return value
        if not hosts:
            return value
        objects = {p.object for p in hosts}
        state.store.clobber(objects)
        if ir.Shape.RECORD in (to.shape, source.shape):
            self.escape_values(state, Value(frozenset(hosts)))  # what they hold is found there under other names
            return Value(value.places, None, True)
        self.escape_contents(state, objects)
        loose = {p: Place(p.object, tuple(s if isinstance(s, str) else None for s in p.path)) for p in hosts}
        return Value(frozenset(loose.get(p, p) for p in value.places), None, value.unknown)


def _same_layout(a: ir.Type, b: ir.Type) -> bool:
    """Whether elements of one type lie where elements of the other do, and hold the same."""
    return a.shape is b.shape is ir.Shape.POINTER or _plain(a.spelling) == _plain(b.spelling)


def _is_void(kind: ir.Type) -> bool:
    return _plain(kind.spelling) == "void"


def _plain(spelling: str) -> str:
    return spelling.replace("const ", "").replace(" ", "")
