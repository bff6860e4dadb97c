"""Loops whose turns run beside each other, each with memory of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kesco.source import Span

TURNS, TURN, TURNED = "kesco_turns", "kesco_turn", "kesco_turned"
PLACE, TAKE, GIVE = "kesco_place", "kesco_take", "kesco_give"
"""What the prologue calls them: before the loop, where a turn begins, behind the loop; where a buffer is in this turn;
and the allocation and the end of what a turn has for itself."""

Steering = Mapping[str, Mapping[int, frozenset[int]]]
"""Kernel → parameter → the parameters that decide which bytes the kernel touches through it, by their numbers.

Kernels that may keep an address are not in it, nor are parameters where it also depends on what memory holds.
"""


@dataclass(frozen=True, slots=True)
class Taken:
    """Memory that each turn allocates and frees: the calls, and the variable that holds it."""

    pointer: str
    allocates: Span
    frees: Span


@dataclass(frozen=True, slots=True)
class Turns:
    """One such loop: its text, the statement that a turn begins with, and what each turn has of its own.

    `buffers` are variables whose memory gets a second place; `frees` are the sites that end what is `taken`.
    """

    loop: str
    span: Span
    first: Span
    buffers: tuple[str, ...]
    taken: tuple[Taken, ...]
    frees: tuple[int, ...]
