"""Launch hooks in a text, and that only genuine ones are taken out again."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.emit.hooks import MARK, is_pure, without_hooks
from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.toolchain.model import Toolchain

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "fikit_hooks" / "expected.cu"
TEXT = GOLDEN.read_bytes()


def test_genuine_hooks_are_taken_out_and_nothing_moves() -> None:
    plain = without_hooks(TEXT)
    assert len(plain) == len(TEXT) and plain.count(b"\n") == TEXT.count(b"\n")
    assert b"kesco_before" not in plain and MARK.encode() not in plain
    for line, before in zip(plain.splitlines(), TEXT.splitlines(), strict=True):
        assert line == before or line.strip() in (b"", b";")


def test_what_stood_between_two_launches_of_one_line_may_end_a_hooks_line() -> None:
    text = TEXT.replace(b"  // kesco: launch hook\n", b"  // kesco: launch hook \t\n")
    assert b"kesco_after(2)" not in without_hooks(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"kesco_before(1, shape.grid,", b"kesco_before(1, shape.grid + evil(),"),
        (b"kesco_before(1, shape.grid,", b"kesco_before(1, shape.grid = 3,"),
        (b"kesco_before(1, shape.grid,", b"kesco_before(1, n++,"),
        (b"kesco_before(1, shape.grid,", b"kesco_before(1, f<1>(n),"),
        (b"#define BLOCK 256", b"#define BLOCK evil()"),
        (b"#define BLOCK 256", b"#define kesco_before evil"),
        (b"  kesco_after(1);  // kesco: launch hook", b"  evil(); kesco_after(1);  // kesco: launch hook"),
        (b"  kesco_after(1);  // kesco: launch hook", b"  kesco_after(1);"),
        (b"  if (!kesco_launch_before) return;", b"  evil();"),
        (b'"serial"},', b'"serial"}, evil(),'),
        (b"__attribute__((weak)) void kesco_launch_after", b"void kesco_launch_after"),
    ],
)
def test_what_is_not_written_by_kesco_stays(old: bytes, new: bytes) -> None:
    assert old in TEXT
    assert b"kesco_after(2)" in without_hooks(TEXT.replace(old, new, 1))


@pytest.mark.parametrize("text", ["n", "(n + 255) / 256", "dim3(a.x, b->y[2])", "1 << k", "sizeof(float) * n"])
def test_what_only_reads(text: str) -> None:
    assert is_pure(text, {})


@pytest.mark.parametrize("text", ["f()", "n++", "--n", "n = 3", "a, f(b)", "(f)(b)", "{1}", "n;", "a[f()](1)", "("])
def test_what_may_do_more(text: str) -> None:
    assert not is_pure(text, {})


def test_macros_are_looked_into() -> None:
    assert is_pure("N + 1", {"N": "(BLOCK * 2)", "BLOCK": "256"})
    assert not is_pure("N + 1", {"N": "(BLOCK * 2)", "BLOCK": "next()"})
    assert not is_pure("N", {"N": "N"})


def test_the_measured_program_with_hooks_is_what_kesco_makes_of_the_one_without(
    toolchain: Toolchain, repository: Path
) -> None:
    """It is kept beside it because machines with a GPU may have no clang."""
    folder = repository / "scripts/fikit"
    made = compile_file(str(folder / "task.cu"), Options(fikit=True)).text
    assert made == (folder / "task_hooked.cu").read_bytes()
