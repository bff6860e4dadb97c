"""Pointers that are taken for pointers to something else, and what that means for the memory behind them.

In: a pointer's value, what it pointed to and what it is to point to. Out: its value as the other pointer. Apart from
other expressions because here the shape of what the store knows is lost: fields and elements have other names.

1. Memory that is used as what it was made as stays followed, behind a ``void*`` and as a base class, too. 2. As another
class it is forgotten, and what it holds has escaped. 3. Otherwise its elements are no longer told apart.
"""

from __future__ import annotations

from kesco.analysis.memory import Place, Value
from kesco.analysis.places import Places
from kesco.analysis.state import State
from kesco.ir import program as ir


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
        variable = self.variables.get(one.key)
        if variable is None:
            kept = self.layouts.setdefault(one.key, _plain(to.spelling))
            return kept == _plain(to.spelling) or (to.shape is ir.Shape.POINTER and kept.endswith("*"))
        shape: ir.Type | None = variable.type
        while shape is not None:
            if _plain(shape.spelling) == _plain(to.spelling) or shape.shape is to.shape is ir.Shape.POINTER:
                return True
            shape = shape.element if shape.shape is ir.Shape.ARRAY else None
        return False

    def reinterpreted(self, state: State, value: Value, to: ir.Type | None, source: ir.Type | None) -> Value:
        """A pointer cast to another pointee: fields and elements are no longer what they were, on the host's side."""
        if to is None or source is None or self._is_base(to.record, source.record):
            return value
        hosts = [p for p in value.places if p.object.laid_out]
        if "void" in source.spelling and to.shape in (ir.Shape.RECORD, ir.Shape.POINTER):
            hosts = [p for p in hosts if not self._was_made_as(p, to)]
        elif _same_layout(to, source):
            return value
        if not hosts:
            return value
        if ir.Shape.RECORD in (to.shape, source.shape):
            self.escape_values(state, Value(frozenset(hosts)))  # what they hold is found there under other names
            state.store.clobber(p.object for p in hosts)
            return Value(value.places, None, True)
        loose = {p: Place(p.object, tuple(s if isinstance(s, str) else None for s in p.path)) for p in hosts}
        return Value(frozenset(loose.get(p, p) for p in value.places), None, value.unknown)


def _same_layout(a: ir.Type, b: ir.Type) -> bool:
    """Whether elements of one type lie where elements of the other do, as far as pointers in them are concerned."""
    if a.shape is b.shape is ir.Shape.POINTER:
        return True
    plain = [t.spelling.replace("const ", "") for t in (a, b)]
    return plain[0] == plain[1] or "void" in plain


def _plain(spelling: str) -> str:
    return spelling.replace("const ", "").replace(" ", "")
