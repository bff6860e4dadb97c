"""The race detector on records written by hand: each rule of ordering, where it holds and where it does not."""

from __future__ import annotations

import itertools
import time
import tracemalloc
from collections.abc import Iterator

import pytest

from kesco.ir.access import AccessMode
from kesco.ir.effects import KernelEffects, ParamEffect, RootEffect
from kesco.ir.touched import Asked, Bytes, Spans, Touch, Touches
from kesco.verify.footprint import Access, Part
from kesco.verify.meeting import Meeting, overlaps
from kesco.verify.races import Findings, find_races
from kesco.verify.trace import Event, Range, Recording, read

READ, WRITE = (RootEffect(mode) for mode in (AccessMode.READ, AccessMode.WRITE))
EFFECTS = {
    "w": KernelEffects("w", "w", (ParamEffect(0, ((0, WRITE),)),)),
    "r": KernelEffects("r", "r", (ParamEffect(0, ((0, READ),)),)),
    "opaque": KernelEffects("opaque", "opaque", opaque="its code is not seen"),
}
HEAD = """\
V 1 0
S 0 0 l 0
S 1 0 b 0
S 2 0 b 0
S 3 0 n 0
S 4 1 b 0
A 0 d 1000 4096 100 -1
A 1 p 9000 4096 101 -1
"""


def pointer(address: int) -> str:
    return address.to_bytes(8, "little").hex()


def four_bytes(name: str, arguments: tuple[bytes, ...], *_: object) -> Touches:
    """What `w` and `r` touch: four bytes, where the pointer points."""
    here = Bytes.exactly(Spans.rows(int.from_bytes(arguments[0], "little"), 4))
    nothing = Bytes.exactly(Spans.none())
    return Touches({(0, 0): Touch(here, nothing) if name == "r" else Touch(nothing, here)}, True)


def found(*lines: str, asked: Asked = four_bytes) -> Findings:
    return find_races(read(HEAD + "\n".join(lines) + "\n").events, EFFECTS, asked=asked)


def write(stream: int, address: int = 0x1000) -> str:
    return f"K {stream} {10 + stream} w 1,1,1 1,1,1 0 = {pointer(address)}"


def reads(stream: int, address: int = 0x1000) -> str:
    return f"K {stream} {20 + stream} r 1,1,1 1,1,1 0 = {pointer(address)}"


