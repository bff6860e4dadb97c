"""The proof against brute force, on random programs.

The oracle runs a concurrent program along each path of bounded length, builds the graph of who waits for whom between
the executions of operations, and looks for conflicting ones that nothing orders. The proof must never accept what the
oracle rejects; where there are no loops, it must not reject more either.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from hypothesis import HealthCheck, assume, event, example, given, settings
from hypothesis import strategies as st

from kesco.ir.access import Access, AccessMode, Buffer, BufferKind
from kesco.ir.flow import Handle, Region, Role, Site, SiteKind
from kesco.source import Span
from kesco.verify.order import verify_region

BUFFERS = {n: Buffer(n, n, BufferKind.UNKNOWN if n == "?" else BufferKind.MANAGED) for n in "xyz?"}
STREAMS = (None, Handle("s1", "s1"), Handle("s2", "s2"), Handle("n1", "n1", blocking=False))
EXAMPLES = 500 if os.environ.get("KESCO_THOROUGH") else 250
QUICK = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


@dataclass(frozen=True)
class Op:
    """One operation of a random program; `number` tells it from the others, `extra` marks what only one text has."""

    role: Role
    number: int = -1
    touches: tuple[tuple[str, AccessMode], ...] = ()
    stream: Handle | None = None
    event: Handle | None = None
    extra: bool = False


@dataclass(frozen=True)
class If:
    then: tuple
    other: tuple


@dataclass(frozen=True)
class Loop:
    body: tuple


@st.composite
def programs(draw, loops=True, branches=True):
    """A random concurrent program, each operation with a stream, nothing ordered yet."""
    count = 0

    def sequence(depth, least=0):
        nonlocal count
        steps = []
        for _ in range(draw(st.integers(least, 3))):
            what = draw(st.integers(0, 11))
            if what < 2 and branches and depth < 2:
                steps.append(If(sequence(depth + 1, 1), sequence(depth + 1)))
            elif 2 <= what < 4 and loops and depth < 2:
                steps.append(Loop(sequence(depth + 1, 1)))
            elif what == 4:
                steps.append(Op(Role.DEVICE_SYNC, count))
                count += 1
            else:
                role = (Role.HOST, Role.JOIN)[draw(st.integers(0, 1))] if what == 5 else Role.MOVABLE
                modes = st.sampled_from([AccessMode.READ, AccessMode.WRITE, AccessMode.READ_WRITE])
                names = st.sampled_from("xxyyzz?") if role is not Role.JOIN else st.nothing()
                touches = draw(st.lists(st.tuples(names, modes), max_size=0 if role is Role.JOIN else 2))
                stream = draw(st.sampled_from(STREAMS)) if role is Role.MOVABLE else None
                steps.append(Op(role, count, tuple(touches), stream))
                count += 1
        return tuple(steps)

    return sequence(0, 2)


@st.composite
def mixtures(draw, loops):
    """A few pieces of work, records and waits in any order, between two waits of the host for everything."""
    count = 0
    streams = STREAMS if draw(st.integers(0, 3)) == 0 else STREAMS[1:3]

    def step(depth):
        nonlocal count
        what = draw(st.integers(0, 9))
        if what < 2 and depth < 2:
            body = tuple(step(depth + 1) for _ in range(draw(st.integers(1, 5))))
            if what == 0 and loops:
                return Loop(body)
            return If(body, tuple(step(depth + 1) for _ in range(draw(st.integers(0, 2)))))
        stream = draw(st.sampled_from(streams))
        if what < 5:
            mode = draw(st.sampled_from([AccessMode.READ, AccessMode.WRITE]))
            count += 1
            return Op(Role.MOVABLE, count, (("x", mode),), stream)
        role = Role.RECORD if what < 7 else Role.WAIT
        return Op(role, stream=stream, event=event_of(draw(st.integers(0, 1))), extra=True)

    first = Op(Role.DEVICE_SYNC, 1000)
    return (first, *(step(0) for _ in range(draw(st.integers(2, 8)))), replace(first, number=1001))


def flat(program):
    """All operations in the order of the text."""
    for step in program:
        if isinstance(step, If):
            yield from flat(step.then)
            yield from flat(step.other)
        elif isinstance(step, Loop):
            yield from flat(step.body)
        else:
            yield step


def rewrite(program, change):
    """The program with each operation replaced by what `change` gives for it."""
    result = []
    for step in program:
        if isinstance(step, If):
            result.append(If(rewrite(step.then, change), rewrite(step.other, change)))
        elif isinstance(step, Loop):
            result.append(Loop(rewrite(step.body, change)))
        else:
            result += change(step)
    return tuple(result)


def event_of(number):
    return Handle(f"e{number}", f"e{number}")


ENTRY_EVENT = Handle("entry", "entry")


def ordered(program):
    """The naive way: record after each piece of work, and wait for every piece before anything that comes after it."""
    work = [op for op in flat(program) if op.role is Role.MOVABLE]

    def waits(stream):
        return [Op(Role.WAIT, stream=stream, event=event_of(o.number), extra=True) for o in work if o.stream != stream]

    def change(op):
        if op.role is Role.JOIN:
            return [*waits(None), op]
        if op.role is not Role.MOVABLE:
            return [op]
        record = Op(Role.RECORD, stream=op.stream, event=event_of(op.number), extra=True)
        first = [Op(Role.WAIT, stream=op.stream, event=ENTRY_EVENT, extra=True)] if op.stream else []
        return [*first, *waits(op.stream), op, record]

    return (Op(Role.RECORD, event=ENTRY_EVENT, extra=True), *rewrite(program, change), *waits(None))


def region(program):
    sites, edges = [], []

    def add(key, op, frontier, numbers):
        if key not in numbers:
            number = numbers[key] = len(sites)
            label = f"{op.role.value}{op.number}" if op.number >= 0 else op.role.value
            accesses = tuple(Access(BUFFERS[b], mode) for b, mode in op.touches)
            kind = SiteKind.KERNEL if op.role is Role.MOVABLE else SiteKind.SYNC
            span = Span("p.cu", number, number + 1, number + 1, 1)
            sites.append(
                Site(number, number, label, kind, op.role, span, (), accesses, stream=op.stream, event=op.event)
            )
            edges.append(set())
        for before in frontier:
            edges[before].add(numbers[key])
        return {numbers[key]}

    def walk(key, steps, frontier, numbers):
        for n, step in enumerate(steps):
            here = (*key, n)
            if isinstance(step, If):
                then = walk((*here, 0), step.then, frontier, numbers)
                frontier = then | walk((*here, 1), step.other, frontier, numbers)
            elif isinstance(step, Loop):
                frontier = frontier | walk(here, step.body, walk(here, step.body, frontier, numbers), numbers)
            else:
                frontier = add(here, step, frontier, numbers)
        return frontier

    numbers = {}
    last = walk((), program, add("entry", Op(Role.ENTRY), (), numbers), numbers)
    add("exit", Op(Role.EXIT), last, numbers)
    return Region("f", Span("p.cu", 0, 1, 1, 1), tuple(sites), tuple(tuple(sorted(s)) for s in edges))


def serial(program):
    """The program before anybody made it concurrent."""
    return rewrite(program, lambda op: [] if op.extra else [replace(op, stream=None)])


# ---- the oracle ----------------------------------------------------


def paths(program_region, visits, limit=300):
    """Paths from entry to exit on which no site occurs more than `visits` times; None if there are too many."""
    found, stack = [], [(0,)]
    while stack:
        path = stack.pop()
        successors = program_region.successors[path[-1]]
        if not successors:
            found.append(path)
        for successor in successors:
            if path.count(successor) < visits:
                stack.append((*path, successor))
        if len(found) > limit or len(stack) > limit:
            return None
    return found


class Execution:
    """One path, executed: a graph of who waits for whom between nodes, which are executions of sites."""

    def __init__(self):
        self.before = []  # per node: the nodes it directly waits for
        self.last = dict.fromkeys(STREAMS)  # per stream: its latest node, however little it does
        self.barrier = {}  # per stream: the latest action on the legacy stream that it has to wait for
        self.legacy_waits = []  # what the next work on the legacy stream waits for
        self.records = {}
        self.done = []  # nodes the host has waited for

    def node(self, *waits):
        self.before.append([w for w in waits if w is not None] + self.done)
        return len(self.before) - 1

    def closure(self, *nodes):
        seen, stack = set(), [n for n in nodes if n is not None]
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                stack += self.before[node]
        return seen

    def act(self, stream, *more, barrier=True):
        """An action of a stream; only work and waits on the legacy stream hold the blocking streams up."""
        waits = [self.last[stream], *more]
        if stream is not None and stream.blocking and barrier:
            waits.append(self.barrier.get(stream))
        self.last[stream] = self.node(*waits)
        return self.last[stream]

    def hold_blocking(self, node):
        for stream in STREAMS:
            if stream is not None and stream.blocking:
                self.barrier[stream] = node

    def run(self, site):
        """Execute one site; the node of what it does."""
        if site.role is Role.MOVABLE:
            more = self.legacy_waits if site.stream is None else []
            node = self.act(site.stream, *more)
            if site.stream is None:
                self.hold_blocking(node)
            if site.stream is None or site.stream.blocking:
                self.legacy_waits = [*self.legacy_waits, node]
            return node
        if site.role is Role.RECORD:
            self.records[site.event] = self.act(site.stream, barrier=False)
            return None
        if site.role is Role.WAIT:
            # Not held up by the barrier itself: a wait is no work; whatever comes after it on the stream still is.
            node = self.act(site.stream, self.records.get(site.event), barrier=False)
            if site.stream is None:
                self.hold_blocking(node)
            return node
        if site.role is Role.DEVICE_SYNC:
            self.done = [self.node(*range(len(self.before)))]
        elif site.role is Role.STREAM_SYNC:
            self.done = [self.node(*self.done, self.last[site.stream])]
        elif site.role is Role.EVENT_SYNC:
            self.done = [self.node(*self.done, self.records.get(site.event))]
        return None


def conflict(a, b):
    return any(
        (x.mode | y.mode) & AccessMode.WRITE and (x.buffer == y.buffer or "?" in (x.buffer.key, y.buffer.key))
        for x in a.accesses
        for y in b.accesses
    )


def path_is_right(concurrent, path):
    """Whether one path, executed, keeps the order of the serial program along it."""
    run = Execution()
    entry = run.act(None)  # all that ran before the function, as one piece of legacy work
    run.hold_blocking(entry)
    run.legacy_waits = [entry]
    launched = [(entry, None)]
    awaited = set()  # what the serial program's host had waited for
    for site in (concurrent.sites[n] for n in path):
        if site.role is Role.MOVABLE:
            node = run.run(site)
            ordered_before = run.closure(node)
            if any(n not in ordered_before for n, other in launched if other is None or conflict(other, site)):
                return False
            launched.append((node, site))
            continue
        complete = run.closure(*run.done)
        if site.role is Role.HOST:
            if any(
                n in awaited and n not in complete and (other is None or conflict(other, site)) for n, other in launched
            ):
                return False
        elif site.role in (Role.JOIN, Role.EXIT):
            joined = run.closure(run.last[None], *run.done)
            if any(n not in joined or (n in awaited and n not in complete) for n, _ in launched):
                return False
            continue
        run.run(site)
        if site.role is Role.DEVICE_SYNC or site.label.startswith(Role.DEVICE_SYNC.value):
            awaited.update(n for n, _ in launched)
    return True


def oracle(concurrent, visits=3):
    """Whether all paths are right; None if there are too many."""
    found = paths(concurrent, visits)
    return None if found is None else all(path_is_right(concurrent, path) for path in found)


def accepted(program):
    verdict = verify_region(region(serial(program)), region(program))
    assert not verdict.unmatched
    return verdict.ok


# ---- properties ----------------------------------------------------


def without(program, index):
    """The program with one of its added operations taken away."""
    seen = -1

    def change(op):
        nonlocal seen
        if op.extra:
            seen += 1
            if seen == index:
                return []
        return [op]

    return rewrite(program, change)


def extras(program):
    return sum(op.extra for op in flat(program))


def few_waits(data, program):
    """The program with many of its added operations gone, some late, and some for another event or stream."""
    sparse = data.draw(st.booleans())
    late = []

    def change(op):
        if not op.extra:
            result = [op, *late]
            late.clear()
            return result
        fate = data.draw(st.integers(0, 9))
        if fate < 2 or (fate > 4 and sparse and op.role is Role.WAIT):
            return []
        if fate == 2:
            numbers = [o.number for o in flat(program) if o.role is Role.MOVABLE]
            return [replace(op, event=event_of(data.draw(st.sampled_from(numbers))))] if numbers else [op]
        if fate == 4:
            late.append(op)
            return []
        if fate == 3:
            return [replace(op, stream=data.draw(st.sampled_from(STREAMS)))]
        return [op]

    return rewrite(program, change)


def weaker_syncs(data, program):
    """Some waits for the whole device become waits for one stream or one event, in the same place."""

    def change(op):
        fate = data.draw(st.integers(0, 2)) if op.role is Role.DEVICE_SYNC else 0
        if fate == 1:
            return [replace(op, role=Role.STREAM_SYNC, stream=data.draw(st.sampled_from(STREAMS)))]
        if fate == 2:
            numbers = [o.number for o in flat(program) if o.role is Role.MOVABLE]
            return [replace(op, role=Role.EVENT_SYNC, event=event_of(numbers[0]))] if numbers else [op]
        return [op]

    return rewrite(program, change)


@QUICK
@given(programs())
def test_waiting_for_everything_is_accepted(program):
    assert accepted(ordered(program))


@QUICK
@given(programs(), st.data())
def test_one_wait_or_record_less_is_never_accepted_wrongly(program, data):
    full = ordered(program)
    count = extras(full)
    less = without(full, data.draw(st.integers(0, count - 1)))
    right = oracle(region(less))
    assume(right is not None)
    event(f"oracle {right}")
    if not right:
        assert not accepted(less)


@QUICK
@given(programs(), st.data())
def test_random_waits_are_never_accepted_wrongly(program, data):
    mixed = few_waits(data, ordered(program))
    right = oracle(region(mixed), 2)
    assume(right is not None)
    event(f"oracle {right}")
    if not right:
        assert not accepted(mixed)


def short(text):
    """A program: ``A1`` writes on stream 1, ``B1`` reads, ``e1`` records, ``E2`` waits, ``[]`` loop, ``(|)`` branch."""
    tokens = list(text.replace(" ", ""))
    number = 0

    def until(ends):
        nonlocal number
        steps = []
        while tokens and tokens[0] not in ends:
            token = tokens.pop(0)
            if token == "[":
                steps.append(Loop(until("]")))
                tokens.pop(0)
            elif token == "(":
                then = until("|")
                tokens.pop(0)
                steps.append(If(then, until(")")))
                tokens.pop(0)
            else:
                stream = STREAMS[int(tokens.pop(0))]
                if token in "AB":
                    number += 1
                    mode = AccessMode.WRITE if token == "A" else AccessMode.READ
                    steps.append(Op(Role.MOVABLE, number, (("x", mode),), stream))
                else:
                    role = Role.RECORD if token.islower() else Role.WAIT
                    steps.append(Op(role, stream=stream, event=event_of("ef".index(token.lower())), extra=True))
        return tuple(steps)

    first = Op(Role.DEVICE_SYNC, 1000)
    return (first, *until(""), replace(first, number=1001))


@QUICK
@given(mixtures(loops=True))
@example(short("[A1 B2 e1 E2 f2 F1]"))
@example(short("[A1 E2 B2 e1 f2 F1]"))
@example(short("[e1 A1 E2 B2 f2 F1]"))
@example(short("[F1 A1 e1 E2 B2 f2]"))
@example(short("A1 (e1 | B1) E2 B2"))
def test_mixtures_are_never_accepted_wrongly(program):
    right = oracle(region(program))
    assume(right is not None)
    ok = accepted(program)
    event(f"oracle {right}, proof {ok}")
    assert right or not ok


@QUICK
@given(mixtures(loops=False))
def test_mixtures_without_loops_are_judged_exactly(program):
    right = oracle(region(program), 1)
    assume(right is not None)
    event(f"oracle {right}")
    assert accepted(program) == right


@QUICK
@given(programs(loops=False), st.data())
def test_without_loops_the_proof_says_exactly_what_the_oracle_says(program, data):
    full = ordered(program)
    less = without(full, data.draw(st.integers(0, extras(full) - 1)))
    mixed = few_waits(data, full)
    for candidate in (less, mixed):
        right = oracle(region(candidate), 1)
        assume(right is not None)
        event(f"oracle {right}")
        assert accepted(candidate) == right


@QUICK
@given(programs(loops=False), st.data())
def test_weaker_host_waits_are_accepted_only_where_enough(program, data):
    full = ordered(program)
    weaker = region(weaker_syncs(data, full))
    labels = {op.number: f"{op.role.value}{op.number}" for op in flat(full) if op.role is Role.DEVICE_SYNC}
    syncs = (Role.STREAM_SYNC, Role.EVENT_SYNC)
    sites = (replace(s, label=labels[int(s.label.split("sync")[1])]) if s.role in syncs else s for s in weaker.sites)
    marked = replace(weaker, sites=tuple(sites))
    right = oracle(marked, 1)
    assume(right is not None)
    event(f"oracle {right}")
    verdict = verify_region(region(serial(full)), marked)
    assert not verdict.unmatched
    assert verdict.ok == right


@QUICK
@given(programs(branches=False, loops=False), st.data())
def test_an_uncertain_stream_is_accepted_only_if_right_whichever_it_is(program, data):
    full = ordered(program)
    numbers = [op.number for op in flat(full) if op.role is Role.MOVABLE and op.stream is not None]
    assume(numbers)
    chosen = data.draw(st.sampled_from(numbers))
    less = without(full, data.draw(st.integers(0, extras(full) - 1)))
    kinds = (STREAMS[1:3], STREAMS[1:])[data.draw(st.integers(0, 1))]

    def on(stream):
        mine = {event_of(chosen)}

        def change(op):
            here = op.number == chosen or (op.role is Role.RECORD and op.event in mine)
            return [replace(op, stream=stream)] if here else [op]

        return rewrite(less, change)

    uncertain = Handle("either", "either", blocking=len(kinds) == 2, certain=False)
    ok = accepted(on(uncertain))
    event(f"accepted {ok}")
    if ok:
        assert all(oracle(region(on(stream)), 1) for stream in kinds)
