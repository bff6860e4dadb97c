"""Single instructions: what each makes of the values before it, and of memory.

In: an activation, an instruction, a state. Out: the instruction's value; the state is changed. Calls and what moves
control are not here (`calls`, `walk`).
"""

from __future__ import annotations

from collections.abc import Callable

from kesco.analysis.host.arithmetic import CAME_IN, binary, compared, converted, nothing_escapes, stepped
from kesco.analysis.host.frames import Frame
from kesco.analysis.host.memory import State
from kesco.analysis.host.values import (
    EITHER,
    EXCEPTION,
    NOTHING,
    NUMBER,
    Pointer,
    Scalar,
    Value,
    joined,
    name_of,
    number,
    numbers,
    objects,
    scalar,
    unknown,
)
from kesco.analysis.host.values import pointer as address_of
from kesco.llvm.tags import is_number, is_pointer
from kesco.llvm.types import Type
from kesco.llvm.values import Instruction, Integer, Local
from kesco.llvm.values import Value as Operand

_PARTS = 64  # of an aggregate that is loaded or stored whole


def evaluated(frame: Frame, operand: Operand, state: State) -> Value:
    """What an operand is."""
    if isinstance(operand, Local):
        return state.values.get(operand.name, NOTHING)
    return frame.engine.constants.of(operand)


def perform(frame: Frame, instruction: Instruction, state: State) -> Value:
    """Execute an instruction that is no call and no branch."""
    known = _KNOWN.get(instruction.opcode)
    if known is not None and "unread" not in instruction.words:
        return known(frame, instruction, state)
    if "unread" not in instruction.words and instruction.opcode in ("fence",):
        return NOTHING
    for operand in instruction.operands:
        state.escape(evaluated(frame, operand, state))
    state.lose_escaped()
    frame.engine.lose(f"the instruction '{instruction.opcode}' in {frame.function.name}")
    return unknown(f"an instruction that is not understood ({instruction.opcode})")


# ---- memory


def _alloca(frame: Frame, instruction: Instruction, state: State) -> Value:
    assert instruction.about is not None and instruction.result is not None
    count = number(evaluated(frame, instruction.operands[0], state)) if instruction.operands else 1
    size = -1 if count is None else count * frame.engine.layouts.size(instruction.about)
    many = bool(frame.around)
    name = instruction.result.name
    one = frame.engine.local(name, instruction, instruction, frame.context, size, many)
    frame.locals.add(one)
    state.make(one)
    return address_of(one)


def load(frame: Frame, state: State, address: Value, type_: Type, *, pointer: bool = False) -> Value:
    """What memory holds at an address, as a value of a type; `pointer` where the source says that it is one."""
    layouts = frame.engine.layouts
    real = layouts.resolved(type_)
    if real.kind in ("int", "ptr", "float"):
        value = state.load(address, layouts.size(real), pointer=pointer)
        if real.kind == "float":
            state.escape(value)
            return NOTHING if not value else value if name_of(value) else NUMBER
        return value
    if real.kind in ("struct", "packed", "array") and len(list(layouts.scalars(real, 0, _PARTS))) <= _PARTS:
        return _load_parts(frame, state, address, real)
    return scalar(state.load(address, layouts.size(real)))


def _load_parts(frame: Frame, state: State, address: Value, real: Type) -> Value:
    layouts = frame.engine.layouts
    if real.kind == "array":
        size = layouts.size(real.parts[0])
        parts = [(i * size, real.parts[0]) for i in range(real.number)]
    else:
        parts = list(zip(layouts.offsets(real), real.parts, strict=True))
    return tuple(load(frame, state, _at(address, o, state), t) for o, t in parts)


