"""Launches that are given to the device many at a time must not be missed before they are.

In: a program with batches, as read from its text. Out: what speaks against them, in words, each with its place. A stage
of its own because the order of the work says nothing about it: to the device, a batch is the same work on the same
stream, only later. So this is about the host.

1. Launches on `STREAM` are late from then on, until `ISSUE`, the end of a `GUARD`, or the end of the block that it is
in. 2. While they are, the host does nothing but compute, make further such launches, ask whether a launch failed, and
call functions of which all this is true. 3. A function that makes such launches under no guard of its own leaves them
to its callers: it is entered as if some were late. 4. What ends the process because a call of CUDA failed may lose
them. 5. Each guard has a number of its own, and no such name stands where it was not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kesco.ir import program as ir
from kesco.ir.batches import (
    CALLS,
    CONSTRUCTED,
    END,
    GIVES,
    GUARD,
    ISSUE,
    OPAQUE,
    OWN,
    STREAM,
    TRIP,
    is_last_word,
    is_own_event,
    is_quiet_name,
)
from kesco.ir.replay import ENDS, STATUS
from kesco.ir.walking import leaves
from kesco.source import Span

Problem = tuple[Span, str]

_NAMES = re.compile(
    rb"\b%s\((?!cudaStream_t)|\b(?:%s|%s)\(\)|\b%s kesco_\w+\(\d+\)|\b(?:%s|%s|%s)\((?!void)"
    % tuple(n.encode() for n in (STREAM, TRIP, ISSUE, GUARD, *CALLS.values()))
)


def batch_problems(program: ir.Program, room: int) -> tuple[Problem, ...]:
    """All that speaks against the batches of a program whose section has room for so many loops."""
    every = _Every(program)
    found = [problem for function in program.functions if function.here for problem in every.of(function)]
    numbers = [n for function in program.functions if function.here for n in _guards(function)]
    top = Span(program.path, 0, 1, 1, 1)
    if len(set(numbers)) != len(numbers) or not all(0 <= n < room for n in numbers):
        found.append((top, "a batch has no number of its own"))
    seen = sum(map(_ours, (n for f in program.functions if f.here for n in ir.walk(f.body))))
    if seen != len(_NAMES.findall(program.text)):
        found.append((top, "a batch stands where it cannot be read"))
    if any(name == "per-thread-stream" for name, _ in program.constructs):
        found.append((top, "batches go to the one default stream, and here each thread has its own"))
    return tuple(found)


def _ours(node: ir.Expr | ir.Stmt) -> bool:
    """Whether a node is one of the names that are counted in the text."""
    if isinstance(node, ir.Call):
        return node.name.rpartition("::")[2] in (STREAM, TRIP, ISSUE, *CALLS.values())
    return isinstance(node, ir.Declare) and _is_guard(node)


def _is_guard(node: ir.Declare) -> bool:
    return node.variable.type.record.rpartition("::")[2] == GUARD or node.variable.type.spelling.endswith(GUARD)


def _guards(function: ir.Function) -> Iterator[int]:
    for node in ir.walk(function.body):
        if isinstance(node, ir.Declare) and _is_guard(node):
            made = node.initial
            numbers = [ir.bare(a) for a in made.arguments] if isinstance(made, ir.Call) else []
            yield numbers[0].value if len(numbers) == 1 and isinstance(numbers[0], ir.Constant) else -1


def _on_batch(node: ir.Expr | ir.Stmt) -> bool:
    """Whether a node is a launch that may be late."""
    if isinstance(node, ir.Call):
        return node.name.rpartition("::")[2] in CALLS.values()
    stream = ir.bare(node.configuration[3]) if isinstance(node, ir.Launch) and len(node.configuration) > 3 else None
    return isinstance(stream, ir.Call) and stream.name.rpartition("::")[2] == STREAM


class _Every:
    """What is known of the functions of a program."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.functions = {f.key: f for f in program.functions}
        self.silent: dict[str, bool] = {}

    def of(self, function: ir.Function) -> list[Problem]:
        """What speaks against the batches in a function."""
        if not (self.leaves_late(function) or any(True for _ in _guards(function))):
            return []
        walk = _Walk(self, late=self.leaves_late(function))
        walk.statement(function.body)
        return walk.problems

    def leaves_late(self, function: ir.Function) -> bool:
        """Whether a function makes such launches and leaves them to its callers."""
        body = list(ir.walk(function.body))
        return function.here and any(map(_on_batch, body)) and not any(True for _ in _guards(function))

    def called(self, call: ir.Call) -> ir.Function | None:
        """The function whose body a call certainly runs."""
        found = None if call.standard else self.functions.get(call.key)
        return None if found is None or found.virtual else found

    def is_silent(self, node: ir.Expr | ir.Stmt) -> bool:
        """Whether one node does nothing that could tell."""
        if isinstance(node, ir.Call):
            return self._is_silent_call(node)
        if isinstance(node, (ir.Name, ir.Declare)):
            return not _watched(node.variable.type) and (isinstance(node, ir.Name) or self._ends_silently(node))
        if isinstance(node, ir.Select):
            return not _watched(node.type)
        if isinstance(node, ir.Unknown):
            return node.what in (*OPAQUE, ir.RANGE_ELEMENT)
        if isinstance(node, ir.Block):
            return node.end < 0
        return not isinstance(node, (ir.Launch, ir.New, ir.Obstacle, ir.Switch))

    def _is_silent_call(self, call: ir.Call) -> bool:
        name = call.name.rpartition("::")[2]
        if (name in OWN and not call.standard) or is_own_event(call):
            return True
        if call.standard:
            copies = call.constructs and (call.implicit or name in CONSTRUCTED)
            return name in STATUS or copies or self._is_quiet(call)
        function = self.called(call)
        if function is None:
            record = self.program.records.get(call.type.record) if call.type is not None else None
            return call.constructs and call.implicit and record is not None and record.plain
        if function.key not in self.silent:
            self.silent[function.key] = False
            own = _Walk(self, late=True)
            own.statement(function.body)
            launches = any(isinstance(n, ir.Launch) for n in ir.walk(function.body))
            self.silent[function.key] = not own.problems and not launches and not self._issues(function)
        return self.silent[function.key]

    def _is_quiet(self, call: ir.Call) -> bool:
        """Whether a function of the libraries neither waits nor runs code that is not seen."""
        given = call.arguments if call.name in GIVES else ()
        plain = all((kind := _kind_of(ir.bare(one))) is not None and self.is_plain(kind) for one in given)
        return is_quiet_name(call.name) and plain and not call.runs and not call.destroys

    def _issues(self, function: ir.Function) -> bool:
        return any(_ours(n) for n in ir.walk(function.body))

    def _ends_silently(self, one: ir.Declare) -> bool:
        return _is_guard(one) or self.is_plain(one.variable.type)

    def is_plain(self, kind: ir.Type) -> bool:
        """Whether the end of a variable of this type does nothing but free memory of the host."""
        while kind.shape is ir.Shape.ARRAY and kind.element is not None:
            kind = kind.element
        if kind.holds is not None:
            return self.is_plain(kind.holds)
        record = self.program.records.get(kind.record) if kind.shape is ir.Shape.RECORD else None
        if kind.shape is not ir.Shape.RECORD or record is None:
            return kind.shape is not ir.Shape.RECORD
        if record.standard:
            return record.plain or record.name.startswith(
                ("std::basic_string", "std::__cxx11::basic_string", "std::string")
            )
        return not record.destructor and all(self.is_plain(one.type) for one in record.fields)


