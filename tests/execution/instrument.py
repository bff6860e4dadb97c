"""The host side's LLVM IR → the same with marks, and what the marks' numbers mean.

In: the text of a module as clang wrote it, with line tables. Out: an `Instrumented`: a text that calls
``kesco/runtime/dryrun/marks.cpp``, and the table of calls and functions. It is apart from the rest because it is all
that knows the form of the text.

1. Find the functions that may call CUDA: those that do, those that call through a pointer, and those that call them.
2. Where one of them begins, it says so; in front of a call that may lead to CUDA it says which; in front of a call of
CUDA, too, and that goes into the record.
3. A launch is marked where its configuration is pushed, which is where it stands in the text. What a kernel's stub
calls is not marked.

No value and no order of the program changes: the marks have names of their own, and take nothing but the frame.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

PUSH = "__cudaPushCallConfiguration"
_DEFINED = re.compile(r'^define .*?@("[^"]+"|[\w.$-]+)\(.*\{$')
_SUBPROGRAM = re.compile(r"!dbg !(\d+)")
_CALL = re.compile(r"^\s*(?:%(?:\"[^\"]+\"|[\w.$-]+) = )?(?:(?:tail|musttail|notail) )?(?:call|invoke) ")
_CALLEE = re.compile(r'([@%])("[^"]+"|[\w.$-]+)\(')
_META = re.compile(r"^!(\d+) = (?:distinct )?!(DI\w+)\((.*)\)$", re.MULTILINE)
_FIELD = re.compile(r'(\w+): (?:"((?:[^"\\]|\\.)*)"|!?([-\w.]+))')
_FRAME = "declare ptr @llvm.frameaddress.p0(i32 immarg)"
_MARKS = tuple(f"declare void @__cudaDryRun{what}(i32, ptr)" for what in ("Enter", "Call", "Through", "Mark"))


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a source file."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file.rpartition('/')[2]}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Call:
    """A call in the IR: who makes it, of whom (empty: through a pointer), where it stands in the text, if anywhere."""

    function: str
    callee: str
    place: Place | None

    @property
    def launches(self) -> bool:
        return self.callee == PUSH


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the IR: its mangled name, what the text calls it, and where."""

    symbol: str
    name: str
    place: Place | None

    @property
    def wraps(self) -> bool:
        """Whether it is one of those in CUDA's headers that are only another form of the call that they make."""
        there = self.place is not None and self.place.file.rpartition("/")[2].startswith("cuda_runtime")
        return there and self.name.startswith("cuda")


@dataclass(frozen=True, slots=True)
class Instrumented:
    """A module with marks; the numbers in them index `calls` and `functions` (0 of `calls` is no call)."""

    text: str
    calls: tuple[Call, ...]
    functions: tuple[Function, ...]


class _Debug:
    """The debug information of a module, as far as it says where something stands."""

    def __init__(self, text: str) -> None:
        self.nodes: dict[str, tuple[str, dict[str, str]]] = {}
        for number, kind, rest in _META.findall(text):
            if kind in ("DILocation", "DISubprogram", "DIFile", "DILexicalBlock", "DILexicalBlockFile"):
                self.nodes[number] = (kind, {name: string or word for name, string, word in _FIELD.findall(rest)})

    def place(self, number: str | None) -> Place | None:
        """The place of a location, or of a function."""
        kind, fields = self.nodes.get(number or "", ("", {}))
        if not kind or fields.get("line", "0") == "0":
            return None
        return Place(self._file(number or ""), int(fields["line"]), int(fields.get("column", "0")))

    def name(self, number: str | None) -> str:
        return self.nodes.get(number or "", ("", {}))[1].get("name", "")

    def _file(self, number: str) -> str:
        while number in self.nodes:
            _, fields = self.nodes[number]
            if "file" in fields:
                file = self.nodes[fields["file"]][1]
                name, folder = file.get("filename", ""), file.get("directory", "")
                return name if name.startswith("/") or not folder else f"{folder}/{name}"
            number = fields.get("scope", "")
        return ""


