"""Lines of the rewritten text lead to the source's."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from kesco.emit.edits import Edit, apply, kept
from kesco.wrapper.lines import with_lines, without_lines


def believed(text: bytes) -> list[tuple[int, bytes]]:
    """Each line of a text with the number that a compiler believes it has."""
    number, found = 1, []
    for line in text.split(b"\n"):
        if match := re.fullmatch(rb'#line (\d+) "a.cu"', line):
            number = int(match[1])
            continue
        found.append((number, line))
        number += 1
    return found


def test_what_is_inserted_counts_as_where_it_stands() -> None:
    source = b"one\ntwo\n  three\nfour\nfive\n"
    edits = [Edit(4, 4, "new\nnewer\n"), Edit(10, 15, "3"), Edit(20, 20, " more\nlines")]
    text = apply(source, edits)
    mapped = with_lines(source, text, kept(source, edits), "a.cu")
    assert without_lines(mapped, "a.cu") == text
    assert believed(mapped) == [
        (1, b"one"), (1, b"new"), (1, b"newer"), (2, b"two"), (3, b"  3"), (4, b"four more"), (4, b"lines"),
        (5, b"five"), (6, b""),
    ]  # fmt: skip


@given(st.lists(st.sampled_from(["ab", "c", "", "  d", "e f g"]), min_size=1, max_size=8), st.data())
def test_every_kept_line_keeps_its_number(lines: list[str], data: st.DataObject) -> None:
    source = "\n".join(f"{number}:{line}" for number, line in enumerate(lines, 1)).encode() + b"\n"
    begins = [0, *(m.end() for m in re.finditer(rb"\n", source))]
    edits = [
        Edit(begins[at], begins[at], "".join("x\n" for _ in range(count)), rank)
        for rank, (at, count) in enumerate(
            data.draw(st.lists(st.tuples(st.integers(0, len(begins) - 1), st.integers(1, 3)), max_size=4))
        )
    ]
    text = apply(source, edits)
    mapped = with_lines(source, text, kept(source, edits), "a.cu")
    assert without_lines(mapped, "a.cu") == text
    for number, line in believed(mapped):
        if line and line != b"x":
            assert int(line.partition(b":")[0]) == number


def test_no_directive_behind_a_backslash() -> None:
    source = b"#define A \\\n  1\nb\n"
    edits = [Edit(12, 12, "  2 + \\\n")]
    mapped = with_lines(source, apply(source, edits), kept(source, edits), "a.cu")
    assert b"\\\n#line" not in mapped
    assert believed(mapped)[-2] == (3, b"b")
