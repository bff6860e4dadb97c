"""Where code of the host's IR stands in the text: functions, operations, statements.

In: the parsed file and the module. Out: numbers of operations and spans, by debug location. The parse says what may be
edited; the IR says what happens. They meet here, and nowhere else.

1. A function of the IR is one of the text if its subprogram has the name and stands inside; instances of a template are
all the same one, and a lambda is one if it launches. 2. A call belongs to the smallest call or launch of that name
around its place; in an argument of a macro, to the only one of that name in the statement. 3. What has no place has no
operation: whoever needs one refuses.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from dataclasses import dataclass, field

from kesco.analysis.passing import Passing
from kesco.ir import program as ir
from kesco.ir.pieces import pieces
from kesco.llvm.module import Module
from kesco.llvm.names import operator_of
from kesco.llvm.values import Function, Instruction, Symbol
from kesco.source import Span

LAUNCH = "<<<"
"""In the place of a callee's name: any launch."""
_COMPARES = re.compile(rb"[ \t]*const void\* const \w+_at_entry\[\] = \{")
_LAMBDA = re.compile(r"U(?:l|nvdl|nvhdl)\w*E\d*_c[lv]")
_NAME = re.compile(r'\bname: "((?:[^"\\]|\\.)*)"')
_WRAPPERS = ("/cuda_runtime.h",)


@dataclass(frozen=True, slots=True)
class _Node:
    """A call, launch, way out or end of a block in the text; `written` where the name may be that of an object."""

    operation: int
    name: str
    start: int
    end: int
    launch: bool = False
    written: bool = False


