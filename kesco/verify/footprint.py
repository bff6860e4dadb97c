"""What each recorded operation touches: addresses and kernels' effects → accesses of allocations.

In: the events of a trace in order, and the effects of the kernels. Out: for each event its accesses, and the operations
that were given freed memory. A stage of its own because only here is known which allocation an address belonged to at
that moment.

- A copy or memset touches exactly its bytes (*exact*).
- A kernel touches the allocation that a pointer of its arguments points into. Between which addresses it stays there
  is known where its footprint bounds that; which bytes it touches with these arguments is asked for when it matters
  (`touched`). Pointers stored in memory were followed by the recorder.
- Two launches of one kernel that differ in nothing that steers its accesses touch the same bytes, whichever those are:
  they have the same *part*.
- A kernel whose code cannot be followed, or that follows pointers which a kernel before it may have written, touches
  every allocation (*vague*), and so does one whose arguments are not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kesco.ir.access import AccessMode
from kesco.ir.effects import DIMENSIONS, ArgumentBytes, KernelEffects, ParamBase, RootEffect, Steering
from kesco.ir.poly import Poly, Symbol, constant
from kesco.ir.touched import Asked, Bytes, Spans, Touch, Touches
from kesco.verify.memory import Memory
from kesco.verify.trace import Allocated, Called, Copied, Launched, Range, Touched

_ARGUMENT = re.compile(r"([su])(\d+) arg(\d+)")
_KEPT = 1 << 24  # ranges of bytes that are remembered


class Part(NamedTuple):
    """What decides which bytes a launch touches through a root: two that are equal touch the same ones."""

    kernel: str
    shape: str
    root: ParamBase | str
    steered: bytes


class Access(NamedTuple):
    """One allocation touched: which bytes if `exact`, otherwise from a pointer that points to `bytes.low`."""

    allocation: int
    writes: bool
    bytes: Range
    exact: bool
    most: tuple[int, int] | None = None  # the addresses between which it stays at most
    part: Part | None = None
    launch: Launched | None = None  # which bytes it touches can be asked for
    vague: str = ""  # why it counts as touching this, where nothing says that it does
    known: Bytes | None = None  # which bytes it touches, where it stands for several accesses


class Given(NamedTuple):
    """A root of a launch: where it points, what the kernel does through it, and what decides where."""

    root: ParamBase | str
    pointer: int
    effect: RootEffect
    part: Part


class Footprints:
    """Accesses of events, asked for in their order."""

    def __init__(self, effects: Mapping[str, KernelEffects], steering: Mapping[str, Steering], asked: Asked) -> None:
        self.effects, self._steering, self._asked = effects, steering, asked
        self.memory = Memory()
        self.unknown: dict[str, str] = {}  # kernels that count as touching everything, and why
        self._touches: dict[Part, Touches | None] = {}
        self._size = 0
        self._deciding: dict[tuple[str, tuple[ParamBase | str, ...]], list[ArgumentBytes] | None] = {}

    def ranges(self, event: Copied | Touched) -> Iterator[Access]:
        """What a copy, memset or access of the host touches; pageable memory is left out."""
        ranges = event.ranges if isinstance(event, Copied) else (Range(event.writes, event.address, 1),)
        for one in ranges:
            for found in self.memory.in_range(one.low, one.high):
                yield Access(found.id, one.writes, one, exact=True)

    def called(self, event: Called) -> Iterator[Access]:
        """What a library touches: something, or nothing, of the memory that its table says it is given."""
        for writes, address in event.touched:
            found = self.memory.at(address)
            if found is not None:
                whole = Range(writes, found.base, found.size)
                yield Access(found.id, writes, whole, exact=False, known=Bytes.unknown())

    def kernel(self, event: Launched) -> Iterator[Access]:
        """What a kernel touches."""
        effect = self.effects.get(event.name)
        if effect is None or event.arguments is None or effect.opaque:
            yield from self._everything(event, effect.opaque if effect and effect.opaque else "its code is not seen")
            return
        deep = AccessMode.NONE
        sources: list[int] = []
        behind = b""
        for one in self.roots(event, effect):
            found = self.memory.at(one.pointer)
            deep |= one.effect.deep
            if found is None:
                continue
            if one.effect.deep:
                sources.append(found.id)
                behind += one.part.steered
            most = self._most(event, one.pointer, one.effect)
            yield from self._through(found.id, one.pointer, one.effect.direct, one.part, most, event)
        if deep and not self.memory.written.isdisjoint(sources):
            yield from self._everything(event, "it follows pointers that a kernel may have written")
        elif deep:
            part = Part(event.name, f"{event.grid} {event.block}", "*", behind)
            for number in event.reached:
                yield from self._through(number, self.memory.all[number].base, deep, part)
        if "texture" in effect.order:
            yield from self._handles(event)

    def roots(self, event: Launched, effect: KernelEffects) -> Iterator[Given]:
        """What a launch reaches memory through: the pointers among its arguments, and device symbols."""
        if event.arguments is None:
            return
        shape = f"{event.grid} {event.block}"

        def part(root: ParamBase | str) -> Part:
            return Part(event.name, shape, root, self._steered(event, (root,)))

        for param in effect.params:
            argument = event.arguments[param.index] if param.index < len(event.arguments) else b""
            for field, root in param.fields:
                for offset in (field,) if field >= 0 else range(0, len(argument) - 7, 8):  # any pointer in it
                    value = int.from_bytes(argument[offset : offset + 8], "little")
                    if value and (field >= 0 or self.memory.at(value) is not None):
                        yield Given((param.index, field), value, root, part((param.index, field)))
        for name, root in effect.symbols:
            number = self.memory.symbols.get(name)
            if number is not None:
                yield Given(name, self.memory.all[number].base, root, part(name))

    def _steered(self, event: Launched, roots: tuple[ParamBase | str, ...]) -> bytes:
        """The bytes of the arguments that decide where a launch goes through these."""
        arguments = event.arguments or ()
        if (event.name, roots) not in self._deciding:
            known = self._steering.get(event.name, {})
            those = None if any(r not in known for r in roots) else sorted({one for r in roots for one in known[r]})
            self._deciding[event.name, roots] = those
        deciding = self._deciding[event.name, roots]
        if deciding is None:
            return b"".join(arguments)
        return b"".join([arguments[one.argument][one.start : one.end] for one in deciding])

    def touched(self, access: Access) -> Bytes:
        """Which bytes of memory an access touches."""
        if access.known is not None:
            return access.known
        if access.exact:
            one = access.bytes
            return Bytes.exactly(Spans.rows(one.low, one.width, one.pitch, one.rows))
        touches = self._launch(access.launch) if access.launch is not None else None
        if touches is None or access.part is None:
            return Bytes.unknown()
        found = touches.of(access.part.root)[access.writes]
        return found.moved(access.bytes.low) if isinstance(access.part.root, str) else found

    def stays(self, through: tuple[Launched, Given] | None, made: Allocated) -> bool:
        """Whether all that a launch touches through a root is known to be in this memory, and there is something."""
        if through is None:
            return False
        event, root = through
        touches = self._launch(event)
        sides = touches.of(root.root) if touches is not None else ()
        limits = [side.may for side in sides]
        if not limits or any(one is None for one in limits):
            return False
        known = [one for one in limits if one]
        inside = (made.base <= one.lows[0] and one.highs[-1] <= made.base + made.size for one in known)
        return bool(known) and all(inside)

    def _launch(self, event: Launched) -> Touches | None:
        effect = self.effects[event.name]
        roots: tuple[ParamBase | str, ...] = (
            *((p.index, field) for p in effect.params for field, _ in p.fields),
            *(s for s, _ in effect.symbols),
        )
        key = Part(event.name, f"{event.grid} {event.block}", "", self._steered(event, roots))
        if key not in self._touches:
            if self._size > _KEPT:
                self._touches.clear()
                self._size = 0
            grid, block = (_shape(one) for one in (event.grid, event.block))
            found = self._asked(event.name, event.arguments or (), grid, block) if grid and block else None
            self._touches[key] = found
            self._size += 1 if found is None else sum(map(_size, found.by.values()))
        return self._touches[key]

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
        part: Part | None = None,
        most: tuple[int, int] | None = None,
        launch: Launched | None = None,
    ) -> Iterator[Access]:
        one = self.memory.all[number]
        whole = one.base + one.size - pointer
        for writes in (False, True):
            if (AccessMode.WRITE if writes else AccessMode.READ) in mode:
                if writes:
                    self.memory.written.add(number)
                yield Access(number, writes, Range(writes, pointer, whole), False, most, part, launch)

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


def _shape(text: str) -> tuple[int, int, int] | None:
    sizes = tuple(int(size) for size in text.split(","))
    return (sizes[0], sizes[1], sizes[2]) if len(sizes) == 3 else None


def _size(touch: Touch) -> int:
    return sum(len(spans.lows) for one in touch for spans in one[:2] if spans is not None)
