"""Which launches on credits have an event, and that nothing is taken for done before it is.

The daemon is ``lender.cpp``, which gives credits of a known size; the driver counts events.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time

import pytest

from tests.fikit.yard import LIMIT, Yard

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")

SHORT = 1_000  # what each kernel is taken for, in nanoseconds
FLIGHT = 1_000_000
MANY = 32


def lender(yard: Yard, predicted: int = SHORT, flight: int = FLIGHT, launches: int = MANY) -> subprocess.Popen[str]:
    """A daemon that lends, and is ready."""
    numbers = [str(one) for one in (predicted, flight, launches)]
    child = yard.start([str(yard.parts / "lender"), str(yard.socket), *numbers], {})
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    return child


def said(child: subprocess.Popen[str], clients: int = 1) -> list[dict[str, object]]:
    """What it saw of the clients that have left; it is ended if these are too few."""
    assert child.stdout is not None
    watch = threading.Timer(LIMIT, child.kill)
    watch.start()
    try:
        return [json.loads(child.stdout.readline()) for _ in range(clients)]
    finally:
        watch.cancel()


def counted(yard: Yard) -> tuple[int, int, int]:
    """Launches, events recorded and queries of them until now."""
    words = (yard.folder / "gpu").read_bytes()
    launches, events, queries = (int.from_bytes(words[n : n + 8], "little") for n in (8, 16, 24))
    return launches, events, queries


def fewest(yard: Yard, daemon: subprocess.Popen[str], most: int, *words: str) -> int:
    """Events of one task, all of whose launches but the first are on a credit.

    The fewest of some runs, up to one with no more than so many: where the task was not given a CPU for a while, each
    launch has an event after that.
    """
    found, before = [most + 1], 0
    while min(found) > most and len(found) <= 30:
        yard.ends(yard.task(1, *words))
        (seen,) = said(daemon)
        launches = int(words[0]) * int(words[1])
        assert seen["launched"] == seen["ended"] == launches and seen["credited"] == launches - 1
        found.append(counted(yard)[1] - before)
        before += found[-1]
    return min(found)


def test_of_short_launches_on_a_credit_one_in_eight_has_an_event(yard: Yard) -> None:
    assert 1 + 400 // 8 <= fewest(yard, lender(yard), 401 // 6, "1", "401", "0", "0") <= 401 // 6


def test_the_predicted_time_makes_a_step(yard: Yard) -> None:
    """A quarter of what may be in flight: two launches of an eighth."""
    assert 1 + 100 <= fewest(yard, lender(yard, predicted=FLIGHT // 8), 120, "1", "201", "0", "0") <= 120


@pytest.mark.parametrize(("predicted", "launches"), [(FLIGHT // 4, MANY), (SHORT, 4)])
def test_long_kernels_and_small_credits_have_an_event_each(yard: Yard, predicted: int, launches: int) -> None:
    daemon = lender(yard, predicted, launches=launches)
    yard.ends(yard.task(1, "1", "101", "0", "0"))
    found = said(daemon)[0]
    assert found["launched"] == found["ended"] == 101
    assert counted(yard)[:2] == (101, 101)


def test_an_isolated_launch_has_an_event(yard: Yard) -> None:
    """Nothing is waited for between them, and it is long since the last event."""
    daemon = lender(yard)
    yard.ends(yard.task(1, "100", "1", "0", "300", "loose"))
    assert said(daemon)[0]["credited"] == 99
    assert counted(yard)[:2] == (100, 100)


def test_who_comes_to_the_gate_has_an_event_behind_what_is_out(yard: Yard) -> None:
    """Sixteen may be in flight, and the last three have none; only 0.1 s without a launch would tell their end."""
    daemon = lender(yard, launches=16)
    yard.ends(yard.task(1, "1", "160", "500", "0"))
    (seen,) = said(daemon)
    assert seen["launched"] == seen["ended"] == 160
    assert isinstance(seen["waits"], int) and 5 < seen["waits"] < 20 and seen["slow"] == 0
    assert counted(yard)[1] < 160 // 2


def test_on_two_streams_each_launch_has_an_event(yard: Yard) -> None:
    daemon = lender(yard)
    yard.ends(yard.task(1, "1", "200", "0", "0", "streams"))
    assert said(daemon)[0]["credited"] == 199
    assert counted(yard)[:2] == (200, 200)


@pytest.mark.parametrize(("how", "kernels", "launches"), [("moves", 12, 20), ("again", 12, 20), ("again", 7, 7)])
def test_an_event_on_another_stream_counts_for_itself_alone(yard: Yard, how: str, kernels: int, launches: int) -> None:
    """Kernels of 10 ms on one stream, two beside them on another one; also where that has the handle of the first.

    Of seven in flight each launch has an event; these do not end in the order in which they were recorded.
    """
    daemon = lender(yard, launches=launches)
    yard.ends(yard.task(1, "1", str(kernels), "10000", "130000", how, FAKE_STREAMS="1"))
    (seen,) = said(daemon)
    assert seen["credited"] == kernels - 1
    changes = seen["changes"]
    assert isinstance(changes, list)
    for at, ended, _ in changes:
        true = min(at // 9_500, kernels - 2) + min(at // 9_500, 2)
        assert ended <= true, changes


def test_who_goes_off_without_a_wait_has_an_event_each_for_a_while(yard: Yard) -> None:
    daemon = lender(yard)
    yard.ends(yard.task(1, "100", "5", "0", "3000", "loose"))
    assert said(daemon)[0]["credited"] == 499
    launches, events, _ = counted(yard)
    assert launches == 500 and events > 400


def test_who_waits_between_requests_has_few(yard: Yard) -> None:
    assert fewest(yard, lender(yard), 800 // 5 - 1, "20", "40", "0", "3000") < 800 // 5


@pytest.mark.parametrize("how", ["fork", "clone", "threads"])
def test_children_and_threads_on_credits(yard: Yard, how: str) -> None:
    """A child is a client of its own, and writes nothing into what its parent shares."""
    daemon = lender(yard)
    yard.ends(yard.task(1, "2", "100", "0", "0", how))
    clients = said(daemon, 1 if how == "threads" else 2)
    for seen in clients:
        assert seen["launched"] == seen["ended"] and seen["waits"] == 1
    launches, events, _ = counted(yard)
    assert launches == (800 if how == "threads" else 600) and events < launches
    assert sorted(one["launched"] for one in clients) == ([800] if how == "threads" else [200, 400])


def test_who_waits_at_the_gate_asks_itself(yard: Yard) -> None:
    """The attendant hears nothing here: only who waits can tell that its launches have ended."""
    daemon = lender(yard, launches=8)
    yard.ends(yard.task(1, "1", "100", "20", "0", deadline=100, FAKE_DEAF="kesco-fikit"))
    (seen,) = said(daemon)
    waits, slow = seen["waits"], seen["slow"]
    assert isinstance(waits, int) and isinstance(slow, int) and waits > 3 and slow <= waits // 3, seen


def test_of_many_events_on_one_stream_few_are_asked(yard: Yard) -> None:
    """They end in order. Here who launches asks once it has 64 launches out, and all have ended by then."""
    daemon = lender(yard, launches=1000)
    yard.ends(yard.task(1, "200", "1", "0", "60", "loose", FAKE_DEAF="kesco-fikit"))
    assert said(daemon)[0]["credited"] == 199
    launches, events, queries = counted(yard)
    assert launches == events == 200 and 0 < queries <= 3 * 8 + 1


def test_it_is_told_when_a_launch_was_last_seen_not_to_have_ended(yard: Yard) -> None:
    """For each report how long nobody had looked: the policy takes a report that may be late for no miss."""
    daemon = lender(yard)
    yard.ends(yard.task(1, "9", "1", "20000", "1000"))
    (seen,) = said(daemon)
    changes = seen["changes"]
    assert isinstance(changes, list) and len(changes) == 9
    assert all(late >= 0 for _, _, late in changes) and sorted(late for _, _, late in changes)[4] < 10_000, changes


def test_no_question_ends_a_capture_of_another_thread(yard: Yard) -> None:
    """Who waits at the gate, launches on a credit or comes from a wait asks as well; here the attendant is deaf."""
    daemon = lender(yard, launches=8)
    yard.ends(yard.task(1, "2", "100", "20", "0", deadline=100, FAKE_DEAF="kesco-fikit", FAKE_CAPTURE="1"))
    (seen,) = said(daemon)
    assert seen["launched"] == seen["ended"] == 200
    assert counted(yard)[2] > 0 and int.from_bytes((yard.folder / "gpu").read_bytes()[32:40], "little") == 0


def test_an_error_of_a_capture_is_no_end(yard: Yard) -> None:
    """This driver has no modes, so no event says that it has ended; only the wait of the program does."""
    daemon = lender(yard)
    yard.ends(yard.task(1, "1", "4", "20000", "20000", old=True, FAKE_CAPTURE="1"))
    (seen,) = said(daemon)
    changes = seen["changes"]
    assert isinstance(changes, list) and [ended for _, ended, _ in changes] == [4], changes
    assert changes[0][0] > 75_000


def test_a_launch_under_way_when_the_daemon_comes_is_not_counted(yard: Yard) -> None:
    """The daemon was told of none, so it is told of no end either."""
    child = yard.task(1, "1", "21", "20", "20000", FAKE_FIRST="1500000")
    time.sleep(0.3)
    daemon = lender(yard)
    yard.ends(child)
    (seen,) = said(daemon)
    assert seen["launched"] == seen["ended"] == 20, seen


def test_what_the_program_waits_for_has_not_ended(yard: Yard) -> None:
    """Kernels of 150 ms, of which the first one alone has an event; without a wait 0.1 s would count as their end."""
    daemon = lender(yard)
    yard.ends(yard.task(1, "1", "3", "150000", "20000"))
    (seen,) = said(daemon)
    changes = seen["changes"]
    assert isinstance(changes, list) and changes[-1][1] == 3
    assert all(ended <= at // 149_000 for at, ended, _ in changes), changes
