"""What each recorded operation touches: addresses and kernels' effects → accesses of allocations.

In: the events of a trace in order, and the effects of the kernels. Out: for each event its accesses, and the operations
that were given freed memory. A stage of its own because only here is known which allocation an address belonged to at
that moment.

- A copy or memset touches exactly its bytes (*exact*).
- A kernel touches the allocation that a pointer of its arguments points into. It is remembered where the pointer
  points, and where the kernel's footprint bounds it, between which addresses it stays. Pointers stored in memory were
  followed by the recorder.
- A kernel that is given one pointer on several streams, with different values of what steers its accesses there,
  touches a *part* behind it each time. Other arguments say nothing of where.
- A kernel whose code cannot be followed, or that follows pointers which a kernel before it may have written, touches
  every allocation (*vague*), and so does one whose arguments are not known.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kesco.ir.access import AccessMode
from kesco.ir.effects import DIMENSIONS, KernelEffects, ParamBase, RootEffect, Steering
from kesco.ir.poly import Poly, Symbol, constant
from kesco.verify.trace import Allocated, Copied, Freed, Handle, Launched, Range, Touched

_ARGUMENT = re.compile(r"([su])(\d+) arg(\d+)")


Part = tuple[str, bytes]
"""What a kernel touches behind a pointer, where it is given that for several parts: the kernel, and what steers it."""


class Access(NamedTuple):
    """One allocation touched: which bytes if `exact`, otherwise from a pointer that points to `bytes.low`."""

    allocation: int
    writes: bool
    bytes: Range
    exact: bool
    most: tuple[int, int] | None = None  # the addresses between which a kernel stays at most
    part: Part | None = None  # one of several parts
    vague: str = ""  # why it counts as touching this, where nothing says that it does


class Given(NamedTuple):
    """A root of a launch: where it points, what the kernel does through it, and the bytes that steer it there."""

    root: ParamBase | str
    pointer: int
    effect: RootEffect
    steered: bytes


@dataclass(slots=True)
class Use:
    """How the whole run uses an allocation: where its pointers point."""

    starts: set[int]
    parts: bool = False

    @property
    def whole(self) -> bool:
        """Whether nobody ever uses a part of it, as far as can be seen."""
        return len(self.starts) < 2 and not self.parts


class Memory:
    """Allocations at one moment of the run."""

    def __init__(self) -> None:
        self.all: dict[int, Allocated] = {}
        self._bases: list[int] = []
        self._live: dict[int, int] = {}  # base → id
        self._freed: list[tuple[int, int, int, Freed]] = []  # base, end, id
        self._freed_sorted = True
        self.symbols: dict[str, int] = {}
        self.handles: dict[int, tuple[int, bool]] = {}
        self.written: set[int] = set()  # by kernels: what pointers they hold is not known

    def add(self, made: Allocated) -> None:
        """An allocation came to be."""
        self.all[made.id] = made
        if made.base not in self._live:
            bisect.insort(self._bases, made.base)
        self._live[made.base] = made.id
        if made.name:
            self.symbols[made.name] = made.id

    def remove(self, freed: Freed) -> int | None:
        """One is freed; its id."""
        number = self._live.pop(freed.base, None)
        if number is None:
            return None
        del self._bases[bisect.bisect_left(self._bases, freed.base)]
        self._freed.append((freed.base, freed.base + self.all[number].size, number, freed))
        self._freed_sorted = False
        return number

    def at(self, address: int) -> Allocated | None:
        """The allocation that an address is in."""
        index = bisect.bisect_right(self._bases, address) - 1
        if index < 0:
            return None
        one = self.all[self._live[self._bases[index]]]
        return one if address < one.base + one.size or address == one.base else None

    def freed_at(self, address: int) -> tuple[int, Freed] | None:
        """The freed allocation that an address was in, if nothing is there now: its id, and how it was freed."""
        if not self._freed_sorted:
            self._freed.sort(key=lambda one: one[:3])
            self._freed_sorted = True
        index = bisect.bisect_right(self._freed, address, key=lambda one: one[0]) - 1
        if index >= 0 and address < self._freed[index][1]:
            return self._freed[index][2], self._freed[index][3]
        return None

    def live(self) -> Iterator[Allocated]:
        """All allocations of this moment."""
        return (self.all[number] for number in self._live.values())


class Footprints:
    """Accesses of events, asked for in their order."""

    def __init__(self, effects: Mapping[str, KernelEffects], steering: Mapping[str, Steering]) -> None:
        self.effects, self._steering = effects, steering
        self.memory = Memory()
        self.parts: set[tuple[str, int]] = set()
        self.unknown: dict[str, str] = {}  # kernels that count as touching everything, and why

    def ranges(self, event: Copied | Touched) -> Iterator[Access]:
        """What a copy, memset or access of the host touches; pageable memory is left out."""
        ranges = event.ranges if isinstance(event, Copied) else (Range(event.writes, event.address, 1),)
        for one in ranges:
            found = self.memory.at(one.low)
            if found is not None:
                yield Access(found.id, one.writes, one, exact=True)

    def kernel(self, event: Launched) -> Iterator[Access]:
        """What a kernel touches."""
        effect = self.effects.get(event.name)
        if effect is None or event.arguments is None or effect.opaque:
            yield from self._everything(event, effect.opaque if effect and effect.opaque else "its code is not seen")
            return
        deep = AccessMode.NONE
        sources: list[int] = []
        behind: Part | None = None
        for one in self.roots(event, effect):
            found = self.memory.at(one.pointer)
            part = (event.name, one.steered) if (event.name, one.pointer) in self.parts else None
            deep |= one.effect.deep
            if found is not None:
                if one.effect.deep:
                    sources.append(found.id)
                    behind = (event.name, (behind[1] if behind else b"") + part[1]) if part else behind
                most = self._most(event, one.pointer, one.effect)
                yield from self._through(found.id, one.pointer, one.effect.direct, most, part)
        if deep and not self.memory.written.isdisjoint(sources):
            yield from self._everything(event, "it follows pointers that a kernel may have written")
        elif deep:
            for number in event.reached:
                yield from self._through(number, self.memory.all[number].base, deep, part=behind)
        if "texture" in effect.order:
            yield from self._handles(event)

    def roots(self, event: Launched, effect: KernelEffects) -> Iterator[Given]:
        """What a launch reaches memory through: the pointers among its arguments, and device symbols."""
        if event.arguments is None:
            return
        known = self._steering.get(event.name, {})

        def steered(root: ParamBase | str) -> bytes:
            arguments = event.arguments or ()
            if root not in known:
                return b"".join(arguments)
            return b"".join(arguments[one.argument][one.start : one.end] for one in sorted(known[root]))

        for param in effect.params:
            argument = event.arguments[param.index] if param.index < len(event.arguments) else b""
            for offset, root in param.fields:
                value = int.from_bytes(argument[offset : offset + 8], "little")
                if value:
                    yield Given((param.index, offset), value, root, steered((param.index, offset)))
        for name, root in effect.symbols:
            number = self.memory.symbols.get(name)
            if number is not None:
                yield Given(name, self.memory.all[number].base, root, steered(name))

    def _most(self, event: Launched, pointer: int, root: RootEffect) -> tuple[int, int] | None:
        """Between which addresses a launch stays behind a pointer, where its footprint says so."""
        known = root.footprint
        if known is None or event.arguments is None:
            return None
        arguments = event.arguments
        shape = [int(size) for size in re.findall(r"\d+", f"{event.grid} {event.block}")]
        sizes = dict(zip((s.name for s in DIMENSIONS), shape, strict=True)) if len(shape) == len(DIMENSIONS) else {}

        def value(symbol: Symbol) -> Poly | None:
            found = _ARGUMENT.fullmatch(symbol.name)
            if found is None:
                return constant(sizes[symbol.name]) if symbol.name in sizes else None
            index, width = int(found[3]), int(found[2]) // 8
            if index >= len(arguments) or len(arguments[index]) < width:
                return None
            return constant(int.from_bytes(arguments[index][:width], "little", signed=found[1] == "s"))

        def number(poly: Poly) -> int | None:
            made = poly.substituted(value)
            return None if made is None else made.constant

        for poly, most in known.fits:
            if (least := number(poly)) is None or least > most:
                return None
        low, high = number(known.bytes.low), number(known.bytes.high)
        return None if low is None or high is None else (pointer + low, pointer + high)

    def _through(
        self,
        number: int,
        pointer: int,
        mode: AccessMode,
        most: tuple[int, int] | None = None,
        part: Part | None = None,
    ) -> Iterator[Access]:
        one = self.memory.all[number]
        whole = one.base + one.size - pointer
        if AccessMode.READ in mode:
            yield Access(number, False, Range(False, pointer, whole), exact=False, most=most, part=part)
        if AccessMode.WRITE in mode:
            self.memory.written.add(number)
            yield Access(number, True, Range(True, pointer, whole), exact=False, most=most, part=part)

    def _everything(self, event: Launched, why: str) -> Iterator[Access]:
        self.unknown[event.name] = why
        for one in self.memory.live():
            self.memory.written.add(one.id)
            yield Access(one.id, True, Range(True, one.base, one.size), exact=False, vague=why)

    def _handles(self, event: Launched) -> Iterator[Access]:
        for argument in event.arguments or ():
            for at in range(0, len(argument) - 7, 8):
                handle = self.memory.handles.get(int.from_bytes(argument[at : at + 8], "little"))
                found = self.memory.at(handle[0]) if handle else None
                if handle and found is not None:
                    mode = AccessMode.READ_WRITE if handle[1] else AccessMode.READ
                    yield from self._through(found.id, handle[0], mode)


def uses(events: tuple[object, ...], footprints: Footprints) -> dict[int, Use]:
    """A first walk over the run: where pointers into each allocation point, and which kernels are given parts."""
    found: dict[int, Use] = {}
    launches: dict[tuple[str, int], tuple[set[bytes], set[int]]] = {}
    memory = footprints.memory
    for event in events:
        if isinstance(event, Allocated):
            memory.add(event)
            found[event.id] = Use(set())
        elif isinstance(event, Freed):
            memory.remove(event)
        elif isinstance(event, Handle):
            memory.handles[event.number] = (event.address, event.writes)
        elif isinstance(event, Copied):
            for access in footprints.ranges(event):
                found[access.allocation].starts.add(access.bytes.low)
        elif isinstance(event, Launched) and event.name in footprints.effects:
            for one in footprints.roots(event, footprints.effects[event.name]):
                if (allocation := memory.at(one.pointer)) is None:
                    continue
                if not isinstance(one.root, str):
                    found[allocation.id].starts.add(one.pointer)
                variants = launches.setdefault((event.name, one.pointer), (set(), set()))
                variants[0].add(one.steered)
                variants[1].add(event.stream)
                if len(variants[0]) > 1 and len(variants[1]) > 1:
                    footprints.parts.add((event.name, one.pointer))
                    for number in (allocation.id, *(event.reached if one.effect.deep else ())):
                        found[number].parts = True
    footprints.memory = Memory()
    return found
