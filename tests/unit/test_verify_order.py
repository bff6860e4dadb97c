"""The proof's rules, one by one, on hand-made regions: ten stream programs that are right, ten that are not, and more.

A program is a nested tuple: steps in order, `If` and `Loop` around tuples. `concurrent` lowers it as it stands,
`serial` without its streams, events and waits of the host for one stream.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, replace

import pytest
from counting import calls

from kesco.diagnostics import Severity, render
from kesco.ir.access import Access, AccessMode, Buffer, BufferKind, may_alias
from kesco.ir.flow import Handle, Held, Iteration, Region, Role, Site, SiteKind
from kesco.source import Span
from kesco.verify.conflicts import conflicts
from kesco.verify.order import verify_region
from kesco.verify.verdict import Rule, Verdict, explain

NONBLOCKING = {"n", "m"}
UNCERTAIN = {"any"}


@dataclass(frozen=True)
class Step:
    """One operation; `r` and `w` name buffers, one letter each."""

    name: str
    role: Role
    kind: SiteKind
    stream: str | None = None
    event: str | None = None
    r: str = ""
    w: str = ""
    foreign: bool = False
    index: int | None = None
    acts: bool = True
    held: Held | None = None
    looks: bool = False


@dataclass(frozen=True)
class If:
    then: tuple
    other: tuple = ()


@dataclass(frozen=True)
class Loop:
    body: tuple


def k(name, stream=None, r="", w="", **more):
    return Step(name, Role.MOVABLE if stream else Role.LEGACY, SiteKind.KERNEL, stream, r=r, w=w, **more)


def copy(name, stream=None, r="", w="", role=None):
    return Step(name, role or (Role.MOVABLE if stream else Role.LEGACY), SiteKind.COPY, stream, r=r, w=w)


def prefetch(stream, r):
    return Step("cudaMemPrefetchAsync", Role.MOVABLE, SiteKind.PREFETCH, stream, r=r)


def record(event, stream=None):
    return Step("cudaEventRecord", Role.RECORD, SiteKind.SYNC, stream, event)


def wait(stream, event):
    return Step("cudaStreamWaitEvent", Role.WAIT, SiteKind.SYNC, stream, event)


def join_to_legacy(*streams):
    return tuple(s for n in streams for s in (record(f"join_{n}", n), wait(None, f"join_{n}")))


def stream_sync(stream=None):
    return Step("cudaStreamSynchronize", Role.STREAM_SYNC, SiteKind.SYNC, stream)


def event_sync(event):
    return Step("cudaEventSynchronize", Role.EVENT_SYNC, SiteKind.SYNC, event=event)


def host(r="", w=""):
    return Step("host", Role.HOST, SiteKind.HOST_USE, r=r, w=w)


def call(foreign=False):
    return Step("clock", Role.JOIN, SiteKind.CALL, foreign=foreign)


SYNC = Step("cudaDeviceSynchronize", Role.DEVICE_SYNC, SiteKind.SYNC)
RETURN = Step("exit", Role.EXIT, SiteKind.BOUNDARY)


def buffer(name):
    kind = BufferKind.UNKNOWN if name == "?" else BufferKind.DEVICE
    return Buffer(name, f"d_{name}", kind)


def handle(name):
    return name and Handle(name, name, blocking=name not in NONBLOCKING, certain=name not in UNCERTAIN)


class Lower:
    """Makes a region of a program; loops may run any number of times."""

    def __init__(self):
        self.sites, self.edges, self.numbers = [], [], {}

    def site(self, key, step, frontier):
        if key not in self.numbers:
            number = self.numbers[key] = len(self.sites)
            modes = {b: AccessMode.READ if b not in step.w else AccessMode.READ_WRITE for b in step.r}
            modes |= {b: AccessMode.WRITE for b in step.w if b not in step.r}
            accesses = tuple(Access(buffer(b), mode) for b, mode in sorted(modes.items()))
            span = Span("app.cu", number, number + 1, number + 1, 1)
            turns = () if step.index is None else (Iteration(0, "i", step.index, 9, step.index, 0, 1),)
            self.sites.append(
                Site(number, number, step.name, step.kind, step.role, span, turns, accesses,
                     stream=handle(step.stream), event=handle(step.event), foreign=step.foreign,
                     acts=step.acts, held=step.held, looks=step.looks)
            )  # fmt: skip
            self.edges.append(set())
        for before in frontier:
            self.edges[before].add(self.numbers[key])
        return {self.numbers[key]} if step.role is not Role.EXIT else set()

    def walk(self, key, steps, frontier):
        for n, step in enumerate(steps):
            here = (*key, n)
            if isinstance(step, If):
                then = self.walk((*here, 0), step.then, frontier)
                frontier = then | self.walk((*here, 1), step.other, frontier)
            elif isinstance(step, Loop):
                once = self.walk(here, step.body, frontier)
                frontier = frontier | self.walk(here, step.body, once)
            elif isinstance(step, tuple):
                frontier = self.walk(here, step, frontier)
            else:
                frontier = self.site(here, step, frontier)
        return frontier


def region(program, function="f"):
    lower = Lower()
    start = lower.site("entry", Step("entry", Role.ENTRY, SiteKind.BOUNDARY), ())
    lower.site("exit", RETURN, lower.walk((), program, start))
    successors = tuple(tuple(sorted(s)) for s in lower.edges)
    return Region(function, Span("app.cu", 0, 1, 1, 1), tuple(lower.sites), successors)


def stripped(program):
    result = []
    for step in program:
        if isinstance(step, If):
            result.append(If(stripped(step.then), stripped(step.other)))
        elif isinstance(step, Loop):
            result.append(Loop(stripped(step.body)))
        elif isinstance(step, tuple):
            result.append(stripped(step))
        elif step.role not in (Role.RECORD, Role.WAIT, Role.STREAM_SYNC, Role.EVENT_SYNC):
            result.append(replace(step, stream=None))
    return tuple(result)


def verify(*program, serial=None, function="f"):
    original = stripped(program) if serial is None else serial
    return verify_region(region(original, function), region(program, function))


def findings(verdict):
    return {(u.first.label, u.second.label, u.rule) for u in verdict.unordered}


A1, B2, JOINED = k("A", "1", w="x"), k("B", "2", r="x", w="y"), join_to_legacy("1", "2")

RIGHT = {
    "two streams and one event": (A1, record("e", "1"), wait("2", "e"), B2, JOINED),
    "independent work": (k("A", "1", w="x"), k("B", "2", w="y"), JOINED),
    "one stream": (k("A", "1", w="x"), k("B", "1", r="x", w="y"), join_to_legacy("1")),
    "legacy work is a barrier": (k("A", "1", w="x"), k("L", r="x", w="y"), k("B", "2", r="y", w="x"), JOINED),
    "through a third stream": (
        k("A", "1", w="x"), record("e", "1"), wait("2", "e"), k("B", "2", w="y"), record("f", "2"),
        wait("3", "f"), k("C", "3", r="x", w="z"), join_to_legacy("1", "2", "3"),
    ),
    "both ways around a loop": (
        Loop((wait("1", "f"), A1, record("e", "1"), wait("2", "e"), B2, record("f", "2"))), JOINED,
    ),
    "the event of the branch taken": (
        If((k("A", "1", w="x"), record("e", "1")), (k("C", "3", w="x"), record("f", "3"))),
        wait("2", "e"), wait("2", "f"), B2, join_to_legacy("1", "2", "3"),
    ),
    "early return": (
        A1, record("e", "1"), If((join_to_legacy("1"), RETURN)), wait("2", "e"), B2, JOINED,
    ),
    "host waits for the stream": (A1, stream_sync("1"), host(r="x"), B2, join_to_legacy("2")),
    "host waits for the event": (
        A1, record("e", "1"), k("C", "1", w="z"), event_sync("e"), host(r="x"), B2, JOINED,
    ),
    "non-blocking streams, tied by events": (
        record("in"), wait("n", "in"), k("A", "n", w="x"), record("e", "n"), wait(None, "e"), k("L", r="x", w="y"),
        record("g"), wait("n", "g"), k("B", "n", r="y", w="z"), record("out", "n"), wait(None, "out"),
    ),
    "device synchronize is for all": (k("A", "1", w="x"), SYNC, k("B", "2", r="x"), SYNC, host(r="x")),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_right_programs_are_accepted(name):
    verdict = verify(*RIGHT[name])
    assert verdict.ok, verdict


WRONG = {
    "missing wait": ((A1, record("e", "1"), B2, JOINED), ("A", "B", Rule.CONFLICT)),
    "wait on the wrong event": (
        (k("C", "1", w="z"), record("f", "1"), A1, record("e", "1"), wait("2", "f"), B2, JOINED),
        ("A", "B", Rule.CONFLICT),
    ),
    "record before the kernel": ((record("e", "1"), A1, wait("2", "e"), B2, JOINED), ("A", "B", Rule.CONFLICT)),
    "wait after the kernel": ((A1, record("e", "1"), B2, wait("2", "e"), JOINED), ("A", "B", Rule.CONFLICT)),
    "record in one branch only": (
        (A1, If((record("e", "1"),)), wait("2", "e"), B2, JOINED), ("A", "B", Rule.CONFLICT),
    ),
    "event recorded again elsewhere": (
        (A1, record("e", "1"), record("e", "3"), wait("2", "e"), B2, JOINED), ("A", "B", Rule.CONFLICT),
    ),
    "non-blocking stream against legacy work": (
        (k("L", w="x"), record("e"), wait("m", "e"), k("M", "m", r="x", w="z"), k("K", r="z"), SYNC),
        ("M", "K", Rule.CONFLICT),
    ),
    "non-blocking stream against what came before": (
        (k("A", "n", w="x"), join_to_legacy("n")), ("entry", "A", Rule.CONFLICT),
    ),
    "no join at the exit": ((A1, record("e", "1"), wait("2", "e"), B2), ("B", "exit", Rule.JOIN)),
    "no join at an early return": (
        (A1, record("e", "1"), If((RETURN,)), wait("2", "e"), B2, JOINED), ("A", "exit", Rule.JOIN),
    ),
    "no join before a call": ((A1, call(), JOINED), ("A", "clock", Rule.JOIN)),
    "stream may be one of several": (
        (k("A", "any", w="x"), record("e", "any"), wait("2", "e"), B2, SYNC), ("A", "B", Rule.CONFLICT),
    ),
    "event may be one of several": (
        (A1, record("any", "1"), wait("2", "any"), B2, JOINED), ("A", "B", Rule.CONFLICT),
    ),
    "an uncertain record spoils every event": (
        (A1, record("e", "1"), record("any", "3"), wait("2", "e"), B2, JOINED), ("A", "B", Rule.CONFLICT),
    ),
    "carried dependence": (
        (Loop((k("A", "1", w="x"), record("e", "1"), wait("2", "e"), k("B", "2", r="x"))), JOINED),
        ("B", "A", Rule.CONFLICT),
    ),
    "a wait of the turn before": (
        (Loop((A1, B2, record("e", "1"), wait("2", "e"), record("f", "2"), wait("1", "f"))), JOINED),
        ("A", "B", Rule.CONFLICT),
    ),
    "a record of the turn before": (
        (Loop((A1, wait("2", "e"), B2, record("e", "1"), record("f", "2"), wait("1", "f"))), JOINED),
        ("A", "B", Rule.CONFLICT),
    ),
    "a record before the kernel, behind that of the turn before": (
        (Loop((record("e", "1"), A1, wait("2", "e"), B2, record("f", "2"), wait("1", "f"))), JOINED),
        ("A", "B", Rule.CONFLICT),
    ),
    "bare record on the legacy stream": (
        (A1, record("e"), wait("n", "e"), k("B", "n", r="x"), SYNC), ("A", "B", Rule.CONFLICT),
    ),
    "a wait on the legacy stream joins that event only": (
        (A1, k("C", "2", w="z"), record("e", "1"), wait(None, "e")), ("C", "exit", Rule.JOIN),
    ),
    "foreign call": ((call(foreign=True), k("A", "1", w="x"), SYNC), ("clock", "A", Rule.FOREIGN)),
    "foreign call, joined by a wait for an older record": (
        (record("e", "2"), call(foreign=True), wait(None, "e"), A1, SYNC), ("clock", "A", Rule.FOREIGN),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_programs_are_rejected(name):
    program, finding = WRONG[name]
    verdict = verify(*program)
    assert not verdict.ok and not verdict.unmatched
    assert finding in findings(verdict)


# ---- the host ----------------------------------------------------


def test_host_read_needs_the_wait_that_the_serial_program_had():
    serial = (k("A", w="x"), SYNC, host(r="x"))
    assert verify(A1, stream_sync("1"), host(r="x"), serial=serial).ok
    assert verify(A1, record("e", "1"), event_sync("e"), host(r="x"), serial=serial).ok
    gone = verify(A1, join_to_legacy("1"), host(r="x"), serial=serial)
    assert ("A", "host", Rule.HOST) in findings(gone)
    other = verify(A1, join_to_legacy("1"), stream_sync("2"), host(r="x"), serial=serial)
    assert ("A", "host", Rule.HOST) in findings(other)
    early = verify(
        stream_sync("1"), A1, host(r="x"), join_to_legacy("1"), stream_sync(), serial=serial, function="main"
    )
    assert findings(early) == {("A", "host", Rule.HOST)}


def test_an_event_stands_for_what_ran_before_its_record_only():
    serial = (k("A", w="x"), k("C", w="z"), SYNC, host(r="z"), SYNC)
    program = (A1, record("e", "1"), k("C", "1", w="z"), event_sync("e"), host(r="z"), SYNC)
    assert ("C", "host", Rule.HOST) in findings(verify(*program, serial=serial))


def test_an_event_that_a_serial_program_waits_for_stands_for_everything():
    serial = (k("A", w="x"), event_sync("t"), host(r="x"))
    verdict = verify(A1, event_sync("t"), host(r="x"), join_to_legacy("1"), serial=serial)
    assert ("A", "host", Rule.HOST) in findings(verdict)


def test_a_host_race_of_the_serial_program_is_not_our_business():
    assert verify(A1, host(r="x"), join_to_legacy("1")).ok


def test_a_removed_wait_may_be_seen_by_the_caller():
    serial = (k("A", w="x"), SYNC)
    assert findings(verify(A1, join_to_legacy("1"), serial=serial)) >= {("A", "exit", Rule.HOST)}
    assert verify(A1, stream_sync("1"), serial=serial).ok


def test_a_removed_wait_is_fine_where_a_later_one_serves():
    serial = (k("A", w="x"), SYNC, k("B", r="x", w="y"), SYNC)
    assert verify(A1, record("e", "1"), wait("2", "e"), B2, SYNC, serial=serial).ok


def test_what_the_caller_issued_is_awaited_too():
    serial = (SYNC, host(r="x"))
    assert verify(SYNC, host(r="x"), serial=serial).ok
    assert ("entry", "host", Rule.HOST) in findings(verify(host(r="x"), serial=serial))


def test_waits_in_branches_are_compared_path_by_path():
    program = (A1, If((SYNC, host(r="x")), (stream_sync("2"),)), host(r="x"), join_to_legacy("1"))
    serial = (k("A", w="x"), If((SYNC, host(r="x"))), host(r="x"))
    assert verify(*program, serial=serial).ok
    gone = (A1, If((host(r="x"),), (stream_sync("2"),)), host(r="x"), join_to_legacy("1"))
    assert ("A", "host", Rule.HOST) in findings(verify(*gone, serial=serial))


def test_a_wait_that_is_too_weak_on_one_path_is_seen_behind_it():
    weak = replace(SYNC, role=Role.STREAM_SYNC, stream="2")
    serial = (k("A", w="x"), If((SYNC,), (k("Z"),)), host(r="x"))
    verdict = verify(A1, If((weak,), (k("Z"),)), host(r="x"), join_to_legacy("1"), serial=serial)
    assert ("A", "host", Rule.HOST) in findings(verdict)


def test_a_plain_copy_that_became_asynchronous_no_longer_holds_the_host():
    serial = (k("A", w="x"), copy("cudaMemcpy", r="x", w="h"), host(r="h"))
    moved = (A1, copy("cudaMemcpyAsync", "1", r="x", w="h"))
    assert verify(*moved, stream_sync("1"), host(r="h"), serial=serial).ok
    wrong = verify(*moved, host(r="h"), stream_sync("1"), serial=serial)
    assert ("cudaMemcpyAsync", "host", Rule.HOST) in findings(wrong)


def test_a_plain_copy_holds_the_host_for_blocking_streams_only():
    serial = (k("A", w="x"), copy("cudaMemcpy", r="z", w="h"), host(r="x"))
    program = (copy("cudaMemcpy", r="z", w="h"), host(r="x"))
    assert verify(A1, *program, join_to_legacy("1"), serial=serial).ok
    away = (k("A", "n", w="x"), *program, join_to_legacy("n"))
    assert ("A", "host", Rule.HOST) in findings(verify(*away, serial=serial, function="main"))


def test_a_plain_copy_to_the_host_serves_whoever_looks_behind_it():
    """A wait in front of it may go; not where it may be of no bytes, or where a stream does not wait for it."""
    home = replace(copy("cudaMemcpy", r="z", w="h"), held=Held.ALL)
    look = replace(host(), looks=True)
    serial = (k("A", w="x"), SYNC, home, look)
    assert verify(A1, home, look, join_to_legacy("1"), serial=serial).ok
    for one in (replace(home, acts=False), replace(home, held=Held.SOURCE)):
        waited = (k("A", w="x"), SYNC, one, look)
        assert ("A", "host", Rule.HOST) in findings(verify(A1, one, look, join_to_legacy("1"), serial=waited))
    away = (k("A", "n", w="x"), home, look, join_to_legacy("n"))
    assert ("A", "host", Rule.HOST) in findings(verify(*away, serial=serial, function="main"))


@pytest.mark.parametrize("kind", [SiteKind.COPY, SiteKind.MEMSET, SiteKind.KERNEL])
def test_work_that_may_be_none_is_no_barrier(kind):
    sure = Step("transfer", Role.LEGACY, kind, r="z")
    vague = replace(sure, acts=False)
    after, wait_for_a = k("B", "2", r="x"), (record("e", "1"), wait("2", "e"))
    assert verify(A1, sure, after, join_to_legacy("1", "2")).ok
    assert findings(verify(A1, vague, after, join_to_legacy("1", "2"))) == {("A", "B", Rule.CONFLICT)}
    assert verify(A1, vague, *wait_for_a, after, join_to_legacy("1", "2")).ok
    assert findings(verify(A1, vague)) >= {("A", "exit", Rule.JOIN)}
    moved = replace(copy("cudaMemcpyAsync", "2", r="x", w="y"), acts=False)  # which may well move something
    alike = (k("A", w="x"), vague, replace(moved, stream=None, role=Role.LEGACY))
    assert ("A", "cudaMemcpyAsync", Rule.CONFLICT) in findings(
        verify(A1, vague, moved, join_to_legacy("1", "2"), serial=alike)
    )
    assert verify(A1, sure).ok


def test_what_the_host_sees_behind_a_copy_that_may_be_of_no_bytes_is_as_in_the_serial_program():
    vague = replace(copy("cudaMemcpy", r="z", w="h"), acts=False)
    assert verify(A1, vague, host(r="x"), join_to_legacy("1"), serial=(k("A", w="x"), vague, host(r="x"))).ok
    waited = (k("A", w="x"), vague, Step("cudaDeviceSynchronize", Role.DEVICE_SYNC, SiteKind.SYNC), host(r="x"))
    lost = verify(A1, vague, host(r="x"), join_to_legacy("1"), serial=waited)
    assert ("A", "host", Rule.HOST) in findings(lost)


def test_a_copy_that_waits_by_itself_waits_for_blocking_streams():
    waiting = copy("cudaMemcpy", r="x", w="h", role=Role.DEVICE_SYNC)
    assert verify(A1, waiting, host(r="h"), host(r="x")).ok
    racing = verify(k("A", "n", w="x"), waiting, host(r="h"), join_to_legacy("n"), function="main")
    assert ("A", "cudaMemcpy", Rule.CONFLICT) in findings(racing)
    other = replace(waiting, r="z")
    racing = verify(k("A", "n", w="x"), other, host(r="x"), join_to_legacy("n"), function="main")
    assert ("A", "host", Rule.HOST) in findings(racing)


# ---- streams and events ----------------------------------------------------


def test_nothing_runs_before_main():
    program = (k("A", "n", w="x"), join_to_legacy("n"))
    assert not verify(*program).ok
    assert verify(*program, function="main").ok


def test_legacy_work_carries_what_a_blocking_stream_had_waited_for():
    start = (k("A", "n", w="x"), record("e", "n"), wait("1", "e"))
    assert verify(*start, k("B", "1"), k("L", r="x"), SYNC, function="main").ok
    assert ("A", "L", Rule.CONFLICT) in findings(verify(*start, k("L", r="x"), SYNC, function="main"))


def test_a_call_that_joins_is_ordered_with_blocking_streams_after_it():
    reads = replace(call(), r="x", w="x")
    assert verify(A1, join_to_legacy("1"), reads, k("B", "2", r="x"), join_to_legacy("2")).ok
    racing = verify(A1, SYNC, reads, k("B", "n", r="x"), SYNC)
    assert ("clock", "B", Rule.CONFLICT) in findings(racing)


def test_foreign_work_is_joined_by_legacy_work_or_the_device():
    assert verify(call(foreign=True), k("L"), A1, join_to_legacy("1")).ok
    assert verify(call(foreign=True), SYNC, A1, join_to_legacy("1")).ok
    assert verify(call(foreign=True), record("e", "2"), wait(None, "e"), A1, join_to_legacy("1")).ok
    sometimes = verify(call(foreign=True), If((record("e", "2"),)), wait(None, "e"), A1, SYNC)
    assert findings(sometimes) == {("clock", "A", Rule.FOREIGN)}


def test_an_event_covers_only_what_ran_before_its_latest_record():
    loop = Loop((wait("2", "e"), k("B", "2", r="x"), record("e", "1"), A1, wait("1", "f"), record("f", "2")))
    verdict = verify(loop, JOINED)
    assert ("A", "B", Rule.CONFLICT) in findings(verdict)


def test_facts_that_belong_together_are_kept_apart_path_by_path():
    """On either path some event orders A before B; no single one does on both."""
    branch = If((wait("2", "e"), k("T", "2")), (wait("3", "e"), k("C", "3", w="z"), record("f", "3")))
    program = (A1, record("e", "1"), branch, wait("2", "f"), B2, join_to_legacy("1", "2", "3"))
    assert verify(*program).ok
    assert not verify(*(s for s in program if s != wait("2", "f"))).ok


def test_uncertain_streams_are_checked_against_all():
    assert verify(k("A", "1", w="x"), SYNC, k("B", "any", r="x"), SYNC).ok
    assert verify(k("A", w="x"), k("B", "any", r="x"), k("L", w="x"), SYNC).ok
    assert not verify(k("A", "1", w="x"), k("B", "any", r="x"), SYNC).ok
    assert not verify(k("A", w="x"), k("C", "n"), k("B", "any", r="x"), SYNC, function="main").ok
    assert not verify(k("B", "any", w="x"), k("A", "any", r="x"), SYNC).ok
    assert not verify(k("B", "any", w="x"), stream_sync("any"), k("A", "1", r="x"), SYNC).ok


# ---- matching ----------------------------------------------------


def test_operations_may_move_in_the_text_but_not_past_a_conflict():
    serial = (k("A#1", w="x"), k("A#2", w="y"), k("B", r="x"), k("C", r="y"))
    moved = (k("A#1", "2", w="y"), k("A#2", "1", w="x"), k("C", "2", r="y"), k("B", "1", r="x"), JOINED)
    assert verify(*moved, serial=serial).ok
    swapped = (k("A#1", "1", w="x"), k("B", "1", r="x"), k("C", "2", r="y"), k("A#2", "2", w="y"), JOINED)
    verdict = verify(*swapped, serial=serial)
    assert findings(verdict) == {("A#2", "C", Rule.REVERSED)}


def test_turning_a_loop_body_around_is_not_allowed():
    serial = (Loop((k("A", w="x"), k("B", r="x"))),)
    verdict = verify(Loop((k("B", "1", r="x"), k("A", "1", w="x"))), join_to_legacy("1"), serial=serial)
    assert ("A", "B", Rule.REVERSED) in findings(verdict)


def test_moving_work_behind_the_wait_it_had_is_seen():
    serial = (k("A", w="x"), SYNC, k("B", w="y"), host(r="x"))
    verdict = verify(k("B", "1", w="y"), SYNC, A1, host(r="x"), join_to_legacy("1"), serial=serial)
    assert ("A", "host", Rule.HOST) in findings(verdict)


def test_moving_work_into_a_branch_is_seen():
    serial = (k("A", w="x"), If((k("B", w="y"),)))
    verdict = verify(If((k("A", "1", w="x"), k("B", "1", w="y"))), join_to_legacy("1"), serial=serial)
    assert any("'A'" in problem for problem in verdict.unmatched)


def test_missing_and_added_work_is_reported_but_a_prefetch_may_come_and_go():
    serial = (k("A", w="x"), k("B", r="x"))
    missing = verify(A1, join_to_legacy("1"), serial=serial)
    assert not missing.ok and "'B'" in missing.unmatched[0]
    added = verify(A1, k("B", "1", r="x"), k("C", "1"), join_to_legacy("1"), serial=serial)
    assert not added.ok and "'C'" in added.unmatched[0]
    helped = (A1, k("B", "1", r="x"), prefetch("2", "x"), join_to_legacy("1", "2"))
    assert verify(*helped, serial=serial).ok
    assert verify(A1, k("B", "1", r="x"), join_to_legacy("1"), serial=stripped(helped)).ok


def test_iterations_are_paired_by_value():
    serial = (k("A#1", w="x", index=0), k("A#2", w="y", index=1), k("B", r="x"))
    program = (k("A#1", "2", w="y", index=1), k("A#2", "1", w="x", index=0), k("B", "1", r="x"), JOINED)
    assert verify(*program, serial=serial).ok
    assert not verify(*(replace(s, stream="2") if s.name == "B" else s for s in program[:-1]), JOINED, serial=serial).ok


def test_iterations_must_not_change_places():
    serial = (k("A#1", w="x", index=0), k("A#2", w="x", index=1))
    program = (k("A#1", "1", w="x", index=1), k("A#2", "1", w="x", index=0), join_to_legacy("1"))
    assert findings(verify(*program, serial=serial)) == {("A#2", "A#1", Rule.REVERSED)}


def test_a_loop_may_be_unrolled_by_hand():
    serial = (k("A#1", w="x", index=0), k("A#2", w="y", index=1))
    assert verify(k("A#1", "1", w="x"), k("A#2", "2", w="y"), JOINED, serial=serial).ok


def test_a_conflict_that_only_the_serial_text_shows_counts():
    serial = (k("A", w="x"), k("B", r="x"))
    verdict = verify(A1, k("B", "2", r="z"), JOINED, serial=serial)
    assert ("A", "B", Rule.CONFLICT) in findings(verdict)


def test_a_conflict_that_only_the_concurrent_text_shows_counts():
    serial = (k("A", w="x"), k("B", w="y"))
    verdict = verify(A1, k("B", "2", w="x"), JOINED, serial=serial)
    assert ("A", "B", Rule.CONFLICT) in findings(verdict)


# ---- conflicts, reporting, size ----------------------------------------------------


def test_conflict_masks_agree_with_may_alias():
    rng = random.Random(1)
    kinds = [BufferKind.DEVICE, BufferKind.ORDER, BufferKind.UNKNOWN, BufferKind.HOST]
    for _ in range(200):
        names = [Buffer(key := str(rng.randrange(4)), key, rng.choice(kinds)) for _ in range(5)]
        modes = [*AccessMode.READ_WRITE, AccessMode.READ_WRITE, AccessMode.NONE]
        lists = [tuple(Access(rng.choice(names), rng.choice(modes)) for _ in range(rng.randrange(3))) for _ in range(6)]
        masks = conflicts(lists)
        for i, first in enumerate(lists):
            for j, second in enumerate(lists):
                wanted = any(
                    may_alias(a.buffer, b.buffer) and a.mode and b.mode and (a.mode | b.mode) & AccessMode.WRITE
                    for a in first for b in second
                )  # fmt: skip
                assert bool(masks[i] >> j & 1) == wanted, (first, second)


def test_findings_name_hazards_buffer_and_path():
    verdict = verify(A1, record("e", "1"), If((k("C", "1", r="x"),)), k("B", "2", r="x", w="x"), JOINED)
    first, second = verdict.unordered
    assert (first.first.label, first.kinds, first.buffer.name) == ("A", ("RAW", "WAW"), "d_x")
    assert first.path == (1, 2, 4)
    assert (second.first.label, second.kinds) == ("C", ("WAR",))
    assert (verdict.pairs, verdict.waits, verdict.events) == (3, 2, 3)
    assert verdict.sites == 5


def test_the_explanation_has_places_a_path_and_help():
    program = (A1, *(k(f"Z{n}", "3") for n in range(9)), B2, join_to_legacy("1", "2", "3"))
    verdict = verify(*program)
    text = render(explain(verdict.unordered[0], region(program)))
    assert "app.cu:12:1: error[K401]: 'B' may run before 'A' is done (RAW on 'd_x')" in text
    assert "app.cu:2:1: note: this must come first: 'A' on stream '1'" in text
    assert "app.cu:12:1: note: this must come second: 'B' on stream '2'" in text
    assert "on the path A (line 2) → Z0 (line 3) → Z1 (line 4) → Z2 (line 5) → 3 more → " in text
    assert "help: record an event right after 'A'" in text


@pytest.mark.parametrize("name", WRONG)
def test_every_rule_can_be_explained(name):
    program, _ = WRONG[name]
    for unordered in verify(*program).unordered:
        diagnostic = explain(unordered, region(program))
        assert diagnostic.code == "K401" and diagnostic.severity is Severity.ERROR and diagnostic.help
        assert len(diagnostic.notes) == 3 and not re.search(r"None|\{", diagnostic.message)


def test_an_empty_verdict_is_ok():
    assert Verdict().ok


def large(sites, shape):
    """Work on eight streams that waits for two earlier pieces each, every piece with an event of its own."""
    rng = random.Random(2)
    program, body = [], []
    for n in range(sites):
        stream = str(n % 8)
        steps = [wait(stream, f"e{s}") for s in sorted({max(0, n - 9), rng.randrange(n + 1)})]
        w = chr(0x4E00 + n)
        body += [*steps, k(f"K{n}", stream, r=chr(0x4E00 + max(0, n - 8)), w=w), record(f"e{n}", stream)]
        if shape == "branches" and n % 4 == 3:
            program += [*body[:-4], If(tuple(body[-4:]))]
            body = []
    steps = (*program, *body)
    return (Loop(steps),) if shape == "loop" else steps


@pytest.mark.parametrize("shape", ["line", "loop", "branches"])
def test_the_work_grows_as_the_program_does(shape):
    def work(sites):
        program = (*large(sites, shape), *join_to_legacy(*map(str, range(8))))
        both = region(stripped(program)), region(program)
        verdict = verify_region(*both)
        assert verdict.ok and verdict.sites == sites + 2
        return calls(lambda: verify_region(*both))

    assert work(1600) < 8 * work(400)  # 16 if it were quadratic
