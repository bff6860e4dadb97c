"""Device LLVM IR → which bytes of a launch's arguments *steer* a kernel: decide where it touches memory, and whether.

In: the IR of one translation unit. Out: mangled name → root (`effects_origins`) → the bytes of the arguments that the
addresses of the accesses through that root, and the conditions under which they are made, depend on. A root that is
not in it may be steered by all arguments.

A stage of its own because only whoever looks at a run asks for it: two launches that differ in nothing of this touch
the same memory, whatever else they are given, if what they read there is the same.

1. Each value is a set: of argument bytes, and of roots if it may be an address. A result depends on all its operands; a
   `phi` also on the branches that decide which way control came.
2. What is loaded depends on the address. Memory of the kernel's own (stack, shared memory, its copies of structures)
   holds the union of all that was ever stored there, and of the conditions under which that was done. Memory of the
   caller needs no such thing: where two launches read the same of it and one changes it, that is a race by itself.
3. A function's parameters are what any call passes, and what decides of a call decides of all in it.
4. An access depends on its address, on the branches that decide of its block, and on everything that may end a thread
   early: a trap, ``exit``. Whether ``atomicCAS`` writes depends on what it compares with, too.
5. All that is repeated until nothing grows.

It does not ask what the values are, nor in which order things happen: each set is an upper limit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias, TypeVar

from kesco.analysis.device_calls import Behaviour, Special
from kesco.analysis.device_flow import Flow, Node
from kesco.analysis.device_reader import DeviceModule
from kesco.analysis.effects_machine import SHARED_SPACE
from kesco.analysis.effects_origins import Base
from kesco.ir.effects import ArgumentBytes, Steering
from kesco.llvm import values as ir

_OWN, _COPY, _ANY = 1, 2, 4  # an address: in memory of the kernel's own, in a structure passed by value, anywhere
_Place: TypeAlias = tuple[str, str]  # a function and a block of it
_Key: TypeAlias = tuple[str, ir.Value]  # a value and the function whose it is, if it is no constant
_K = TypeVar("_K")
_ENDS = re.compile(r"(?<![\w%])(?:exit|trap|ret)\b")


MEMORY = ArgumentBytes(-1, 0, 0)
"""What stands, where it is asked for, for all that a kernel reads of memory that is not its own."""


def kernel_steering(ir_text: str, *, by_memory: bool = False) -> dict[str, Steering]:
    """What steers each kernel of the module; `InputError` (K110) if LLVM cannot read it.

    With `by_memory` it is said, too, where that depends on what memory holds.
    """
    module = DeviceModule(ir_text)
    return {name: _Kernel(module, name, by_memory=by_memory).solve() for name in module.kernels}


class _Step(NamedTuple):
    """One instruction as it is asked for again and again."""

    opcode: str
    block: _Place
    result: _Key | None
    operands: tuple[_Key, ...]
    pointer: bool = False  # what it gives may hold an address
    callee: str | Behaviour = ""
    ends: bool = False  # call: the thread may end there
    field: ArgumentBytes | None = None  # load: what it reads of the kernel's arguments
    before: tuple[_Place, ...] = ()  # phi: the blocks that control comes from


class _Body(NamedTuple):
    """One function."""

    parameters: tuple[_Key, ...]
    steps: tuple[_Step, ...]
    deciders: Mapping[_Place, frozenset[_Place]]
    conditions: Mapping[_Place, tuple[_Key, ...]]  # of each block that control leaves by several ways: what decides


class _Kernel:
    """The analysis of one kernel; see the module's docstring."""

    def __init__(self, module: DeviceModule, name: str, *, by_memory: bool) -> None:
        self._module, self._kernel, self._by_memory = module, name, by_memory
        self._bits: dict[ArgumentBytes | Base, int] = {}
        self._addresses = _OWN | _COPY | _ANY  # all bits that are no argument bytes
        self._bodies: dict[str, _Body] = {}
        # Whether anything still grows is asked of all sets at once, by what each of them is the set of.
        self._values: dict[_Key, int] = {}
        self._when: dict[_Place, int] = {}  # a block: what decides whether control comes there
        self._called: dict[str, int] = {}
        self._returned: dict[str, int] = {}
        self._held: dict[int, int] = {}  # memory of the kernel's own
        self._touched: dict[int, int] = {}  # a root's bit: what accesses through it depend on
        self._always: dict[str, int] = {}  # what accesses through any root depend on
        self._grew = False

    def solve(self) -> Steering:
        """Run to the fixpoint."""
        self._read(self._kernel)
        for index, argument in enumerate(self._module.body(self._kernel).parameters):
            param = self._module.param(argument)
            size = param.byval or self._module.shape_of(argument.type).size
            root = _COPY if param.byval else self._root((index, 0)) if param.pointer else 0
            self._values[self._kernel, argument.value] = self._bit(ArgumentBytes(index, 0, size)) | root
        self._grew = True
        while self._grew:
            self._grew = False
            for name, body in list(self._bodies.items()):
                self._run(name, body)
        if not all(self._module.body(name).is_read for name in self._bodies):
            return {}
        some = [(bit, one) for one, bit in self._bits.items() if isinstance(one, ArgumentBytes)]
        always = self._always.get("", 0)
        found = {one: self._touched[bit] | always for one, bit in self._bits.items() if bit in self._touched}
        return {
            base: frozenset(one for bit, one in some if bit & mask)
            for base, mask in found.items()
            if not isinstance(base, ArgumentBytes)
        }

    # ---- sets ---------------------------------------------------------------------------------------------------

    def _bit(self, key: ArgumentBytes | Base) -> int:
        return self._bits.setdefault(key, 8 << len(self._bits))

    def _root(self, base: Base) -> int:
        bit = self._bit(base)
        self._addresses |= bit
        return bit

    def _constant(self, operand: ir.Value) -> int:
        """The globals that a constant points to."""
        known = self._module.constant(operand)
        if known is None:
            return 0
        mask = _ANY if known.absolute else 0
        for name in (target for one in known.names for target in self._module.targets(one)):
            symbol = self._module.variable(name)
            if symbol is not None:
                mask |= _OWN if symbol.space == SHARED_SPACE else self._root(name)
        return mask

    # ---- one function -------------------------------------------------------------------------------------------

    def _read(self, name: str) -> None:
        function = self._module.body(name)
        flow = Flow(function)
        copies = [(p.value, i) for i, p in enumerate(function.parameters) if self._module.param(p).byval]
        fields = {_key(name, one): (index, 0) for one, index in copies} if name == self._kernel else {}
        steps = tuple(self._step(name, flow, node, fields) for node in flow.order)
        conditions = {
            (name, b): tuple(_key(name, o) for one in flow.conditions(b) for o in one.operands) for b in flow.blocks
        }
        deciders = {(name, b): frozenset((name, one) for one in those) for b, those in flow.deciders().items()}
        self._bodies[name] = _Body(tuple((name, p.value) for p in function.parameters), steps, deciders, conditions)

    def _step(self, name: str, flow: Flow, node: Node, fields: dict[_Key, tuple[int, int]]) -> _Step:
        """One instruction; `fields` are the places in the kernel's structures that values point to."""
        for operand in node.operands:
            if not isinstance(operand, ir.Local) and (known := self._constant(operand)):
                self._values[_key(name, operand)] = known
        opcode, code, keys = node.opcode, node.code, tuple(_key(name, one) for one in node.operands)
        step = _Step(opcode, (name, node.block), None if code.result is None else (name, code.result), keys)
        if opcode == "phi":
            return step._replace(before=tuple((name, block) for _, block in flow.incoming(node)))
        if opcode in ("getelementptr", "addrspacecast") and keys[0] in fields:
            index, offset = fields[keys[0]]
            by = self._module.step(code) if opcode == "getelementptr" else 0
            if by is not None and step.result is not None:
                fields[step.result] = index, offset + by
        elif opcode in ("load", "atomicrmw", "cmpxchg"):
            shape = self._module.shape_of(code.type)
            step = step._replace(pointer=shape.pointer)
            if opcode == "load" and keys[0] in fields:
                index, offset = fields[keys[0]]
                step = step._replace(field=ArgumentBytes(index, offset, offset + shape.size))
        elif opcode == "call":
            callee = self._module.callee(node.operands[-1])
            ends = isinstance(callee, Behaviour) and says_end(node.operands[-1])
            step = step._replace(operands=keys[:-1], callee=callee, ends=ends, pointer=True)
        return step

    def _run(self, name: str, body: _Body) -> None:
        """One pass over a function."""
        for block, deciders in body.deciders.items():
            mask = self._called.get(name, 0)
            for one in deciders:
                mask |= self._when.get(one, 0) | self._union(body.conditions[one]) & ~self._addresses
            self._put(self._when, block, mask)
        for step in body.steps:
            made = self._made(name, body, step, self._when.get(step.block, 0))
            if step.result is not None:
                self._put(self._values, step.result, made)

    def _put(self, into: dict[_K, int], key: _K, mask: int) -> None:
        old = into.get(key, 0)
        if mask | old != old:
            into[key] = mask | old
            self._grew = True

    def _union(self, keys: tuple[_Key, ...]) -> int:
        mask = 0
        for key in keys:
            mask |= self._values.get(key, 0)
        return mask

    def _made(self, name: str, body: _Body, step: _Step, when: int) -> int:
        """What an instruction's result is; `when` is what decides whether it is executed."""
        every = self._union(step.operands)
        first = self._values.get(step.operands[0], 0) if step.operands else 0
        match step.opcode:
            case "alloca":
                return _OWN
            case "load":
                self._access(first, when)
                return self._loaded(first, step)
            case "store":
                self._store(self._values.get(step.operands[1], 0), first, when)
                return 0
            case "atomicrmw" | "cmpxchg":
                compared = self._values.get(step.operands[1], 0) if step.opcode == "cmpxchg" else 0
                self._store(first, self._union(step.operands[1:]), when | compared & ~self._addresses)
                return self._loaded(first, step)
            case "phi":
                for block in step.before:
                    every |= self._when.get(block, 0) | self._union(body.conditions[block]) & ~self._addresses
                return every
            case "icmp" | "fcmp":
                return every & ~self._addresses
            case "ret":
                self._put(self._returned, name, every | when)
                return 0
            case "unreachable":
                self._put(self._always, "", when)
                return 0
            case "call":
                return self._call(step, every, when)
        return every

    # ---- memory -------------------------------------------------------------------------------------------------

    def _access(self, address: int, when: int) -> None:
        """Memory is touched: through which roots, and what that depends on."""
        depends = (address | when) & ~self._addresses
        if address & _ANY or not address & self._addresses:
            self._put(self._always, "", depends)
        roots = address & self._addresses & ~(_OWN | _COPY | _ANY)
        while roots:
            bit = roots & -roots
            roots ^= bit
            self._touched.setdefault(bit, 0)
            self._put(self._touched, bit, depends)

    def _own(self, address: int) -> tuple[int, ...]:
        """Which memory of the kernel's own an address may be in."""
        anywhere = address & _ANY or not address & self._addresses
        return tuple(kind for kind in (_OWN, _COPY) if anywhere or address & kind)

    def _loaded(self, address: int, step: _Step) -> int:
        """What comes from memory."""
        if step.field is not None:
            root = self._root((step.field.argument, step.field.start)) if step.pointer else 0
            result = self._bit(step.field) | root | self._held.get(_COPY, 0)
        else:
            result = address & ~self._addresses
            for kind in self._own(address):
                result |= self._held.get(kind, 0)
            result |= address & self._addresses & ~(_OWN | _COPY) | (_ANY if address & _COPY else 0)
            if self._by_memory and address & self._addresses not in (_OWN, _COPY, _OWN | _COPY):
                result |= self._bit(MEMORY)
        return result if step.pointer else result & ~self._addresses

    def _store(self, address: int, stored: int, when: int) -> None:
        """Memory is changed; what it holds then depends on where that was, too."""
        self._access(address, when)
        for kind in self._own(address):
            kept = stored | address & ~self._addresses | when
            self._put(self._held, kind, kept | (_ANY if stored & _COPY else 0))

    # ---- calls --------------------------------------------------------------------------------------------------

    def _call(self, step: _Step, every: int, when: int) -> int:
        callee = step.callee
        if isinstance(callee, Behaviour):
            return self._outside(step, callee, every, when)
        if callee not in self._bodies:
            self._read(callee)
            self._grew = True
        self._put(self._called, callee, when)
        for parameter, given in zip(self._bodies[callee].parameters, step.operands, strict=False):
            self._put(self._values, parameter, self._values.get(given, 0))
        return self._returned.get(callee, 0)

    def _outside(self, step: _Step, callee: Behaviour, every: int, when: int) -> int:
        """A call whose body is not visible: where it touches memory, if it does, depends on all its arguments."""
        if step.ends:
            self._put(self._always, "", (every | when) & ~self._addresses)
        if callee.special is Special.FRESH:
            return _OWN
        if callee.touches or callee.special in (Special.COPY, Special.FILL):
            self._store(every, every, when)
            return self._loaded(every, step)
        return every


def _key(function: str, value: ir.Value) -> _Key:
    """What a value of a function is known by."""
    return (function if isinstance(value, ir.Local) else "", value)


def says_end(called: ir.Value) -> bool:
    """Whether a thread may end in what is called, by its name, or the text of an assembly."""
    said = called.text if isinstance(called, ir.Assembly) else " ".join(ir.symbols_in(called))
    return bool(_ENDS.search(said))
