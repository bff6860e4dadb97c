"""Device code and one launch → the bytes that it touches: exactly, where no address depends on what memory holds.

In: the IR of a program's files with device code; then, launch by launch, a kernel's name, its arguments' bytes, its
grid and block. Out: `Touches`, by root. A stage of its own beside `footprints`, which bounds *all* launches of a kernel
by one range: only whoever looks at a run has arguments, and can tell the even elements from the odd ones.

1. Threads are run in groups (`device_threads`): a few of the first block, a few of the last one, then all.
2. Device symbols, structures passed by value, memory of the kernel's own get addresses far from any memory.
3. What was seen until the work became too much is touched; how much more is, is not known then.

Nothing is said of a kernel whose code is not seen or not read, that starts others, or makes pointers of numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np

from kesco.analysis import device_lanes as lanes
from kesco.analysis.device_calls import Behaviour, Special
from kesco.analysis.device_lanes import FALSE, TRUE, UNKNOWN, ZERO, Lanes, Place
from kesco.analysis.device_paths import Code, code_of
from kesco.analysis.device_reader import DeviceModule
from kesco.analysis.device_threads import Activation, GivesUp, Machine, Rows, TooMuch
from kesco.analysis.effects_machine import SHARED_SPACE
from kesco.ir.access import AccessMode
from kesco.ir.touched import Bytes, Shape, Spans, Touch, Touches
from kesco.llvm.types import Type
from kesco.llvm.values import Assembly, Function, Instruction, Integer, Value, callee, symbols_in

_WORK, _WORK_IN_ALL = 120_000_000, 3_000_000_000  # instructions times threads: about one second, and half a minute
_GROUPS = (32, 1 << 16)  # threads of the first and last groups, and of the others
_ROOM = 1 << 40  # addresses of each thing that gets some here
_SYMBOLS, _COPIES, _OWN = 1 << 61, 1 << 60, 3 << 60
_SREG = re.compile(r"llvm\.nvvm\.read\.ptx\.sreg\.((?:n?tid|n?ctaid)\.[xyz])")
_BETWEEN = re.compile(r"llvm\.([su](?:min|max))\.i\d+")
_ENDS = re.compile(r"(?<![\w%])(?:exit|trap)\b")
_PIECES = frozenset({1, 2, 4, 8})


class KernelTouches:
    """Answers for the kernels of a program."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = list(texts)
        self._kernels: dict[str, _Module | None] | None = None
        self._work = _WORK_IN_ALL

    def __call__(self, name: str, arguments: tuple[bytes, ...], grid: Shape, block: Shape) -> Touches | None:
        """What a launch touches; None where nothing can be said."""
        found = self._known().get(name)
        if found is None or self._work <= 0:
            return None
        try:
            launch = _Launch(found, name, arguments, grid, block, min(_WORK, self._work))
        except GivesUp:
            return None
        self._work -= launch.spent
        return launch.touches

    def names(self) -> tuple[str, ...]:
        """All kernels."""
        return tuple(self._known())

    def _known(self) -> dict[str, _Module | None]:
        """The module of each kernel; none where there are two that differ, as static functions of one name may."""
        if self._kernels is None:
            self._kernels = {}
            for module in [_Module(DeviceModule(text)) for text in self._texts]:
                for name in module.read.kernels:
                    other = self._kernels.setdefault(name, module)
                    if other is not None and other is not module and not _alike(other, module, name, set()):
                        self._kernels[name] = None
        return self._kernels


