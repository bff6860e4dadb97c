"""What is known at one place of a program about the order of its work, and how two such states are compared.

In: states. Out: what remains where paths meet, and which of two states knows more. Apart from the ordering rules
because it is about sets only: every bit of every mask is treated by itself.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class State:
    """What is known at one place.

    `pending`: executed and not known to be complete; `hidden`: of these, what the serial program's host had
    awaited. `known` holds a mask for each of the legacy stream, the next work on it, the streams, what the streams
    have queued, and what each knew, and had queued, where the capture that is open began; `covered` one for each
    event (absent: nothing).
    """

    pending: int
    hidden: int
    known: list[int]
    covered: dict[int, int]

    def copy(self) -> State:
        """An independent copy."""
        return State(self.pending, self.hidden, self.known.copy(), self.covered.copy())


@dataclass(frozen=True, slots=True)
class Facts:
    """Before a site: what its own action is not ordered after, and `pending`, `hidden` as in `State`."""

    unordered: int
    pending: int
    hidden: int


def meet(into: State, other: State) -> bool:
    """Keep in `into` only what both know; whether that changed it."""
    pending = into.pending | other.pending
    hidden = into.hidden | other.hidden
    changed = pending != into.pending or hidden != into.hidden

    def both(a: int, b: int) -> int:
        """What both know, where what never ran on a path is not in doubt on it."""
        return a if a == b else pending & ~((into.pending & ~a) | (other.pending & ~b))

    known = [both(a, b) for a, b in zip(into.known, other.known, strict=True)]
    events = into.covered.keys() | other.covered.keys()
    covered = {e: both(into.covered.get(e, 0), other.covered.get(e, 0)) for e in events}
    changed = changed or known != into.known or covered != into.covered
    into.pending, into.hidden, into.known, into.covered = pending, hidden, known, covered
    return changed


def weaker(a: State, b: State) -> bool:
    """Whether all that may go wrong from `b` may also go wrong from `a`, which knows no more."""
    if b.pending & ~a.pending or b.hidden & ~a.hidden:
        return False
    events = a.covered.keys() | b.covered.keys()
    pairs = [*zip(a.known, b.known, strict=True), *((a.covered.get(e, 0), b.covered.get(e, 0)) for e in events)]
    return all(not (b.pending & ~theirs) & ~(a.pending & ~mine) for mine, theirs in pairs)
