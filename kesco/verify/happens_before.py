"""What is known to have happened before what, at every site of a region, on every path.

In: a region whose sites name streams and events. Out: `Facts` before each site. A stage of its own because
it is the meaning of CUDA's ordering rules, whatever they are used for.

An *observer* is a stream, an event, the legacy default stream or the next work on it. For each observer a set
of sites is kept that come before its next action (for an event: that its latest record covers). All sets are
bit masks over site numbers, and every rule treats the bits separately:

1. Work is ordered after what its stream is ordered after, and from then on known to that stream only.
2. A record gives the event what its stream knows; a wait gives the stream what the event knows.
3. Work on the legacy stream comes after all work on blocking streams, and before all that follows on them.
4. What the host has waited for is complete: nobody needs to be told. So is a copy that held the host until it
   was, and what its stream was given before.
5. What stands between a capture and its replay may run as it stands or as a graph (`_capture`, `_replay`): only
   what is so either way is known.
6. Where paths meet, only what is known on both remains. `run` repeats this to the fixpoint.
7. Trips of one loop are told apart by giving each site three bits: what it did in this trip, in this stay in the
   loop, and before (`Trips`).
8. Meeting loses which facts belong together, so `run_alone` follows one site with all combinations of facts.

What it refuses to believe: anything of streams and events that may be one of several; that an event recorded,
or waited for, on the legacy stream waits for other streams; that a blocking stream without work of its own
makes an event or the host wait for the legacy stream; that streams it does not see are idle.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping

from kesco.ir.flow import CURRENT, Handle, Held, Mark, Region, Role, Site
from kesco.ir.replay import AMONG_OTHERS
from kesco.verify.knowledge import Facts, State, Trips, meet, weaker
from kesco.verify.match import is_work, plain_label
from kesco.verify.paths import blocks, recorded_inside

LEGACY, NEXT_LEGACY_WORK = 0, 1
_MOST_COMBINATIONS = 64  # per block, before `run_alone` gives up


class HappensBefore:
    """The ordering rules, applied to one region.

    `awaited_before` and `awaited_after` give, for sites, what the serial program's host has waited for there; at those
    in `alike` the same call stands in both programs, so it waits for the legacy stream in both or neither. With `loop`
    the executions of sites are told apart by its trips; those of the loops `apart`, of all stays in them, are on
    streams of their own. With `generous` an event-sync counts as a wait for everything: right for a serial program,
    whose order must not be underestimated.
    """

    def __init__(
        self,
        region: Region,
        awaited_before: Mapping[int, int] | None = None,
        awaited_after: Mapping[int, int] | None = None,
        alike: Collection[int] = (),
        generous: bool = False,
        loop: str = "",
        apart: Collection[str] = (),
    ) -> None:
        self.region = region
        self._before, self._after = awaited_before or {}, awaited_after or {}
        self._alike, self._generous = alike, generous
        self._trips = Trips(len(region.sites), bool(apart)) if loop else None
        if self._trips is not None:
            self._before, self._after = map(self._trips.every, (self._before, self._after))
        self._loops, self._anew, self._only = tuple(apart) or (loop,), not apart, -1
        streams: dict[str, bool] = {}
        events: dict[str, None] = {}
        for site in region.sites:
            if site.stream is not None and site.stream.certain:
                streams[site.stream.key] = streams.get(site.stream.key, True) and site.stream.blocking
            if site.event is not None and site.event.certain:
                events[site.event.key] = None
        self._streams = {key: n for n, key in enumerate(streams, start=2)}
        self._blocking = [n for n, blocking in enumerate(streams.values(), start=2) if blocking]
        self._observers = 2 + 4 * len(streams)
        self._events = {key: n for n, key in enumerate(events)}
        self._predecessors: list[list[int]] = [[] for _ in region.sites]
        for number, successors in enumerate(region.successors):
            for successor in successors:
                self._predecessors[successor].append(number)
        self._blocks = blocks(region)
        self._recorded = recorded_inside(region, self._events)
        self._live = self._live_events()
        self._work = 0  # executed so far in the current block; sites occur once in a block
        self._unseen = sum(1 << s.number for s in region.sites if s.role is Role.ENTRY or s.foreign)
        self._stamps: dict[int, int] = {}  # per event: `_work` as it was when `covered` was last written

    # ---- solving ----------------------------------------------------

    def run(self) -> dict[int, Facts]:
        """The facts before each site that control can reach, true on every path to it."""
        self._only = -1
        entry = {0: self._empty()}
        queue, queued = [0], {0}
        while queue:
            head = heapq.heappop(queue)
            queued.remove(head)
            out = entry[head].copy()
            for _ in self._through(head, out):
                pass
            for successor in self._leave(head):
                if successor not in entry:
                    entry[successor] = out.copy()
                elif not meet(entry[successor], out):
                    continue
                if successor not in queued:
                    queued.add(successor)
                    heapq.heappush(queue, successor)
        return {number: facts for head in entry for number, facts in self._through(head, entry[head].copy())}

    def run_alone(self, site: int, budget: int) -> tuple[dict[int, list[Facts]], int] | None:
        """The facts about one site, path by path where they differ, and the rest of `budget`; None if exceeded."""
        self._only = 1 << site
        entry: dict[int, list[State]] = {0: [self._empty()]}
        queue = [(0, entry[0][0])]
        while queue:
            head, state = queue.pop()
            if not any(state is s for s in entry[head]):
                continue
            budget -= 1
            out = state.copy()
            for _ in self._through(head, out):
                pass
            out.known = [k & out.pending for k in out.known]
            out.covered = {e: k for e, k in out.covered.items() if k & out.pending}
            for successor in self._leave(head):
                there = entry.setdefault(successor, [])
                if any(weaker(other, out) for other in there):
                    continue
                there[:] = [other for other in there if not weaker(out, other)] + [out]
                queue.append((successor, out))
                if len(there) > _MOST_COMBINATIONS or budget <= 0:
                    return None
        found: dict[int, list[Facts]] = {}
        for head, state in ((head, state) for head, states in entry.items() for state in states):
            for number, facts in self._through(head, state.copy()):
                found.setdefault(number, []).append(facts)
        return found, budget

    def _empty(self) -> State:
        return State(0, 0, [0] * self._observers, {})

    def _leave(self, head: int) -> tuple[int, ...]:
        return self.region.successors[self._blocks[head][-1]]

    def _through(self, head: int, state: State) -> Iterator[tuple[int, Facts]]:
        """Walk one block from `state`, which is changed to what holds behind it."""
        self._work = 0
        self._stamps = {}
        for number in self._blocks[head]:
            site = self.region.sites[number]
            state.hidden |= state.pending & self._before.get(number, 0)
            front = self._front(state, site.stream) if is_work(site) else state.known[LEGACY]
            if is_work(site) and site.stream is None:
                front |= state.known[NEXT_LEGACY_WORK]
            facts = self._trips.facts if self._trips is not None else Facts
            yield number, facts(state.pending & ~front, state.pending, state.hidden)
            self._step(state, site)
            awaited = self._after.get(number, 0)
            if number in self._alike:  # so do the copies in a call, which are work on the legacy stream
                awaited &= ~(state.known[LEGACY] | (state.known[NEXT_LEGACY_WORK] if site.holds else 0))
            state.hidden = (state.hidden | awaited) & state.pending
        live = self._live[head]
        state.covered = {event: self._covered(state, event) for event in state.covered if live >> event & 1}

    def _live_events(self) -> dict[int, int]:
        """For each block the mask of events that may be awaited behind it before they are recorded again."""
        uses, sets = {}, {}
        every = (1 << 2 * len(self._events)) - 1  # those that a capture puts aside come behind the others
        for head, numbers in self._blocks.items():
            used = recorded = 0
            for site in (self.region.sites[n] for n in numbers):
                if site.role in (Role.CAPTURE, Role.REPLAY):
                    used |= every & ~recorded
                    recorded |= every
                if site.event is not None and site.event.certain:
                    bit = 1 << self._events[site.event.key]
                    if site.role is Role.RECORD:
                        recorded |= bit
                    elif not recorded & bit:
                        used |= bit
            uses[head], sets[head] = used, recorded
        live_in, live_out, changed = uses.copy(), dict.fromkeys(self._blocks, 0), True
        while changed:
            changed = False
            for head in sorted(self._blocks, reverse=True):
                out = 0
                for successor in self._leave(head):
                    out |= live_in[successor]
                if out != live_out[head]:
                    live_out[head], live_in[head], changed = out, uses[head] | (out & ~sets[head]), True
        return live_out

    # ---- the rules ----------------------------------------------------

    def _step(self, state: State, site: Site) -> None:
        if is_work(site):
            self._launch(state, site)
        if self._trips is not None and site.mark is not None and site.loop in self._loops:
            state.covered = {event: self._covered(state, event) for event in state.covered}
            self._trips.turn(state, self._anew and site.mark is Mark.ENTERS)
            self._stamps |= dict.fromkeys(state.covered, self._work)
        if site.role is Role.ENTRY:
            self._enter(state, site)
        elif site.role is Role.JOIN:
            self._call(state, site)
        elif site.role is Role.RECORD:
            self._record(state, site)
        elif site.role is Role.WAIT:
            self._wait(state, site)
        elif site.role in (Role.DEVICE_SYNC, Role.STREAM_SYNC, Role.EVENT_SYNC):
            self._host_waits(state, site)
        elif site.role is Role.CAPTURE:
            self._capture(state, site)
        elif site.role is Role.REPLAY:
            self._replay(state, site)

    def _capture(self, state: State, site: Site) -> None:
        """A graph begins when its stream comes to it: what other streams and earlier records know is of no use in it.

        As it stands, the work would go on from what its streams know; among other work they wait for the graph's
        stream first, so that they know as much as the graph does. What the events cover is put aside.
        """
        known, front, count = state.known, self._front(state, site.stream), len(self._streams)
        for number in self._streams.values():
            queued, before = number + count, number + 2 * count
            known[before], known[before + count] = known[number], known[queued]
            known[number] = front if _waits_for_all(site) else known[number] & front
            known[queued] &= known[number]
        kept = {event: self._covered(state, event) for event in self._events.values()}
        state.covered = {event + len(self._events): mask for event, mask in kept.items() if mask}
        self._stamps |= dict.fromkeys(state.covered, self._work)

    def _replay(self, state: State, site: Site) -> None:
        """Behind a graph, its stream knows all that is in it, and other streams what they knew before.

        As it stands, the work ends with its stream waiting for the others, but not where nothing else runs, and events
        were recorded that a graph does not touch.
        """
        known, count = state.known, len(self._streams)
        inside = 0
        for number in self._streams.values():
            inside |= known[number + count]
        for key, number in self._streams.items():
            queued, before = number + count, number + 2 * count
            if site.stream is None or not site.stream.certain or key != site.stream.key:
                known[number], known[queued] = known[before], known[before + count]
            elif _waits_for_all(site):
                known[number] |= inside
                known[queued] |= inside
            known[queued] &= known[number]
            known[before] = known[before + count] = 0
        again, covered = self._recorded[site.operation], dict[int, int]()
        for event in self._events.values():
            mask = self._covered(state, event + len(self._events))
            covered[event] = mask & self._covered(state, event) if again >> event & 1 else mask
        state.covered = {event: mask for event, mask in covered.items() if mask}
        self._stamps |= dict.fromkeys(state.covered, self._work)

    def _enter(self, state: State, site: Site) -> None:
        """What ran before the function is joined to the legacy stream, thus to blocking streams, but no further.

        Unseen code that calls it may have left work on blocking streams: what acts on the legacy stream waits for that,
        and its own stream does. Nothing runs before ``main``.
        """
        fresh = self._empty()
        state.pending, state.hidden, state.known, state.covered = 0, 0, fresh.known, fresh.covered
        if self.region.function != "main":
            bit = state.pending = 1 << site.number & self._only
            callers = [self._streams[CURRENT.key]] if CURRENT.key in self._streams else []
            for observer in (NEXT_LEGACY_WORK, *(callers if self.region.open else (LEGACY, *self._blocking))):
                state.known[observer] = bit

    def _launch(self, state: State, site: Site) -> None:
        known = state.known
        bit = 1 << site.number & self._only
        stream = site.stream
        if stream is None:
            known[LEGACY] |= known[NEXT_LEGACY_WORK]
        front, queued = self._front(state, stream), self._queued(state, stream)
        self._forget(state, 1 << site.number)
        state.pending |= bit
        if stream is None:
            known[LEGACY] |= bit
            self._legacy_acted(state)
        elif stream.certain:
            number = self._streams[stream.key]
            known[number] |= bit
            known[number + len(self._streams)] = known[number]
        if stream is None or self._blocks_legacy(stream):
            known[NEXT_LEGACY_WORK] |= front | bit
        if site.held is Held.ALL and (site.acts or stream is not None):  # of 0 bytes, the legacy stream does nothing
            state.pending &= ~(bit | (front if site.acts else queued))

    def _call(self, state: State, site: Site) -> None:
        """A call may put work on the legacy stream; a foreign one on streams that only legacy work waits for."""
        bit = 1 << site.number & self._only
        self._forget(state, 1 << site.number)
        state.pending |= bit
        state.known[NEXT_LEGACY_WORK] |= bit
        if not site.foreign:
            for observer in (LEGACY, *self._blocking):
                state.known[observer] |= bit

    def _record(self, state: State, site: Site) -> None:
        front = self._queued(state, site.stream)
        if site.event is not None and site.event.certain:
            event = self._events[site.event.key]
            state.covered[event], self._stamps[event] = front, self._work
            return
        for event in state.covered:
            state.covered[event] = self._covered(state, event) & front
            self._stamps[event] = self._work

    def _wait(self, state: State, site: Site) -> None:
        if site.event is None or not site.event.certain:
            return
        covered = self._covered(state, self._events[site.event.key])
        if site.stream is None:
            if self._just_recorded(site):  # an action on the legacy stream, which waits for streams that are not seen
                state.known[LEGACY] |= state.known[NEXT_LEGACY_WORK] & self._unseen
            state.known[LEGACY] |= covered
            state.known[NEXT_LEGACY_WORK] |= covered
            self._legacy_acted(state)
        elif site.stream.certain:
            number = self._streams[site.stream.key]
            state.known[number] |= covered
            state.known[number + len(self._streams)] |= covered

    def _just_recorded(self, site: Site) -> bool:
        """Whether the event that a site waits for is recorded right before it, whichever way control came.

        Relied on only for work that unseen code may have left on blocking streams; what the text shows must be
        waited for event by event. The documentation calls ``cudaStreamWaitEvent`` on the legacy stream an action,
        for which that stream waits for all blocking streams (measured: also when the event is complete). A wait on
        an event that was never recorded is none.
        """
        before = [self.region.sites[n] for n in self._predecessors[site.number]]
        return bool(before) and all(b.role is Role.RECORD and b.event == site.event for b in before)

    def _host_waits(self, state: State, site: Site) -> None:
        done = 0
        if site.role is Role.DEVICE_SYNC or (self._generous and site.role is Role.EVENT_SYNC):
            # A copy makes the host wait for the legacy stream, not for the device: non-blocking streams go on.
            done = -1 if not is_work(site) else state.known[LEGACY]
        elif site.role is Role.STREAM_SYNC:
            if site.stream is None or site.stream.certain:
                done = self._queued(state, site.stream)
        elif site.event is not None and site.event.certain:
            done = self._covered(state, self._events[site.event.key])
        state.pending &= ~done
        state.hidden &= state.pending

    def _front(self, state: State, stream: Handle | None) -> int:
        """What the next action of a stream is ordered after; of an uncertain one, whichever it is."""
        if stream is None:
            return state.known[LEGACY]
        if stream.certain:
            return state.known[self._streams[stream.key]]
        if not stream.blocking:
            return 0
        front = state.known[LEGACY]
        for known in state.known[2 : 2 + len(self._streams)]:
            front &= known
        return front

    def _queued(self, state: State, stream: Handle | None) -> int:
        """What comes before the end of what a stream was given; its next action may have to wait for more."""
        if stream is None:
            return state.known[LEGACY]
        if stream.certain:
            return state.known[self._streams[stream.key] + len(self._streams)]
        queued = self._front(state, stream)
        for known in state.known[2 + len(self._streams) : 2 + 2 * len(self._streams)]:
            queued &= known
        return queued

    def _blocks_legacy(self, stream: Handle) -> bool:
        return self._streams[stream.key] in self._blocking if stream.certain else stream.blocking

    def _legacy_acted(self, state: State) -> None:
        legacy = state.known[LEGACY]
        for observer in self._blocking:
            state.known[observer] |= legacy

    def _forget(self, state: State, bit: int) -> None:
        """A site executes again: what was known of its earlier executions is not known of this one."""
        state.known[:] = [known & ~bit for known in state.known]
        self._work |= bit

    def _covered(self, state: State, event: int) -> int:
        return state.covered.get(event, 0) & ~(self._work & ~self._stamps.get(event, 0))


def _waits_for_all(site: Site) -> bool:
    """Whether a graph's stream waits for the others, and they for it, where the work runs as it stands."""
    return plain_label(site) == AMONG_OTHERS
