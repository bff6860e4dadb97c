"""What the memory of one path asks of whoever walks it: `World`. Apart so that neither needs the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kesco.analysis.host.contents import Contents
from kesco.analysis.host.values import Object, Offset, Scalar, Value

if TYPE_CHECKING:
    from kesco.analysis.host.memory import State


class World(Protocol):
    """What a state asks the engine."""

    def fresh(self, one: Object) -> Contents:
        """What an object holds that no path has touched yet."""

    def shown(self, function: Object) -> None:
        """The address of a function is known outside."""

    def held_at_first(self, one: Object, at: int, size: int) -> Scalar:
        """What a lazy object held when the path began."""

    def touched(self, state: State, one: Object | None, where: tuple[Offset, int | None], writes: bool) -> None:
        """The host reads or writes so many bytes of an object; None where it is not known which, or how many."""

    def accessed(
        self, state: State, at: Object | None, where: tuple[Offset, int], value: Value, *, writes: bool
    ) -> None:
        """This value is read or written there; None: in any object that has escaped."""

    def comes_to(self, state: State, at: Object) -> None:
        """An object is about to be read."""


def may_be_same(one: Object, other: Object) -> bool:
    """Whether two objects that were there when a path began may be one, though they have two names."""
    return one is not other and not one.kind == other.kind == "global"
