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
    """But one: behind its own copy home the host has waited for the sum, which the plan does not count on."""
    refused = {}
    for name in ("two_products", "result_home", "main"):
        for what, lines in without_one_wait(before.lines, before.again(name)):
            refused[what.partition("// kesco: ")[2]] = "may run" in before.refuses(lines)
    assert [what for what, one in refused.items() if not one] == ["wait for sum (WAR on a)"]
    assert len(refused) == 5


def test_the_host_waits_before_it_lets_go(before: Compiled) -> None:
    """The first copy of a function that may be called from anywhere waits for what its caller left running."""
    number = place(before.lines, "kesco_copy(a, A, bytes, cudaMemcpyHostToDevice, kesco->stream[1], true);")
    line = before.lines[number].replace(", true)", ")")
    assert before.refuses([*before.lines[:number], line, *before.lines[number + 1 :]])


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
        ("(a, c, h);", "(&h, b"),  # it is given what comes home
        ("(a, c, B[7]);", "kesco_copy(B.data()"),
        ("(a, c, few[1]);", "(few.data(), b"),
        ("(a, d, whole);", "(other, b"),
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


@pytest.mark.parametrize(
    "refers", ["R s{m};", "const C s{.r = m};", "R t[1] = {{m}}; R& s = t[0];"], ids=["a list", "a name", "an array"]
)
def test_nothing_goes_ahead_of_what_gives_it_a_value_by_a_member_that_is_a_reference(
    tmp_path: Path, refers: str
) -> None:
    """`s.r` is `m`, which is given a value behind the copy, and in front of the launch."""
    text = (GOLDEN / "status_in_a_variable" / "input.cu").read_text("utf-8")
    text = text.replace("int main(", "struct R { int& r; };\nstruct C { const int& r; int o = 3; };\nint main(", 1)
    text = text.replace("  err = cudaMemcpy(h_blur", f"  int m = n;\n  {refers}\n  err = cudaMemcpy(h_blur", 1)
    text = text.replace(
        "  edge<<<n / 256, 256>>>(d_in, d_edge, n);", "  m = 1024;\n  edge<<<n / 256, 256>>>(d_in, d_edge, s.r);"
    )
    (tmp_path / "program.cu").write_text(text)
    lines = compile_and_keep(tmp_path / "program.cu", Options()).lines
    assert place(lines, "m = 1024;") < place(lines, "edge<<<")
