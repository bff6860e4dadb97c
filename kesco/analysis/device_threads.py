"""Runs what a kernel's addresses are made of, in many threads at once: which bytes each of them touches.

In: a function of device code, what it is given, the threads. Out: accesses, gathered in an `Accesses`. Apart from
`device_touches`, which chooses the threads, since here is how control goes.

1. The threads that have come to a block go through it together, each with its own numbers (`device_lanes`); of all
   blocks where threads wait the first one is next, so that those who went different ways meet again.
2. What is loaded from memory is not known, but for the launch's own arguments. Where a branch depends on such a value a
   thread goes both ways: a *copy* of it goes the second one. Where copies of one thread meet they are one again, and
   what they do not agree about is not known.
3. A loop that is left by such a branch is walked until nothing new can come of it: from the second trip on what its
   header takes over is not known, and then the copy that would go around again is dropped.
4. An access is *sure* where it does not depend on any such branch that it is made, and no copy of its thread is
   elsewhere.

It gives up (`GivesUp`) where a pointer comes from nowhere, where code is not seen, and where the work is too much.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from kesco.analysis import device_lanes as lanes
from kesco.analysis.device_lanes import FALSE, UNKNOWN, ZERO, Lanes, Numbers, Place
from kesco.analysis.device_paths import Code
from kesco.llvm.types import Layouts
from kesco.llvm.values import Instruction, Local, Value

Rows = NDArray[np.intp]
Constant = Callable[[Value], Lanes]
_T = TypeVar("_T", bound=np.generic)
_MOST_KEPT = 1 << 21  # addresses that are kept before doubles are taken out
_DEEPEST = 24  # calls


class GivesUp(Exception):
    """Nothing can be said of this launch."""


class TooMuch(GivesUp):
    """The work is more than was allowed."""


class Kind(NamedTuple):
    """What a group of accesses has in common; the block is one of the function that is being run."""

    block: int
    of: frozenset[Place]
    width: int
    writes: bool
    sure: bool


@dataclass(slots=True)
class Accesses:
    """Addresses by kind; the places behind which some are not known, with whether it is written there; such kinds."""

    known: dict[Kind, list[Numbers]] = field(default_factory=dict)
    sizes: dict[Kind, int] = field(default_factory=dict)
    lost: set[tuple[Place, bool]] = field(default_factory=set)
    somewhere: set[Kind] = field(default_factory=set)

    def add(self, kind: Kind, addresses: Numbers) -> None:
        """More addresses of a kind."""
        kept = self.known.setdefault(kind, [])
        kept.append(addresses)
        self.sizes[kind] = self.sizes.get(kind, 0) + addresses.size
        if self.sizes[kind] > _MOST_KEPT:
            kept[:] = [np.unique(np.concatenate(kept))]
            self.sizes[kind] = kept[0].size // 2


class Machine:
    """What all functions of one launch share; the caller says what is outside of them."""

    def __init__(
        self, layouts: Layouts, work: int, register: Callable[[str, Rows], Lanes], outside: Callable[..., Lanes | None]
    ) -> None:
        """`register` gives a thread's number or the launch's shape; `outside` does what no instruction here does."""
        self.layouts, self.register, self.outside = layouts, register, outside
        self.work = work
        self.unsure = False  # a thread may have ended early, nobody knows which
        self.depth = 0

    def spend(self, amount: int) -> None:
        """Some work is done."""
        self.work -= amount + 1000  # what an instruction costs for a single thread
        if self.work < 0:
            raise TooMuch


class Activation:
    """One function, entered by some threads at once."""

    def __init__(
        self,
        machine: Machine,
        code: Code,
        given: list[Lanes],
        threads: Rows,
        sure: NDArray[np.bool_],
        constant: Constant,
    ) -> None:
        self.machine, self._code, self._constant = machine, code, constant
        self.accesses = Accesses()
        self._threads, self._sure, self._count = threads, sure, len(threads)
        self._lane: Rows = np.arange(self._count)  # row → the thread that it is, or a copy of
        self._copies = np.ones(self._count, np.int64)
        self._free: list[int] = []
        self._values: dict[Value, Lanes] = {}
        self._levels = {loop.header: np.zeros(self._count, np.int8) for loop in code.loops}
        self._waiting: dict[int, list[tuple[Rows, int]]] = {}
        self._returned: list[tuple[Rows, Lanes]] = []
        self.unknown: set[int] = set()  # blocks whose branch depended on a value that is not known
        everyone: Rows = np.arange(self._count)
        for parameter, value in zip(code.function.parameters, given, strict=False):
            self._set(parameter.value, everyone, value)

    def run(self) -> Lanes:
        """All of it; what it returns in each thread."""
        self.machine.depth += 1
        if self.machine.depth > _DEEPEST:
            raise GivesUp
        self._waiting = {0: [(np.arange(self._count), -1)]}
        while self._waiting:
            number = min(self._waiting)
            rows = self._arrive(number, self._waiting.pop(number))
            if len(rows):
                self._block(number, rows)
        self.machine.depth -= 1
        return self._result()

    def surely(self, kind: Kind) -> bool:
        """Whether such an access is made whatever memory holds."""
        return kind.sure and not self._code.depends(kind.block, frozenset(self.unknown))

    # ---- values -------------------------------------------------------------------------------------------------

    def value(self, operand: Value, rows: Rows) -> Lanes:
        """An operand in some rows."""
        if not isinstance(operand, Local):
            return self._constant(operand)
        known = self._values.get(operand, UNKNOWN)
        return known if len(rows) == len(self._lane) and not self._free else known.take(rows)

    def _set(self, result: Value, rows: Rows, value: Lanes, changes: bool = False) -> None:
        """`changes`: it may be another one where control comes again, or by another way."""
        old = self._values.get(result)
        if not changes and not value.at.ndim and not value.known.ndim:
            self._values[result] = value if old is None else value._replace(of=value.of | old.of)
            return
        size = len(self._lane)
        if len(rows) == size and not self._free:
            made = value.own(size)
        else:
            made = UNKNOWN if old is None else old
            if not (made.at.ndim and made.known.ndim):
                made = made.own(size)
            made.at[rows], made.known[rows] = value.at, value.known
        self._values[result] = made._replace(of=value.of if old is None else value.of | old.of)

    # ---- ways ---------------------------------------------------------------------------------------------------

    def _arrive(self, number: int, groups: list[tuple[Rows, int]]) -> Rows:
        """Threads come to a block by several ways."""
        arrived = []
        for given, source in groups:
            rows, widened = given, np.zeros(0, np.bool_)
            if number in self._levels:
                rows, widened = self._around(number, given, source)
            phis = self._code.phis[number]
            self.machine.spend(len(rows) * (1 + len(phis)))
            values = [self._coming(one, source, rows) for one in phis]
            for one, value in zip(phis, values, strict=True):
                assert one.result is not None
                known = value.known & ~widened if widened.any() else value.known
                self._set(one.result, rows, value._replace(known=known), changes=True)
            arrived.append(rows)
        rows = np.sort(np.concatenate(arrived))
        return self._met(rows) if len(groups) > 1 and self._copies.max(initial=1) > 1 else rows

    def _coming(self, phi: Instruction, source: int, rows: Rows) -> Lanes:
        name = self._code.names[source]
        operand = next(value for value, block in zip(phi.operands, phi.targets, strict=True) if block == name)
        return self.value(operand, rows)

    def _around(self, header: int, rows: Rows, source: int) -> tuple[Rows, NDArray[np.bool_]]:
        """Into a loop, or around it once more: who goes on, and of whom nothing is known that the loop changes."""
        level = self._levels[header]
        loop = max((one for one in self._code.loops if one.header == header), key=lambda one: len(one.blocks))
        if source not in loop.blocks:
            level[rows] = 0
            return rows, np.zeros(len(rows), np.bool_)
        over = level[rows] > loop.patience
        self._drop(rows[over])
        rows = rows[~over]
        widened = level[rows] > 0
        level[rows[widened]] += 1
        return rows, widened

    def _drop(self, rows: Rows) -> None:
        np.subtract.at(self._copies, self._lane[rows], 1)
        self._free += rows.tolist()

    def _met(self, rows: Rows) -> Rows:
        """Copies of one thread that are in the same block are one again."""
        order = np.argsort(self._lane[rows], kind="stable")
        rows = rows[order]
        again = np.concatenate(([False], self._lane[rows][1:] == self._lane[rows][:-1]))
        if not again.any():
            return rows
        kept = rows[~again][np.cumsum(~again) - 1][again]
        gone = rows[again]
        self.machine.spend((len(gone) + 500) * len(self._values))
        for value in self._values.values():
            if value.at.ndim:
                differ = (value.at[kept] != value.at[gone]) | ~value.known[gone]
                value.known[kept[differ]] = False
        for level in self._levels.values():
            np.maximum.at(level, kept, level[gone])
        self._drop(gone)
        return np.sort(rows[~again])

    def _block(self, number: int, rows: Rows) -> None:
        *steps, last = self._code.steps[number]
        for one in steps:
            self.machine.spend(len(rows))
            if one.opcode in lanes.COMPUTED:
                made = lanes.computed(one, [self.value(o, rows) for o in one.operands], self.machine.layouts)
            else:
                result = self.machine.outside(self, one, number, rows)
                if result is None:
                    continue
                made = result
            if one.result is not None:
                self._set(one.result, rows, made)
        self._leave(number, last, rows)

    def _leave(self, number: int, last: Instruction, rows: Rows) -> None:
        if last.opcode == "ret":
            self._returned.append((rows, self.value(last.operands[0], rows) if last.operands else UNKNOWN))
        elif last.opcode == "br" and len(last.targets) == 1:
            self._go(number, last.targets[0], rows)
        elif last.opcode in ("br", "switch"):
            self._choose(number, last, rows)
        elif last.opcode != "unreachable":
            raise GivesUp

    def _choose(self, number: int, last: Instruction, rows: Rows) -> None:
        condition = self.value(last.operands[0], rows)
        at, known = condition.spread(len(rows))
        if last.opcode == "br":
            chosen = np.where(at != 0, 0, 1)
        else:
            chosen = np.zeros(len(rows), np.intp)
            for case, wanted in enumerate(last.indices, 1):
                chosen[at == wanted] = case
        ways = list(dict.fromkeys(last.targets))
        for way in ways:
            mine = [at for at, target in enumerate(last.targets) if target == way]
            self._go(number, way, rows[known & np.isin(chosen, mine)])
        lost = rows[~known]
        if not len(lost):
            return
        if len(ways) > 1:
            self.unknown.add(number)
            inside = [self._code.numbers[way] for way in ways]
            for loop in self._code.loops:
                if number in loop.blocks and any(one not in loop.blocks for one in inside):
                    self._levels[loop.header][lost] = np.maximum(self._levels[loop.header][lost], 1)
        copies = [self._copied(lost) for _ in ways[1:]]
        for way, those in zip(ways, (lost, *copies), strict=True):
            self._go(number, way, those)

    def _go(self, source: int, target: str, rows: Rows) -> None:
        if len(rows):
            self._waiting.setdefault(self._code.numbers[target], []).append((rows, source))

    def _copied(self, rows: Rows) -> Rows:
        """New rows that are as these are."""
        self.machine.spend((len(rows) + 500) * len(self._values))
        reused, self._free = self._free[: len(rows)], self._free[len(rows) :]
        fresh = np.arange(len(self._lane), len(self._lane) + len(rows) - len(reused))
        made = np.concatenate((np.array(reused, np.intp), fresh))

        self._copies[self._lane[rows]] += 1
        self._lane = _grown(self._lane, rows, made, len(fresh))
        self._levels = {header: _grown(level, rows, made, len(fresh)) for header, level in self._levels.items()}
        for name, value in self._values.items():
            if value.at.ndim:
                at, known = (_grown(value.at, rows, made, len(fresh)), _grown(value.known, rows, made, len(fresh)))
                self._values[name] = Lanes(at, known, value.of)
        return np.sort(made)

    # ---- what comes of it ---------------------------------------------------------------------------------------

    def touch(self, block: int, rows: Rows, address: Lanes, width: int, writes: bool, certain: bool = True) -> None:
        """An access, or several at once; `certain` is whether it is one whatever is there."""
        if not address.of or any(one.base == lanes.ANYWHERE for one in address.of):
            raise GivesUp
        of = frozenset(one for one in address.of if one.base not in (lanes.OWN, lanes.DEEP))
        if not of:
            return
        if any(one.kind == "copy" for one in of):
            if writes:
                raise GivesUp
            return
        at, known = address.spread(len(rows))
        if not known.all():
            self.accesses.lost |= {(one, writes) for one in of}
            if len(of) == 1 and certain and (self._alone(rows) & ~known).any():
                self.accesses.somewhere.add(Kind(block, of, width, writes, True))
        for sure, those in ((True, self._alone(rows) & certain), (False, ~(self._alone(rows) & certain))):
            chosen = at[known & those]
            if chosen.size:
                self.accesses.add(Kind(block, of, width, writes, sure), chosen)

    def _alone(self, rows: Rows) -> NDArray[np.bool_]:
        """Of which rows no copy is elsewhere."""
        alone: NDArray[np.bool_] = self._sure[self._lane[rows]] & (self._copies[self._lane[rows]] == 1)
        return alone

    def called(self, code: Code, block: int, rows: Rows, given: list[Lanes]) -> Lanes:
        """Another function is called."""
        inner = Activation(self.machine, code, given, self.threads(rows), self._alone(rows), self._constant)
        result = inner.run()
        self.accesses.lost |= inner.accesses.lost
        self.accesses.somewhere |= {one._replace(block=block) for one in inner.accesses.somewhere if inner.surely(one)}
        for kind, several in inner.accesses.known.items():
            for one in several:
                self.accesses.add(kind._replace(block=block, sure=inner.surely(kind)), one)
        if inner.unknown and any(one.opcode == "unreachable" for steps in code.steps for one in steps):
            self.machine.unsure = True
        return result

    def threads(self, rows: Rows) -> Rows:
        """The threads that some rows are."""
        return self._threads[self._lane[rows]]

    def _result(self) -> Lanes:
        count = self._count
        at, known, seen = np.zeros(count, np.int64), np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        of: frozenset[Place] = frozenset()
        for rows, value in self._returned:
            lane, of = self._lane[rows], of | value.of
            agrees = ~seen[lane] | (known[lane] & (at[lane] == value.at))  # with a copy that returned before
            at[lane], known[lane], seen[lane] = value.at, value.known & agrees, True
        return Lanes(at, known, of) if self._returned else Lanes(ZERO, FALSE)


def _grown(old: NDArray[_T], rows: Rows, made: Rows, fresh: int) -> NDArray[_T]:
    """An array with room for new rows, which hold what the old ones do."""
    grown = np.concatenate((old, np.zeros(fresh, old.dtype))) if fresh else old
    grown[made] = grown[rows]
    return grown
