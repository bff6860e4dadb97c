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

from collections.abc import Callable

from kesco.analysis.device_calls import Behaviour
from kesco.analysis.device_ir import Function, Instr
from kesco.analysis.device_reader import DeviceModule
from kesco.analysis.effects_machine import UNTYPED, Findings, Machine
from kesco.analysis.effects_origins import INTEGER, NULL, UNKNOWN, Local, Root
from kesco.ir.access import AccessMode

MAX_INSTRUCTIONS = 30_000  # in all frames of a kernel; beyond it, calls of a function share a frame


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
        self._machine = Machine(module)
        self._frames: list[_Frame] = []
        self._shared: dict[str, _Frame] = {}
        self._size = 0
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
                mask = self._machine.origins.bit(Local(self._machine.memory.parameter(index, param), 0))
            else:
                mask = self._machine.origins.bit(Root((index, 0))) if param.pointer else INTEGER
            frame.values[index] = mask

    def solve(self) -> Findings:
        """Run to the fixpoint, then once more to record."""
        machine = self._machine
        while True:
            machine.recording = False
            while self._round():
                pass
            machine.recording = True
            machine.findings = Findings()
            before = machine.memory.version
            grew = [self._run(frame) for frame in self._frames]
            if not any(grew) and before == machine.memory.version and not any(f.dirty for f in self._frames):
                return machine.findings

    def _round(self) -> bool:
        ran = False
        for frame in self._frames:  # grows while it is walked
            stale = frame.version >= 0 and frame.version != self._machine.memory.version
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
        version = self._machine.memory.version
        self._machine.looked = False
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
        if self._machine.looked:
            frame.version = version
        if changed and self._machine.recording:
            frame.dirty = True
        return changed

    # Frames

    def _enter(self, function: Function, path: dict[str, _Frame]) -> _Frame:
        frame = _Frame(function, path)
        self._size += len(function.instrs)
        for slot, constant in function.constants:
            frame.values[slot] = self._machine.constant(constant)
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

    # Instructions

    def _get(self, frame: _Frame, slot: int) -> int:
        return frame.values[slot] if slot >= 0 else 0

    def _offset(self, frame: _Frame, instr: Instr) -> int:
        """A pointer plus an integer is a pointer; the integer, even if loaded from memory, is an offset."""
        origins = self._machine.origins
        operands = [self._get(frame, a) for a in instr.args]
        pointed = [origins.pointers(mask) for mask in operands]
        mask = 0
        for one, pointers in zip(operands, pointed, strict=True):
            # What holds a pointer on some paths and an integer on others may be an address in either case.
            mask |= one if pointers or not any(pointed) else one & ~origins.data
        return origins.moved(mask, None)

    def _sub(self, frame: _Frame, instr: Instr) -> int:
        left, right = (self._machine.origins.pointers(self._get(frame, a)) for a in instr.args)
        if right and not left and not self._machine.recording:
            return 0  # not known yet
        if left and right and self._machine.origins.one_object(left | right):
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
            base |= self._machine.origins.moved(self._machine.origins.pointers(index), None)
        return self._machine.origins.moved(base, instr.offset)

    def _inttoptr(self, frame: _Frame, instr: Instr) -> int:
        return self._as_pointer(self._get(frame, instr.args[0]))

    def _as_pointer(self, mask: int) -> int:
        if mask == 0 and self._machine.recording:
            return UNKNOWN
        return self._machine.origins.address(mask)

    def _alloca(self, frame: _Frame, instr: Instr) -> int:
        return self._machine.origins.bit(Local(self._machine.memory.object((id(frame), instr.result)), 0))

    def _load(self, frame: _Frame, instr: Instr) -> int:
        shape = instr.shape or UNTYPED
        mask = self._get(frame, instr.args[0])
        self._machine.access(mask, AccessMode.READ)
        result = self._machine.read(mask, shape)
        return UNKNOWN if shape.pointer and result == 0 and self._machine.recording else result

    def _store(self, frame: _Frame, instr: Instr) -> int:
        value, mask = (self._get(frame, a) for a in instr.args)
        self._machine.access(mask, AccessMode.WRITE)
        self._machine.write(mask, value, (instr.shape or UNTYPED).size)
        return 0

    def _atomic(self, frame: _Frame, instr: Instr) -> int:
        shape = instr.shape or UNTYPED
        mask, *others = (self._get(frame, a) for a in instr.args)
        self._machine.access(mask, AccessMode.READ_WRITE)
        for value in others:
            self._machine.write(mask, value, shape.size)
        return self._machine.read(mask, shape)

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
        self._machine.give_up(f"contains an instruction that is not understood ({instr.call})")
        return UNKNOWN

    # Calls

    def _call(self, frame: _Frame, instr: Instr) -> int:
        args = [self._get(frame, a) for a in instr.args]
        if isinstance(instr.call, Behaviour):
            return self._machine.outside((id(frame), instr.result), instr, instr.call, args)
        function = self._module.function(instr.call)
        if function is None or len(args) != len(function.params):
            self._machine.give_up(f"calls {instr.call} in a way that is not understood")
            return UNKNOWN
        callee = self._callee(frame, instr, function)
        for index, (param, mask) in enumerate(zip(function.params, args, strict=True)):
            if param.byval:
                self._machine.access(mask, AccessMode.READ)
                number = self._machine.memory.object((id(callee), "byval", index))
                self._machine.copy(mask, self._machine.origins.bit(Local(number, 0)), param.byval)
                mask = self._machine.origins.bit(Local(number, 0))
            if mask | callee.values[index] != callee.values[index]:
                callee.values[index] |= mask
                callee.dirty = True
        return callee.returned
