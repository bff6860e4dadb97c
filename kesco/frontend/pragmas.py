"""What the author says with ``#pragma kesco``: the effects of kernels, and which parts of the program are tasks.

In: the path, the text without its comments, and the functions that were lowered from it. Out: `ir.Stated` and
`ir.Task`. It is apart from the parse because clang drops pragmas that it does not know: they are read from the text.

1. A line ``#pragma kesco kernel(k) reads(a) writes(b)`` says what a kernel does. 2. A line ``#pragma kesco task
priority(p)`` marks what follows it: the largest statement, or the function definition, that begins at the next token.
3. A task's name is what ``name(n)`` says; else that of the function that is marked or called; else its line. Pragmas of
one name are one task, and must agree on its priority.

It refuses, with an `InputError` that names all of them, what it cannot read: unknown clauses, priorities that are none,
pragmas before nothing, and tasks inside tasks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.errors import InputError
from kesco.ir import program as ir
from kesco.ir.pieces import Pieces
from kesco.ir.task import HIGHEST, LOWEST
from kesco.source import Span

_PRAGMA = re.compile(rb"^[ \t]*#[ \t]*pragma[ \t]+kesco\b([^\n]*)", re.MULTILINE)
_STATED = re.compile(r"\s*kernel\s*\(\s*([\w:]+)\s*\)((?:\s*(?:reads|writes)\s*\([^)]*\))*)\s*$")
_CLAUSE = re.compile(r"(reads|writes)\s*\(([^)]*)\)")
_TASK = re.compile(r"\s*task\b(.*)$")
_TASK_CLAUSE = re.compile(r"\s*(priority|name)\s*\(\s*([^()]*?)\s*\)")
_NAME = re.compile(r"[A-Za-z_][\w-]*")
_BLANK = re.compile(rb"\s+|#[^\n]*")  # white space, and lines of the preprocessor
_FORMS = (
    "write '#pragma kesco kernel(name) reads(a, b) writes(c)' with its parameter names, "
    "or '#pragma kesco task priority(p)' with 'name(n)' or without"
)
_TASK_FORM = f"write '#pragma kesco task priority(p)', p from {LOWEST} to {HIGHEST}; 'name(n)' may follow"


def span_at(path: str, text: bytes, start: int, end: int) -> Span:
    """The span of a range of bytes."""
    return Span(path, start, end, text.count(b"\n", 0, start) + 1, start - text.rfind(b"\n", 0, start))


@dataclass(frozen=True, slots=True)
class Pragmas:
    """The pragmas of one file; `bare` is its text with blanks for comments, and `files` says what is where in it."""

    path: str
    bare: bytes
    files: Pieces

    def _lines(self) -> Iterator[tuple[str, Span]]:
        for match in _PRAGMA.finditer(self.bare):
            words = match[1].decode("utf-8", "replace").rstrip()
            yield words, self.files.span(match.start(), match.start() + len(match[0].rstrip()))

    def stated(self) -> tuple[ir.Stated, ...]:
        """What is said of kernels; raises `InputError` for a pragma that is neither this nor a task."""
        found = []
        for words, span in self._lines():
            if _TASK.match(words):
                continue
            stated = _STATED.match(words)
            if stated is None:
                raise InputError(_error("K105", "this pragma is not understood", span, _FORMS))
            names: dict[str, tuple[str, ...]] = {"reads": (), "writes": ()}
            for clause, inside in _CLAUSE.findall(stated[2]):
                names[clause] += tuple(n.strip() for n in inside.split(",") if n.strip())
            found.append(ir.Stated(stated[1].rpartition("::")[2], names["reads"], names["writes"], span))
        return tuple(found)

    def tasks(self, functions: Sequence[ir.Function]) -> tuple[ir.Task, ...]:
        """The marked tasks in the order of the text; raises `InputError` for pragmas that mark none."""
        found: list[ir.Task] = []
        wrong: list[Diagnostic] = []
        for words, span in self._lines():
            if (task := _TASK.match(words)) is None:
                continue
            clauses = _clauses(task[1], span)
            if isinstance(clauses, Diagnostic):
                wrong.append(clauses)
                continue
            target = self._marked(functions, span.end)
            if target is None:
                wrong.append(
                    _error("K117", "no statement and no function definition follows this pragma", span,
                           "put it right before a block, a loop, a call, a launch or a function definition")
                )  # fmt: skip
                continue
            marked, name = target
            name = clauses[1] or (f"{name} (line {span.line})" if any(t.name == name for t in found) else name)
            found.append(ir.Task(name, clauses[0], span, marked))
        wrong += _misfits(found)
        if wrong:
            raise InputError(*wrong)
        return tuple(found)

    def _marked(self, functions: Sequence[ir.Function], offset: int) -> tuple[Span, str] | None:
        """What begins at the next token behind an offset, and a name for it."""
        while blank := _BLANK.match(self.bare, offset):
            offset = blank.end()
        own = [f for f in functions if f.here and f.span.path == self.path]
        for function in own:
            if offset in (function.span.start, function.top):
                return function.span, function.name
        found: ir.Stmt | None = None
        for function in own:
            if function.span.start < offset < function.span.end:
                for node in ir.walk(function.body):
                    if isinstance(node, ir.Stmt) and node.span.start == offset and node.span.path == self.path:
                        found = node if found is None or node.span.end > found.span.end else found
        if found is None:
            return None
        line = self.files.place(offset)[0]
        called = found.expression if isinstance(found, ir.Evaluate) else None
        return found.span, called.name if isinstance(called, ir.Call) and called.name else f"line {line}"


def _clauses(text: str, span: Span) -> tuple[int, str] | Diagnostic:
    """The priority and the name that a task's pragma gives (empty for none), or what is wrong with it."""
    given: dict[str, str] = {}
    at = 0
    while clause := _TASK_CLAUSE.match(text, at):
        if clause[1] in given:
            return _error("K115", f"'{clause[1]}' is said twice", span, _TASK_FORM)
        given[clause[1]] = clause[2]
        at = clause.end()
    if rest := text[at:].strip():
        return _error("K115", f"'{rest}' is no clause of a task", span, _TASK_FORM)
    if "priority" not in given:
        return _error("K115", "the task has no priority", span, _TASK_FORM)
    if "name" in given and not _NAME.fullmatch(given["name"]):
        return _error("K115", f"'{given['name']}' is no name for a task", span, "use letters, digits, '_' and '-'")
    value = given["priority"]
    if not value.isdecimal() or not LOWEST <= int(value) <= HIGHEST:
        help_ = f"give a number from {LOWEST} to {HIGHEST}; {HIGHEST} comes first"
        return _error("K116", f"'{value}' is no priority", span, help_)
    return int(value), given.get("name", "")