class _Module:
    """A module and the functions of it that were asked for."""

    def __init__(self, read: DeviceModule) -> None:
        self.read = read
        self._codes: dict[str, Code] = {}
        self._constants: dict[Value, Lanes] = {}
        self._symbols: dict[str, int] = {}

    def code(self, name: str) -> Code:
        """A function with a body."""
        if name not in self._codes:
            function = self.read.body(name)
            if not function.is_read:
                raise GivesUp
            self._codes[name] = code_of(function)
        return self._codes[name]

    def constant(self, value: Value) -> Lanes:
        """What an operand is that is no result."""
        found = self._constants.get(value)
        if found is None:
            found = self._constants[value] = self._constant(value)
        return found

    def _constant(self, value: Value) -> Lanes:
        if isinstance(value, Integer):
            made = lanes.number(value.value)
            return made._replace(at=lanes.fit(made.at, value.type.number))
        known = self.read.constant(value)
        if known is None or value.type.kind != "ptr":
            return UNKNOWN
        if known.null:
            return lanes.number(0)
        names = self.read.targets(known.names[0]) if len(known.names) == 1 and not known.absolute else ()
        variable = self.read.variable(names[0]) if len(names) == 1 else None
        if variable is None:
            return Lanes(ZERO, FALSE, frozenset({Place(lanes.ANYWHERE)}))
        if variable.space == SHARED_SPACE:
            return lanes.number(_OWN, frozenset({Place(lanes.OWN)}))._replace(known=FALSE)
        number, of = self._symbols.setdefault(names[0], len(self._symbols)), frozenset({Place(names[0])})
        if known.offset is None:
            return Lanes(ZERO, FALSE, of)
        return lanes.number(_SYMBOLS + number * _ROOM + known.offset, of)

    def begins(self, symbol: str) -> int:
        """The address that a symbol has here."""
        return _SYMBOLS + self._symbols[symbol] * _ROOM


def _alike(one: _Module, other: _Module, name: str, seen: set[str]) -> bool:
    """Whether two files mean the same by a function's name."""
    if name in seen:
        return True
    seen.add(name)
    there = one.read.has_body(name), other.read.has_body(name)
    if there != (True, True):
        return there == (False, False)
    body = one.read.body(name)
    called = [callee(code) for block in body.blocks for code in block.instructions]
    return _plain(body) == _plain(other.read.body(name)) and all(_alike(one, other, c, seen) for c in called if c)


def _plain(body: Function) -> object:
    """A function without what numbers stand for in its module only."""
    return [
        (block.name, c.opcode, c.result, c.type, c.operands, c.words, c.about, c.indices, c.targets)
        for block in body.blocks
        for c in block.instructions
    ]


