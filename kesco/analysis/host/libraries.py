"""Calls of CUDA's libraries: what they do to the host's memory, and what is remembered of handles.

In: a call, its entry of the table, a state, arguments. Out: an `Outcome`. Apart from the runtime's calls because of the
handles.

1. A handle is an object that the host cannot look into. Its stream and its pointer mode are kept in a register beside
it (`Handles`): code that is not seen may change a handle, which is then not followed any more, but what the program
itself set before stays known, so that the proof can tell who was given which stream. 2. A descriptor is an object that
holds pointers. 3. What the device is given, it knows from then on, as with a launch.
"""

from __future__ import annotations

from collections.abc import Iterable

from kesco.analysis.host.engine import Engine
from kesco.analysis.host.frames import Frame, Outcome
from kesco.analysis.host.memory import State
from kesco.analysis.host.modelled import free, receive
from kesco.analysis.host.values import (
    BEFORE,
    NUMBER,
    NUMBER_ATOM,
    ONE,
    STATUS,
    ZERO,
    Object,
    Pointer,
    Scalar,
    Value,
    is_known,
    joined,
    objects,
    pointer,
    pointers,
    scalar,
    unknown,
)  # fmt: skip
from kesco.frontend.library_table import LibraryCall
from kesco.llvm.values import Instruction

HANDLE, DESCRIPTOR = "library", "descriptor"
_WORD = 8
_STREAM, _MODE, _OWN, _SETTER, _EACH = 0, 8, 16, 24, 32  # where the register has them
_ON_HOST = ZERO  # CUBLAS_POINTER_MODE_HOST, CUSPARSE_POINTER_MODE_HOST
_OTHER = unknown("a stream of another set")


class Handles:
    """The streams and pointer modes of handles on one path."""

    def __init__(self, engine: Engine, state: State) -> None:
        self._state, self._register = state, engine.resource("register", "handles")

    def begin(self, one: Object) -> None:
        """A handle is made: it works on the default stream, and scalars are on the host."""
        self.set_stream(one, ZERO)
        self._put(one, _MODE, ZERO)

    def stream(self, one: Object) -> Scalar:
        """The streams that a handle may have been given."""
        return self._state.load(pointer(self._register, one.number * _EACH + _STREAM), _WORD)

    def on_host(self, one: Object) -> bool:
        """Whether scalars and results are certainly on the host."""
        return self._state.load(pointer(self._register, one.number * _EACH + _MODE), _WORD) == _ON_HOST

    def set_stream(self, one: Object, stream: Scalar, *, own: bool = False, setter: int = -1) -> None:
        """A handle is given a stream, by this activation; `own`: and there a workspace that it has on no other one."""
        self._put(one, _STREAM, stream)
        self._put(one, _OWN, ONE if own else ZERO)
        self._put(one, _SETTER, frozenset((setter,)))

    def set_by(self, one: Object) -> Scalar:
        """The activations that its stream may be from; -1 for the program's own calls."""
        return self._state.load(pointer(self._register, one.number * _EACH + _SETTER), _WORD)

    def has_own(self, one: Object) -> bool:
        """Whether what a handle works with is certainly that of its stream alone."""
        return self._state.load(pointer(self._register, one.number * _EACH + _OWN), _WORD) == ONE

    def set_mode(self, one: Object, mode: Scalar) -> None:
        """A handle is given a pointer mode."""
        self._put(one, _MODE, mode)

    def renew(self) -> None:
        """Streams of kesco's are fetched anew: those that handles have are others from now on."""
        for at, (size, value) in list(self._state.look(self._register).cells.items()):
            if any(one.kind == "kesco" for one in objects(value)):
                self._state.store(pointer(self._register, at), _OTHER, size)

    def _put(self, one: Object, what: int, value: Scalar) -> None:
        self._state.store(pointer(self._register, one.number * _EACH + what), value, _WORD, weak=one.many)


def handle_in(state: State, value: Value) -> Object | None:
    """The one handle that a value is, of which no unseen code knows."""
    found = scalar(value)
    one = next(iter(found)) if len(found) == 1 else None
    if type(one) is not Pointer or one.object.kind != HANDLE or one.offset != (0, 0) or one.object.many:
        return None
    return None if state.look(one.object).volatile else one.object


