"""Graphs of CUDA, captured or made node by node → the steps of each of their launches.

In: what is called, before it has been done, and the steps that are captured. Out: steps. A launch is as many steps as
its graph has nodes.

1. A node has a stream and an event of its own: it waits for the events of those that it comes after, or for where the
launch begins, and the stream of the launch waits for all that none comes after. 2. What is captured keeps its streams
and events, which are other ones in each graph: the stream that the capture began with waits for the launch, and the
launch's for that. 3. A step belongs to a capture that control goes through whenever it comes there: whatever decides
whether the capture begins and ends decides about the step, too.

It refuses graphs that are changed or not known, are made in loops whose trips are not told apart, or hold other nodes
than kernels, copies, memsets and empty ones; and whatever else happens while a stream is captured.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kesco.analysis.host import cuda_graphs
from kesco.analysis.host.arguments import arguments, place_at, signature
from kesco.analysis.host.cuda_graphs import SOURCE, TARGET
from kesco.analysis.host.memory import State
from kesco.analysis.host.values import Object, Value, is_known, name_of, number, objects, scalar
from kesco.analysis.host_order.graph_launches import Capture, Launch, Node
from kesco.analysis.host_order.steps import Draft, Key
from kesco.analysis.host_order.words import in_memory, said
from kesco.ir.execution import StepKind

if TYPE_CHECKING:
    from kesco.analysis.host_order.calls import Calls
    from kesco.analysis.host_order.watching import Watching

_POINTER, _INT, _DIMENSIONS = 8, 4, 3
_MOST = 512  # nodes that one comes after
_ASKS = ("cudaGraphUpload", "cudaGraphDestroy", "cudaGraphExecDestroy", "cudaGraphDebugDotPrint",
         "cudaThreadExchangeStreamCaptureMode", "cudaGraphGetNodes", "cudaGraphGetEdges", "cudaGraphGetRootNodes",
         "cudaStreamIsCapturing")  # fmt: skip
_CAPTURED = (StepKind.LAUNCH, StepKind.COPY, StepKind.MEMSET, StepKind.RECORD, StepKind.WAIT)


@dataclass(slots=True)
class _Graph:
    """One of both; `ready`: as it was instantiated."""

    nodes: dict[Object, Node] = field(default_factory=dict)
    captured: Capture | None = None
    ready: bool = False
    conditions: tuple[str, ...] = ()

    def instantiated(self, conditions: tuple[str, ...]) -> _Graph:
        """The graph as it is now, whatever becomes of it."""
        nodes = {one: replace(node, after=dict(node.after)) for one, node in self.nodes.items()}
        return _Graph(nodes, self.captured, ready=True, conditions=conditions)


@dataclass(slots=True)
class Graphs:
    """See the module's docstring."""

    watching: Watching
    calls: Calls
    open: Capture | None = None
    _graphs: dict[Object, _Graph] = field(default_factory=dict)
    _ready: dict[Object, _Graph] = field(default_factory=dict)  # what is instantiated
    _drafts: dict[Key, Draft] = field(default_factory=dict)
    _captures: dict[Key, Capture] = field(default_factory=dict)
    _made: _Graph | tuple[Object, Node] | None = None  # what the object stands for that is made next

    # ---- what the program does with graphs

    def called(self, name: str, values: list[Value], state: State) -> None:
        """A call that has to do with graphs or captures."""
        if state.failing:
            return
        if name == "cudaGraphCreate":
            self._made = _Graph()
        elif name.startswith("cudaGraphAdd") and name.endswith(("Node", "Node1D")):
            self._adds(name, values, state)
        elif name == "cudaGraphAddDependencies":
            self._orders(values, state)
        elif name.startswith("cudaGraphInstantiate"):
            graph = self._only(values[1], "graph")
            self._made = self._graphs[graph].instantiated(self._asked()) if graph is not None else None
        elif name == "cudaGraphLaunch":
            self._launches(values, state)
        elif name == "cudaStreamBeginCapture":
            self._begins(values)
        elif name == "cudaStreamEndCapture":
            self._ends(values)
        elif name not in _ASKS:
            self.watching.refuse(f"it calls {name}")

    def makes(self, one: Object) -> None:
        """A graph, a node or what is instantiated is made."""
        made, self._made = self._made, None
        if one.many:
            self.watching.refuse("it makes graphs in a loop whose trips are not told apart")
        elif isinstance(made, _Graph):
            (self._ready if made.ready else self._graphs)[one] = made
        elif made is not None:
            self._graphs[made[0]].nodes[one] = made[1]

    def _asked(self) -> tuple[str, ...]:
        return tuple(self.watching.questions.around())

    def _only(self, value: Value, kind: str) -> Object | None:
        """The one object that a value is, for which a graph is known."""
        found = objects(value)
        one = next(iter(found), None)
        known: Collection[Object] = self._graphs if kind == "graph" else self._ready
        if len(found) != 1 or not is_known(value) or one is None or one not in known:
            self.watching.refuse("it is not known which graph it makes or launches")
            return None
        return one

    # ---- nodes

    def _adds(self, name: str, values: list[Value], state: State) -> None:
        graph = self._only(values[1], "graph")
        if graph is None:
            return
        node = Node(self._work(name, values[4:], state), conditions=self._asked())
        count = number(values[3])
        after = [state.load(place_at(state, values[2], i * _POINTER), _POINTER) for i in range(min(count or 0, _MOST))]
        node.lost = count is None or count > _MOST
        self._comes_after(node, after)
        self._made = (graph, node)

    def _comes_after(self, node: Node, every: Iterable[Value]) -> None:
        for value in every:
            found = objects(value)
            if len(found) == 1 and is_known(value) and 0 not in scalar(value):
                node.after |= dict.fromkeys(found)
            else:
                node.lost = True

    def _orders(self, values: list[Value], state: State) -> None:
        """Nodes are said to come after others; CUDA 13 has one argument more."""
        graph, count = self._only(values[0], "graph"), number(values[-1])
        if graph is None:
            return
        nodes = self._graphs[graph].nodes
        if self.watching.steps.loops() or any(set(self._asked()) - set(node.conditions) for node in nodes.values()):
            self.watching.refuse("it depends on a question, or on a loop, whether nodes come after others")
        for index in range(count if count is not None and count <= _MOST else 0):
            first, then = (state.load(place_at(state, values[i], index * _POINTER), _POINTER) for i in (1, 2))
            for one in objects(then) if len(objects(then)) == 1 else ():
                if one in nodes:
                    self._comes_after(nodes[one], [first])

    def _work(self, name: str, values: list[Value], state: State) -> Draft | None:
        """What a node does."""
        if name == "cudaGraphAddEmptyNode":
            return None
        if name == "cudaGraphAddKernelNode":
            return self._kernel(values[0], state)
        if name == "cudaGraphAddMemcpyNode1D":
            draft = self._draft(StepKind.COPY, "cudaMemcpyAsync")
            self.calls.copied(draft, values[0], values[1], number(values[2]), name_of(values[2]), number(values[3]))
            return draft
        if name == "cudaGraphAddMemsetNode":
            return self._memset(values[0], state)
        if name == "cudaGraphAddMemcpyNode":
            return self._copy(values[0], state)
        self.watching.refuse(f"it calls {name}")
        return None

    def _draft(self, kind: StepKind, name: str) -> Draft:
        """The draft of a node; a node has one, however often control comes to where it is made."""
        key = (kind, name, *self.watching.steps.where())
        if key not in self._drafts:
            self._drafts[key] = Draft(-1, kind, name, self.watching.span(), ())
        draft = self._drafts[key]
        draft.conditions |= dict.fromkeys(self._asked())
        draft.seen += 1
        return draft

    def _kernel(self, params: Value, state: State) -> Draft | None:
        frame, engine = self.watching.engine.frame, self.watching.engine
        stubs, places = cuda_graphs.kernels(state, params)
        extra = state.load(place_at(state, params, cuda_graphs.ARGUMENTS + _POINTER), _POINTER)
        if frame is None or len(stubs) != 1 or scalar(extra) != {0}:
            self.watching.refuse("it is not known which kernel a node is of")
            return None
        found, _, numbers = arguments(frame, state, stubs[0], places)
        words = {}
        for index, type_ in enumerate(signature(engine.module, stubs[0])):
            place = state.load(place_at(state, places, index * _POINTER), _POINTER)
            words[index] = name_of(state.load(place, engine.layouts.size(type_)))
        grid, block = (self._dimensions(state, params, at) for at in (cuda_graphs.GRID, cuda_graphs.BLOCK))
        shared = state.load(place_at(state, params, cuda_graphs.SHARED), _INT)
        settings: dict[str, Value] = {"grid": grid[0], "block": block[0], "shared": shared}
        dimensions = [grid[1], block[1], said(shared)]
        draft = self._draft(StepKind.LAUNCH, self.watching.display(stubs[0]))
        self.watching.describe(draft, stubs[0], settings, found, numbers, dimensions, words)
        return draft

    def _dimensions(self, state: State, params: Value, at: int) -> tuple[Value, str]:
        """A grid or a block in memory: its three numbers, and in words; the first two may be known as one."""
        each = [state.load(place_at(state, params, at + i * _INT), _INT) for i in range(_DIMENSIONS)]
        if all(number(one) is not None for one in each):
            return tuple(each), "×".join(map(said, each))
        words = [in_memory(state, place_at(state, params, at), 2 * _INT), said(each[2])]
        return tuple(each), "×".join(words) if all(words) else ""

    def _memset(self, params: Value, state: State) -> Draft:
        draft = self._draft(StepKind.MEMSET, "cudaMemsetAsync")
        element, byte = (_number(state, params, at, _INT) for at in (cuda_graphs.ELEMENT, cuda_graphs.BYTE))
        width, height = (_number(state, params, at) for at in (cuda_graphs.WIDTH, cuda_graphs.HEIGHT))
        length = None if element is None or width is None or height != 1 else element * width
        same = byte is not None and (byte == 0 or element == 1)  # all bytes
        text = str(byte & 0xFF) if byte is not None and same else ""
        self.calls.put(draft, _field(state, params, cuda_graphs.DESTINATION), length, text)
        return draft

    def _copy(self, params: Value, state: State) -> Draft:
        draft = self._draft(StepKind.COPY, "cudaMemcpyAsync")
        empty = [*range(0, SOURCE, _POINTER), *range(SOURCE + 4 * _POINTER, TARGET, _POINTER)]
        rows = [cuda_graphs.EXTENT + i * _POINTER for i in range(1, _DIMENSIONS)]
        if any(_number(state, params, at) != 0 for at in empty) or any(_number(state, params, at) != 1 for at in rows):
            self.watching.refuse("it copies rows, or parts of arrays, in a graph")
        width = _field(state, params, cuda_graphs.EXTENT)
        kind = _number(state, params, cuda_graphs.KIND, _INT)
        to, source = (_field(state, params, at) for at in (TARGET, SOURCE))
        self.calls.copied(draft, to, source, number(width), name_of(width), kind)
        return draft

    # ---- captures

    def _begins(self, values: list[Value]) -> None:
        streams, astray = self.watching.pointing.streams(values[0])
        if self.open is not None or len(streams) != 1 or astray or not next(iter(streams)).certain:
            self.watching.refuse("it is not known which streams it captures")
            return
        key = self.watching.steps.where()
        around = self._asked(), self.watching.steps.loops()
        self.open = self._captures.setdefault(key, Capture(next(iter(streams)), *around))

    def _ends(self, values: list[Value]) -> None:
        one, self.open = self.open, None
        streams, astray = self.watching.pointing.streams(values[0])
        if one is not None and (astray or streams != {one.stream}):
            one = None
        around = self._asked(), self.watching.steps.loops()
        if one is None or around != (one.conditions, one.loops):
            self.watching.refuse("it is not known which streams it captures")
            return
        joined, recorded = {one.stream.key}, set[str]()
        for draft in one.drafts:
            certain = all(each.certain for each in (*draft.streams, *draft.events)) and not draft.astray
            if draft.kind is StepKind.WAIT and len(draft.events) == 1 and {e.key for e in draft.events} <= recorded:
                joined |= {each.key for each in draft.streams}
            if not certain or draft.kind not in _CAPTURED or not {each.key for each in draft.streams} <= joined:
                self.watching.refuse(f"what '{draft.name}' does while a stream is captured is not followed")
            if draft.kind is StepKind.RECORD:
                recorded |= {each.key for each in draft.events}
        self._made = _Graph(captured=one)

    def captured(self, kind: StepKind, name: str) -> Draft:
        """The draft of what happens while a stream is captured."""
        assert self.open is not None
        draft = self._draft(kind, name)
        if self.watching.steps.loops() != self.open.loops or set(self.open.conditions) != set(draft.conditions):
            self.watching.refuse(f"'{name}' happens in a loop or on a question while a stream is captured")
        if all(one is not draft for one in self.open.drafts):
            self.open.drafts.append(draft)
        return draft

    # ---- launches

    def _launches(self, values: list[Value], state: State) -> None:
        ready = self._only(values[0], "exec")
        if ready is None:
            return
        if self.open is not None:
            self.watching.refuse("it launches a graph while a stream is captured")
        graph = self._ready[ready]
        every = {question for node in graph.nodes.values() for question in node.conditions} | set(graph.conditions)
        every |= set(graph.captured.conditions if graph.captured is not None else ())
        if not every <= set(self._asked()):
            self.watching.refuse("it depends on a question what a graph is made of")
        launch = Launch(self.watching, ready.number, values[1], state)
        if graph.captured is not None and graph.nodes:
            self.watching.refuse("it adds nodes to a graph that was captured")
        elif graph.captured is not None:
            launch.of_capture(graph.captured)
        else:
            launch.of_nodes(graph.nodes)


def _field(state: State, params: Value, at: int, size: int = _POINTER) -> Value:
    """What stands in a structure that describes a node."""
    return state.load(place_at(state, params, at), size)


def _number(state: State, params: Value, at: int, size: int = _POINTER) -> int | None:
    return number(_field(state, params, at, size))