def _plain(name: str) -> str:
    return name[1:-1] if name.startswith('"') else name


def _callee(line: str) -> str | None:
    """Who is called, empty where that is a pointer; None for assembly and for what is only LLVM's own."""
    found = _CALLEE.search(line)
    if found is None or " asm " in line[: found.start()]:
        return None
    name = _plain(found[2])
    return "" if found[1] == "%" else None if name.startswith("llvm.") else name


def is_cuda(callee: str) -> bool:
    """Whether a function is the runtime's; those of its headers are C++ and have mangled names."""
    return callee == PUSH or re.match(r"cuda[A-Z]", callee) is not None


def _bodies(lines: list[str]) -> Iterable[tuple[int, int]]:
    """Each function's first line and that of its closing brace."""
    start = None
    for number, line in enumerate(lines):
        if line.startswith("define "):
            start = number
        elif line == "}" and start is not None:
            yield start, number
            start = None


def _leading(bodies: dict[str, tuple[int, int]], lines: list[str]) -> set[str]:
    """The functions that may call CUDA."""
    callers: dict[str, set[str]] = {}
    found: set[str] = set()
    for name, (start, end) in bodies.items():
        for line in lines[start + 1 : end]:
            callee = _callee(line) if _CALL.match(line) else None
            if callee == "" or (callee and is_cuda(callee) and callee not in bodies):
                found.add(name)
            elif callee in bodies:
                callers.setdefault(callee, set()).add(name)
    work = list(found)
    while work:
        new = callers.get(work.pop(), set()) - found
        found |= new
        work += new
    return found


def instrument(text: str) -> Instrumented:
    """A module with marks."""
    lines, debug = text.splitlines(), _Debug(text)
    bodies = {
        _plain(match[1]): (start, end) for start, end in _bodies(lines) if (match := _DEFINED.match(lines[start]))
    }
    bodies = {n: at for n, at in bodies.items() if "__device_stub__" not in n and not n.startswith("__cuda_")}
    leading = _leading(bodies, lines)
    calls, functions = [Call("", "", None)], []
    before: dict[int, list[str]] = {}  # the lines to put in front of a line

    def say(line: int, what: str, number: int, frame: str) -> None:
        before.setdefault(line, []).append(f"  call void @__cudaDryRun{what}(i32 {number}, ptr %{frame})")

    for name in sorted(leading, key=lambda n: bodies[n]):
        start, end = bodies[name]
        subprogram = _SUBPROGRAM.search(lines[start])
        about = subprogram[1] if subprogram else None
        first = start + 2 if re.match(r'^("[^"]+"|[\w.$-]+):', lines[start + 1]) else start + 1
        before[first] = ["  %kesco.frame = call ptr @llvm.frameaddress.p0(i32 0)"]
        say(first, "Enter", len(functions), "kesco.frame")
        functions.append(Function(name, debug.name(about), debug.place(about)))
        for number in range(first, end):
            callee = _callee(lines[number]) if _CALL.match(lines[number]) else None
            cuda = bool(callee) and is_cuda(callee or "") and callee not in bodies
            if callee is None or not (cuda or callee == "" or callee in leading):
                continue
            both = lines[number] + (lines[number + 1] if " invoke " in f" {lines[number].lstrip()}" else "")
            location = _SUBPROGRAM.search(both)
            say(number, "Mark" if cuda else "Call" if callee else "Through", len(calls), "kesco.frame")
            calls.append(Call(name, callee, debug.place(location[1] if location else None)))
    marked = [one for number, line in enumerate(lines) for one in (*before.get(number, ()), line)]
    frame = () if "@llvm.frameaddress.p0(" in text else (_FRAME,)
    return Instrumented("\n".join([*marked, *frame, *_MARKS, ""]), tuple(calls), tuple(functions))
