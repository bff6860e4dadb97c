"""What is ordered before each step of an execution: by streams, events and the host.

In: an `Execution`. Out: an `Order`, which says of an earlier and a later step whether the first is over, always or
perhaps, when the second begins. Apart from everything that chooses streams and waits: this is a second opinion.

Of each step that gives the device work, a *mask* is kept: the streams whose later work comes after all of its
executions so far, and the events whose latest record does. All bits: it is over for the host, too.

1. Work on a stream has that stream's bit. 2. A record gives an event's bit to what has the stream's, and takes it from
what has not; a wait gives the stream's to what has the event's. 3. A host that waits ends what has the bit it waited
for. 4. Work on the legacy default stream, or a wait of it, comes after all blocking streams and before them. 5. Where
paths meet, what holds *always* is what holds on each of them, what holds *perhaps* is what holds on any; both are
carried to a fixed point. 6. What holds is kept apart by how questions were answered that are asked again: a path that
would answer one in two ways is none. A stream or event that is one of several, or not known, gives nothing for certain.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kesco.ir.execution import LEGACY, Execution, Handle, Step, StepKind, Waits

DONE = -1
_State = dict[int, int]
_Facts = frozenset[tuple[str, int]]  # questions with their answers
_FACTS = 32  # of one step that are told apart


@dataclass(slots=True)
class Order:
    """See the module's docstring; `always` and `perhaps` are the masks when a step begins, by step."""

    execution: Execution
    always: list[_State] = field(default_factory=list)
    perhaps: list[_State] = field(default_factory=list)
    _bits: dict[str, int] = field(default_factory=dict)
    _blocking: int = 0
    _perhaps_blocking: int = 0
    _reach: dict[tuple[int, ...], list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._bits[LEGACY.key] = 1
        for step in self.execution.steps:
            for one in (*step.streams, *step.events):
                self._bits.setdefault(one.key, 1 << len(self._bits))
            for one in step.streams:
                bit = self._bits[one.key]
                if one.key != LEGACY.key and one.blocking is not False:
                    self._perhaps_blocking |= bit
                    self._blocking |= bit if one.blocking else 0
        self.always = self._fixed(may=False)
        self.perhaps = self._fixed(may=True)

    # ---- answers

    def is_over(self, first: int, second: Step) -> bool:
        """Whether a step is always over when another one that touches memory happens."""
        mask = self.always[second.number].get(first, DONE)
        if mask == DONE:
            return True
        bits = [self._bits[one.key] if one.certain else 0 for one in second.streams]
        return second.kind is not StepKind.HOST and bool(bits) and not second.astray and all(mask & b for b in bits)

    def bit(self, handle: Handle) -> int:
        """The bit of a stream or event."""
        return self._bits[handle.key]

    def may_be_over(self, first: int, second: Step) -> bool:
        """Whether a step may be over then."""
        mask = self.perhaps[second.number].get(first, DONE)
        if mask == DONE or second.astray:
            return True
        return second.kind is not StepKind.HOST and any(mask & self._bits[one.key] for one in second.streams)

    def by_what(self, first: Step, second: Step) -> str:
        """What orders two steps that are ordered: ``host``, ``stream`` or ``event``."""
        if self.always[second.number].get(first.number, DONE) == DONE:
            return "host"
        same = [one.key for one in first.streams] == [one.key for one in second.streams]
        return "stream" if same else "event"

    def reaches(self, first: int, second: int, within: tuple[int, ...] = ()) -> bool:
        """Whether a step may come after another, in one and the same trip of these loops."""
        if within not in self._reach:
            self._reach[within] = self._reached(frozenset(within))
        return bool(self._reach[within][first] >> second & 1)

    def _reached(self, within: frozenset[int]) -> list[int]:
        """Of each step, those behind it, as bits; where trips of these loops begin nothing goes on."""
        steps = self.execution.steps
        ends = {s.number for s in steps if s.kind is StepKind.LOOP and s.loops and s.loops[-1] in within}
        found = [0] * len(steps)
        changed = True
        while changed:
            changed = False
            for step in reversed(steps):
                new = found[step.number]
                for number in step.after:
                    if number not in ends:
                        new |= 1 << number | found[number]
                if new != found[step.number]:
                    found[step.number] = new
                    changed = True
        return found

    # ---- the fixed point

    def _fixed(self, *, may: bool) -> list[_State]:
        steps = self.execution.steps
        entered: list[dict[_Facts, _State]] = [{} for _ in steps]
        before: list[_State] = [{} for _ in steps]
        if not steps:
            return before
        entered[0][frozenset()] = {}
        todo: set[tuple[int, _Facts]] = {(0, frozenset())}
        while todo:
            number, facts = min(todo, key=lambda one: one[0])
            todo.discard((number, facts))
            step = steps[number]
            left = self._end(step, self._begin(step, dict(entered[number][facts]), may), may)
            known = _known(step, facts)
            for target in step.after if known is not None else ():
                assert known is not None
                new = known if known in entered[target] or len(entered[target]) < _FACTS else frozenset()
                old = entered[target].get(new)
                both = left if old is None else _met(old, left, may)
                if both != old:
                    entered[target][new] = dict(both)
                    todo.add((target, new))
        for step in steps:
            began = [self._begin(step, dict(one), may) for one in entered[step.number].values()]
            for index, one in enumerate(began):
                before[step.number] = _met(before[step.number], one, may) if index else one
        return before

    def _begin(self, step: Step, state: _State, may: bool) -> _State:
        """What is ordered before a step: the default stream waits for others, and the host for what it frees."""
        if step.kind is StepKind.FREE and step.waits is Waits.DEVICE:
            return _without(state, may)
        legacy = [one.key == LEGACY.key for one in step.streams]
        acts = step.is_work or step.kind in (StepKind.FREE, StepKind.WAIT)
        if may:
            acts = acts or step.kind in (StepKind.RECORD, StepKind.SYNC)
        if acts and legacy and (any(legacy) if may else all(legacy) and not step.astray):
            state = self._joined(state, may)
        return state

    def _joined(self, state: _State, may: bool) -> _State:
        """The default stream acts: it comes after all blocking streams, and before what they get next."""
        blocking = (self._perhaps_blocking if may else self._blocking) | 1
        return {one: mask | blocking if mask & blocking else mask for one, mask in state.items()}

    def _end(self, step: Step, state: _State, may: bool) -> _State:
        """What a step adds."""
        streams = self._certain(step.streams, step.astray, may)
        if step.is_work or (step.kind is StepKind.FREE and step.waits is not Waits.DEVICE):
            mask = DONE if streams else 0
            for bit in streams:
                mask &= bit if bit != 1 else 1 | self._blocking
            if may:
                state[step.number] = DONE if step.astray else _any(streams, self._perhaps_blocking)
            else:
                state[step.number] = state.get(step.number, DONE) & mask
        elif step.kind is StepKind.RECORD:
            self._record(step, state, streams, may)
        elif step.kind is StepKind.WAIT:
            self._wait(step, state, streams, may)
        if step.waits is Waits.DEVICE:
            return _without(state, may)
        if step.waits is Waits.STREAM or (may and step.waits is Waits.MAYBE):
            awaited = streams + (self._certain(step.events, step.astray, may) if step.kind is StepKind.SYNC else [])
            return self._awaited(state, awaited, step.astray, may)
        return state

    def _certain(self, handles: tuple[Handle, ...], astray: bool, may: bool) -> list[int]:
        """The bits of streams or events; one that is not certain is no bit for certain."""
        found = [self._bits[one.key] if one.certain or may else 0 for one in handles]
        return found if may or not astray else [*found, 0]

    def _record(self, step: Step, state: _State, streams: list[int], may: bool) -> None:
        events = self._certain(step.events, False, may)
        one = len(step.events) == 1 and step.events[0].certain and not step.astray
        for number, mask in state.items():
            if mask == DONE:
                continue
            holds = any(mask & s for s in streams) if may else bool(streams) and all(mask & s for s in streams)
            if may and step.astray:
                holds = True
            for event in events:
                if holds and (one or may):
                    mask |= event
                elif not holds and (not may or one):
                    mask &= ~event
            if step.astray and not may and not holds:
                mask &= ~_any([bit for key, bit in self._bits.items() if key.startswith("event")], 0)
            state[number] = mask

    def _wait(self, step: Step, state: _State, streams: list[int], may: bool) -> None:
        events = self._certain(step.events, step.astray, may)
        one = len(step.streams) == 1 and step.streams[0].certain and not step.astray
        for number, mask in state.items():
            if mask == DONE:
                continue
            if may:
                holds = step.astray or any(mask & e for e in events)
            else:
                holds = one and bool(events) and all(mask & e for e in events)
            for stream in streams if holds else ():
                mask |= stream
                if stream == 1:
                    mask |= self._perhaps_blocking if may else self._blocking
            state[number] = mask

    def _awaited(self, state: _State, bits: list[int], astray: bool, may: bool) -> _State:
        """The host has waited for streams or events."""
        if may:
            ends = {one for one, mask in state.items() if astray or any(mask & bit for bit in bits)}
            return {one: DONE if one in ends else mask for one, mask in state.items()}
        if not bits or astray:
            return state
        return {one: mask for one, mask in state.items() if not all(mask & bit for bit in bits)}


def _known(step: Step, facts: _Facts) -> _Facts | None:
    """What is known of the program's questions behind a step; None where it has been answered otherwise before."""
    if step.kind is StepKind.LOOP:
        carried = dict(step.carries)
        return frozenset((carried[key], which) for key, which in facts if key in carried)
    if step.answer is None:
        return facts
    key, which = step.answer
    if any(other == key and it != which for other, it in facts):
        return None
    return facts | {step.answer}


def _any(bits: list[int], blocking: int) -> int:
    """All of these bits; the default stream's are those of the blocking ones, too."""
    found = 0
    for bit in bits:
        found |= bit if bit != 1 else 1 | blocking
    return found


def _without(state: _State, may: bool) -> _State:
    """All is over."""
    return dict.fromkeys(state, DONE) if may else {}


def _met(a: _State, b: _State, may: bool) -> _State:
    """Where two paths meet. What is missing has not happened on that path, or is over."""
    if may:
        return {one: a.get(one, 0) | b.get(one, 0) for one in (*a, *(k for k in b if k not in a))}
    found = {}
    for one in (*a, *(k for k in b if k not in a)):
        mask = a.get(one, DONE) & b.get(one, DONE)
        if mask != DONE:
            found[one] = mask
    return found
