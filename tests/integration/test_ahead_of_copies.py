"""Work that is issued ahead of copies that the host waits for: the proof refuses each change that would be seen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from integration.compiled import Compiled, compile_and_keep, without_one_wait

from kesco.options import Options

GOLDEN = Path(__file__).parents[1] / "golden"
pytestmark = pytest.mark.usefixtures("toolchain")


def made(case: str, copies: str = "auto") -> Compiled:
    return compile_and_keep(GOLDEN / case / "input.cu", Options(copies=copies))


@pytest.fixture(scope="module")
def before() -> Compiled:
    return made("launches_before_copies")


@pytest.fixture(scope="module")
def needing() -> Compiled:
    return made("launches_that_need_copies", "move")


def place(lines: list[str], part: str, start: int = 0) -> int:
    return next(n for n in range(start, len(lines)) if part in lines[n])


def moved(lines: list[str], number: int, to: int) -> list[str]:
    """The text with one line ahead of another one."""
    rest = [*lines[:number], *lines[number + 1 :]]
    return [*rest[:to], lines[number], *rest[to:]]


def test_each_wait_between_streams_is_needed(before: Compiled) -> None:
    tried = 0
    for name in ("two_products", "result_home", "main"):
        for what, lines in without_one_wait(before.lines, before.again(name)):
            assert "may run" in before.refuses(lines), what
            tried += 1
    assert tried == 6


def test_each_wait_of_the_host_is_needed(before: Compiled) -> None:
    """The last copies home wait for the device, and so do those of a function that knows nothing of its caller."""
    whole = [
        n for n, line in enumerate(before.lines) if re.search(r"kesco_copy\(.*, true\)", line) and "size_t" not in line
    ]
    assert len(whole) >= 4
    for number in whole:
        line = before.lines[number].replace(", true)", ")")
        assert before.refuses([*before.lines[:number], line, *before.lines[number + 1 :]]), before.lines[number]


@pytest.mark.parametrize(
    ("launch", "copy"),
    [
        ("(t, c, d, n);", "kesco_send(c, C"),  # what it reads goes up
        ("(a, b, n);", "kesco_copy(a, A"),
    ],
)
def test_nothing_goes_ahead_of_what_it_needs(before: Compiled, launch: str, copy: str) -> None:
    to = place(before.lines, copy)
    number = place(before.lines, launch, to)
    assert before.refuses(moved(before.lines, number, to))


@pytest.mark.parametrize(
    ("work", "copy"),
    [
        ("(a, c, h);", "cudaMemcpy(&h"),  # it is given what comes home
        ("(a, c, B[7]);", "kesco_copy(B.data()"),
        ("(a, c, few[1]);", "cudaMemcpy(few.data()"),
        ("(a, d, whole);", "cudaMemcpy(other"),
        ("const float first", "kesco_copy(B.data()"),
        ("const size_t part = 256;", "kesco_copy(B.data(), b, part"),  # the name means something else
        ("step<<<N / 256, 256, 0, kesco->stream[0]>>>(c, b, N);", "kesco_copy(B.data()"),  # it overwrites it
    ],
)
def test_what_a_copy_home_decides_stays_behind_it(needing: Compiled, work: str, copy: str) -> None:
    lines = needing.lines
    number = place(lines, work)
    to = max(n for n in range(number) if copy in lines[n])
    assert needing.refuses(lines) == ""
    if "float first" in work:  # with what uses it
        lines = moved(lines, place(lines, "(a, c, first);"), number + 1)
        lines = moved(moved(lines, number, to), number + 1, to + 1)
    elif "part" in work:
        after = place(lines, "(a, c, 2.0f);")
        lines = moved(moved(lines, number, to), after, to + 1)
    else:
        lines = moved(lines, number, to)
    assert needing.refuses(lines), "\n".join(lines[to - 1 : number + 3])


def test_a_checked_wait_that_stays_is_needed() -> None:
    outcome = made("checked_waits")
    lines, waits = outcome.lines, []
    for n, line in enumerate(lines):
        if re.match(r" *CHECK_LAST\(", line):
            waits.append(n)
    assert [re.findall(r'"(\w+)"', lines[n])[0] for n in waits] == ["fourth", "sixth"]
    for number in waits:
        assert "may not be done when the host reaches" in outcome.refuses([*lines[:number], *lines[number + 1 :]])
