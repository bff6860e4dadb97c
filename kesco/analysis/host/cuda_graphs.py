"""Calls that make graphs of CUDA and launch them: what they do to the host's memory.

In: an activation, a call, a state, arguments. Out: an `Outcome`; None for a call that is not followed. Only for a
watcher that asks for it (`Engine.graphs`): others take graphs for code that is not seen.

A graph, a node and what is instantiated are objects like streams. What the nodes are given, the device knows from then
on; a launch may write all of that.
"""

from __future__ import annotations

from kesco.analysis.host.arguments import arguments, place_at
from kesco.analysis.host.frames import Frame, Outcome
from kesco.analysis.host.memory import State
from kesco.analysis.host.values import ANYWHERE, NUMBER, STATUS, Object, Value, objects, pointer, unknown
from kesco.frontend.api_table import CudaCall
from kesco.llvm.values import Instruction

_MADE = {
    "cudaGraphCreate": (0, "graph"), "cudaStreamEndCapture": (1, "graph"), "cudaGraphInstantiate": (0, "exec"),
    "cudaGraphInstantiateWithFlags": (0, "exec"), "cudaGraphAddKernelNode": (0, "node"),
    "cudaGraphAddMemcpyNode": (0, "node"), "cudaGraphAddMemcpyNode1D": (0, "node"),
    "cudaGraphAddMemsetNode": (0, "node"), "cudaGraphAddEmptyNode": (0, "node"),
}  # fmt: skip
_ONLY_ORDER = (
    "cudaStreamBeginCapture", "cudaGraphAddDependencies", "cudaGraphUpload", "cudaGraphDestroy", "cudaGraphExecDestroy",
    "cudaThreadExchangeStreamCaptureMode",
)  # fmt: skip
FUNCTION, GRID, BLOCK, SHARED, ARGUMENTS = 0, 8, 20, 32, 40  # in a cudaKernelNodeParams
SOURCE, TARGET, EXTENT, KIND = 32, 96, 128, 152  # in a cudaMemcpy3DParms
DESTINATION, BYTE, ELEMENT, WIDTH, HEIGHT = 0, 16, 20, 24, 32  # in a cudaMemsetParams
_POINTER = 8


def graph_call(
    frame: Frame, instruction: Instruction, state: State, call: CudaCall, values: list[Value]
) -> Outcome | None:
    """See the module's docstring."""
    engine = frame.engine
    if call.name in _MADE:
        index, kind = _MADE[call.name]
        new = engine.allocated(state, kind, call.name, instruction, frame.context)
        state.make(new)
        state.store(values[index], pointer(new), _POINTER)
        if kind == "node":
            given = _given(frame, state, call.name, values[4:])
            if "Memcpy" in call.name:
                state.copied |= given
            reached = state.reached(given if "Kernel" in call.name else ())
            state.device |= reached
            state.escaped |= reached
    elif call.name == "cudaGraphLaunch":
        state.lose(one for one in state.reached(state.device) if not engine.is_constant(one))
        for one in state.copied:
            if one.visible and not state.look(one).volatile:
                state.change(one).add(ANYWHERE, 1, unknown("what the device wrote"))
    elif call.name == "cudaThreadExchangeStreamCaptureMode":
        state.store(values[0], NUMBER, _POINTER // 2)
    elif call.name not in _ONLY_ORDER:
        return None
    return Outcome(engine.constants.uniform(instruction.type, STATUS), state)


def kernels(state: State, params: Value) -> tuple[list[str], Value]:
    """The stubs that a kernel's node may be of, and the array with the places of its arguments."""
    functions = objects(state.load(params, _POINTER))
    return sorted(one.name for one in functions), state.load(place_at(state, params, ARGUMENTS), _POINTER)


def _given(frame: Frame, state: State, name: str, values: list[Value]) -> set[Object]:
    """The memory that a node is given."""
    if name == "cudaGraphAddMemcpyNode1D":
        return objects(values[0]) | objects(values[1])
    if name in ("cudaGraphAddMemcpyNode", "cudaGraphAddMemsetNode"):
        offsets = (SOURCE, TARGET) if "Memcpy" in name else (DESTINATION,)
        return {o for p in offsets for o in objects(state.load(place_at(state, values[0], p), _POINTER))}
    found: set[Object] = set()
    if name == "cudaGraphAddKernelNode":
        stubs, places = kernels(state, values[0])
        for stub in stubs:
            given, held, _ = arguments(frame, state, stub, places)
            found |= held | {one for _, value in given for one in objects(value)}
    return found
