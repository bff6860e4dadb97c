"""Loops whose turns run beside each other, each with memory of its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kesco.ir import program as ir
from kesco.source import Span

TURNS, TURN, LANE, TURNED = "kesco_turns", "kesco_turn", "kesco_lane", "kesco_turned"
PLACE, TAKE, GIVE, PIN = "kesco_place", "kesco_take", "kesco_give", "kesco_pin"
"""What the prologue calls them: before the loop, where a turn begins, where one of a number does, behind the loop;
where a buffer is in this turn; the allocation and the end of what a turn has for itself; and what says before the loop
which blocks may be pinned."""

_POOL = 8  # streams

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

    `buffers` are variables whose memory gets a second place; `frees` are the sites that end what is `taken`. With
    `lone` the body is this one statement, without braces; with `copies` some of its work are copies.
    `streams` are those of one turn, from the first to the last. Only turns overlap in which the variables `alike` have
    the same values as in all before. `pins` are variables that hold blocks of the host's memory (`ir.pins`) that may be
    pinned in the loop, and `pinned` the copies from there and to there.

    Where the loop is come to again and again, turns of one number may have to be in order: `lane` is the variable that
    numbers them, and `outer` the statement around it, a loop in which there is no other work; `left` are the operations
    by which the function is left in it.
    """

    loop: str
    span: Span
    first: Span
    buffers: tuple[str, ...]
    taken: tuple[Taken, ...]
    frees: tuple[int, ...]
    lone: bool = False
    copies: bool = False
    streams: int = 1
    alike: tuple[str, ...] = ()
    pins: tuple[str, ...] = ()
    pinned: frozenset[int] = frozenset()
    lane: str = ""
    outer: Span | None = None
    left: tuple[int, ...] = ()

    @property
    def whole(self) -> Span:
        """Before and behind what the host waits."""
        return self.outer or self.span


def in_flight(turns: Sequence[Turns]) -> int:
    """How many turns of a file's loops may be in flight; 0 without such a loop.

    Two where each has memory of its own, or copies, which share their engines; else as many as a small pool of streams
    has room for.
    """
    plain = any(not one.buffers and not one.taken and not one.copies for one in turns)
    return max(2, _POOL // width(turns) if plain else 0) if turns else 0


def width(turns: Sequence[Turns]) -> int:
    """How many streams one turn has."""
    return max((one.streams for one in turns), default=1)


def turning(program: ir.Program) -> frozenset[int]:
    """The loops of an output that have turns in them, by number."""
    return frozenset(one.number for loops in _loops(program).values() for one in loops if _has_turns(one))


def counterparts(loops: Collection[int], program: ir.Program, other: ir.Program) -> frozenset[int]:
    """These loops of a program as they are in another text of it, where each function has the same loops."""
    mine, theirs = _loops(program), _loops(other)
    pairs = (pair for key in mine.keys() & theirs.keys() for pair in zip(mine[key], theirs[key], strict=False))
    return frozenset(there.number for here, there in pairs if here.number in loops)


def _loops(program: ir.Program) -> dict[str, list[ir.Loop]]:
    """The loops of each function of the text."""
    found: dict[str, list[ir.Loop]] = {}
    for function in program.functions:
        if function.here:
            nodes = ir.walk(function.body)
            found.setdefault(function.key, []).extend(one for one in nodes if isinstance(one, ir.Loop))
    return found


def _has_turns(loop: ir.Loop) -> bool:
    return any(isinstance(n, ir.Call) and n.name.rpartition("::")[2] in (TURN, LANE) for n in ir.walk(loop.body))
