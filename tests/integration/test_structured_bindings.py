"""Structured bindings: what they are read as, and which keep their function serial."""

from __future__ import annotations

from pathlib import Path

import pytest
from integration.compiled import compile_and_keep

from kesco.ir.text import dump_text

pytestmark = pytest.mark.usefixtures("toolchain")

HEAD = """\
#include <utility>
struct Pair { int *a, *b; };
struct Bits { int *a; int n : 3; };
struct Copied { Copied(); Copied(const Copied&); int* p; };
Pair made(int);
std::pair<int*, int*> two();
__global__ void k(int* p) { *p += 1; }
"""


def read(folder: Path, body: str) -> list[str]:
    """The lines of `f` as they are read, without their places."""
    path = folder / "app.cu"
    path.write_text(f"{HEAD}\nint f(int n, Pair s, Pair& t, Bits b) {{\n{body}\nk<<<1, 1>>>(s.a);\nreturn 0;\n}}\n")
    lines = dump_text(compile_and_keep(path).session.program).split("\n")
    first = next(at for at, line in enumerate(lines) if line.startswith("function f("))
    return [line.strip().partition(" ")[2] for line in lines[first + 1 :] if line.startswith("  ")]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("auto [x, y] = made(n);", ["Pair [x, y] = made(n) @0", "int * x = [x, y].a", "int * y = [x, y].b"]),
        ("auto& [x, y] = t;", ["Pair & [x, y] = t", "int * & x = [x, y].a", "int * & y = [x, y].b"]),
        (
            "int *v[2]; const auto [x, y] = v; const auto& [z, w] = v;",
            ["int *[2] v", "int *const[2] [x, y] = v", "int *const x = [x, y][0]", "int *const y = [x, y][1]",
             "int *const (&)[2] [z, w] = v", "int *const & z = [z, w][0]", "int *const & w = [z, w][1]"],
        ),
        (
            "auto [x, y] = two();",
            ["std::pair<int *, int *> [x, y] = two() @0", "int * & x = std::get([x, y]) @1",
             "int * & y = std::get([x, y]) @2"],
        ),
        (
            "if (auto [x, y] = made(n); x == y) n = 1;",
            ["Pair [x, y] = made(n) @0", "int * x = [x, y].a", "int * y = [x, y].b", "if (x == y)", "n = 1"],
        ),
    ],
)  # fmt: skip
def test_names_are_parts_of_one_object(tmp_path: Path, body: str, expected: list[str]) -> None:
    assert read(tmp_path, body)[: len(expected)] == expected


def test_a_loop_takes_each_element_apart(tmp_path: Path) -> None:
    lines = read(tmp_path, "Pair v[2] = {s, t};\nfor (auto& [x, y] : v) x = y;")
    assert lines[3:7] == ["Pair & [x, y] = v[#]", "int * & x = [x, y].a", "int * & y = [x, y].b", "x = y"]


@pytest.mark.parametrize(
    "body",
    [
        "static auto [x, y] = made(n);",  # once
        "auto [x, y] = b;",  # a bit-field has no address
        "Copied v[2]; auto [x, y] = v;",  # a constructor runs for each
    ],
)
def test_what_is_not_followed_keeps_its_function_serial(tmp_path: Path, body: str) -> None:
    assert any("a declaration of unknown form" in line for line in read(tmp_path, body))
