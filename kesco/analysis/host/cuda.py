"""Launches and calls of CUDA: what they do to the host's memory, and what is remembered of them.

In: an activation, a call, a state, arguments. Out: an `Outcome`, and a `Visit` in the record.

What an entry of the table says is done to the state: memory is made and ends, streams and events are made, copies are
done, variables receive something. A call may fail: its result is not known, and a variable that should have received
new memory may still hold what it held, unless that is gone.

What the device knows, it may store wherever it can write, at any time: the host's memory that a kernel's arguments
lead to is lost with the launch. What comes from the device is not known.
"""

from __future__ import annotations

from dataclasses import dataclass

from kesco.analysis.host.arguments import arguments, place_at
from kesco.analysis.host.copying import copy_bytes
from kesco.analysis.host.cuda_graphs import graph_call
from kesco.analysis.host.engine import PUSH, STUB
from kesco.analysis.host.frames import SETTINGS, Frame, Outcome
from kesco.analysis.host.libraries import library
from kesco.analysis.host.memory import State
from kesco.analysis.host.modelled import free, receive
from kesco.analysis.host.models import cuda_entry
from kesco.analysis.host.record import Visit
from kesco.analysis.host.values import (
    BEFORE,
    NOTHING,
    NUMBER,
    NUMBER_ATOM,
    STATUS,
    ZERO,
    Object,
    Pointer,
    Scalar,
    Unknown,
    Value,
    is_known,
    joined,
    number,
    objects,
    pointer,
    scalar,
    unknown,
)
from kesco.frontend.api_table import CudaCall, is_cuda_name
from kesco.frontend.library_table import library_call
from kesco.llvm.types import POINTER
from kesco.llvm.values import Instruction

POP = "__cudaPopCallConfiguration"
_POINTER = 8
_FROM_DEVICE = unknown("what the device wrote")
_KINDS = {"managed": "managed", "pinned": "pinned", "mapped": "pinned"}
_TO_DEVICE = (1, 3)  # cudaMemcpyHostToDevice, cudaMemcpyDeviceToDevice
_HOST = ("stack", "heap", "global", "pinned")


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch that is under way: who makes it, and with which settings."""

    instruction: Instruction
    function: str
    context: int
    settings: tuple[tuple[str, Value], ...]


def begun(frame: Frame, instruction: Instruction, state: State) -> Launch:
    """A stub is called: the settings that were pushed last are its own."""
    settings = state.values.get(SETTINGS, ())
    last: Value = ()
    if isinstance(settings, tuple) and settings:
        last, state.values[SETTINGS] = settings[-1], settings[:-1]
    return Launch(instruction, frame.function.name, frame.context, tuple(_settings_of(last)))


def _settings_of(pushed: Value) -> list[tuple[str, Value]]:
    """Grid, block, shared memory and stream, as they are pushed: two numbers in one, and one more; and where."""
    if not isinstance(pushed, tuple) or len(pushed) != 7:
        return [(name, unknown("launch settings that are not known")) for name in ("grid", "block", "shared", "stream")]
    grid, block = (_three(pushed[at], pushed[at + 1]) for at in (0, 2))
    return [("grid", grid), ("block", block), ("shared", pushed[4]), ("stream", pushed[5]), ("<<<", pushed[6])]


def _three(both: Value, last: Value) -> Value:
    two = number(both)
    if two is None:
        return (NUMBER, NUMBER, last)
    first, second = two & 0xFFFFFFFF, (two >> 32) & 0xFFFFFFFF
    return (frozenset((first,)), frozenset((second,)), last)


def launched_unseen(frame: Frame, state: State, launch: Launch, stub: str, values: list[Value]) -> None:
    """A stub without a body is called: what it gets is what the kernel gets."""
    types = [one.type for one in launch.instruction.operands]
    narrow = [one.kind == "float" or (one.kind == "int" and one.number < 8 * _POINTER) for one in types]
    found = [(str(i), v) for i, v in enumerate(values) if objects(v) or not (narrow[i] or is_known(v))]
    _launch(frame, state, launch, stub, found, {one for value in values for one in objects(value)}, {})


def _launch(
    frame: Frame,
    state: State,
    launch: Launch,
    stub: str,
    found: list[tuple[str, Value]],
    held: set[Object],
    numbers: dict[int, int],
) -> None:
    engine = frame.engine
    # an address that is not known, in memory or given as a number, may lead to what the device shares with the host
    hidden = (one for one in state.escaped if one.kind in ("pinned", "managed"))
    reached = state.reached({*state.device, *held, *hidden, *(one for _, value in found for one in objects(value))})
    state.device |= reached
    state.escaped |= reached
    state.lose(one for one in reached if not engine.is_constant(one))
    settings = list(launch.settings)
    if engine.watcher is not None:
        engine.watcher.launches(stub, launch, found, numbers, state)
    engine.record.visit(Visit(launch.instruction, launch.function, stub, found, settings, launch.context))


def called(frame: Frame, instruction: Instruction, state: State, name: str, values: list[Value]) -> Outcome | None:
    """A call of the runtime or of one of CUDA's libraries; None if it is none, or is not known."""
    around, frame.engine.in_runtime = frame.engine.in_runtime, is_cuda_name(name)
    try:
        return _called(frame, instruction, state, name, values)
    finally:
        frame.engine.in_runtime = around


