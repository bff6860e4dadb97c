"""GNU's statement expressions: what stands ahead of what, what is a value, and what keeps its function serial."""

from __future__ import annotations

from pathlib import Path

import pytest
from integration.compiled import compile_and_keep

from kesco.ir.text import dump_text

pytestmark = pytest.mark.usefixtures("toolchain")

HEAD = """\
struct Gone { ~Gone(); int n; };
int made(int);
__global__ void k(int* p) { *p += 1; }
"""


def read(folder: Path, body: str, head: str = "") -> list[str]:
    """The lines of `f` as they are read, without their places."""
    path = folder / "app.cu"
    path.write_text(f"{HEAD}{head}\nint f(int a, int b, int* x, int* y) {{\n{body}\nk<<<1, 1>>>(x);\nreturn 0;\n}}\n")
    lines = dump_text(compile_and_keep(path).session.program).split("\n")
    first = next(n for n, line in enumerate(lines) if line.startswith("function f("))
    return [line.strip().partition(" ")[2] for line in lines[first + 1 :] if line.startswith("  ")]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("({ int c = a; b = c; c; });", ["int c = a", "b = c", "c"]),
        ("({}); ({ int c = a; });", ["int c = a"]),
        ("int d = ({ b = a; b + 1; });", ["b = a", "int d = (b + 1)"]),
        ("int c = (b = 1), d = ({ a = 2; c; }), e = 3;", ["int c = b = 1", "a = 2", "int d = c", "int e = 3"]),
        ("a = ({ int c = made(b); c; });", ["int c = made(b) @0", "a = c"]),
        ("if (1 < ({ b = 2; a; }) && made(a)) b = 4;", ["b = 2", "if ((1 < a) ? (bool)made(a) @0 : 0)", "b = 4"]),
        ("a = ({ int c = ({ b = 2; b; }); c; });", ["b = 2", "int c = b", "a = c"]),
        ("a = ({ b = 1; ({ b = 2; b; }); });", ["b = 1", "b = 2", "a = b"]),
        ("made(({ int c = a, d = b; c > d ? c : d; }));", ["made((((int)a > (int)b) ? (int)a : (int)b)) @0"]),
    ],
)
def test_the_statements_come_first(tmp_path: Path, body: str, expected: list[str]) -> None:
    lines = [line for line in read(tmp_path, body) if not line.startswith(("obstacle", "k<<<", "return"))]
    assert lines == expected


@pytest.mark.parametrize(
    "body",
    [
        "made(({ b = a; b; }));",  # other arguments might be evaluated before it or behind it
        "a = b + ({ b = 2; b; });",  # is b the old one?
        "x[b] = ({ b = 2; b; });",
        "a = b || ({ b = 2; b; });",  # only where b is 0
        "while (({ b -= 1; b; })) a = 1;",  # again and again
        "if (int c = made(a); ({ b = c; b; })) a = 1;",  # behind the declaration
        "static int c = ({ b = 2; b; });",  # once
        "int d = ({ if (a) return 1; b; });",  # no macro's text
        "for (;;) { int d = ({ if (a) break; b; }); }",
        "int d = ({ Gone c{a}; c.n; });",  # a destructor
        "Gone d = ({ Gone c{a}; c; });",
        "made(({ volatile int c = a; c; }));",
        "made(({ static int c = 2; c; }));",
        "made(({ int c = made(a); c; }));",
        "made(({ int c = a; c = b; c; }));",
    ],
)
def test_what_cannot_come_first_keeps_its_function_serial(tmp_path: Path, body: str) -> None:
    assert any("inside an expression" in line for line in read(tmp_path, body))


def test_a_macro_may_leave(tmp_path: Path) -> None:
    head = "#define TRY(c) ({ int e_ = (c); if (e_) return e_; e_; })"
    lines = read(tmp_path, "TRY(made(a));", head)
    assert lines[:4] == ["int e_ = made(a) @0", "if (bool)e_", "return e_ @1", "e_"]
    assert any("inside an expression" in line for line in read(tmp_path, "a = TRY(made(b));", head))
