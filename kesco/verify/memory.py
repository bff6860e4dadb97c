"""Which memory there is at one moment of a run: allocations, and what pools of the program's own have handed out.

In: allocations and their ends, in order. Out: which one an address is in, or was in. What a pool has handed out lies in
an allocation of its own, and is a *piece*: memory of its own from then until it is taken back.

Of what was freed the last ones are remembered, and those that somebody asked to `keep`: a long run needs no more memory
than a short one.
"""

from __future__ import annotations

import bisect
from collections import OrderedDict
from collections.abc import Iterator

from kesco.verify.trace import Allocated, Freed, HandedOut

_REMEMBERED = 1024  # of the freed allocations


class _Book:
    """Allocations that do not overlap, and those that were."""

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._live: dict[int, Allocated] = {}  # by base
        self._freed: OrderedDict[int, tuple[Allocated, int]] = OrderedDict()  # by base: with the stack that freed it
        self._freed_bases: list[int] = []

    def add(self, made: Allocated) -> None:
        if made.base not in self._live:
            bisect.insort(self._bases, made.base)
        self._live[made.base] = made

    def remove(self, base: int, stack: int) -> tuple[Allocated, tuple[Allocated, ...]] | None:
        """The one that begins there, and those that are no longer remembered."""
        made = self._live.pop(base, None)
        if made is None:
            return None
        del self._bases[bisect.bisect_left(self._bases, base)]
        again = self._freed.pop(base, None)
        forgotten = [] if again is None else [again[0]]
        if again is None:
            bisect.insort(self._freed_bases, base)
        self._freed[base] = made, stack
        if len(self._freed) > _REMEMBERED:
            oldest, (one, _) = self._freed.popitem(last=False)
            del self._freed_bases[bisect.bisect_left(self._freed_bases, oldest)]
            forgotten.append(one)
        return made, tuple(forgotten)

    def at(self, address: int) -> Allocated | None:
        index = bisect.bisect_right(self._bases, address) - 1
        if index < 0:
            return None
        one = self._live[self._bases[index]]
        return one if address < one.base + one.size or address == one.base else None

    def between(self, low: int, high: int) -> Iterator[Allocated]:
        first = max(0, bisect.bisect_right(self._bases, low) - 1)
        for base in self._bases[first : bisect.bisect_left(self._bases, high)]:
            one = self._live[base]
            if one.base + one.size > low:
                yield one

    def freed_at(self, address: int) -> tuple[Allocated, int] | None:
        index = bisect.bisect_right(self._freed_bases, address) - 1
        if index < 0:
            return None
        made, stack = self._freed[self._freed_bases[index]]
        return (made, stack) if address < made.base + made.size else None

    def live(self) -> Iterator[Allocated]:
        return iter(self._live.values())


class Memory:
    """Allocations at one moment of the run; `all` has those that were, too, as far as they are remembered."""

    def __init__(self) -> None:
        self.all: dict[int, Allocated] = {}
        self.symbols: dict[str, int] = {}
        self.handles: dict[int, tuple[int, bool]] = {}
        self.written: set[int] = set()  # by kernels: what pointers they hold is not known
        self._allocations, self._pieces = _Book(), _Book()
        self._kept: set[int] = set()
        self._handed_out = 0

    def add(self, made: Allocated) -> None:
        """An allocation came to be."""
        self.all[made.id] = made
        self._allocations.add(made)
        if made.name:
            self.symbols[made.name] = made.id

    def hand_out(self, event: HandedOut) -> Allocated:
        """A pool hands out a piece; the piece."""
        around = self._allocations.at(event.base)
        self._handed_out += 1
        kind = around.kind if around is not None else "d"
        made = Allocated(-self._handed_out, kind, event.base, event.size, event.stack, event.stream, "")
        self.all[made.id] = made
        self._pieces.add(made)
        return made

    def remove(self, freed: Freed) -> int | None:
        """One is freed; its id."""
        return self._removed(self._allocations, freed.base, freed.stack)

    def take_back(self, base: int, stack: int) -> int | None:
        """A pool takes a piece back; its id."""
        return self._removed(self._pieces, base, stack)

    def _removed(self, book: _Book, base: int, stack: int) -> int | None:
        found = book.remove(base, stack)
        if found is None:
            return None
        made, forgotten = found
        self.written.discard(made.id)
        for one in forgotten:
            if one.id not in self._kept:
                self.all.pop(one.id, None)
        return made.id

    def keep(self, number: int) -> None:
        """It is going to be asked for one of these."""
        self._kept.add(number)

    def at(self, address: int) -> Allocated | None:
        """The piece, or else the allocation, that an address is in."""
        return self._pieces.at(address) or self._allocations.at(address)

    def in_range(self, low: int, high: int) -> Iterator[Allocated]:
        """All pieces that some bytes are in; the allocation, unless one piece has them all."""
        pieces = list(self._pieces.between(low, max(high, low + 1)))
        yield from pieces
        whole = len(pieces) == 1 and pieces[0].base <= low and high <= pieces[0].base + pieces[0].size
        if not whole and (around := self._allocations.at(low)) is not None:
            yield around

    def freed_at(self, address: int) -> tuple[Allocated, int] | None:
        """The freed piece or allocation that an address was in, if there is none now, and the stack that freed it."""
        if self._pieces.at(address) is not None:
            return None
        if self._allocations.at(address) is None:
            return self._allocations.freed_at(address)
        return self._pieces.freed_at(address)

    def is_piece(self, number: int) -> bool:
        """Whether this is what a pool had handed out."""
        return number < 0

    def live(self) -> Iterator[Allocated]:
        """All allocations and pieces of this moment."""
        yield from self._allocations.live()
        yield from self._pieces.live()