ORDERED = {
    "one stream": (write(1), reads(1)),
    "the default stream waits for blocking ones": (write(1), reads(0)),
    "blocking streams wait for the default stream": (write(0), reads(2)),
    "through the default stream": (write(1), "M 0 5 cudaMemset 0 w:2000:4", reads(2)),
    "a record on the default stream": (write(1), "R 7 0 5", "W 7 3 5", reads(3)),
    "an event": (write(1), "R 7 1 5", "W 7 2 5", reads(2)),
    "an event, over two streams": (write(1), "R 7 1 5", "W 7 3 5", "R 8 3 5", "W 8 2 5", reads(2)),
    "the latest record of an event": ("R 7 1 5", write(1), "R 7 1 5", "W 7 2 5", reads(2)),
    "the host waits for the stream": (write(1), "H s 1 5", reads(3)),
    "the host waits for the event": (write(1), "R 7 1 5", "H e 7 5", reads(3)),
    "the host waits for the device": (write(3), "H d 0 5", reads(2)),
    "cudaFree of something else": (write(3), "A 2 d 9900000 64 5 -1", "F 9900000 5 -1 0", reads(2)),
    "a copy that the host waits for": (write(1), "M 0 5 cudaMemcpy 2 r:1000:64 w:50:64", "T w 9000 6", reads(3)),
    "two readers": (reads(1), reads(2)),
    "the host before the copy": ("T w 9000 6", "M 1 5 cudaMemcpyAsync 0 r:9000:64 w:1000:64"),
    "exact ranges apart": ("M 1 5 cudaMemsetAsync 0 w:1000:64", "M 2 6 cudaMemsetAsync 0 w:1040:64"),
    "columns apart": ("M 1 5 cudaMemset2DAsync 0 w:1000:32:64:8", "M 2 6 cudaMemset2DAsync 0 w:1020:32:64:8"),
    "a host function": ("M 1 5 cudaMemcpyAsync 0 r:1000:64 w:9000:64", "L 1 5", "T r 9000 6"),
    "a free behind the use": (write(1), "F 1000 5 1 0"),
    "a pool's memory, given back behind its use": ("B 1 5 1000 64", write(1), "Y 1 6 1000"),
    "a pool's memory, on the same stream": ("B 1 5 1000 64", write(1), "Y 1 6 1000", "B 1 7 1000 32", reads(1)),
    "a pool's memory, handed over by an event": (
        "B 1 5 1000 64", write(1), "Y 1 6 1000", "R 7 1 5", "W 7 2 5", "B 2 7 1000 64", reads(2),
    ),
    "pieces of a pool": ("B 1 5 1000 64", "B 2 6 1040 64", write(1), write(2, 0x1040)),
}  # fmt: skip
RACES = {
    "two streams": ((write(1), reads(2)), "RAW"),
    "the other way round": ((reads(1), write(2)), "WAR"),
    "two writers": ((write(1), write(2)), "WAW"),
    "a non-blocking stream and the default stream": ((write(0), reads(3)), "RAW"),
    "the default stream and a non-blocking stream": ((write(3), reads(0)), "RAW"),
    "a reader that knows, and one that does not": ((write(1), "R 7 1 5", "W 7 2 5", reads(2), reads(3)), "RAW"),
    "streams of two devices": ((write(1), reads(4)), "RAW"),
    "an event recorded too early": (("R 7 1 5", write(1), "W 7 2 5", reads(2)), "RAW"),
    "an event never recorded": ((write(1), "W 7 2 5", reads(2)), "RAW"),
    "a wait before the record": ((write(1), "W 7 2 5", "R 7 1 5", reads(2)), "RAW"),
    "the host waits for another device": ((write(1), "H d 1 5", reads(2)), "RAW"),
    "the host waits for another stream": ((write(1), "H s 2 5", reads(2)), "RAW"),
    "the host reads": (("M 1 5 cudaMemcpyAsync 0 r:1000:64 w:9000:64", "T r 9000 6"), "RAW"),
    "the host writes": (("M 1 5 cudaMemcpyAsync 0 r:9000:64 w:1000:64", "T w 9000 6"), "WAR"),
    "a free on another stream": ((write(1), "F 1000 5 2 0"), "WAW"),
    "a pool's memory, used on another stream": (
        ("B 1 5 1000 64", "R 7 1 5", "W 7 2 5", reads(2), "Y 1 6 1000"), "WAR",
    ),
    "a pool's memory, handed over too early": (("B 1 5 1000 64", write(1), "Y 1 6 1000", "B 2 7 1000 64"), "WAW"),
    "a part of a pool's memory, handed over too early": (
        ("B 1 5 1000 64", write(1), "Y 1 6 1000", "B 1 7 1000 32", "B 2 8 1020 32"), "WAW",
    ),
    "columns that overlap": (
        ("M 1 5 cudaMemset2DAsync 0 w:1000:33:64:8", "M 2 6 cudaMemset2DAsync 0 w:1020:32:64:8"), "WAW",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ORDERED)
def test_what_is_ordered_is_no_race(name: str) -> None:
    findings = found(*ORDERED[name])
    assert findings.races == ()
    assert findings.stale == ()


@pytest.mark.parametrize("name", RACES)
def test_what_is_not_ordered_is_a_race(name: str) -> None:
    lines, kind = RACES[name]
    (race,) = found(*lines).races
    assert (race.kind, race.certain) == (kind, True)


def test_a_pair_of_places_is_one_race() -> None:
    (race,) = found(*[write(1), reads(2), "H d 0 5"] * 10).races
    assert race.times == 10


def test_parts_that_do_not_meet_are_no_race() -> None:
    assert found(write(1), write(2, 0x1004)).races == ()
    assert [r.certain for r in found(write(1), write(2, 0x1003)).races] == [True]


def test_where_nothing_is_known_of_the_bytes_a_race_is_only_possible() -> None:
    def nothing(*_: object) -> None:
        return None

    assert [r.certain for r in found(write(1), reads(2), asked=nothing).races] == [False]
    numbers = [f"K {s} {s} w 1,1,1 1,1,1 0 = {pointer(0x1000)} 0{s}000000" for s in (1, 2)]
    assert [r.certain for r in found(*numbers, asked=nothing).races] == [False]
    same = [f"K {s} {s} w 1,1,1 1,1,1 0 = {pointer(0x1000)} 01000000" for s in (1, 2)]
    assert [r.certain for r in found(*same, asked=nothing).races] == [True]  # whatever it is, both touch it
    larger = [same[0], same[1].replace("1,1,1 0", "2,1,1 0")]
    assert [r.certain for r in found(*larger, asked=nothing).races] == [False]


def test_many_accesses_of_one_line_are_kept_as_one() -> None:
    """Each trip of a loop writes elsewhere; the last ones are not known to be over."""
    far = [f"K 1 11 w 1,1,1 1,1,1 0 = {pointer(0x1000 + 4 * i)}" for i in range(900)]
    findings = found(*far, reads(2, 0x1000 + 3996))
    assert findings.races == ()
    (race,) = found(*far, reads(2, 0x1000 + 12)).races
    assert (race.certain, race.first.stack) == (True, 11)
    ordered = found(*far[:800], "R 7 1 5", "W 7 2 5", *far[800:], reads(2, 0x1000 + 12)).races
    assert not any(race.certain for race in ordered)


def test_what_is_not_known_may_touch_everything() -> None:
    findings = found(write(1), "K 2 30 opaque 1,1,1 1,1,1 0 =", "K 3 31 nowhere 1,1,1 1,1,1 0 ?")
    assert {(r.certain, r.vague) for r in findings.races} == {(False, "its code is not seen")}
    assert dict(findings.unknown) == {"opaque": "its code is not seen", "nowhere": "its code is not seen"}


def test_freed_memory_is_named() -> None:
    (stale,) = found("F 1000 5 -1 0", write(1)).stale
    assert (stale.freed, stale.allocation) == (5, 0)
    assert found("F 1000 5 -1 0", "A 2 d 1000 64 6 -1", write(1)).stale == ()


def test_freed_memory_of_a_pool_is_named() -> None:
    (stale,) = found("B 1 5 1000 64", "Y 1 6 1000", write(1)).stale
    assert stale.freed == 6
    assert found("B 1 5 1000 64", "Y 1 6 1000", "B 1 7 1000 64", write(1)).stale == ()

    def all_of_it(_: str, arguments: tuple[bytes, ...], *__: object) -> Touches:
        everything = Bytes.exactly(Spans.rows(int.from_bytes(arguments[0], "little"), 4096))
        return Touches({(0, 0): Touch(everything, everything)}, True)

    assert found("B 1 5 1000 64", "Y 1 6 1000", write(1), asked=all_of_it).stale == ()  # the pool clears its arena


def test_a_long_run_needs_no_more_memory_than_a_short_one() -> None:
    """Allocations, events and pieces come and go."""

    def events(rounds: int) -> Iterator[Event]:
        head = [*(f"S {s} 0 b 0" for s in range(3)), "A 0 d 1000 4096 100 -1"]
        for i in range(rounds):
            base = f"{0x100000 + (i % 9000) * 0x1000:x}"
            head += [f"A {i + 1} d {base} 64 7 1", f"K 1 8 w 1,1,1 1,1,1 0 = {pointer(0x1000 + 4 * (i % 1024))}"]
            head += [f"B 1 9 {0x1000 + i % 64 * 64:x} 64", f"R {i} 1 5", f"W {i} 2 5", f"e {i}"]
            head += [f"Y 1 9 {0x1000 + i % 64 * 64:x}", f"F {base} 10 1 0"]
            yield from Recording([f"{line}\n" for line in head]).events()
            head = []

    def peak(rounds: int) -> int:
        tracemalloc.start()
        try:
            find_races(events(rounds), EFFECTS, asked=four_bytes)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(10)  # what is loaded the first time
    short = peak(1_500)
    assert peak(3_000) < 1.1 * short


def test_a_record_that_ends_anywhere_is_read() -> None:
    text = HEAD + write(1)
    for end in range(len(text)):
        read(text[:end])


def test_overlap_and_certainty() -> None:
    def exact(low: int, width: int, pitch: int = 0, rows: int = 1) -> Access:
        return Access(0, True, Range(True, low, width, pitch, rows), exact=True)

    def kernel(may: Spans | None, sure: Spans, most: tuple[int, int] | None = None, somewhere: bool = False) -> Access:
        part = Part("k", "", (0, 0), str(next(numbers)).encode())
        return Access(
            0, True, Range(True, 100, 900), exact=False, most=most, part=part, known=Bytes(may, sure, somewhere)
        )

    def meet(a: Access, b: Access) -> Meeting:
        there, back = (overlaps(*pair, touched, (0, 1000)) for pair in ((a, b), (b, a)))
        assert there is back
        return there

    def touched(one: Access) -> Bytes:
        return one.known or Bytes.exactly(Spans.rows(one.bytes.low, one.bytes.width, one.bytes.pitch, one.bytes.rows))

    numbers = itertools.count()
    assert meet(exact(0, 10), exact(9, 1)) is Meeting.YES
    assert meet(exact(0, 10), exact(10, 1)) is Meeting.NO
    assert meet(exact(0, 8, 16, 4), exact(24, 8)) is Meeting.NO
    assert meet(exact(0, 8, 16, 4), exact(20, 8)) is Meeting.YES
    odd, even, none = Spans.rows(104, 4, 8, 50), Spans.rows(100, 4, 8, 50), Spans.none()
    assert meet(kernel(odd, odd), kernel(even, even)) is Meeting.NO
    assert meet(kernel(odd, odd), kernel(odd, none)) is Meeting.PERHAPS
    assert meet(kernel(odd, odd), kernel(None, none)) is Meeting.PERHAPS
    assert meet(kernel(odd, odd), kernel(None, none, (100, 104))) is Meeting.NO
    assert meet(kernel(None, none, (100, 104)), kernel(None, none, (104, 900))) is Meeting.NO
    assert meet(kernel(odd, odd), exact(106, 1)) is Meeting.YES
    assert meet(kernel(odd, odd), exact(109, 3)) is Meeting.NO
    assert meet(kernel(None, odd), exact(106, 1)) is Meeting.YES
    gathered = kernel(None, none, somewhere=True)
    assert meet(gathered, exact(0, 1000)) is Meeting.YES
    assert meet(gathered, exact(0, 999)) is Meeting.PERHAPS
    assert meet(gathered, kernel(Spans.rows(0, 1000), none)) is Meeting.PERHAPS


def test_a_long_run_takes_seconds() -> None:
    """100 000 operations on 16 streams, in a ring that keeps them in order."""
    lines = ["V 1 0", *(f"S {s} 0 b 0" for s in range(16)), *(f"A {s} d {s + 1:x}0000 4096 0 -1" for s in range(16))]
    for i in range(100_000):
        stream = i % 16
        lines.append(f"W {(i - 1) % 16} {stream} 1")
        lines.append(f"K {stream} {stream} w 1,1,1 1,1,1 0 = {pointer(((i * 7) % 16 + 1) << 16)}")
        lines.append(f"R {stream} {stream} 1")
    started = time.process_time()
    findings = find_races(read("\n".join(lines) + "\n").events, EFFECTS, asked=four_bytes)
    assert (findings.races, findings.operations) == ((), 100_000)
    assert time.process_time() - started < 30
