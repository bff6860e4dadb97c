"""What a kernel is given, from the array of places where its arguments are.

In: a state, a kernel's stub and that array. Out: pointers, and whatever holds addresses; numbers, where they are known.
Apart because launches and nodes of graphs have such arrays.
"""

from __future__ import annotations

from kesco.analysis.host.arithmetic import stepped
from kesco.analysis.host.frames import Frame
from kesco.analysis.host.memory import State
from kesco.analysis.host.values import DISTANCE, NOTHING, Object, Scalar, Value, joined, number, objects
from kesco.llvm.layouts import layout_of
from kesco.llvm.module import Module
from kesco.llvm.types import POINTER, Type
from kesco.llvm.values import Integer, Local

_PARTS = 64  # of a structure that is passed by value
_POINTER = 8


def place_at(state: State, address: Value, offset: int) -> Scalar:
    """A place behind another one."""
    return stepped(address, (), offset, state.escape)


def signature(module: Module, stub: str) -> tuple[Type, ...]:
    """The types of a kernel's parameters, from its stub, which puts the places of each into an array."""
    function = module.function(stub)
    if function is None:
        return ()
    types: dict[str, Type] = {}
    for one in function.parameters:
        byval = one.promised("byval")
        if byval is not None and byval.type is not None:
            types[one.value.name] = byval.type
    slots: dict[str, int] = {}
    found: dict[int, Type] = {}
    for instruction in (one for block in function.blocks for one in block.instructions):
        operands = instruction.operands
        if instruction.opcode == "alloca" and instruction.result is not None and instruction.about is not None:
            types[instruction.result.name] = instruction.about
        elif instruction.opcode == "getelementptr" and instruction.result is not None:
            if instruction.about == POINTER and len(operands) == 2 and isinstance(operands[1], Integer):
                slots[instruction.result.name] = operands[1].value
        elif instruction.opcode == "store":
            value, place = (one.name if isinstance(one, Local) else "" for one in operands)
            if place in slots and value in types:
                found[slots[place]] = types[value]
    return tuple(found[index] for index in sorted(found))


def arguments(
    frame: Frame, state: State, stub: str, given: Value
) -> tuple[list[tuple[str, Value]], set[Object], dict[int, int]]:
    """What a kernel gets, from the array of places where its arguments are: pointers, and whatever holds addresses.

    Also all that these lead to, and its numbers where they are known. With the distance to another allocation it may
    come to that from any of its pointers.
    """
    engine = frame.engine
    found: list[tuple[str, Value]] = []
    held: set[Object] = set()
    numbers: dict[int, int] = {}
    distances: Scalar = NOTHING
    for index, type_ in enumerate(signature(engine.module, stub)):
        place = state.load(place_at(state, given, index * _POINTER), _POINTER, pointer=True)
        for one in objects(place):
            held |= {o for value in state.look(one).held() for o in objects(value)}
        whole = engine.layouts.resolved(type_).kind == "ptr"
        if engine.layouts.resolved(type_).kind == "int":
            given_number = state.load(place, engine.layouts.size(type_))
            distances |= given_number & {DISTANCE}
            one_number = number(given_number)
            if one_number is not None:
                numbers[index] = one_number
        layout = layout_of(type_, engine.layouts)
        words = dict.fromkeys(layout.pointers, True)
        for offset, scalar_ in engine.layouts.scalars(type_, 0, _PARTS):
            if scalar_.kind == "int" and scalar_.number == 64:
                words.setdefault(offset, False)
        for begin, size in layout.raw:
            words |= {at: False for at in range(begin, begin + size - _POINTER + 1, _POINTER) if at not in words}
        for offset, is_pointer in sorted(words.items()):
            value = state.load(place_at(state, place, offset), _POINTER, pointer=is_pointer)
            distances |= value & {DISTANCE}
            if is_pointer or objects(value):
                found.append((str(index) if whole else f"{index}.{offset}", value))
    return [(name, joined(value, distances)) for name, value in found], held, numbers
