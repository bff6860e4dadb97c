"""What ``#pragma kesco`` says: tasks and what they mark, and everything that makes no sense."""

from __future__ import annotations

import pytest

from kesco.diagnostics import render
from kesco.errors import InputError
from kesco.frontend.pragmas import Pragmas
from kesco.ir import program as ir
from kesco.ir.pieces import Pieces
from kesco.source import Span

TEXT = """\
#pragma kesco task priority(7)
#pragma unroll
static void high() { go(); }
int main() {
#pragma kesco task priority(2) name(low)
  #pragma unroll
  for (;;) { go(); }
  #  pragma kesco task name( low ) priority( 2 )
  go();
#pragma kesco task priority(0)
  go();
#pragma kesco task priority(0)
  { go(); }
}
"""


def pragmas(text: bytes) -> Pragmas:
    return Pragmas("app.cu", text, Pieces("app.cu", text))


def span(text: str, part: str, after: int = 0) -> Span:
    start = text.index(part, after)
    return Span("app.cu", start, start + len(part), text.count("\n", 0, start) + 1, 1)


def functions(text: str) -> list[ir.Function]:
    """The two functions of a text, with all that stands in `main` as statements."""
    found = []
    if "static void high" in text:
        found.append(ir.Function("h", "high", (), ir.Block(span(text, "{ go(); }"), ()),
                                 span(text, "static void high() { go(); }"), True, False))  # fmt: skip
    start = text.index("int main")
    body: list[ir.Stmt] = []
    at = text.index("{", start) + 1
    for part in ("for (;;) { go(); }", "go()", "go()", "{ go(); }"):
        if part in text[at:]:
            where = span(text, part, at)
            call = ir.Call("go", "g", (), where, 0)
            body.append(ir.Evaluate(where, call) if part == "go()" else ir.Block(where, ()))
            at = where.end
    whole = Span("app.cu", start, len(text), 1, 1)
    found.append(ir.Function("m", "main", (), ir.Block(whole, tuple(body)), whole, False, False))
    return found


def tasks(text: str) -> tuple[ir.Task, ...]:
    return pragmas(text.encode()).tasks(functions(text))


def test_what_is_marked() -> None:
    found = tasks(TEXT)
    assert [(t.name, t.priority, t.span.line) for t in found] == [
        ("high", 7, 1), ("low", 2, 5), ("low", 2, 8), ("go", 0, 10), ("line 13", 0, 12)
    ]  # fmt: skip
    marked = [TEXT[t.marked.start : t.marked.end] for t in found]
    assert marked == ["static void high() { go(); }", "for (;;) { go(); }", "go()", "go()", "{ go(); }"]


def test_two_calls_of_one_function_are_two_tasks() -> None:
    text = "int main() {\n#pragma kesco task priority(1)\n  go();\n#pragma kesco task priority(2)\n  go();\n}\n"
    assert [t.name for t in tasks(text)] == ["go", "go (line 4)"]


def test_kernels_are_still_stated() -> None:
    text = b"#pragma kesco task priority(3)\n#pragma kesco kernel(a::k) reads(x) writes(y, z)\nint main() {}\n"
    (stated,) = pragmas(text).stated()
    assert (stated.kernel, stated.reads, stated.writes) == ("k", ("x",), ("y", "z"))


@pytest.mark.parametrize(
    ("pragmas", "code", "message"),
    [
        ("task", "K115", "the task has no priority"),
        ("task name(a)", "K115", "the task has no priority"),
        ("task priority(1) priority(2)", "K115", "'priority' is said twice"),
        ("task priority(1) deadline(3)", "K115", "'deadline(3)' is no clause of a task"),
        ("task priority 3", "K115", "'priority 3' is no clause of a task"),
        ("task priority(1) name(two words)", "K115", "'two words' is no name for a task"),
        ("task priority(10)", "K116", "'10' is no priority"),
        ("task priority(-1)", "K116", "'-1' is no priority"),
        ("task priority(N)", "K116", "'N' is no priority"),
        ("task priority()", "K116", "'' is no priority"),
    ],
)
def test_clauses_that_make_no_sense(pragmas: str, code: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        tasks(f"int main() {{\n#pragma kesco {pragmas}\n  go();\n}}\n")
    (found,) = error.value.diagnostics
    assert (found.code, found.message, found.span and found.span.line) == (code, message, 2)
    assert found.help


def test_a_pragma_before_nothing() -> None:
    with pytest.raises(InputError) as error:
        tasks("int main() {\n  go();\n#pragma kesco task priority(1)\n}\n#pragma kesco task priority(2)\n")
    assert [(d.code, d.span and d.span.line) for d in error.value.diagnostics] == [("K117", 3), ("K117", 5)]


def test_one_name_with_two_priorities() -> None:
    lines = ("#pragma kesco task priority(1) name(a)", "  go();", "#pragma kesco task priority(2) name(a)", "  go();")
    text = "\n".join(("int main() {", *lines, "}"))
    with pytest.raises(InputError) as error:
        tasks(text)
    (found,) = error.value.diagnostics
    assert (found.code, found.message) == ("K116", "task 'a' has two priorities, 1 and 2")
    assert "task 'a' is here" in render(found)


@pytest.mark.parametrize("inner", ["for (;;) { go(); }", "  go();"])
def test_a_task_inside_a_task(inner: str) -> None:
    """Also one in front of the same statement."""
    if inner.startswith("for"):
        text = f"int main() {{\n#pragma kesco task priority(1)\n#pragma kesco task priority(2)\n{inner}\n}}"
    else:
        text = f"#pragma kesco task priority(1)\nint main() {{\n#pragma kesco task priority(2)\n{inner}\n}}"
    with pytest.raises(InputError) as error:
        tasks(text)
    (found,) = error.value.diagnostics
    assert (found.code, found.span and found.span.line) == ("K118", 3)
    assert "stands inside task" in found.message
