"""Statements that are issued in another order than the program says."""

from __future__ import annotations

from dataclasses import dataclass

from kesco.source import Span


@dataclass(frozen=True, slots=True)
class Reordered:
    """Some statements of one block, one behind the other, in another order.

    `function` is where they stand. `pieces` are their bytes in the order of the text, each whole lines, with the
    comments right above. `order` says which of them stands at each place, by its number. `why` says for each piece why
    it moved, empty for one that the others moved around.
    """

    function: Span
    pieces: tuple[tuple[int, int], ...]
    order: tuple[int, ...]
    why: tuple[str, ...]

    @property
    def moved(self) -> int:
        """How many of the statements moved."""
        return sum(map(bool, self.why))
