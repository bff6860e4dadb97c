"""Statements that allocate or free: whether one means the same where it is written again.

In: the program, a statement with its one call, and where it goes. Out: its text, or None. Apart from the rest because
this is about the language: what else a statement does, and what its names mean elsewhere.

1. The call is made once, on every path through the statement; of an array, once in each trip of a loop around it.
2. The statement does nothing else that could be seen but where a call of CUDA has failed. 3. All integers in it have
one value all through the function. 4. No name in it means something else where it goes: none is declared in between,
no macro changes there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from kesco.ir import program as ir
from kesco.ir.failures import where_it_failed
from kesco.source import Span

_CHECKED = {"cudaMalloc", "cudaFree", "cudaGetErrorString", "cudaGetErrorName"}
_CALL = re.compile(rb"(?:::)?(cudaMalloc|cudaFree)\s*\(")
_NAME = re.compile(rb"[A-Za-z_]\w*")
_DIRECTIVE = re.compile(rb"^[ \t]*#[ \t]*(?:define|undef|include|pragma[ \t]+(?:push|pop)_macro)\b", re.MULTILINE)
_TYPES = re.compile(rb"\b(?:typedef|using|struct|class|enum|union|namespace|extern)\b[^;]*")


def statement_of(program: ir.Program, statement: ir.Stmt, call: ir.Call, *, called: bool) -> Span | None:
    """The text of a statement that does nothing but make a call and look at its result, if it can be written again.

    Where its function is `called`, whoever does may try again with less when it is left there.
    """
    one = program.operations[call.operation]
    if one.statement is None or one.within or one.stuck:
        return None
    whole = one.statement
    if isinstance(statement, ir.Loop) and not statement.tested_after:
        whole = replace(statement.span, end=max(statement.span.end, one.statement.end))
    elif one.lone or one.statement.start != statement.span.start:
        return None
    if called and any(isinstance(n, ir.Leave) and n.how in ("return", "throw") for n in ir.walk(statement)):
        return None
    text = program.text[whole.start : whole.end]
    inner = program.text[call.span.start : call.span.end]
    plain = (
        _CALL.match(inner) and inner.endswith(b")") and b"//" not in text and b"/*" not in text and b"\\" not in text
    )
    inside = whole.start <= call.span.start and call.span.end <= whole.end
    if not plain or not inside or isinstance(statement, ir.Declare) or not _always(statement, call):
        return None
    functions = {f.key: f for f in program.functions}
    own = {n.variable.key for n in ir.walk(statement) if isinstance(n, ir.Declare)}
    return whole if _does_nothing_else(statement, functions, own, ()) else None


def _always(node: ir.Expr | ir.Stmt, call: ir.Call) -> bool:
    """Whether every way through a statement makes a call, which is in it: once, or in each trip of a loop around it."""
    if node is call:
        return True
    if isinstance(node, (ir.If, ir.Branch)):
        return call in ir.walk(node.condition) and _always(node.condition, call)
    if isinstance(node, ir.Loop):
        return call in ir.walk(node.body) and _always(node.body, call)
    for child in ir.children(node):
        if call in ir.walk(child):
            return _always(child, call)
        if any(isinstance(n, ir.Leave) for n in ir.walk(child)):
            return False
    return False


def keeps_its_meaning(
    program: ir.Program, between: Iterable[ir.Stmt], text: bytes, start: int, end: int, but: str
) -> bool:
    """Whether a text means the same at both ends of the statements `between`, which are the text from start to end.

    `but` is the name of the pointer itself.
    """
    names = {name.decode() for name in _NAME.findall(text)} - {but}
    passed = program.text[start:end]
    declared = {one.variable.name for one in between if isinstance(one, ir.Declare)}
    types = {name.decode() for part in _TYPES.findall(passed) for name in _NAME.findall(part)}
    return not _DIRECTIVE.search(passed) and names.isdisjoint(declared) and names.isdisjoint(types)


def is_stable_loop(function: ir.Function, statement: ir.Stmt) -> bool:
    """Whether a loop goes through the same trips wherever it stands; true of what is no loop."""
    if not isinstance(statement, ir.Loop) or statement.tested_after:
        return True
    header = [one for one in statement.before if isinstance(one, ir.Declare) and one.initial is not None]
    if len(header) != len(statement.before) or statement.condition is None or statement.step is None:
        return False
    counters = frozenset(one.variable.key for one in header)
    changed = statement.step.value if isinstance(statement.step, ir.Assign) else None
    parts = (*(one.initial for one in header), statement.condition, changed)
    return all(part is not None and is_stable(function, part, counters) for part in parts)


def is_stable(function: ir.Function, size: ir.Expr, counters: frozenset[str] = frozenset()) -> bool:
    """Whether an expression has one value all through the function, from where its variables are known.

    `counters` are the keys of variables that may change, since the loop that counts with them is written again, too.
    """
    names = set()
    for node in ir.walk(size):
        if isinstance(node, ir.Name):
            own = node.variable.scope in (ir.Scope.LOCAL, ir.Scope.PARAMETER)
            if node.variable.constant is None and node.variable.key not in counters:
                if not own or node.variable.type.shape is not ir.Shape.INTEGER or node.variable.type.volatile:
                    return False
                names.add(node.variable.key)
        elif not isinstance(node, (ir.Constant, ir.Binary, ir.Unary, ir.Cast, ir.Literal)):
            return False
    for node in ir.walk(function.body):
        changed: list[ir.Expr | None] = []
        if isinstance(node, (ir.Assign, ir.AddressOf)):
            changed = [node.target]
        elif isinstance(node, ir.Declare):
            if node.variable.key in names and node.initial is None:
                return False
            changed = [node.initial] if node.variable.type.shape is ir.Shape.REFERENCE else []
        elif isinstance(node, ir.Call):
            changed = [node.receiver, *(a for a, given in zip(node.arguments, node.references, strict=False) if given)]
        elif isinstance(node, ir.Unknown):
            changed = list(node.parts)
        for one in filter(None, changed):
            if any(isinstance(n, ir.Name) and n.variable.key in names for n in ir.walk(one)):
                return False
    return True


def _does_nothing_else(
    node: ir.Expr | ir.Stmt, functions: dict[str, ir.Function], own: set[str], stack: tuple[str, ...]
) -> bool:
    """Whether a statement, where no error is found, does nothing that could be seen but to make its CUDA call."""
    if isinstance(node, ir.Call) and node.name not in _CHECKED:
        function = functions.get(node.key)
        if function is None or node.key in stack:
            return False
        inside = own | {n.variable.key for n in ir.walk(function.body) if isinstance(n, ir.Declare)}
        inside |= {p.key for p in function.parameters if p.type.shape is not ir.Shape.REFERENCE}
        if not _does_nothing_else(function.body, functions, inside, (*stack, node.key)):
            return False
    if isinstance(node, (ir.Launch, ir.Unknown, ir.Obstacle, ir.New)):
        return False
    if isinstance(node, ir.Assign) and not (isinstance(node.target, ir.Name) and node.target.variable.key in own):
        return False
    inside_of: list[ir.Expr | ir.Stmt] = ir.children(node)
    if isinstance(node, (ir.If, ir.Branch)):  # what runs where there is an error may do anything
        which = where_it_failed(node.condition)
        failed = None if which is None else node.then if which else node.other
        inside_of = [child for child in inside_of if child is not failed]
    return all(_does_nothing_else(child, functions, own, stack) for child in inside_of)