@dataclass(slots=True)
class Texts:
    """Answers for one file and its module."""

    program: ir.Program
    module: Module
    _lines: list[int] = field(default_factory=list)
    _functions: dict[str, ir.Function | None] = field(default_factory=dict)
    _nodes: dict[str, list[_Node]] = field(default_factory=dict)
    _statements: dict[str, list[Span]] = field(default_factory=dict)
    _files: dict[str, bool] = field(default_factory=dict)
    _code: dict[tuple[int, str, str], list[Instruction]] | None = None
    passing: Passing = field(init=False)

    def __post_init__(self) -> None:
        self.passing = Passing(self.program)
        text = self.program.text
        self._lines = [0, *(at + 1 for at, byte in enumerate(text) if byte == 10)]

    # ---- places

    def offset(self, place: int) -> int:
        """The byte offset in the file of a debug location, or -1."""
        found = self.module.place(place) if place >= 0 else None
        if found is None or not self._here(found.file) or not 0 < found.line <= len(self._lines):
            return -1
        return self._lines[found.line - 1] + max(0, found.column - 1)

    def _here(self, file: str) -> bool:
        if file not in self._files:
            self._files[file] = os.path.realpath(file) == os.path.realpath(self.program.path)
        return self._files[file]

    def is_of_kesco(self, offset: int) -> bool:
        """Whether what stands at an offset is on a line in which kesco's own text reads pointers to compare them."""
        start = self.program.text.rfind(b"\n", 0, offset) + 1 if offset >= 0 else 0
        return offset >= 0 and _COMPARES.match(self.program.text, start) is not None

    def span_at(self, offset: int) -> Span:
        """A place of the file, for messages."""
        return pieces(self.program.path, self.program.text).span(offset, offset + 1)

    # ---- functions

    def function(self, one: Function) -> ir.Function | None:
        """The function of the text that this is; lambdas that launch nothing are a part of the one around them."""
        if one.name not in self._functions:
            self._functions[one.name] = self._function(one)
        return self._functions[one.name]

    def _function(self, one: Function) -> ir.Function | None:
        number = next((n for name, n in one.head.metadata if name == "dbg"), -1)
        place, named = self.module.place(number), _NAME.search(self.module.node(number))
        if place is None or named is None or not self._here(place.file):
            return None
        name, closure = named[1], _LAMBDA.search(one.name) is not None
        plain = name if name.startswith("operator") and "()<" not in name else name.partition("<")[0]
        found: ir.Function | None = None
        for function in self.program.functions:
            if not function.here or function.name not in (name, plain) or is_closure(function) is not closure:
                continue
            begin, last = (bisect_right(self._lines, at) for at in (function.span.start, function.span.end))
            if begin <= place.line <= last and (found is None or function.span.start >= found.span.start):
                if found is not None and bisect_right(self._lines, found.span.start) == begin:
                    return None  # two of one name on one line
                found = function
        return found

    def code(self) -> list[tuple[int, Function, Instruction]]:
        """The instructions of the functions that begin in the file, by their offsets in the text."""
        found: list[tuple[int, Function, Instruction]] = []
        for name in self.module.defined():
            head = self.module.head(name)
            number = -1 if head is None else next((n for what, n in head.metadata if what == "dbg"), -1)
            place = self.module.place(number)
            one = self.module.function(name) if place is not None and self._here(place.file) else None
            for instruction in () if one is None else (i for block in one.blocks for i in block.instructions):
                offset = self.offset(instruction.place)
                if one is not None and offset >= 0:
                    found.append((offset, one, instruction))
        return sorted(found, key=lambda entry: entry[0])

    def has_code(self, code: list[tuple[int, Function, Instruction]], span: Span) -> bool:
        """Whether any of these instructions stands on the same lines."""
        first, last = (bisect_right(self._lines, at) for at in (span.start, span.end))
        return any(first <= bisect_right(self._lines, offset) <= last for offset, _, _ in code)

    # ---- operations

    def nodes(self, function: ir.Function) -> list[_Node]:
        """The calls and launches of a function, and its ways out."""
        if function.key not in self._nodes:
            found: list[_Node] = []
            for node in ir.walk(function.body):
                if isinstance(node, ir.Launch):
                    found.append(_Node(node.operation, node.kernel.name, node.span.start, node.span.end, True))
                elif isinstance(node, ir.Call) and node.operation >= 0:
                    name = node.name or self._written(node.span)  # in a template it is not known which function it is
                    found.append(_Node(node.operation, name, node.span.start, node.span.end, written=not node.name))
                elif isinstance(node, ir.Leave) and node.operation >= 0:
                    found.append(_Node(node.operation, f"!{node.how}", node.span.start, node.span.end))
                elif isinstance(node, ir.Block):
                    last = returned(node)  # behind which nothing can be put
                    end = node.end if last is None else last.operation
                    if end < 0:
                        continue
                    found.append(_Node(end, "!end", node.span.end - 1, node.span.end))
            self._nodes[function.key] = found
        return self._nodes[function.key]

    def _written(self, span: Span) -> str:
        """The name in front of the first parenthesis of a call."""
        text = self.program.text[span.start : span.end].partition(b"(")[0].decode("utf-8", "replace")
        return text.strip()

    def operation(self, function: ir.Function, place: int, callee: str) -> int:
        """The operation of a call or launch at a place; -1 if there is none, or more than one."""
        offset = self.offset(place)
        if offset < 0:
            return -1
        fits = [n for n in self.nodes(function) if (_launches(n) if callee == LAUNCH else _is_called(n, callee))]
        inside = self._smallest(fits, offset)
        if inside:
            return inside.pop() if len(inside) == 1 else -1
        around = []
        for n in fits:
            statement = self.program.operations[n.operation].statement
            if statement is not None and statement.start <= offset < statement.end:
                around.append(n)
        return around[0].operation if len(around) == 1 else -1

    def _smallest(self, fits: list[_Node], offset: int) -> set[int]:
        """The operations of the smallest of these calls that are at an offset: several, where a macro has one twice."""
        inside = [n for n in fits if n.start <= offset < n.end]
        least = min((n.end - n.start for n in inside), default=0)
        return {n.operation for n in inside if n.end - n.start == least}

    def is_again(self, at: Instruction) -> bool:
        """Whether a call is the second one of an argument that a macro evaluates twice."""
        return self._turn_of(at) > 0

    def _turn_of(self, at: Instruction) -> int:
        """How many calls of the same function stand in front of one at its place in the text; -1 if it has none."""
        if self._code is None:
            self._code = {}
            for offset, one, instruction in self.code():
                if instruction.opcode in ("call", "invoke") and isinstance(instruction.operands[-1], Symbol):
                    name = instruction.operands[-1].name
                    self._code.setdefault((offset, one.name, name), []).append(instruction)
        found = (calls for calls in self._code.values() if any(one is at for one in calls))
        return next((n for calls in found for n, one in enumerate(calls) if one is at), -1)

    def operation_at(self, function: ir.Function, at: Instruction, callee: str) -> int:
        """The operation of a call or launch, or of the closing brace there; a pointer has another name in the text."""
        through = at.opcode in ("call", "invoke") and not isinstance(at.operands[-1], Symbol) and callee != LAUNCH
        found = self.operation(function, at.place, "" if through else callee)
        if found < 0 and not through and callee != LAUNCH and self._turn_of(at) == 0:
            fits = [n for n in self.nodes(function) if _is_called(n, callee)]
            found = min(self._smallest(fits, self.offset(at.place)), default=-1)
        return found if found >= 0 else self.at_end(function, at.place)

    def at_end(self, function: ir.Function, place: int) -> int:
        """The operation at the closing brace that is at a place, or -1."""
        offset = self.offset(place)
        return next((n.operation for n in self.nodes(function) if n.name == "!end" and n.start == offset), -1)

    def returned_at_end(self, function: ir.Function, place: int) -> int:
        """The ``return`` in front of the closing brace that is at a place, or -1."""
        end, nodes = self.at_end(function, place), self.nodes(function)
        return end if any(n.operation == end and n.name == "!return" for n in nodes) else -1

    def wraps(self, function: Function) -> bool:
        """Whether a function of CUDA's header only calls its namesake in C."""
        number = next((n for name, n in function.head.metadata if name == "dbg"), -1)
        place = self.module.place(number)
        return place is not None and place.file.endswith(_WRAPPERS)

    def leave(self, function: ir.Function, place: int) -> tuple[int, str]:
        """The ``return`` or ``throw`` that stands at a place; -1 if there is none."""
        offset = self.offset(place)
        for n in self.nodes(function):
            if n.name in ("!return", "!throw") and n.start == offset >= 0:
                return n.operation, n.name[1:]
        return -1, ""

    def last(self, function: ir.Function) -> tuple[int, str]:
        """The ``return`` that a function ends with: destructors behind it may hide its place. -1 if there is none."""
        one = returned(function.body)
        return (-1, "") if one is None else (one.operation, one.how)

    def statement(self, function: ir.Function, offset: int) -> Span:
        """The innermost statement around an offset."""
        if function.key not in self._statements:
            every = (n for n in ir.walk(function.body) if isinstance(n, ir.Stmt) and not isinstance(n, ir.Block))
            self._statements[function.key] = sorted((n.span for n in every), key=lambda s: s.end - s.start)
        found = (s for s in self._statements[function.key] if s.start <= offset <= s.end)
        return next(found, self.span_at(offset) if offset >= 0 else function.span)


