"""Steps as they are found: a `Draft` for each thing that happens, by where it happens and in which trip.

In: what happens, with the activations and the trips of loops around it. Out: drafts with the paths between them; in the
end frozen `Step`s. Walking a loop again finds the same drafts and adds to them, so a walk to a fixed point ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kesco.analysis.host.engine import Engine
from kesco.analysis.host.frames import Frame
from kesco.analysis.host.memory import State
from kesco.ir.access import Access, AccessMode, Buffer
from kesco.ir.execution import Argument, Handle, Launched, Step, StepKind, Waits
from kesco.ir.poly import ByteRange
from kesco.source import Span

Key = tuple[object, ...]
Trips = tuple[tuple[str, int], ...]
Scope = tuple[str, Trips]


@dataclass(slots=True)
class Draft:
    """A step that may still grow."""

    number: int
    kind: StepKind
    name: str
    span: Span
    loops: tuple[int, ...]
    streams: dict[Handle, None] = field(default_factory=dict)
    events: dict[Handle, None] = field(default_factory=dict)
    astray: bool = False
    waits: Waits = Waits.NO
    touched: dict[tuple[Buffer, str, ByteRange | None], AccessMode] = field(default_factory=dict)
    pointed: dict[str, set[str]] = field(default_factory=dict)  # of each pointer, the buffers that it may lead to
    finished: set[str] = field(default_factory=set)
    arguments: list[Argument] | None = None
    launched: Launched | None = None
    conditions: dict[str, None] = field(default_factory=dict)
    after: dict[int, None] = field(default_factory=dict)
    note: str = ""
    seen: int = 0
    scope: Scope = ("", ())  # of a question, or of a loop
    answer: int = 0
    asked: int = 0  # which branch asks

    def touch(self, buffer: Buffer, why: str, mode: AccessMode, part: ByteRange | None = None) -> None:
        """Remember what is touched."""
        key = (buffer, why, part)
        self.touched[key] = self.touched.get(key, AccessMode.NONE) | mode

    def goes_to(self, streams: set[Handle], astray: bool) -> None:
        """Remember the streams that this may be on."""
        self.streams |= dict.fromkeys(sorted(streams, key=lambda one: one.key))
        self.astray |= astray

    def is_about(self, events: set[Handle], astray: bool) -> None:
        """Remember the events that this may be about."""
        self.events |= dict.fromkeys(sorted(events, key=lambda one: one.key))
        self.astray |= astray

    def given(self, arguments: list[Argument]) -> None:
        """Remember what this was given; two things at different times are not known."""
        if self.arguments is None:
            self.arguments = arguments
        else:
            self.arguments = [a if a == b else Argument() for a, b in zip(self.arguments, arguments, strict=False)]

    def repeats(self, other: Draft) -> None:
        """Do what another one does; on which streams is another question."""
        self.span, self.note, self.finished = other.span, other.note, other.finished
        self.launched = other.launched
        for key, mode in other.touched.items():
            self.touched[key] = self.touched.get(key, AccessMode.NONE) | mode
        for name, keys in other.pointed.items():
            self.pointed.setdefault(name, set()).update(keys)
        self.given(list(other.arguments or ()))

    def frozen(self) -> Step:
        """The step as it is."""
        sure = {next(iter(one)) for one in self.pointed.values() if len(one) == 1}
        accesses = tuple(Access(buffer, mode, why, part) for (buffer, why, part), mode in self.touched.items())
        return Step(
            self.number, self.kind, self.name, self.span, tuple(sorted(self.after)), tuple(self.streams),
            tuple(self.events), self.astray, self.waits, accesses, frozenset(sure), frozenset(self.finished),
            tuple(self.arguments or ()), self.launched, self.loops, tuple(sorted(self.conditions)), self.note,
        )  # fmt: skip


@dataclass(slots=True)
class Steps:
    """All drafts of a walk."""

    engine: Engine
    drafts: list[Draft] = field(default_factory=list)
    _known: dict[Key, Draft] = field(default_factory=dict)
    _loops: dict[Key, int] = field(default_factory=dict)

    def add(self, key: Key, kind: StepKind, name: str, span: Span, loops: tuple[int, ...], state: State) -> Draft:
        """The draft of what happens, behind what happened last."""
        draft = self._known.get(key)
        if draft is None:
            draft = self._known[key] = Draft(len(self.drafts), kind, name, span, loops)
            self.drafts.append(draft)
        for number in state.frontier:
            self.drafts[number].after[draft.number] = None
        state.frontier = frozenset((draft.number,))
        return draft

    def activations(self) -> list[Frame]:
        """The activations that control is in, innermost first."""
        found, frame = [], self.engine.frame
        while frame is not None:
            found.append(frame)
            frame = frame.caller
        return found

    def where(self) -> Key:
        """Where control is: in each activation the instruction, and the trips of the loops around it."""
        return tuple((f.function.name, id(f.at), trips(f, f.block)) for f in self.activations())

    def loops(self, block: str | None = None) -> tuple[int, ...]:
        """The loops around whose trips share their steps; `block`: as if control were there."""
        frames = self.activations()
        found: list[int] = []
        outer: Key = ()
        for depth in range(len(frames) - 1, -1, -1):
            frame = frames[depth]
            at = block if depth == 0 and block is not None else frame.block
            around = trips(frame, at)
            for count, (_, trip) in enumerate(around, 1):
                if trip < 0:
                    key = (*outer, frame.function.name, around[:count])
                    found.append(self._loops.setdefault(key, len(self._loops)))
            outer = (*outer, (frame.function.name, id(frame.at), around))
        return tuple(found)


def trips(frame: Frame, block: str) -> Trips:
    """The loops around a block, each with the number of its trip, or -1 where trips are not told apart."""
    return tuple((head, -1 if head in frame.fixed else frame.trips.get(head, 0)) for head in frame.graph.inside[block])