def _called(frame: Frame, instruction: Instruction, state: State, name: str, values: list[Value]) -> Outcome | None:
    if name == PUSH:
        frame.engine.record.pushed.add(id(instruction))
        settings = state.values.get(SETTINGS, ())
        state.values[SETTINGS] = (
            *(settings if isinstance(settings, tuple) else ()),
            (*values, frozenset((instruction.place,))),
        )
        return Outcome(ZERO, state)
    if name == POP:
        for value in values:
            receive(state, value, NUMBER)
        return Outcome(ZERO, state)
    if not is_cuda_name(name):
        return None
    entry = cuda_entry(name, None if "Launch" in name else len(values))
    launch = entry is not None and entry.kind == "launch" and entry.arguments is not None
    if frame.engine.watcher is not None and not launch:
        frame.engine.watcher.calls(frame, instruction, name, values, state)
    if entry is not None and entry.kind not in ("opaque", "graph", "capture", "host_func"):
        return _runtime(frame, instruction, state, entry, values)
    if frame.engine.graphs and entry is not None and entry.kind in ("graph", "capture"):
        outcome = graph_call(frame, instruction, state, entry, values)
        if outcome is not None:
            return outcome
    known = library_call(name, len(values))
    shown = [(str(i), v) for i, v in enumerate(values) if instruction.operands[i].type.kind == "ptr"]
    frame.engine.record.visit(Visit(instruction, frame.function.name, name, shown, [], frame.context))
    return None if known is None else library(frame, instruction, state, known, values)


def _runtime(frame: Frame, instruction: Instruction, state: State, call: CudaCall, values: list[Value]) -> Outcome:
    engine = frame.engine
    shown = [(str(i), v) for i, v in enumerate(values) if instruction.operands[i].type.kind == "ptr"]
    if call.symbol is not None:
        values = [_of_symbol(frame, v) if i == call.symbol else v for i, v in enumerate(values)]
    if call.kind == "launch" and call.function is not None and call.arguments is not None:
        _launch_by_call(frame, instruction, state, values)
        return Outcome(NUMBER, state)
    if call.kind in ("alloc", "stream_create", "event_create") and call.allocates is not None:
        shown = []
        kind = call.kind.partition("_")[0] if call.memory is None else _KINDS.get(call.memory, "device")
        size = number(values[call.size]) if call.size is not None else None
        new = engine.allocated(state, kind, call.name, instruction, frame.context, -1 if size is None else size)
        state.make(new)
        _give(state, values[call.allocates], pointer(new))
        if call.beside is not None:
            state.fill(place_at(state, values[call.allocates], _POINTER), call.beside, NUMBER)
    elif call.kind == "alias" and call.allocates is not None and call.aliases is not None:
        _give(state, values[call.allocates], scalar(values[call.aliases]))
    elif call.symbol is not None and call.kind == "query" and call.out:
        _give(state, values[call.out[0]], scalar(values[call.symbol]))
    elif call.frees is not None:
        free(state, values[call.frees])
    elif call.kind in ("copy", "memset"):
        _moved(frame, state, call, values)
    if not (call.symbol is not None and call.kind == "query"):
        for index, value in enumerate(values) if call.out else ():
            if index not in call.out and index != call.allocates:
                state.escape(value)  # what is put there may lead to it
        for index in call.out:
            receive(state, values[index], unknown(f"what {call.name} puts there"))
    engine.record.visit(Visit(instruction, frame.function.name, call.name, shown, [], frame.context))
    result = STATUS if instruction.type.kind == "int" else unknown(f"what {call.name} returns")
    return Outcome(engine.constants.uniform(instruction.type, result), state)