class _Launch:
    """One launch; see the module's docstring."""

    def __init__(
        self, module: _Module, name: str, arguments: tuple[bytes, ...], grid: Shape, block: Shape, work: int
    ) -> None:
        self._module, self._arguments = module, arguments
        self._shape = dict(
            zip((f"{r}.{axis}" for r in ("nctaid", "ntid") for axis in "xyz"), (*grid, *block), strict=True)
        )
        self._machine = Machine(module.read.layouts, work, self._register, self._outside)
        self._code = module.code(name)
        self._spans: dict[tuple[Place, bool, bool], list[Spans]] = {}
        self._lost: set[tuple[Place, bool]] = set()
        self._somewhere: set[tuple[Place, bool]] = set()
        given = list(self._given())
        self._whole = True
        try:
            for threads in _groups(int(np.prod(grid)) * int(np.prod(block)), int(np.prod(block))):
                self._run(given, threads)
        except TooMuch:
            self._whole = False
        self.spent = work - max(0, self._machine.work)
        self.touches = self._found()

    def _given(self) -> Iterator[Lanes]:
        parameters = self._code.function.parameters
        if len(parameters) != len(self._arguments):
            raise GivesUp
        for index, (parameter, data) in enumerate(zip(parameters, self._arguments, strict=True)):
            if parameter.promised("byval") is not None:
                yield lanes.number(_COPIES + index * _ROOM, frozenset({Place((index, 0), "copy")}))
            elif parameter.type.kind == "ptr" and len(data) == 8:
                yield lanes.number(int.from_bytes(data, "little"), frozenset({Place((index, 0))}))
            elif parameter.type.kind == "int" and len(data) <= 8:
                number = lanes.number(int.from_bytes(data, "little"))
                yield Lanes(lanes.fit(number.at, parameter.type.number), TRUE)
            else:
                yield UNKNOWN

    def _run(self, given: list[Lanes], threads: Rows) -> None:
        active = Activation(
            self._machine, self._code, given, threads, np.ones(len(threads), np.bool_), self._module.constant
        )
        active.run()
        self._lost |= active.accesses.lost
        self._somewhere |= {(p, one.writes) for one in active.accesses.somewhere if active.surely(one) for p in one.of}
        for kind, several in active.accesses.known.items():
            spans = Spans.of(np.concatenate(several), kind.width)
            for place in kind.of:
                for sure in (False, True) if active.surely(kind) else (False,):
                    kept = self._spans.setdefault((place, kind.writes, sure), [])
                    kept.append(spans)
                    if len(kept) > 16:
                        kept[:] = [Spans.all_of(kept)]

    def _register(self, name: str, threads: Rows) -> Lanes:
        if name in self._shape:
            return lanes.number(self._shape[name])
        register, axis = name.split(".")
        sizes = [self._shape[f"n{register}.{one}"] for one in "xyz"]
        in_block = int(np.prod([self._shape[f"ntid.{one}"] for one in "xyz"]))
        at = threads % in_block if register == "tid" else threads // in_block
        for one, size in zip("xyz", sizes, strict=True):
            if one == axis:
                return Lanes((at % size).astype(np.int64), TRUE)
            at = at // size
        raise AssertionError(name)

    # ---- what is no arithmetic ----------------------------------------------------------------------------------

    def _outside(self, active: Activation, code: Instruction, block: int, rows: Rows) -> Lanes | None:
        layouts, opcode = self._machine.layouts, code.opcode
        if opcode == "load":
            address = active.value(code.operands[0], rows)
            active.touch(block, rows, address, layouts.size(code.type), False)
            return self._loaded(address, code.type)
        if opcode == "store":
            active.touch(block, rows, active.value(code.operands[1], rows), layouts.size(code.operands[0].type), True)
            return None
        if opcode in ("atomicrmw", "cmpxchg"):
            address, width = active.value(code.operands[0], rows), layouts.size(code.operands[1].type)
            active.touch(block, rows, address, width, False)
            active.touch(block, rows, address, width, True, certain=opcode == "atomicrmw")
            return UNKNOWN
        if opcode == "alloca":
            return lanes.number(_OWN, frozenset({Place(lanes.OWN)}))
        if opcode == "call":
            return self._call(active, code, block, rows)
        of = frozenset(place for one in code.operands for place in active.value(one, rows).of)
        return Lanes(ZERO, FALSE, of)

    def _loaded(self, address: Lanes, type_: Type) -> Lanes:
        pointer = type_.kind not in ("int", "float")
        copies = [one.base for one in address.of if one.kind == "copy"]
        if len(copies) == 1 and len(address.of) == 1 and isinstance(copies[0], tuple):
            return self._argument(copies[0][0], address, type_)
        if copies or any(one.base == lanes.OWN for one in address.of):
            return Lanes(ZERO, FALSE, frozenset({Place(lanes.ANYWHERE)}) if pointer else frozenset())
        return Lanes(ZERO, FALSE, frozenset({Place(lanes.DEEP)}) if pointer else frozenset())

    def _argument(self, index: int, address: Lanes, type_: Type) -> Lanes:
        """What a structure that is passed by value holds."""
        size = self._machine.layouts.size(type_)
        data = self._arguments[index]
        offset = address.at - (_COPIES + index * _ROOM)
        inside = address.known & (offset >= 0) & (offset + size <= len(data))
        if type_.kind not in ("int", "ptr") or size not in _PIECES:
            return Lanes(ZERO, FALSE, frozenset({Place((index, -1))}) if type_.kind != "float" else frozenset())
        padded = np.frombuffer(data + bytes(8), np.uint8)
        at = np.where(inside, offset, 0)
        number = np.zeros(at.shape, np.uint64)
        for one in range(size):
            number = number | padded[np.minimum(at + one, len(data))].astype(np.uint64) << np.uint64(8 * one)
        bits = type_.number if type_.kind == "int" else 64
        of: frozenset[Place] = frozenset()
        if type_.kind == "ptr":
            one_place = at.size > 0 and bool(np.all(inside)) and bool(np.all(at == at.flat[0]))
            of = frozenset({Place((index, int(at.flat[0]) if one_place else -1))})
        return Lanes(lanes.fit(number.astype(np.int64), bits), inside, of)

    def _call(self, active: Activation, code: Instruction, block: int, rows: Rows) -> Lanes | None:
        name = callee(code)
        given = [active.value(one, rows) for one in code.operands[:-1]]
        if found := _SREG.fullmatch(name):
            return self._machine.register(found[1], active.threads(rows))
        if (found := _BETWEEN.fullmatch(name)) and code.type.kind == "int":
            return lanes.least_or_most(found[1], given[0], given[1], code.type.number)
        called = self._module.read.callee(code.operands[-1])
        if isinstance(called, str):
            return active.called(self._module.code(called), block, rows, given)
        self._behave(active, code, called, block, rows, given)
        if called.special is Special.FRESH:
            return lanes.number(_OWN, frozenset({Place(lanes.OWN)}))
        of = frozenset(place for one in given for place in one.of)
        if code.type.kind == "ptr" and (called.touches or not of):
            of = of | {Place(lanes.ANYWHERE)}
        return Lanes(ZERO, FALSE, of)

    def _behave(
        self, active: Activation, code: Instruction, called: Behaviour, block: int, rows: Rows, given: list[Lanes]
    ) -> None:
        """A call whose body is not seen."""
        if called.opaque:
            raise GivesUp
        target = code.operands[-1]
        if _ENDS.search(target.text if isinstance(target, Assembly) else " ".join(symbols_in(target))):
            self._machine.unsure = True
        if called.special in (Special.COPY, Special.FILL):
            length = code.operands[2]
            for at in (0, 1) if called.special is Special.COPY else (0,):
                if isinstance(length, Integer):
                    active.touch(block, rows, given[at], length.value, at == 0)
                else:
                    active.touch(block, rows, given[at]._replace(known=FALSE), 1, at == 0)
        for touch in called.touches:
            those = (
                range(len(given)) if touch.arg is None else (touch.arg,) if isinstance(touch.arg, int) else touch.arg
            )
            if touch.shared:
                continue
            for at in those:
                if given[at].of:
                    for writes, mode in ((False, AccessMode.READ), (True, AccessMode.WRITE)):
                        if mode in touch.mode:
                            active.touch(block, rows, given[at]._replace(known=FALSE), 1, writes)
                elif code.operands[at].type.kind == "ptr" or touch.arg is not None:
                    raise GivesUp

    # ---- what was found -----------------------------------------------------------------------------------------

    def _found(self) -> Touches:
        places = {place for place, _, _ in self._spans} | {place for place, _ in self._lost}
        return Touches({place.base: self._touch(place) for place in places if not place.kind}, self._whole)

    def _touch(self, place: Place) -> Touch:
        by = 0 if not isinstance(place.base, str) else -self._module.begins(place.base)

        def spans(writes: bool, sure: bool) -> Spans:
            return Spans.all_of(self._spans.get((place, writes, sure), ()))

        def found(writes: bool) -> Bytes:
            may = spans(writes, False) if self._whole and (place, writes) not in self._lost else None
            if self._machine.unsure:
                return Bytes(may, Spans.none())
            return Bytes(may, spans(writes, True), (place, writes) in self._somewhere)

        return Touch(found(False).moved(by), found(True).moved(by))


def _groups(threads: int, in_block: int) -> Iterator[Rows]:
    """The threads of a launch, a group at a time: some from either end, then all."""
    few, many = _GROUPS
    if threads > many:
        yield np.arange(few)
        yield np.arange(threads - few, threads)
    for first in range(0, threads, many):
        yield np.arange(first, min(threads, first + many))
