"""A call of a function that has a model: what the model says, done to a state.

In: an activation, the call, a state, a `Model`, the arguments. Out: an `Outcome`.
"""

from __future__ import annotations

import re

from kesco.analysis.host import strings
from kesco.analysis.host.copying import copy_bytes
from kesco.analysis.host.frames import Frame, Outcome
from kesco.analysis.host.memory import State
from kesco.analysis.host.models import Model
from kesco.analysis.host.values import (
    ANYWHERE,
    NOTHING,
    NUMBER,
    ONE,
    ZERO,
    Atom,
    Object,
    Pointer,
    Scalar,
    Unknown,
    Value,
    is_known,
    joined,
    moved,
    number,
    pointer,
    pointers,
    scalar,
    united,
    unknown,
)
from kesco.frontend.api_table import RESULT
from kesco.llvm.tags import is_of_members
from kesco.llvm.values import Bytes, Instruction, Symbol

_WORD = 8
_COUNTS = re.compile(rb"%[^%a-zA-Z]*[hlqjzt]*n")


def modelled(frame: Frame, instruction: Instruction, state: State, model: Model, values: list[Value]) -> Outcome:
    """Execute a call as its model says."""
    thrown = state.copy() if model.throws and "nounwind" not in instruction.promised else None
    if model.ends:
        return Outcome(NOTHING, None, thrown)
    result = _result(frame, instruction, state, model, values)
    if model.frees is not None and not model.copies:
        _free(state, _at(values, model.frees))
    if model.copies and model.copies[0] != RESULT:
        to, source, size = (_at(values, one) for one in model.copies)
        copy_bytes(state, to, source, number(size), members=is_of_members(instruction))
    if model.fills:
        to, byte, size = (_at(values, one) for one in model.fills)
        state.fill(to, number(size), ZERO if byte == ZERO else NUMBER)
    if model.string:
        fresh = None if model.string == "gone" else _made(frame, instruction, state, "std::string", NUMBER, -1, 0)
        strings.act(state, model, values, fresh)
    if model.begins is not None:
        _begin(state, _at(values, model.begins))
    if model.sets is not None:
        state.store(_at(values, model.sets), ONE, 1)
    written = set(model.writes)
    if model.writes_from is not None:
        written.update(range(model.writes_from, len(values)))
    if model.counts and not _is_plain_format(frame, instruction, model.name):
        written.update(range(1, len(values)))
    for index, value in enumerate(values) if model.shows else ():
        if index not in written and index not in model.out:
            state.show(value)
    for index in sorted(written):
        state.fill(_at(values, index), None, NUMBER)
    for index in model.out:
        receive(state, _at(values, index), derived(values, model.name))
    if model.links:
        _link(state, [_at(values, one) for one in model.links], model.words)
    if model.inserts:
        _insert(state, _at(values, model.inserts[0]), _at(values, model.inserts[1]))
    if model.later is not None:
        for one in pointers(_at(values, model.later)):
            frame.engine.shown(one.object)  # with what it is given by then, which may be anything
    return Outcome(result, state, thrown)


def _is_plain_format(frame: Frame, instruction: Instruction, name: str) -> bool:
    """Whether the format, the last argument with a name, is a literal that asks for no number of characters."""
    head = frame.engine.module.head(name)
    last = instruction.operands[len(head.parameters) - 1] if head is not None and head.variadic else None
    variable = frame.engine.module.variable(last.name) if isinstance(last, Symbol) else None
    if variable is None or variable.kind != "constant" or not isinstance(variable.initial, Bytes):
        return False
    return not _COUNTS.search(variable.initial.data)


def _at(values: list[Value], index: int) -> Value:
    return values[index] if 0 <= index < len(values) else NOTHING


def _result(frame: Frame, instruction: Instruction, state: State, model: Model, values: list[Value]) -> Value:
    engine = frame.engine
    if model.allocates is not None:
        size = number(values[0]) if values else None
        text = model.returns == "derived" and not _is_raw(model)
        holds = ZERO if model.zeroed else NUMBER if text else NOTHING
        one = _made(frame, instruction, state, model.name, holds, -1 if size is None else size, frame.context)
        if model.copies:
            copy_bytes(state, pointer(one), _at(values, model.copies[1]), None)
        if model.allocates != RESULT:
            state.store(_at(values, model.allocates), pointer(one), _WORD)
            return NUMBER
        return joined(pointer(one), ZERO) if model.fails else pointer(one)
    if model.returns == "argument":
        return _at(values, 0)
    if model.returns == "part":
        first = _at(values, 0)
        return united(frozenset(Pointer(one.object, ANYWHERE) for one in pointers(first)) | unknown_in(first) | ZERO)
    if model.returns == "one":
        return ONE
    if model.follows is not None:
        return _nodes(state, [_at(values, model.follows)], model.words)
    if instruction.type.kind == "void":
        return NOTHING
    if model.returns == "number" or instruction.type.kind in ("int", "float"):
        for value, operand in zip(values, instruction.operands, strict=False):
            if model.name.startswith("llvm.") and operand.type.kind != "ptr":
                state.escape(value)  # it computes with them
        return engine.constants.uniform(instruction.type, NUMBER)
    if model.returns == "derived":
        return derived(values, model.name)
    return engine.constants.uniform(instruction.type, unknown(f"what {model.name} returns"))