def _misfits(tasks: Sequence[ir.Task]) -> Iterator[Diagnostic]:
    """Tasks inside tasks, and names with two priorities."""
    first: dict[str, ir.Task] = {}
    for task in tasks:
        known = first.setdefault(task.name, task)
        if known.priority != task.priority:
            yield _error(
                "K116", f"task '{task.name}' has two priorities, {known.priority} and {task.priority}", task.span,
                "give all parts of a task the same priority, or the parts names of their own", (known,)
            )  # fmt: skip
        around = [t for t in tasks if t is not task and _within(task, t)]
        if around:
            help_ = "take one of the two pragmas out: an operation belongs to one task"
            yield _error("K118", f"task '{task.name}' stands inside task '{around[0].name}'", task.span, help_, around)


def _within(inner: ir.Task, outer: ir.Task) -> bool:
    """Whether a task's text lies in that of another one; of two for the same text the first counts as the outer one."""
    a, b = inner.marked, outer.marked
    same = (a.start, a.end) == (b.start, b.end)
    return b.start <= a.start and a.end <= b.end and (not same or outer.span.start < inner.span.start)


def _error(code: str, message: str, span: Span, advice: str, others: Sequence[ir.Task] = ()) -> Diagnostic:
    notes = tuple(Note(f"task '{one.name}' is here", one.span) for one in others[:1])
    return Diagnostic(code, Severity.ERROR, message, span, notes, help=advice)
