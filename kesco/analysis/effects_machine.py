"""The kernel's memory as the analysis sees it: what an access records, and what it may read.

`effects_solver` decides which values meet; here is what happens when one of them is used as an address, by an
instruction or by a call whose body is not visible. Nothing here knows about functions and frames.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kesco.analysis.device_calls import Behaviour, Special, Touch
from kesco.analysis.device_ir import Constant, Instr, Shape
from kesco.analysis.device_reader import DeviceModule
from kesco.analysis.effects_memory import EVERYTHING, LocalMemory
from kesco.analysis.effects_origins import FORGED, INTEGER, NULL, UNKNOWN, Base, Fixed, Local, Origins, Root
from kesco.ir.access import AccessMode
from kesco.ir.effects import RootEffect

SHARED_SPACE = 3
UNTYPED = Shape(EVERYTHING, False, False, False)


@dataclass(slots=True)
class Findings:
    """What a kernel does to its roots."""

    roots: dict[Base, RootEffect] = field(default_factory=dict)
    order: set[str] = field(default_factory=set)
    opaque: str = ""


class Machine:
    """Origins, local memory and findings of one kernel. `recording`: the values are final, so accesses count."""

    def __init__(self, module: DeviceModule) -> None:
        self.origins = Origins()
        self.memory = LocalMemory(self.origins)
        self.findings = Findings()
        self.recording = False
        self.looked = False  # whether local memory was read since this was last cleared
        self._module = module

    def constant(self, constant: Constant) -> int:
        """The origins of a constant operand."""
        mask = (NULL if constant.null else 0) | (FORGED if constant.absolute else 0)
        for name in constant.names:
            for target in self._module.targets(name):
                mask |= self.origins.moved(self.symbol(target), constant.offset)
        return mask

    def symbol(self, name: str) -> int:
        """The address of a global."""
        known = self._module.variable(name)
        if known is None:
            return NULL  # a function: calling it through a pointer is opaque anyway
        if known.space == SHARED_SPACE:
            if known.declared:  # all dynamic shared memory begins at one address
                return self.origins.bit(Local(self.memory.object("dynamic shared"), None))
            return self.origins.bit(Local(self.memory.object(("shared", name)), 0))
        return self.origins.bit(Fixed(name) if known.fixed else Root(name))

    def give_up(self, reason: str) -> None:
        """Make the kernel opaque; the first reason stays."""
        if self.recording and not self.findings.opaque:
            self.findings.opaque = reason

    def access(self, mask: int, mode: AccessMode) -> None:
        """Record an access through the pointers of `mask`."""
        if not self.recording:
            return
        if mask == 0 or mask & UNKNOWN:
            self.give_up("accesses memory through a pointer of unknown origin")
        if mask & (FORGED | INTEGER):
            self.give_up("turns an integer into a pointer")
        for origin in self.origins.each(mask):
            if isinstance(origin, Root):
                effect = RootEffect(deep=mode) if origin.deep else RootEffect(direct=mode)
                self.findings.roots[origin.base] = self.findings.roots.get(origin.base, RootEffect()) | effect

    def read(self, mask: int, shape: Shape) -> int:
        """What a load of `shape` through the pointers of `mask` may yield."""
        result = mask & NULL
        if mask & (FORGED | UNKNOWN | INTEGER):
            result |= UNKNOWN
        if shape.floating:
            return 0
        for origin in self.origins.each(mask):
            if isinstance(origin, Local):
                self.looked = True
                result |= self.memory.load(origin.object, origin.offset, shape.size, shape.declared)
            elif isinstance(origin, Root):
                result |= self.origins.bit(Root(origin.base, True, not shape.pointer))
                if isinstance(origin.base, str) and not origin.deep:
                    result |= self._initial(origin.base)
            else:
                result |= self._initial(origin.name) or NULL
        return self.origins.address(result) if shape.pointer else result

    def _initial(self, name: str) -> int:
        """What a symbol's initializer points to."""
        mask = 0
        known = self._module.variable(name)
        for inner in known.names if known is not None else ():
            for target in self._module.targets(inner):
                mask |= self.origins.moved(self.symbol(target), None)
        return mask

    def write(self, mask: int, value: int, size: int) -> None:
        """Put `value` where the pointers of `mask` point."""
        if mask & ~self.origins.locals & ~NULL and self.origins.pointers(value):
            self.give_up("stores a pointer into memory")
        if value:
            for origin in self.origins.each(mask & self.origins.locals):
                assert isinstance(origin, Local)
                self.memory.store(origin.object, origin.offset, size, value)

    def copy(self, source: int, target: int, size: int) -> None:
        """Copy memory as a whole: places keep their offsets."""
        rest = source & ~self.origins.locals
        value = self.read(rest, UNTYPED) if rest else 0
        self.write(target, value, size)
        for origin in self.origins.each(source & self.origins.locals):
            assert isinstance(origin, Local)
            self.looked = True
            if target & ~self.origins.locals & ~NULL:
                held = self.memory.load(origin.object, origin.offset, size, False)
                self.write(target & ~self.origins.locals, held, size)
            for to in self.origins.each(target & self.origins.locals):
                assert isinstance(to, Local)
                self.memory.copy(origin.object, origin.offset, to.object, to.offset, size)

    def outside(self, key: object, instr: Instr, call: Behaviour, args: list[int]) -> int:
        """A call whose body is not visible; `key` names the memory it may allocate. Returns its result."""
        if self.recording:
            self.findings.order.update(call.order)
        if call.opaque:
            self.give_up(call.opaque)
            return UNKNOWN
        if call.special is Special.COPY or call.special is Special.FILL:
            length = instr.lengths[2] if len(instr.lengths) > 2 else None
            if length == 0:
                return args[0]
            size = EVERYTHING if length is None else length
            self.access(args[0], AccessMode.WRITE)
            if call.special is Special.COPY:
                self.access(args[1], AccessMode.READ)
                self.copy(args[1], args[0], size)
            else:
                self.write(args[0], args[1] | NULL, size)
            return args[0]
        if call.special is Special.FRESH:
            return NULL | self.origins.bit(Local(self.memory.object(key), 0))
        if call.special is Special.PRINTF:
            return self._printf(args)
        return self._touch(call, args, instr.shape or UNTYPED)

    def _printf(self, args: list[int]) -> int:
        """``%s`` reads what an argument points to; everything else prints values."""
        formats = [self._module.variable(o.name) for o in self.origins.each(args[0]) if isinstance(o, Fixed)]
        texts = [one.text for one in formats if one is not None]
        if not texts or any(t is None or re.search(r"%[^A-Za-z%]*[hlLqjzt]*s", t) for t in texts):
            for origin in self.origins.each(args[1]):
                if isinstance(origin, Local):
                    self.looked = True
                    held = self.memory.load(origin.object, None, EVERYTHING, True)
                    for printed in self.origins.each(self.origins.pointers(held)):
                        self.access(self.origins.bit(printed), AccessMode.READ)
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
        if (
            any(not isinstance(a, int) for a in addresses)
            and sum(1 for mask in args if self.origins.pointers(mask)) == 1
        ):
            stored &= self.origins.data  # the only pointer is the address
        for touch in call.touches:
            if touch.mode & AccessMode.READ:
                read = self._touched(args, touch, AccessMode.READ, shape.pointer)
                result |= read
                stored |= read
        for touch in call.touches:
            if touch.mode & AccessMode.WRITE:
                self._touched(args, touch, AccessMode.WRITE, False, stored)
        return 0 if shape.floats else self.origins.moved(result, None)

    def _touched(self, args: list[int], touch: Touch, mode: AccessMode, pointer: bool, stored: int = 0) -> int:
        """One access by a call: what it reads; what is `stored` it writes."""
        mask = self._target(args, touch.arg)
        if touch.shared and not mask & self.origins.locals:  # shared memory, at an address computed from nothing known
            self.looked = True
            if self.origins.pointers(stored):
                self.give_up("stores a pointer into memory")
            return self.memory.all_contents()
        if touch.shared:
            mask &= self.origins.locals
        mask = self.origins.address(mask)
        self.access(mask, mode)
        if mode is AccessMode.WRITE:
            self.write(mask, stored, EVERYTHING)
            return 0
        return self.read(mask, Shape(EVERYTHING, pointer, False, False))

    def _target(self, args: list[int], made_of: int | tuple[int, ...] | None) -> int:
        """The pointers that an access goes through: one argument, or those among several that may be pointers."""
        if isinstance(made_of, int):
            return args[made_of] if made_of < len(args) else 0
        every = 0
        for mask in args if made_of is None else (args[index] for index in made_of if index < len(args)):
            every |= mask
        return self.origins.pointers(every) or every & ~NULL