def _give(state: State, address: Value, new: Scalar) -> None:
    """A variable receives a pointer; if the call fails it keeps what it holds, unless that is no use any more.

    What was there when main or the function began, and nobody has read, is none of the pointers that are known here,
    unless other files and a failure conspire. A null pointer stays: programs ask for it, and take other memory.
    """
    gone = {NUMBER_ATOM, BEFORE, *state.at_first(address)}
    held = state.load(address, _POINTER, pointer=True)
    old = frozenset(
        a for a in held
        if a == 0 or ((a not in gone and type(a) is not int)
        and not (type(a) is Pointer and state.look(a.object).freed))
    )  # fmt: skip
    state.store(address, joined(new, old), _POINTER)


def _of_symbol(frame: Frame, value: Value) -> Value:
    """A symbol's memory on the device, from the variable that stands for it on the host."""
    found: set[Pointer | Unknown | int] = set()
    for atom in scalar(value):
        if type(atom) is Pointer:
            found.add(Pointer(frame.engine.resource("symbol", atom.object.name), atom.offset))
        else:
            found.add(atom)
    return frozenset(found)


def moved(frame: Frame, state: State, call: CudaCall, values: list[Value]) -> None:
    """What memory holds behind a copy or memset that is no call of CUDA's own, with the values of one."""
    around, frame.engine.in_runtime = frame.engine.in_runtime, True
    try:
        _moved(frame, state, call, values)
    finally:
        frame.engine.in_runtime = around


def _moved(frame: Frame, state: State, call: CudaCall, values: list[Value]) -> None:
    """Of a symbol, `values` have its memory on the device."""
    if call.kind == "memset":
        for index in call.writes:
            state.fill(_but_came_in(frame, state, values[index]), None, NUMBER)
        return
    to, source = values[call.writes[0]], values[call.reads[0]]
    size = number(values[call.size]) if call.size is not None and not call.pitched else None
    way = call.direction if call.direction is not None and call.direction < len(values) else None
    if way is not None and number(values[way]) in _TO_DEVICE:
        to = _but_came_in(frame, state, to)
    if is_known(source) and all(one.kind in _HOST for one in objects(source)):
        copy_bytes(state, to, source, size)
    else:
        state.fill(to, size, _FROM_DEVICE)
    if not is_known(to) or any(one.kind not in _HOST for one in objects(to)):
        inside = {o for one in objects(source) for value in state.look(one).held() for o in objects(value)}
        reached = state.reached(inside)
        state.device |= reached
        state.escaped |= reached


def _but_came_in(frame: Frame, state: State, address: Value) -> Scalar:
    """The places that a call writes on the device, without those that a pointer which came in leads to: these are lost.

    As with a kernel, what came in for the device is no memory that the host finds its pointers in: it holds numbers.
    """
    came_in = {one for one in objects(address) if one in frame.engine.numbers}
    state.lose(came_in)
    return frozenset(a for a in scalar(address) if type(a) is not Pointer or a.object not in came_in)


def _launch_by_call(frame: Frame, instruction: Instruction, state: State, values: list[Value]) -> None:
    """``cudaLaunchKernel(function, grid, block, arguments, shared, stream)``, also as the end of a stub.

    Grid and block are passed in two parts each, so numbers of arguments are not those of the table.
    """
    engine = frame.engine
    at = [index for index, one in enumerate(instruction.operands[:-1]) if one.type == POINTER]
    function, given = values[at[0]], values[at[1]] if len(at) > 1 else NOTHING
    launch = engine.launch if STUB in frame.function.name else None
    if launch is None:
        settings = [(name, unknown("settings of a call")) for name in ("grid", "block", "shared")]
        launch = Launch(instruction, frame.function.name, frame.context, (*settings, ("stream", values[-1])))
    names = sorted(one.name for one in objects(function) if one.kind == "function" and STUB in one.name)
    strange = not is_known(function) or any(STUB not in one.name for one in objects(function))
    for name in names:
        if engine.module.has_body(name):
            _launch(frame, state, launch, name, *arguments(frame, state, name, given))
        else:
            strange = True
    if strange or not names:
        engine.lose(f"a launch of an unknown kernel in {frame.function.name}")
        what = [("0", unknown("arguments of an unknown kernel"))]
        _launch(frame, state, launch, "", list(what), state.reached(state.escaped | objects(given)), {})
