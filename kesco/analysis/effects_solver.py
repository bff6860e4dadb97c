"""One kernel's pointers, followed through all functions it reaches, until nothing changes any more.

In: a `DeviceModule` and a kernel's name. Out: a `Findings`: the accesses per root, observable orders, and the first
reason, if any, why that is not all.

1. Every call gets a *frame* of its own, as if the callee were inlined, so that two calls of one helper stay apart. A
   recursive call shares the frame it recurses into; past a limit on size, calls of one function share one frame.
2. Passes over the instructions join origins (`effects_origins`) into values, and values into local memory
   (`effects_memory`), until a fixpoint. The order of instructions in time plays no role.
3. A last pass records the accesses. A pointer that came from nowhere known by then is unknown, and makes the kernel
   opaque; so does a pointer stored where another kernel could find it.

It does not look at source types, ``const``, ``restrict`` or inferred attributes of functions with a body.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from kesco.analysis.device_calls import Behaviour, Special, Touch
from kesco.analysis.device_ir import Constant, DeviceModule, Function, Instr, Shape
from kesco.analysis.effects_memory import EVERYTHING, LocalMemory
from kesco.analysis.effects_origins import FORGED, INTEGER, NULL, UNKNOWN, Base, Fixed, Local, Origins, Root
from kesco.ir.access import AccessMode
from kesco.ir.effects import RootEffect

SHARED_SPACE = 3
MAX_INSTRUCTIONS = 30_000  # in all frames of a kernel; beyond it, calls of a function share a frame
_UNTYPED = Shape(EVERYTHING, False, False)


@dataclass(slots=True)
class Findings:
    """What a kernel does to its roots."""

    roots: dict[Base, RootEffect] = field(default_factory=dict)
    order: set[str] = field(default_factory=set)
    opaque: str = ""


class _Frame:
    """One function in one calling context: a set of origins per slot."""

    def __init__(self, function: Function, path: dict[str, _Frame]) -> None:
        self.function = function
        self.values = [0] * function.slots
        self.returned = 0
        self.path = {**path, function.name: self}
        self.callees: dict[int, _Frame] = {}
        self.callers: set[_Frame] = set()
        self.dirty = True
        self.version = -1  # of local memory when last run; -1: does not look at it


class Solver:
    """The analysis of one kernel; see the module's docstring."""

    def __init__(self, module: DeviceModule, kernel: str) -> None:
        self._module = module
        self._origins = Origins()
        self._memory = LocalMemory(self._origins)
        self._frames: list[_Frame] = []
        self._shared: dict[str, _Frame] = {}
        self._size = 0
        self._final = False
        self._findings = Findings()
        self._looks: bool = False  # whether the running frame reads local memory
        self._does: dict[str, Callable[[_Frame, Instr], int]] = {
            "offset": self._offset, "sub": self._sub, "gep": self._gep, "inttoptr": self._inttoptr,
            "load": self._load, "store": self._store, "atomic": self._atomic, "alloca": self._alloca,
            "call": self._call, "ret": self._ret, "unknown": self._unknown,
        }  # fmt: skip
        function = module.function(kernel)
        assert function is not None, kernel
        frame = self._enter(function, {})
        for index, param in enumerate(function.params):
            if param.byval:
                mask = self._origins.bit(Local(self._memory.parameter(index, param), 0))
            else:
                mask = self._origins.bit(Root((index, 0))) if param.pointer else INTEGER
            frame.values[index] = mask

    def solve(self) -> Findings:
        """Run to the fixpoint, then once more to record."""
        while True:
            self._final = False
            while self._round():
                pass
            self._final = True
            self._findings = Findings()
            before = self._memory.version
            changed = [self._run(frame) for frame in list(self._frames)]
            if not any(changed) and before == self._memory.version:
                return self._findings

    def _round(self) -> bool:
        ran = False
        for frame in self._frames:  # grows while it is walked
            stale = frame.version >= 0 and frame.version != self._memory.version
            if frame.dirty or stale:
                ran = True
                frame.dirty = False
                while self._run(frame) and not frame.function.straight:
                    pass
        return ran

    def _run(self, frame: _Frame) -> bool:
        """One pass over a frame; whether a value grew."""
        values = frame.values
        changed = False
        version = self._memory.version
        self._looks = False
        for instr in frame.function.instrs:
            if instr.op == "move":
                mask = 0
                for a in instr.args:
                    if a >= 0:
                        mask |= values[a]
            else:
                mask = self._does[instr.op](frame, instr)
            old = values[instr.result]
            if mask | old != old:
                values[instr.result] = mask | old
                changed = True
        if self._looks:
            frame.version = version
        if changed and self._final:
            frame.dirty = True
        return changed

    # Frames

    def _enter(self, function: Function, path: dict[str, _Frame]) -> _Frame:
        frame = _Frame(function, path)
        self._size += len(function.instrs)
        for slot, constant in function.constants:
            frame.values[slot] = self._constant(constant)
        self._frames.append(frame)
        return frame

    def _callee(self, frame: _Frame, instr: Instr, function: Function) -> _Frame:
        callee = frame.callees.get(instr.result)
        if callee is None:
            callee = frame.path.get(function.name)
            if callee is None and self._size + len(function.instrs) > MAX_INSTRUCTIONS:
                callee = self._shared.get(function.name)
                if callee is None:
                    callee = self._shared[function.name] = self._enter(function, {})
            if callee is None:
                callee = self._enter(function, frame.path)
            callee.callers.add(frame)
            frame.callees[instr.result] = callee
        return callee

    def _constant(self, constant: Constant) -> int:
        mask = (NULL if constant.null else 0) | (FORGED if constant.absolute else 0)
        for name in constant.names:
            for target in self._module.targets(name):
                mask |= self._origins.moved(self._symbol(target), constant.offset)
        return mask

    def _symbol(self, name: str) -> int:
        known = self._module.globals.get(name)
        if known is None:
            return NULL  # a function: calling it through a pointer is opaque anyway
        if known.space == SHARED_SPACE:
            if known.declared:  # all dynamic shared memory begins at one address
                return self._origins.bit(Local(self._memory.object("dynamic shared"), None))
            return self._origins.bit(Local(self._memory.object(("shared", name)), 0))
        return self._origins.bit(Fixed(name) if known.fixed else Root(name))

    # What is recorded

    def _give_up(self, reason: str) -> None:
        if self._final and not self._findings.opaque:
            self._findings.opaque = reason

    def _access(self, mask: int, mode: AccessMode) -> None:
        if not self._final:
            return
        if mask == 0 or mask & UNKNOWN:
            self._give_up("accesses memory through a pointer of unknown origin")
        if mask & (FORGED | INTEGER):
            self._give_up("turns an integer into a pointer")
        for origin in self._origins.each(mask):
            if isinstance(origin, Root):
                effect = RootEffect(deep=mode) if origin.deep else RootEffect(direct=mode)
                self._findings.roots[origin.base] = self._findings.roots.get(origin.base, RootEffect()) | effect

    def _read(self, mask: int, shape: Shape) -> int:
        """What a load of `shape` through the pointers of `mask` may yield."""
        result = mask & NULL
        if mask & (FORGED | UNKNOWN | INTEGER):
            result |= UNKNOWN
        if shape.floating:
            return 0
        for origin in self._origins.each(mask):
            if isinstance(origin, Local):
                self._looks = True
                result |= self._memory.load(origin.object, origin.offset, shape.size, shape.pointer)
            elif isinstance(origin, Root):
                result |= self._origins.bit(Root(origin.base, True, not shape.pointer))
                if isinstance(origin.base, str) and not origin.deep:
                    result |= self._initial(origin.base)
            else:
                result |= self._initial(origin.name) or NULL
        return self._origins.address(result) if shape.pointer else result

    def _initial(self, name: str) -> int:
        """What a symbol's initializer points to."""
        mask = 0
        for inner in self._module.globals[name].names:
            for target in self._module.targets(inner):
                mask |= self._origins.moved(self._symbol(target), None)
        return mask

    def _write(self, mask: int, value: int, size: int) -> None:
        """Put `value` where the pointers of `mask` point."""
        if mask & ~self._origins.locals & ~NULL and self._origins.pointers(value):
            self._give_up("stores a pointer into memory")
        if value:
            for origin in self._origins.each(mask & self._origins.locals):
                assert isinstance(origin, Local)
                self._memory.store(origin.object, origin.offset, size, value)

    # Instructions

    def _get(self, frame: _Frame, slot: int) -> int:
        return frame.values[slot] if slot >= 0 else 0

    def _offset(self, frame: _Frame, instr: Instr) -> int:
        """A pointer plus an integer is a pointer; the integer, even if loaded from memory, is an offset."""
        mask = 0
        for a in instr.args:
            mask |= self._get(frame, a)
        if self._origins.pointers(mask):
            mask &= ~self._origins.data
        return self._origins.moved(mask, None)

    def _sub(self, frame: _Frame, instr: Instr) -> int:
        left, right = (self._origins.pointers(self._get(frame, a)) for a in instr.args)
        if right and not left and not self._final:
            return 0  # not known yet
        if left and right and self._origins.one_object(left | right):
            return 0  # the distance between two places in one allocation
        return self._offset(frame, instr)

    def _gep(self, frame: _Frame, instr: Instr) -> int:
        base = self._get(frame, instr.args[0])
        index = 0
        for a in instr.args[1:]:
            index |= self._get(frame, a)
        if instr.null_base:
            base = self._as_pointer(index) if instr.offset is None else NULL
        else:
            base |= self._origins.moved(self._origins.pointers(index), None)
        return self._origins.moved(base, instr.offset)

    def _inttoptr(self, frame: _Frame, instr: Instr) -> int:
        return self._as_pointer(self._get(frame, instr.args[0]))

    def _as_pointer(self, mask: int) -> int:
        if mask == 0 and self._final:
            return UNKNOWN
        return self._origins.address(mask)

    def _alloca(self, frame: _Frame, instr: Instr) -> int:
        return self._origins.bit(Local(self._memory.object((id(frame), instr.result)), 0))

    def _load(self, frame: _Frame, instr: Instr) -> int:
        shape = instr.shape or _UNTYPED
        mask = self._get(frame, instr.args[0])
        self._access(mask, AccessMode.READ)
        result = self._read(mask, shape)
        return UNKNOWN if shape.pointer and result == 0 and self._final else result

    def _store(self, frame: _Frame, instr: Instr) -> int:
        value, mask = (self._get(frame, a) for a in instr.args)
        self._access(mask, AccessMode.WRITE)
        self._write(mask, value, (instr.shape or _UNTYPED).size)
        return 0

    def _atomic(self, frame: _Frame, instr: Instr) -> int:
        shape = instr.shape or _UNTYPED
        mask, *others = (self._get(frame, a) for a in instr.args)
        self._access(mask, AccessMode.READ_WRITE)
        for value in others:
            self._write(mask, value, shape.size)
        return self._read(mask, shape)

    def _ret(self, frame: _Frame, instr: Instr) -> int:
        mask = frame.returned
        for a in instr.args:
            mask |= self._get(frame, a)
        if mask != frame.returned:
            frame.returned = mask
            for caller in frame.callers:
                caller.dirty = True
        return 0

    def _unknown(self, frame: _Frame, instr: Instr) -> int:
        self._give_up(f"contains an instruction that is not understood ({instr.call})")
        return UNKNOWN

    # Calls

    def _call(self, frame: _Frame, instr: Instr) -> int:
        args = [self._get(frame, a) for a in instr.args]
        if isinstance(instr.call, Behaviour):
            return self._outside(frame, instr, instr.call, args)
        function = self._module.function(instr.call)
        if function is None or len(args) != len(function.params):
            self._give_up(f"calls {instr.call} in a way that is not understood")
            return UNKNOWN
        callee = self._callee(frame, instr, function)
        for index, (param, mask) in enumerate(zip(function.params, args, strict=True)):
            if param.byval:
                self._access(mask, AccessMode.READ)
                number = self._memory.object((id(callee), "byval", index))
                self._copy_in(mask, self._origins.bit(Local(number, 0)), param.byval)
                mask = self._origins.bit(Local(number, 0))
            if mask | callee.values[index] != callee.values[index]:
                callee.values[index] |= mask
                callee.dirty = True
        return callee.returned

    def _copy_in(self, source: int, target: int, size: int) -> None:
        """Copy memory as a whole: places keep their offsets."""
        rest = source & ~self._origins.locals
        value = self._read(rest, _UNTYPED) if rest else 0
        self._write(target, value, size)
        for origin in self._origins.each(source & self._origins.locals):
            assert isinstance(origin, Local)
            self._looks = True
            if target & ~self._origins.locals & ~NULL:
                held = self._memory.load(origin.object, origin.offset, size, False)
                self._write(target & ~self._origins.locals, held, size)
            for to in self._origins.each(target & self._origins.locals):
                assert isinstance(to, Local)
                self._memory.copy(origin.object, origin.offset, to.object, to.offset, size)

    def _outside(self, frame: _Frame, instr: Instr, call: Behaviour, args: list[int]) -> int:
        if self._final:
            self._findings.order.update(call.order)
        if call.opaque:
            self._give_up(call.opaque)
            return UNKNOWN
        if call.special is Special.COPY or call.special is Special.FILL:
            length = instr.lengths[2] if len(instr.lengths) > 2 else None
            if length == 0:
                return args[0]
            size = EVERYTHING if length is None else length
            self._access(args[0], AccessMode.WRITE)
            if call.special is Special.COPY:
                self._access(args[1], AccessMode.READ)
                self._copy_in(args[1], args[0], size)
            else:
                self._write(args[0], args[1] | NULL, size)
            return args[0]
        if call.special is Special.FRESH:
            return NULL | self._origins.bit(Local(self._memory.object((id(frame), instr.result)), 0))
        if call.special is Special.PRINTF:
            return self._printf(frame, instr, args)
        return self._touch(call, args, instr.shape or _UNTYPED)

    def _printf(self, frame: _Frame, instr: Instr, args: list[int]) -> int:
        """``%s`` reads what an argument points to; everything else prints values."""
        texts = [self._module.texts.get(o.name) for o in self._origins.each(args[0]) if isinstance(o, Fixed)]
        if not texts or any(t is None or re.search(r"%[^A-Za-z%]*[hlLqjzt]*s", t) for t in texts):
            for origin in self._origins.each(args[1]):
                if isinstance(origin, Local):
                    self._looks = True
                    held = self._memory.load(origin.object, None, EVERYTHING, True)
                    for printed in self._origins.each(self._origins.pointers(held)):
                        self._access(self._origins.bit(printed), AccessMode.READ)
        return 0

    def _touch(self, call: Behaviour, args: list[int], shape: Shape) -> int:
        """A call that accesses memory through its arguments, and computes with them."""
        addresses = {t.arg for t in call.touches}
        everything = stored = 0
        for index, mask in enumerate(args):
            everything |= mask
            if index in call.values if call.values is not None else index not in addresses:
                stored |= mask
        result = everything if shape.pointer or not call.touches else stored
        if None in addresses and sum(1 for mask in args if self._origins.pointers(mask)) == 1:
            stored &= self._origins.data  # the only pointer is the address
        for touch in call.touches:
            if touch.mode & AccessMode.READ:
                read = self._touched(args, touch, AccessMode.READ, shape.pointer)
                result |= read
                stored |= read
        for touch in call.touches:
            if touch.mode & AccessMode.WRITE:
                self._touched(args, touch, AccessMode.WRITE, False, stored)
        return self._origins.moved(result, None)

    def _touched(self, args: list[int], touch: Touch, mode: AccessMode, pointer: bool, stored: int = 0) -> int:
        """One access by a call: what it reads; what is `stored` it writes."""
        mask = self._target(args, touch.arg)
        if touch.shared and not mask & self._origins.locals:  # shared memory, at an address computed from nothing known
            self._looks = True
            if self._origins.pointers(stored):
                self._give_up("stores a pointer into memory")
            return self._memory.all_contents()
        if touch.shared:
            mask &= self._origins.locals
        mask = self._origins.address(mask)
        self._access(mask, mode)
        if mode is AccessMode.WRITE:
            self._write(mask, stored, EVERYTHING)
            return 0
        return self._read(mask, Shape(EVERYTHING, pointer, False))

    def _target(self, args: list[int], index: int | None) -> int:
        """The pointers that an access goes through: one argument, or whichever arguments may be pointers."""
        if index is not None:
            return args[index] if index < len(args) else 0
        every = 0
        for mask in args:
            every |= mask
        return self._origins.pointers(every) or every & ~NULL
