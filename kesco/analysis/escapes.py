"""What code that is not followed may know: objects that have escaped.

In: values, and the state they are in. Out: the set of objects whose address may be anywhere, and a store in which these
are forgotten. Apart from reading and writing because all of them rely on one rule: *what is not known points to nothing
but what has escaped*. So whoever gives up a value, or keeps it where others may find it, lets it escape.

1. An object escapes with all that can be reached from it. 2. So does what is stored later in an object that has
escaped, in one that was there before the function was entered, or through a pointer that is not known. 3. So does what
an object holds where it is read as something else, or copied to where it is not followed.
"""

from __future__ import annotations

from collections.abc import Iterable

from kesco.analysis.memory import OVERLAID, Object, Path, Place, Value
from kesco.analysis.state import State
from kesco.ir import program as ir


class Escapes:
    """Knows what has escaped."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.objects: dict[str, Object] = {}
        self.variables: dict[str, ir.Variable] = {}
        self.escaped: set[Object] = set()  # what code that is not seen may change
        self.told: set[Object] = set()  # those of them whose address code of the host that is not seen may know
        self.kept: set[Object] = set()  # what the library may keep or give back where that is not followed

    def escape_values(self, state: State, *values: Value, told: bool = True) -> None:
        """Whatever these values reach may from now on be changed by code that is not seen.

        Unless it is `told` of them that is code which keeps no address.
        """
        places = [p for v in values for p in v.every_place()]
        reached = {o for o in state.store.reachable(places) if o.handle is None}
        self.escaped |= reached
        self.told |= reached if told else set()

    def escape_addresses(self, state: State, *values: Value) -> None:
        """The same, but not for memory that only the device reaches: addresses that the host may get back."""
        reached = (p for v in values for p in v.every_place() if (b := p.object.buffer) is None or not b.on_device)
        self.escape_values(state, Value(frozenset(reached)))

    def escape_contents(self, state: State, objects: Iterable[Object]) -> None:
        """The same for what these objects hold, but not for themselves."""
        for one in objects:
            self.escape_values(state, *state.store.objects.get(one, {}).values())

    def escape_stored(self, state: State, places: Iterable[Place], value: Value) -> None:
        """A value was stored at these places, which others may know."""
        if any(p.object.entry or p.object in self.escaped for p in places):
            self.escape_values(state, value)

    def escape_unread(self, state: State, place: Place) -> None:
        """Nothing was found at a place: what its object holds in another shape may be what is there."""
        for path, value in state.store.objects.get(place.object, {}).items():
            if not _is_beside(path, place.path):
                self.escape_values(state, value)

    def clobber_escaped(self, state: State) -> None:
        """A store through an unknown pointer:

        What has escaped, globals, and what came in from outside may have changed.
        """
        shared = {o for k, o in self.objects.items() if self.variables[k].scope is ir.Scope.GLOBAL}
        state.store.clobber(self.escaped | shared | {o for o in state.store.objects if o.entry})


def _is_beside(one: Path, other: Path) -> bool:
    """Whether two paths lead to different members of one struct, or elements of one array."""
    for a, b in zip(one, other, strict=False):
        if a != b:
            return isinstance(a, str) == isinstance(b, str) and OVERLAID not in (a, b)
    return False
