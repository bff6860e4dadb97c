"""Trips of a loop: which bytes are apart in different ones, what the loop carries, what the proof makes of it."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from kesco.dataflow import build
from kesco.ir.access import Access, AccessMode, Buffer, BufferKind
from kesco.ir.flow import Handle, Mark, Region, Role, Site, SiteKind
from kesco.ir.poly import ByteRange, Poly, Symbol, Turn, constant, least, of
from kesco.parts import apart, apart_in_lanes, apart_in_turns
from kesco.source import Span
from kesco.verify.order import verify_region
from kesco.verify.trips import never_meet, never_meet_in_lanes, never_meet_in_turns

INT = (-(2**31), 2**31 - 1)
N, K, M = Symbol("n", *INT), Symbol("k", *INT), Symbol("m", 0, 2**20)
n, k, m = of(N), of(K), of(M)


def counter(name: str, step: Poly, low: int = 0, loop: str = "L", around: tuple[str, ...] = ()) -> Symbol:
    return Symbol(name, low, INT[1], turn=Turn(loop, step, around))


C, D = counter("c", constant(1)), counter("d", k, INT[0])
BACK, OUTER = counter("back", constant(-1), INT[0]), counter("outer", constant(1), loop="O")
IN = counter("in", constant(1), around=("O",))
c, d = of(C), of(D)


def at(low: Poly, size: Poly) -> ByteRange:
    return ByteRange(low.times(4), (low + size).times(4))


CHUNK, ROW = at(c * k, k), at(of(IN) * k + of(OUTER) * n, k)
TABLE = [
    ("a chunk", CHUNK, CHUNK, True),
    ("in and out of one chunk", at(c * k, k), at(c * k, least(k, n - c * k, *INT)), True),
    ("one longer than the stride", at(c * k, k + constant(1)), CHUNK, False),
    ("with neighbours", at(c * k - constant(1), k + constant(2)), at(c * k - constant(1), k + constant(2)), False),
    ("the next chunk, which is the next trip's", CHUNK, at((c + constant(1)) * k, k), False),
    ("the same bytes in each trip", at(k, k), at(k, k), False),
    ("a step that is the chunk", at(d, k), at(d, least(k, n - d, *INT)), True),
    ("a step that is half a chunk", at(d, k.times(2)), at(d, k.times(2)), False),
    ("backwards", at(of(BACK) * k, k), at(of(BACK) * k, k), True),
    ("the last one is shorter, but another one longer", at(d, least(k.times(2), n - d, *INT)), at(d, k), False),
    ("rows of a table, the outer loop's counter", ROW, ROW, True),
    ("two counters of one loop", at(d + c * k, k.times(2)), at(d + c * k, k.times(2)), True),
    ("a stride that may be less than 0, and a length that is not", at(c * k, m), at(c * k, m), False),
    ("a product that may wrap around", at(of(Symbol("w", *INT, wraps=c * k)), k), CHUNK, False),
]  # fmt: skip


@pytest.mark.parametrize(("what", "a", "b", "yes"), TABLE, ids=[row[0] for row in TABLE])
def test_compiler_and_proof_agree(what: str, a: ByteRange, b: ByteRange, yes: bool) -> None:
    assert apart_in_turns(a, b, "L") is yes
    assert never_meet_in_turns(a, b, "L") is yes
    assert not apart(a, a)  # the two may be of one trip, or of two stays in the loop
    assert not never_meet(a, a)


def test_without_the_outer_counter_rows_are_any_rows() -> None:
    inner = counter("in", constant(1))  # the loop around it is not known to be around it
    row = at(of(inner) * k + of(OUTER) * n, k)
    assert not apart_in_turns(row, row, "L")
    assert not never_meet_in_turns(row, row, "L")


def drawn(r: random.Random) -> ByteRange:
    def poly(terms: int) -> Poly:
        found = constant(r.choice((0, 0, 0, 1, -1, 4)))
        for _ in range(terms):
            term = constant(r.choice((1, 1, 1, 2, -1)))
            for one in r.choice(((c, k), (c, k), (d,), (k,), (c,), (m,), (c, m), (c, c))):
                term = term * one
            found = found + term
        return found

    low = poly(r.randint(1, 2))
    size = r.choice((k, k, m, constant(1), constant(4), k + constant(1), poly(1)))
    return at(low, least(size, n - d, *INT) if r.random() < 0.3 else size)


def value(one: Poly, given: dict[Symbol, int]) -> int:
    def of_symbol(symbol: Symbol) -> Poly:
        return constant(min(value(p, given) for p in symbol.most) if symbol.most else given[symbol])

    found = one.substituted(of_symbol)
    assert found is not None and found.constant is not None
    return found.constant


def test_neither_is_ever_wrong_and_the_proof_knows_what_the_compiler_says() -> None:
    r = random.Random(4)
    said = 0
    for _ in range(900):
        a = drawn(r)
        b = a if r.random() < 0.5 else drawn(r)
        if not all(any(s.turn for s in one.counters) for one in (a, b)):
            continue
        answers = apart_in_turns(a, b, "L"), never_meet_in_turns(a, b, "L")
        assert answers[1] or not answers[0], f"{a} {b}"
        said += answers[1]
        for _ in range(15 * answers[1]):
            step, first, more = r.randint(-3, 5), r.randint(0, 4), r.randint(1, 4)
            given = {K: step, M: r.randint(0, 5), N: r.randint(-9, 30), C: first, D: r.randint(-5, 9)}
            later = {**given, C: first + more, D: given[D] + more * step}
            for x, y in ((a, b), (b, a)):
                ends = [(value(p.low, g), value(p.high, g)) for p, g in ((x, given), (y, later))]
                assert max(low for low, _ in ends) >= min(high for _, high in ends), f"{x} {y} {given} {later}"
    assert said > 60


def numbered(name: str, loop: str, step: Poly) -> Symbol:
    """A counter that a program has a name for."""
    return Symbol(f"{name}@{loop}", 0, INT[1], turn=Turn(loop, step, ("O",), name))


ONE, TWO, ALONG = numbered("i", "L", constant(1)), numbered("j", "M", constant(2)), numbered("p", "L", k)
i, j, t = of(ONE), of(TWO), of(OUTER)
LANES = [
    ("parts of one number", at(i * k, k), at(i * k, k), True),
    ("of two loops", at(i * k, k), at(j * k, k), True),
    ("two loops, one with larger parts", at(i * k, k), at(j * k, k.times(2)), False),
    ("with neighbours", at(i * k, k + constant(1)), at(i * k, k), False),
    ("further on each time the loop is come to", at(i * k + t, k), at(i * k, k), False),
    ("all of it further on each time", at(i * k + t * n, k), at(i * k + t * n, k), False),
    ("something else is counted along", at(of(ALONG), k), at(of(ALONG), k), False),
    ("both are counted", at(of(ALONG) + i * k, k), at(i * k, k), False),
    ("the same bytes each time", at(k, k), at(k, k), False),
]


@pytest.mark.parametrize(("what", "a", "b", "yes"), LANES, ids=[row[0] for row in LANES])
def test_what_other_numbers_touch(what: str, a: ByteRange, b: ByteRange, yes: bool) -> None:
    counters = {"L": "i", "M": "j"}
    assert apart_in_lanes(a, b, counters) is yes
    assert never_meet_in_lanes(a, b, tuple(counters.items())) is yes


def test_other_numbers_never_meet_whenever_they_come() -> None:
    r = random.Random(7)
    counters = {"L": "i", "M": "j"}
    said = 0
    for _ in range(900):
        mine, theirs = r.choice(((i, i), (i, j))), r.choice((k, k, constant(3), m))
        a, b = (at(one * theirs + r.choice((constant(0), constant(0), t, of(ALONG), one)), r.choice((k, k, theirs)))
                for one in mine)  # fmt: skip
        answers = apart_in_lanes(a, b, counters), never_meet_in_lanes(a, b, tuple(counters.items()))
        assert answers[1] or not answers[0], f"{a} {b}"
        said += answers[1]
        for _ in range(15 * answers[1]):
            fixed = {K: r.randint(-3, 5), M: r.randint(0, 5), N: r.randint(-9, 30)}
            first, second = r.sample(range(7), 2)
            given, later = ({**fixed, ONE: number, TWO: number, OUTER: r.randint(0, 9), ALONG: r.randint(0, 20)}
                            for number in (first, second))  # fmt: skip
            ends = [(value(p.low, g), value(p.high, g)) for p, g in ((a, given), (b, later))]
            assert max(low for low, _ in ends) >= min(high for _, high in ends), f"{a} {b} {given} {later}"
    assert said > 60


# ---- regions --------------------------------------------------------------------------------------------------------

SPAN = Span("app.cu", 0, 1, 1, 1)
READ, WRITE = AccessMode.READ, AccessMode.WRITE
X, Y = (Buffer(name, name, BufferKind.DEVICE) for name in "xy")


def region(*steps: tuple[object, ...], back: tuple[tuple[int, int], ...] = ()) -> Region:
    """Sites in a row: ``(role or mark, label, accesses, stream, event)``; `back` are edges besides, by site."""
    sites = [Site(0, -1, "entry", SiteKind.BOUNDARY, Role.ENTRY, SPAN)]
    for number, (role, label, accesses, stream, event) in enumerate(steps, 1):
        mark = role if isinstance(role, Mark) else None
        kind = SiteKind.KERNEL if role is Role.MOVABLE else SiteKind.HOST_USE if mark else SiteKind.SYNC
        site = Site(number, number, str(label), kind, Role.HOST if mark else role, SPAN, (), tuple(accesses))  # type: ignore[arg-type]
        named = {
            "stream": Handle(str(stream), str(stream)) if stream else None,
            "event": Handle(str(event), str(event)) if event else None,
        }
        sites.append(replace(site, mark=mark, loop="L" if mark else "", **named))  # type: ignore[arg-type]
    edges = [{number + 1} for number in range(len(sites))]
    edges[-1] = set()
    for source, target in back:
        edges[source].add(target)
    return Region("main", SPAN, tuple(sites), tuple(tuple(sorted(after)) for after in edges))


def touch(buffer: Buffer, mode: AccessMode, part: ByteRange | None = CHUNK) -> Access:
    return Access(buffer, mode, "", part)


def work(label: str, *accesses: Access, stream: str = "") -> tuple[object, ...]:
    return (Role.MOVABLE, label, accesses, stream, "")


ENTERS, TURNS = (Mark.ENTERS, "loop", (), "", ""), (Mark.TURNS, "trip", (), "", "")
SYNC, EXIT = (Role.DEVICE_SYNC, "sync", (), "", ""), (Role.EXIT, "exit", (), "", "")


def record(event: str, stream: str) -> tuple[object, ...]:
    return (Role.RECORD, f"record {event}", (), stream, event)


def wait(event: str, stream: str) -> tuple[object, ...]:
    return (Role.WAIT, f"wait {event}", (), stream, event)


A, B = touch(X, WRITE), (touch(X, READ), touch(Y, WRITE))


def edges(one: Region) -> set[str]:
    return {
        f"{one.sites[x.source].label}>{one.sites[x.target].label} {x.kind.value}" + "*" * x.carried
        for x in build(one).dependences
    }


def test_a_loop_over_chunks_carries_nothing() -> None:
    assert edges(region(ENTERS, TURNS, work("A", A), work("B", *B), SYNC, EXIT, back=((4, 2),))) == {"A>B RAW"}


def test_without_marks_everything_is_carried() -> None:
    found = edges(region(work("A", A), work("B", *B), SYNC, EXIT, back=((2, 1),)))
    assert found == {"A>B RAW", "A>A WAW*", "B>A WAR*", "B>B WAW*"}


def test_a_loop_around_carries_what_the_inner_one_does_not() -> None:
    one = region(ENTERS, TURNS, work("A", A), work("B", *B), EXIT, back=((4, 2), (4, 1)))
    assert {"B>A WAR*", "A>A WAW*", "B>B WAW*"} <= edges(one)


def test_what_comes_behind_follows_all_trips() -> None:
    last = touch(Y, READ, None)
    one = region(ENTERS, TURNS, work("A", A), work("B", *B), work("C", last), EXIT, back=((4, 2),))
    assert edges(one) == {"A>B RAW", "B>C RAW"}
    # the whole is read in the loop: then each trip's write comes behind it
    inside = region(ENTERS, TURNS, work("A", A), work("C", touch(X, READ, None)), SYNC, EXIT, back=((4, 2),))
    assert edges(inside) == {"A>C RAW", "C>A WAR*"}


def test_a_writer_of_one_chunk_replaces_no_writer_of_another() -> None:
    """A in one trip and B in another write different chunks, so C must come behind both."""
    either = region(ENTERS, TURNS, work("A", A), work("B", A), work("C", touch(X, READ, None)), EXIT,
                    back=((2, 4), (3, 2), (4, 2)))  # fmt: skip
    assert {"A>C RAW", "B>C RAW"} <= edges(either)


def test_overlapping_chunks_are_carried() -> None:
    longer = touch(X, WRITE, at(c * k, k + constant(1)))
    one = region(ENTERS, TURNS, work("A", longer), work("B", *B), SYNC, EXIT, back=((4, 2),))
    assert "B>A WAR*" in edges(one)


def test_unknown_memory_makes_all_trips_one() -> None:
    vague = Access(Buffer("?", "unknown memory", BufferKind.UNKNOWN), READ)
    one = region(ENTERS, TURNS, work("A", A), work("B", *B, vague), SYNC, EXIT, back=((4, 2),))
    assert "B>A WAR*" in edges(one)


def pipeline(*, without: str = "", around: bool = False, part: ByteRange = CHUNK, marks: bool = True) -> Region:
    """A on one stream, B on another, in a loop; then C on the first one."""
    longer = (touch(X, READ, part), touch(Y, WRITE, part))
    steps = [
        *([ENTERS, TURNS] if marks else [(Role.HOST, "host", (), "", "")] * 2),
        work("A", touch(X, WRITE, part), stream="s"),
        record("a", "s"),
        wait("a", "t"),
        work("B", *longer, stream="t"),
        record("b", "t"),
        wait("b", "s"),
        work("C", touch(Y, READ, None), stream="s"),
        SYNC,
        EXIT,
    ]
    kept = [(Role.WAIT, "no wait", (), "", "") if step[1] == without else step for step in steps]
    return region(*kept, back=((7, 2), *(((7, 1),) if around else ())))


def serial_of(one: Region) -> Region:
    roles = {Role.RECORD: Role.WAIT}  # a wait for no event does nothing
    sites = (replace(s, stream=None, event=None, role=roles.get(s.role, s.role)) for s in one.sites)
    return replace(one, sites=tuple(sites))


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, set()),
        ({"without": "wait a"}, {"A>B"}),
        ({"without": "record a"}, {"A>B"}),
        ({"without": "wait b"}, {"B>C"}),
        ({"around": True}, {"B>A"}),
        ({"part": at(c * k, k + constant(1))}, {"B>A"}),
        ({"marks": False}, {"B>A"}),
    ],
)
def test_the_proof_excuses_other_trips_and_nothing_else(options: dict[str, object], found: set[str]) -> None:
    concurrent = pipeline(**options)  # type: ignore[arg-type]
    verdict = verify_region(serial_of(pipeline(**{**options, "without": ""})), concurrent)  # type: ignore[arg-type]
    unordered = {f"{u.first.label}>{u.second.label}" for u in verdict.unordered}
    assert unordered == found


def test_marks_of_one_program_alone_excuse_nothing() -> None:
    verdict = verify_region(serial_of(pipeline(marks=False)), pipeline())
    assert {f"{u.first.label}>{u.second.label}" for u in verdict.unordered} == {"B>A"}
