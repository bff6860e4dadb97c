"""What is known at one place of a program about the order of its work, and how two such states are compared.

In: states. Out: what remains where paths meet, and which of two states knows more. Apart from the ordering rules
because it is about sets only: every bit of every mask is treated by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    """Before a site: what its own action is not ordered after, and `pending`, `hidden` as in `State`.

    `near` is what its action is not ordered after of this trip of the loop that is looked at, or of earlier stays;
    `far` is that of other trips of this stay, and `late` what of these the serial program's host had awaited.
    """

    unordered: int
    pending: int
    hidden: int
    near: int = -1
    far: int = -1
    late: int = -1


class Trips:
    """The executions of each site by trips of one loop: those of this trip, of this stay in the loop, and older ones.

    A mask has three bits a site, each group of `sites` bits behind the other, in this order. With `apart` the trips are
    on streams of their own: what one knows of its stay, the next does not.
    """

    def __init__(self, sites: int, apart: bool = False) -> None:
        self._sites, self._all, self._apart = sites, (1 << sites) - 1, apart

    def every(self, masks: Mapping[int, int]) -> dict[int, int]:
        """Masks of sites as they are of any trip."""
        return {number: self._joined(mask, mask, mask) for number, mask in masks.items()}

    def facts(self, unordered: int, pending: int, hidden: int) -> Facts:
        """The facts by sites."""
        this, stay, old = self._split(unordered)
        late = self._split(hidden)[1]
        return Facts(this | stay | old, self._any(pending), self._any(hidden), this | old, stay, late)

    def turn(self, state: State, enters: bool) -> None:
        """A trip begins; with `enters`, control comes to the loop instead, and none of its trips has begun."""
        pending = self._split(state.pending)

        def later(mask: int, both: bool) -> int:
            parts = self._split(mask)
            if not enters and both and self._apart:
                return self._joined(0, 0, parts[2])
            if not enters:
                return self._joined(0, self._together(parts[:2], pending[:2], both), parts[2])
            return self._joined(0, 0, self._together(parts, pending, both))

        state.known[:] = [later(mask, True) for mask in state.known]
        state.covered = {event: later(mask, True) for event, mask in state.covered.items()}
        state.hidden, state.pending = later(state.hidden, False), later(state.pending, False)

    def _together(self, parts: tuple[int, ...], pending: tuple[int, ...], known: bool) -> int:
        """Several groups as one: what is known of a site must be known of each group that is pending."""
        result = 0
        for part in pending if known else parts:
            result |= part
        for part, there in zip(parts, pending, strict=True):
            result &= part | ~there if known else -1
        return result

    def _split(self, mask: int) -> tuple[int, ...]:
        return tuple(mask >> n * self._sites & self._all for n in range(3))

    def _joined(self, *parts: int) -> int:
        return sum(part << n * self._sites for n, part in enumerate(parts))

    def _any(self, mask: int) -> int:
        this, stay, old = self._split(mask)
        return this | stay | old


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