def store(frame: Frame, state: State, address: Value, value: Value, type_: Type, *, plain: bool = False) -> bool:
    """Put a value of a type into memory; whether it is known where it went. What is `plain` changes no pointer."""
    layouts = frame.engine.layouts
    real = layouts.resolved(type_)
    if isinstance(value, tuple) and real.kind in ("struct", "packed", "array"):
        if real.kind == "array":
            places = [(i * layouts.size(real.parts[0]), real.parts[0]) for i in range(real.number)]
        else:
            places = list(zip(layouts.offsets(real), real.parts, strict=True))
        if len(value) == len(places):
            known = True
            for (offset, part), one in zip(places, value, strict=True):
                known &= store(frame, state, _at(address, offset, state), one, part)
            return known
    if isinstance(value, tuple):
        value = scalar(value)
    return state.store(address, value, layouts.size(real), plain=plain)


def _at(address: Value, offset: int, state: State) -> Scalar:
    return stepped(address, (), offset, state.escape)


def _load(frame: Frame, instruction: Instruction, state: State) -> Value:
    pointer = is_pointer(frame.engine.module, instruction)
    value = load(frame, state, evaluated(frame, instruction.operands[0], state), instruction.type, pointer=pointer)
    if "volatile" in instruction.words:
        value = joined(value, NUMBER)  # others may have changed it
    return value if frame.engine.words is None else frame.engine.words.loaded(frame, instruction, state, value)


def _store(frame: Frame, instruction: Instruction, state: State) -> Value:
    value, address = (evaluated(frame, one, state) for one in instruction.operands)
    if frame.engine.words is not None:
        value = frame.engine.words.stored(frame, instruction.operands[0], state, value)
    plain = not objects(value) and is_number(frame.engine.module, instruction)
    if not store(frame, state, address, value, instruction.operands[0].type, plain=plain):
        frame.engine.lose(f"a store through an unknown pointer in {frame.function.name}")
    return NOTHING


def _atomic(frame: Frame, instruction: Instruction, state: State) -> Value:
    address, *given = (evaluated(frame, one, state) for one in instruction.operands)
    type_ = instruction.operands[1].type
    old = load(frame, state, address, type_)
    new = given[-1] if instruction.opcode == "cmpxchg" or instruction.words[-1] == "xchg" else NUMBER
    if new is NUMBER:
        state.escape(old)
        state.escape(given[0])
    state.store(address, joined(old, new), frame.engine.layouts.size(type_))
    return (old, EITHER) if instruction.opcode == "cmpxchg" else old


# ---- values


def _getelementptr(frame: Frame, instruction: Instruction, state: State) -> Value:
    base, *indices = instruction.operands
    layouts, source = frame.engine.layouts, instruction.about
    assert source is not None
    constant, steps, type_ = 0, list[tuple[Value, int]](), source
    for position, index in enumerate(indices):
        if position:
            real = layouts.resolved(type_)
            if real.kind in ("struct", "packed"):
                assert isinstance(index, Integer)
                constant += layouts.offsets(real)[index.value]
                type_ = real.parts[index.value]
                continue
            type_ = real.parts[0]
        size = layouts.size(type_)
        if isinstance(index, Integer):
            constant += index.value * size
        else:
            steps.append((evaluated(frame, index, state), size))
    return stepped(evaluated(frame, base, state), steps, constant, state.escape)


def _binary(frame: Frame, instruction: Instruction, state: State) -> Value:
    left, right = (evaluated(frame, one, state) for one in instruction.operands)
    bits = instruction.type.number if instruction.type.kind == "int" else 0
    # Only the difference of two pointers is divided exactly, and both are in one object.
    escape = nothing_escapes if "exact" in instruction.words else state.escape
    return binary(instruction.opcode, left, right, bits, escape)


def _cast(frame: Frame, instruction: Instruction, state: State) -> Value:
    value = evaluated(frame, instruction.operands[0], state)
    source, target = instruction.operands[0].type, instruction.type
    bits, to = (one.number if one.kind == "int" else 0 for one in (source, target))
    return converted(instruction.opcode, value, bits, to, state.escape)


def _same(frame: Frame, instruction: Instruction, state: State) -> Value:
    return evaluated(frame, instruction.operands[0], state)


def _float(frame: Frame, instruction: Instruction, state: State) -> Value:
    return NUMBER