def _kind_of(one: ir.Expr) -> ir.Type | None:
    """The type of what trades places with something, as far as it is known."""
    found: ir.Type | None = None
    if isinstance(one, ir.Name):
        found = one.variable.type
    elif isinstance(one, (ir.Select, ir.Call)):
        found = one.type
    elif isinstance(one, ir.Subscript) and (base := _kind_of(ir.bare(one.base))) is not None:
        found = base.element if base.element is not None else base.holds
    return found.element if found is not None and found.shape is ir.Shape.REFERENCE else found


def _watched(kind: ir.Type) -> bool:
    return kind.volatile or (kind.element is not None and _watched(kind.element))


class _Walk:
    """A body, as it is written: `late` tells whether launches may be pending where it has come to."""

    def __init__(self, every: _Every, *, late: bool) -> None:
        self.every, self.late = every, late
        self.problems: list[Problem] = []

    def statement(self, one: ir.Stmt) -> None:
        """Walk on through a statement."""
        if isinstance(one, ir.Block):
            for inner in one.body:
                self.statement(inner)
            if self.late and one.end >= 0:
                self._tells(one.span, "an object's end")
            if not one.declares and any(isinstance(s, ir.Declare) and _is_guard(s) for s in _declared(one)):
                self.late = False
        elif isinstance(one, ir.Evaluate):
            self._expression(one.expression, one.span)
        elif isinstance(one, ir.Declare):
            self._declare(one)
        elif isinstance(one, ir.If):
            self._if(one)
        elif isinstance(one, ir.Loop):
            self._loop(one)
        elif isinstance(one, (ir.Leave, ir.Case, ir.Switch, ir.Obstacle)):
            self._other(one)
        else:
            self._tells(one.span, "a statement of another kind")

    def _other(self, one: ir.Leave | ir.Case | ir.Switch | ir.Obstacle) -> None:
        if isinstance(one, ir.Leave):
            if one.value is not None:
                self._expression(one.value, one.span)
        elif isinstance(one, ir.Obstacle):
            if self.late:
                self._tells(one.span, one.reason)
        else:
            if self.late or any(map(self._launches, ir.walk(one))):
                self._tells(one.span, "a switch")
            if isinstance(one, ir.Switch):
                self._expression(one.condition, one.span)
            self.statement(one.body)

    def _declare(self, one: ir.Declare) -> None:
        if self.late and not self.every.is_silent(one):
            self._tells(one.span, f"'{one.variable.name}'")
        if one.initial is not None and not _is_guard(one):
            self._expression(one.initial, one.span)

    def _if(self, one: ir.If) -> None:
        for first in one.before:
            self.statement(first)
        self._expression(one.condition, one.span)
        if one.other is None and leaves(one.then) and self._only_says(one):
            return
        before, behind = self.late, False
        for branch in (one.then, one.other):
            self.late = before
            if branch is not None:
                self.statement(branch)
            if branch is None or not leaves(branch):
                behind = behind or self.late
        self.late = behind

    def _only_says(self, one: ir.If) -> bool:
        """Whether a way out only says why it is taken: an error of CUDA's, if it ends the process."""
        inside = list(ir.walk(one.then))
        calls = [n for n in inside if isinstance(n, ir.Call)]
        if any(isinstance(n, (ir.Launch, ir.Loop, ir.Switch, ir.Obstacle, ir.Unknown)) for n in inside):
            return False
        names = {n.name.rpartition("::")[2] for n in calls}
        if not all(n.standard and is_last_word(n.name) for n in calls):
            return False
        asked = [n.variable.type.spelling for n in ir.walk(one.condition) if isinstance(n, ir.Name)]
        failed = bool(asked) and all(spelling.endswith(("cudaError", "cudaError_t")) for spelling in asked)
        return failed or not names & ENDS

    def _loop(self, one: ir.Loop) -> None:
        before = self.late
        for first in one.before:
            self.statement(first)
        inside = any(map(self._launches, ir.walk(one)))
        self.late = self.late or inside
        for head in (one.condition, one.step):
            if head is not None:
                self._expression(head, one.span)
        if self.late and not inside and not self._counts(one):
            self._tells(one.span, "a loop that may wait for something")
        self.statement(one.body)
        self.late = before or inside

    def _counts(self, one: ir.Loop) -> bool:
        """Whether nobody else decides how often a loop goes round."""
        if one.condition is None:
            return False
        heads = (n for head in (one.condition, one.step) if head is not None for n in ir.walk(head))
        kinds = (ir.Binary, ir.Unary, ir.Cast, ir.Constant, ir.Literal, ir.Name, ir.Assign)
        own = (ir.Scope.LOCAL, ir.Scope.PARAMETER)
        return all(isinstance(n, kinds) and not (isinstance(n, ir.Name) and n.variable.scope not in own) for n in heads)

    def _launches(self, node: ir.Expr | ir.Stmt) -> bool:
        function = self.every.called(node) if isinstance(node, ir.Call) else None
        return _on_batch(node) or (function is not None and self.every.leaves_late(function))

    def _expression(self, whole: ir.Expr, span: Span) -> None:
        nodes = list(ir.walk(whole))
        launches = [n for n in nodes if self._launches(n)]  # with memsets and copies
        streams = {
            id(n) for launch in launches if isinstance(launch, ir.Launch) for n in ir.walk(launch.configuration[3])
        }
        ends = [n for n in nodes if self._ends(n)]
        said = {id(n) for n in launches} | streams | {id(n) for n in ends}
        other = next((n for n in nodes if id(n) not in said and not self.every.is_silent(n)), None)
        if other is not None and (self.late or launches):
            what = other.name if isinstance(other, ir.Call) and other.name else "something that is not known"
            self._tells(span, f"'{what}'")
        if ends:
            only = ir.bare(whole)
            if len(ends) != 1 or only is not ends[0]:
                self._tells(span, "a part of a statement")
            self.late = self.late and isinstance(only, ir.Call) and only.name.rpartition("::")[2] == TRIP
        self.late = self.late or bool(launches)

    def _ends(self, node: ir.Expr | ir.Stmt) -> bool:
        """Whether a node is a call that issues what is late, or may."""
        if not isinstance(node, ir.Call):
            return False
        name, receiver = node.name.rpartition("::")[2], node.receiver
        if name == END and isinstance(receiver, ir.Name):
            return receiver.variable.type.record.rpartition("::")[
                2
            ] == GUARD or receiver.variable.type.spelling.endswith(GUARD)
        return name in (ISSUE, TRIP) and not node.standard

    def _tells(self, span: Span, what: str) -> None:
        self.problems.append((span, f"launches may be late, and {what} could tell"))


def _declared(block: ir.Block) -> Iterator[ir.Stmt]:
    """What a block declares, also several variables at once."""
    for one in block.body:
        if isinstance(one, ir.Block) and one.declares:
            yield from _declared(one)
        else:
            yield one
