"""Loops in which the host uses the results of a turn while the device works on the next one.

A turn gives the device work, waits for what comes of it, and uses that. What uses results is *deferred*: it is kept,
and run in the next turn, when that has given the device its work and is about to wait; what the last turn kept, behind
the loop. Where the next turn has work of the host to do before it gives the device any, the wait is deferred until that
is done. Nothing else moves, so the device gets the same work in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from kesco.ir.tree import Block, Stmt
from kesco.source import Span

CLASS, RUN, KEEP = "KescoDeferred", "run", "keep"
"""The class of the object that keeps such work; its members that run it, and keep it."""
AROUND = -1
"""In the place of a statement's number: the loop's head, and what a turn does behind the part that uses results."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A loop as its text has it: the statements of its body, of which those from `kept` up to `last` are kept.

    Those from there up to `beyond` are kept, too, by themselves, and run behind these. `begin` and `end` are the
    offsets of the body's braces.
    """

    function: str
    number: int
    whole: Span
    begin: int
    end: int
    statements: tuple[Span, ...]
    kept: int
    last: int  # the number behind theirs
    beyond: int
    early: int = 0  # of a wait: the number behind the first statement that it has to be run behind, to pay

    @property
    def part(self) -> tuple[int, int]:
        """Where what is kept begins and ends in the text."""
        return self.statements[self.kept].start, self.statements[self.last - 1].end


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """What the statements in front of what uses results do, each by its number.

    Those in `meets` and the part that uses results cannot change places. `launches` give the device work; `waits` may
    wait for it. `held` is what that part has to hold a copy of, or the name of. `why` it cannot be kept at all, if so.
    """

    meets: frozenset[int] = frozenset()
    launches: frozenset[int] = frozenset()
    waits: frozenset[int] = frozenset()
    held: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Deferred:
    """A loop in which what uses results is kept, and run in front of the statement with the number `due`."""

    turn: Turn
    due: int
    held: tuple[str, ...]

    def placed(self, at: Callable[[Span], Span]) -> Deferred:
        """The same with other places."""
        statements = tuple(map(at, self.turn.statements))
        return replace(self, turn=replace(self.turn, whole=at(self.turn.whole), statements=statements))


@dataclass(frozen=True, slots=True)
class Written:
    """Offsets in a text: behind the line that makes the object; of what runs it in a turn, keeps, ends, runs the last.

    `held` is what is kept of the turn.
    """

    made: int
    due: int
    kept: int
    end: int
    last: int
    held: tuple[str, ...]


def statements_of(block: Block) -> list[list[Stmt]]:
    """The statements of a block; those that one invocation of a macro makes are one."""
    found: list[list[Stmt]] = []
    for one in block.body:
        if found and one.span.start < max(other.span.end for other in found[-1]):
            found[-1].append(one)
        else:
            found.append([one])
    return found


def place_of(statements: list[Stmt]) -> Span:
    """Where one of these is."""
    first = statements[0].span
    return Span(first.path, first.start, max(one.span.end for one in statements), first.line, first.column)