def _made(
    frame: Frame, instruction: Instruction, state: State, name: str, holds: Scalar, size: int, context: int
) -> Object:
    """New memory of the heap, and what it holds."""
    one = frame.engine.allocated(state, "heap", name, instruction, context, size)
    state.make(one, holds)
    return one


def _is_raw(model: Model) -> bool:
    """Whether new memory holds what nobody wrote; other functions of the C library copy a text into it."""
    return model.name.startswith(("malloc", "aligned", "memalign", "valloc", "_mm_", "realloc", "posix_"))


def derived(values: list[Value], name: str) -> Scalar:
    """A pointer into what an argument points to, or to something of the library's."""
    found: set[Atom] = set(unknown(f"what {name} returns"))
    for value in values:
        found.update(Pointer(one.object, (1, 0)) for one in pointers(value))
    return united(frozenset(found))


def receive(state: State, address: Value, value: Scalar) -> None:
    """Let a variable of unknown type have received a value, or not."""
    for target, offset in pointers(address):
        if 0 <= target.size <= _WORD and not offset[0] and target.kind == "stack":
            place = frozenset((Pointer(target, offset),))
            state.store(place, joined(value, state.load(place, target.size)), target.size - offset[1], weak=False)
        else:
            state.escape(value)
            state.fill(frozenset((Pointer(target, offset),)), None, NUMBER)


def _free(state: State, address: Value) -> None:
    targets = pointers(address)
    state.gone |= {one.object for one in targets}
    for place in targets:
        state.note(place.object, ANYWHERE, 1, ZERO, writes=True)
    if len(targets) == 1 and not targets[0].object.many and not targets[0].offset[0]:
        one = targets[0].object
        if one.kind in ("heap", "device", "pinned", "managed"):
            state.change(one).freed = True


def free(state: State, address: Value) -> None:
    """Remember that an object is gone, where it is certain which."""
    _free(state, address)


def _begin(state: State, address: Value) -> None:
    targets = pointers(address)
    certain = len(targets) == 1 and targets[0].offset == (0, 0) and not targets[0].object.many
    if certain and not state.look(targets[0].object).volatile:
        state.make(targets[0].object)


def _nodes(state: State, starts: list[Value], words: tuple[int, ...]) -> frozenset[Atom]:
    """The nodes that can be reached from some along their pointers."""
    found: set[Atom] = set()
    todo = [atom for value in starts for atom in scalar(value)]
    while todo:
        atom = todo.pop()
        if atom in found or type(atom) is int:
            continue
        found.add(atom)
        if type(atom) is Pointer:
            for at in words:
                todo += state.load(frozenset((Pointer(atom.object, moved(atom.offset, (0, at))),)), _WORD)
    return united(frozenset(found))


def _link(state: State, nodes: list[Value], words: tuple[int, ...]) -> None:
    """Let nodes point to each other in any way: containers put them in order in code that is not seen."""
    every = joined(_nodes(state, nodes, words), ZERO)
    for atom in scalar(every):
        if type(atom) is Pointer:
            for at in words:
                place = frozenset((Pointer(atom.object, moved(atom.offset, (0, at))),))
                state.store(place, joined(every, state.load(place, _WORD)), _WORD, weak=True)
    if not is_known(every):
        state.escape(every)
        state.lose_escaped()


def _insert(state: State, node: Value, position: Value) -> None:
    """Put a node in front of another in a ring: each begins with the next one and the one before."""

    def before(one: Value) -> Value:
        return frozenset(Pointer(p.object, moved(p.offset, (0, _WORD))) for p in pointers(one)) | unknown_in(one)

    last = state.load(before(position), _WORD)
    state.store(node, position, _WORD)
    state.store(before(node), last, _WORD)
    state.store(last, node, _WORD)
    state.store(before(position), node, _WORD)


def unknown_in(value: Value) -> Scalar:
    """The part of a value that is not known."""
    return frozenset(atom for atom in scalar(value) if type(atom) is Unknown)