def _icmp(frame: Frame, instruction: Instruction, state: State) -> Value:
    left, right = (evaluated(frame, one, state) for one in instruction.operands)
    type_ = instruction.operands[0].type
    if type_.kind == "vector":
        return NUMBER
    bits = type_.number if type_.kind == "int" else 64
    return compared(instruction.words[-1], left, right, bits, lambda x, y: _apart(frame, state, x, y))


def _apart(frame: Frame, state: State, x: Pointer, y: Pointer) -> bool:
    """Whether places in two objects are certainly not one.

    They may be where others chose them, or one is gone, whose place the other has now, or behind its end, or both are
    constants without an address of their own.
    """
    for place, length in ((one, one.object.size) for one in (x, y)):
        stride, at = place.offset
        gone = place.object in state.gone or (place.object.kind == "stack" and place.object not in state.memory)
        if place.object.kind in CAME_IN or gone or stride or not (at == 0 or 0 < at < length):
            return False
    symbols = [one.object.name for one in (x, y) if one.object.kind in ("global", "function")]
    return len(symbols) < 2 or not all(map(frame.engine.module.is_unnamed, symbols))


def _fcmp(frame: Frame, instruction: Instruction, state: State) -> Value:
    return EITHER


def _select(frame: Frame, instruction: Instruction, state: State) -> Value:
    condition, yes, no = (evaluated(frame, one, state) for one in instruction.operands)
    known = numbers(condition)
    if known is not None and len(known) == 1:
        return yes if known[0] else no
    return joined(yes, no)


def _extractvalue(frame: Frame, instruction: Instruction, state: State) -> Value:
    value = evaluated(frame, instruction.operands[0], state)
    for index in instruction.indices:
        if not isinstance(value, tuple) or index >= len(value):
            return scalar(value)
        value = value[index]
    return value


def _insertvalue(frame: Frame, instruction: Instruction, state: State) -> Value:
    whole, part = (evaluated(frame, one, state) for one in instruction.operands)
    if not isinstance(whole, tuple):
        whole = frame.engine.constants.uniform(instruction.type, whole)
    return _inserted(whole, part, instruction.indices)


def _inserted(whole: Value, part: Value, indices: tuple[int, ...]) -> Value:
    if not indices:
        return part
    if not isinstance(whole, tuple) or indices[0] >= len(whole):
        return scalar(whole) | scalar(part)
    inner = _inserted(whole[indices[0]], part, indices[1:])
    return (*whole[: indices[0]], inner, *whole[indices[0] + 1 :])


def _vector(frame: Frame, instruction: Instruction, state: State) -> Value:
    result: Value = NOTHING
    for operand in instruction.operands[: 1 if instruction.opcode == "extractelement" else 2]:
        result = joined(result, scalar(evaluated(frame, operand, state)))
    return result


def _landingpad(frame: Frame, instruction: Instruction, state: State) -> Value:
    return (frozenset((EXCEPTION,)), NUMBER)


_ARITHMETIC = ("add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "shl", "lshr", "ashr", "and", "or", "xor")
_FLOATING = ("fadd", "fsub", "fmul", "fdiv", "frem", "fneg", "fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp")
_CASTS = ("trunc", "zext", "sext", "ptrtoint", "ptrtoaddr", "inttoptr", "bitcast", "addrspacecast")
_KNOWN: dict[str, Callable[[Frame, Instruction, State], Value]] = {
    "alloca": _alloca, "load": _load, "store": _store, "atomicrmw": _atomic, "cmpxchg": _atomic,
    "getelementptr": _getelementptr, "icmp": _icmp, "fcmp": _fcmp, "select": _select, "freeze": _same,
    "extractvalue": _extractvalue, "insertvalue": _insertvalue, "extractelement": _vector, "insertelement": _vector,
    "shufflevector": _vector, "landingpad": _landingpad,
    **dict.fromkeys(_ARITHMETIC, _binary), **dict.fromkeys(_FLOATING, _float), **dict.fromkeys(_CASTS, _cast),
}  # fmt: skip