def handles_in(reached: Iterable[Object]) -> list[Object]:
    """The handles among objects."""
    return sorted((one for one in reached if one.kind == HANDLE), key=lambda one: one.number)


def device_memory(entry: LibraryCall, on_host: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The arguments through which a call has the device read and write."""
    reads, writes = entry.reads, entry.writes
    if not on_host:
        reads, writes = (*reads, *entry.scalars), (*writes, *entry.results)
    return reads, writes


def held_by(state: State, descriptor: Value) -> Scalar:
    """What a descriptor holds; anything where it is not known which one it is."""
    atoms = scalar(descriptor)
    if not atoms or not is_known(atoms):
        return unknown("a descriptor that is not known")
    found: Value = frozenset()
    for one in pointers(atoms):
        contents = state.look(one.object)
        if one.object.kind != DESCRIPTOR or contents.volatile:
            return unknown("a descriptor that is not known")
        for value in contents.held():
            found = joined(found, value)
    return scalar(found)


def library(frame: Frame, instruction: Instruction, state: State, entry: LibraryCall, values: list[Value]) -> Outcome:
    """Execute a call."""
    engine = frame.engine
    if entry.kind in ("create", "describe"):
        kind = HANDLE if entry.kind == "create" else DESCRIPTOR
        new = engine.allocated(state, kind, entry.name, instruction, frame.context)
        state.make(new)
        if kind == HANDLE:
            Handles(engine, state).begin(new)
        for index in entry.holds:
            state.store(pointer(new, index * _WORD), values[index], _WORD)
        _give(state, values[0], pointer(new), entry.size)
    elif entry.kind != "host":
        _of_handle(engine, state, entry, values)
    for index in entry.out:
        receive(state, values[index], NUMBER)
    return Outcome(engine.constants.uniform(instruction.type, STATUS), state)


def _of_handle(engine: Engine, state: State, entry: LibraryCall, values: list[Value]) -> None:
    """What a call does with the handle that it is given, and through the others."""
    handles, one = Handles(engine, state), handle_in(state, values[0])
    if entry.kind == "work":
        _work(engine, state, entry, values, on_host=None if one is None else handles.on_host(one))
    elif one is None:  # it may be one of several, or of those that are known outside
        may_be = {o for o in objects(values[0]) if o.kind == HANDLE}
        if not is_known(values[0]):
            may_be.update(handles_in(state.reached(state.escaped)))
        state.lose(may_be)
    elif entry.kind == "set_stream":
        state.escape(values[1])
        handles.set_stream(one, scalar(values[1]))
    elif entry.kind == "pointer_mode":
        handles.set_mode(one, scalar(values[1]))
    elif entry.kind == "destroy":
        free(state, values[0])
        state.change(one).freed = True
        handles.begin(one)  # its stream is nobody's business any more


def _work(engine: Engine, state: State, entry: LibraryCall, values: list[Value], *, on_host: bool | None) -> None:
    """What work leaves in memory; None: it is not known where scalars and results are."""
    reads, writes = device_memory(entry, on_host=bool(on_host))
    given = [(values[i], i in writes) for i in dict.fromkeys((*reads, *writes))]
    given += [(held_by(state, values[i]), i in entry.writes_held) for i in {*entry.reads_held, *entry.writes_held}]
    for value, written in given:
        reached = state.reached(objects(value))
        state.device |= reached
        state.escaped |= reached
        if written:
            state.lose(one for one in reached if not engine.is_constant(one))
    for index in entry.results if on_host else ():
        state.fill(values[index], None, NUMBER)


def _give(state: State, address: Value, new: Scalar, size: int) -> None:
    """A variable receives a handle; if the call fails it keeps what it holds, which no call may be given."""
    gone = (NUMBER_ATOM, BEFORE, 0)
    old = frozenset(
        a for a in state.load(address, size)
        if a not in gone and type(a) is not int and not (type(a) is Pointer and state.look(a.object).freed)
    )  # fmt: skip
    state.store(address, joined(new, old), size)
