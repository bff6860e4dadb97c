"""A launch of a graph of CUDA as it becomes steps: its nodes with their edges, or what was captured.

In: nodes or a capture, the stream of the launch. Out: steps, on streams and with events that are the graph's own. Apart
from `graphs`, which follows how they are made.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import networkx as nx

from kesco.analysis.host.memory import State
from kesco.analysis.host.values import Object, Value
from kesco.analysis.host_order.steps import Draft
from kesco.ir.execution import Handle, StepKind, Waits

if TYPE_CHECKING:
    from kesco.analysis.host_order.watching import Watching


@dataclass(slots=True)
class Node:
    """A node: its work, and those that it comes after. `lost`: it may come after others."""

    draft: Draft | None = None
    after: dict[Object, None] = field(default_factory=dict)
    lost: bool = False
    conditions: tuple[str, ...] = ()


@dataclass(slots=True)
class Capture:
    """A stream that is captured, with what decides about that."""

    stream: Handle
    conditions: tuple[str, ...]
    loops: tuple[int, ...]
    drafts: list[Draft] = field(default_factory=list)


@dataclass(slots=True)
class Launch:
    """One launch of a graph, as it becomes steps."""

    watching: Watching
    number: int
    stream: Value
    state: State
    _count: int = 0

    def of_nodes(self, nodes: dict[Object, Node]) -> None:
        """The steps of a graph that was made node by node."""
        order: nx.DiGraph[Object] = nx.DiGraph()
        order.add_nodes_from(nodes)
        order.add_edges_from((first, then) for then, node in nodes.items() for first in node.after)
        if set(order) != set(nodes) or not nx.is_directed_acyclic_graph(order):
            self.watching.refuse("a node of a graph comes after one of another graph")
            return
        begin = self._event("begin")
        self._record(None, begin)
        for one in nx.lexicographical_topological_sort(order, key=lambda node: node.number):
            node, stream = nodes[one], self._stream(str(one.number))
            for event in [self._event(str(first.number)) for first in node.after] or [begin]:
                self._wait(stream, event)
            if node.lost:
                self._wait(stream, begin).astray = True
            self._again(node.draft, [stream])
            self._record(stream, self._event(str(one.number)))
        for one in nodes:
            if not order.out_degree(one):
                self._wait(None, self._event(str(one.number)))

    def of_capture(self, captured: Capture) -> None:
        """The steps of a graph that was captured."""
        begin, end = self._event("begin"), self._event("end")
        self._record(None, begin)
        self._wait(self._stream(captured.stream.key), begin)
        for draft in captured.drafts:
            streams = [self._stream(one.key, one.name) for one in draft.streams]
            if draft.kind in (StepKind.RECORD, StepKind.WAIT):
                step = self._step(draft.kind, draft.name)
                step.goes_to(set(streams), False)
                step.is_about({self._event(one.key, one.name) for one in draft.events}, False)
            else:
                self._again(draft, streams)
        self._record(self._stream(captured.stream.key), end)
        self._wait(None, end)

    def _stream(self, key: str, name: str = "a branch of the graph") -> Handle:
        return Handle(f"stream:graph{self.number}:{key}", name, blocking=False)

    def _event(self, key: str, name: str = "a node of the graph") -> Handle:
        return Handle(f"event:graph{self.number}:{key}", name)

    def _step(self, kind: StepKind, name: str) -> Draft:
        steps = self.watching.steps
        self._count += 1
        key = (kind, name, "graph", self.number, self._count, *steps.where())
        draft = steps.add(key, kind, name, self.watching.span(), steps.loops(), self.state)
        draft.conditions |= dict.fromkeys(self.watching.questions.around())
        draft.seen += 1
        return draft

    def _on(self, draft: Draft, stream: Handle | None) -> Draft:
        """Put a step on a stream of the graph's, or on that of the launch."""
        found = ({stream}, False) if stream is not None else self.watching.pointing.streams(self.stream)
        draft.goes_to(*found)
        return draft

    def _record(self, stream: Handle | None, event: Handle) -> None:
        self._on(self._step(StepKind.RECORD, "cudaGraphLaunch"), stream).is_about({event}, False)

    def _wait(self, stream: Handle | None, event: Handle) -> Draft:
        draft = self._on(self._step(StepKind.WAIT, "cudaGraphLaunch"), stream)
        draft.is_about({event}, False)
        return draft

    def _again(self, work: Draft | None, streams: list[Handle]) -> None:
        """The work of a node, or what was captured, once more."""
        if work is None:
            return
        draft = self._step(work.kind, work.name)
        draft.repeats(work)
        draft.goes_to(set(streams), False)
        draft.waits = Waits.NO