def returned(one: ir.Stmt) -> ir.Leave | None:
    """The ``return`` that a statement ends with, whichever way control comes to its end."""
    while isinstance(one, ir.Block) and one.body:
        first = one.body[0]
        if isinstance(first, ir.Obstacle) and first.reason != ir.CLOSURE:
            return None
        one = one.body[-1]
    return one if isinstance(one, ir.Leave) and one.how == "return" and one.operation >= 0 else None


def is_closure(function: ir.Function) -> bool:
    """Whether a function of the text is a lambda."""
    body = function.body
    first = body.body[0] if isinstance(body, ir.Block) and body.body else None
    return isinstance(first, ir.Obstacle) and first.reason == ir.CLOSURE


def _launches(node: _Node) -> bool:
    return node.launch or node.name.startswith("cudaLaunchKernel")


def _is_called(node: _Node, mangled: str) -> bool:
    """Whether a function with this mangled name may be what the text calls."""
    name = node.name
    if name.startswith("!"):
        return False
    if not mangled:
        return True
    last = name.rpartition("::")[2]
    symbol = last.removeprefix("operator").strip() if last.startswith("operator") else ""
    if symbol and symbol != "()" and not symbol[0].isalnum() and symbol[0] != "_":
        return operator_of(mangled) == symbol
    last = last.partition("<")[0]
    if last == "operator()" or (node.written and _LAMBDA.search(mangled)):
        return bool(re.search(r"cl(?:E|I|v|[A-Z])", mangled))
    return bool(last) and (f"{len(last.encode())}{last}" if mangled.startswith("_Z") else last) in mangled
