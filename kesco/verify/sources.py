"""What a copy in the background may still be reading is neither written nor freed: ``source_problems(program)``.

In: the concurrent program as read from its text. Out: what speaks against its copies by ``kesco_send``, in words, each
with its place. A stage of its own because it is about the host's memory, of which the order of the work says nothing.

1. Walking back from each function's end, it is kept whether control may come to a *change* before a ``kesco_sent`` (or
``kesco_fetched``, or a copy to the host by ``kesco_copy``, which wait, too). No copy may stand where that is so. 2. A
change is all that is not known to be none: calls of CUDA that only give the device work, variables too small to hold a
source, functions that only do such things, and what says why the process ends, are none. To leave a function or a scope
with objects is one.
3. A copy that cannot be found in a function that is read here is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from kesco.ir import program as ir
from kesco.ir.replay import ENDS
from kesco.ir.transfers import (
    COPIES,
    COPY,
    FETCH,
    FETCHED,
    FILLS,
    LATER,
    LEAST,
    LEAVES,
    PRINTS,
    SEND,
    SENT,
    SETS,
    TO_DEVICE,
    TO_HOST,
)
from kesco.ir.volatiles import is_volatile
from kesco.source import Span

Problem = tuple[Span, str]
_CALLED = re.compile(rb"(?<!cudaError_t )\bkesco_send\s*\(")
_SENDS = frozenset({SEND})
_READERS = re.compile(
    r"std::(?:vector|array|(?:__cxx11::)?basic_string)::(?:data|size|empty|operator\[\]|c?begin|front|back)"
)
_WORDS = {ir.Shape.INTEGER: 16, ir.Shape.POINTER: 8}
_OTHERS = {"(anonymous namespace)::KescoTurns": 256, "float": 4, "double": 8, "long double": 16, "bool": 1, "dim3": 12}


def source_problems(program: ir.Program) -> tuple[Problem, ...]:
    """All that speaks against the copies in the background of a program."""
    if not _CALLED.search(program.text):
        return ()
    found: list[Problem] = []
    reader = Reader(program)
    for function in program.functions:
        sends = [n for n in ir.walk(function.body) if isinstance(n, ir.Call) and word_of(n) == SEND]
        if not sends:
            continue
        if any(isinstance(n, ir.Obstacle) for n in ir.walk(function.body)):
            found += [(one.span, f"the statements behind '{SEND}' cannot be followed") for one in sends]
        else:
            reader.before(function.body, Ahead(True, True, True))
    found += [(span, _TOO_LATE) for span in sorted(reader.late)]
    if not found and len(reader.seen) != len(_CALLED.findall(program.text)):
        found.append((Span(program.path, 0, 1, 1, 1), f"a '{SEND}' stands where it cannot be read"))
    if b"thread_local" in program.text:
        found.append((Span(program.path, 0, 1, 1, 1), f"'{SEND}' in a file with objects of a thread's own"))
    return tuple(found)


_TOO_LATE = f"the host may write or free what this copies before '{SENT}'"


@dataclass(frozen=True, slots=True)
class Ahead:
    """Whether a change may come before a wait: on the way on, behind a ``break``, and behind a ``continue``."""

    on: bool
    out: bool
    again: bool


class Reader:
    """Walks functions back from their ends, and finds the calls of `word` behind which a change may come too early."""

    word = SEND
    least = LEAST

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.bodies = {f.key: f for f in program.functions}
        self.late: set[Span] = set()
        self.seen: set[Span] = set()
        self.calm: dict[str, bool] = {}
        self.proven = {(call.span, call.key) for f in program.functions for call in later_in(f)}  # by `destinations`

    # ---- ways of control ---------------------------------------------------------------------------------------

    def before(self, one: ir.Stmt, ahead: Ahead) -> bool:
        """Whether a change may come before a wait, from the beginning of a statement on."""
        match one:
            case ir.Block():
                return self._block(one, ahead)
            case ir.Evaluate():
                return self._value(one.expression, ahead.on)
            case ir.Declare():
                on = ahead.on or not self.small(one.variable.type) or one.variable.scope is not ir.Scope.LOCAL
                return self._value(one.initial, on) if one.initial is not None else on
            case ir.If():
                ahead = self._with_header(one.before, ahead)
                arms = [self._arm(one.then, ahead), ahead.on if one.other is None else self._arm(one.other, ahead)]
                return self._all(one.before, self._value(one.condition, any(arms)))
            case ir.Loop():
                return self._loop(one, self._with_header(one.before, ahead).on)
            case ir.Leave(how="break"):
                return ahead.out
            case ir.Leave(how="continue"):
                return ahead.again
            case ir.Leave():
                return self._value(one.value, True) if one.value is not None else True
        self._refuse(one)  # of a switch any part may come next
        return True

    def _with_header(self, statements: tuple[ir.Stmt, ...], ahead: Ahead) -> Ahead:
        """Where control leaves the scope of these statements, objects go."""
        return ahead if all(map(self.small, _variables(statements))) else Ahead(True, True, True)

    def _block(self, block: ir.Block, ahead: Ahead) -> bool:
        if not block.declares:
            ahead = self._with_header(block.body, ahead)
        on = ahead.on
        for one in reversed(block.body):
            on = self.before(one, replace(ahead, on=on))
        return on

    def _arm(self, one: ir.Stmt, ahead: Ahead) -> bool:
        return False if self._says_why(one) else self.before(one, ahead)

    def _loop(self, loop: ir.Loop, on: bool) -> bool:
        again = False  # from the condition on; once it is true it stays
        for _ in range(2):
            step = self._value(loop.step, again) if loop.step is not None else again
            body = self.before(loop.body, Ahead(step, on, step))
            ends = on and loop.condition is not None
            again = self._value(loop.condition, body or ends) if loop.condition is not None else body
        return self._all(loop.before, body if loop.tested_after else again)

    def _all(self, statements: tuple[ir.Stmt, ...], on: bool) -> bool:
        for one in reversed(statements):
            on = self.before(one, Ahead(on, True, True))
        return on

    def _value(self, one: ir.Expr, on: bool) -> bool:
        """An expression, behind which comes `on`; its parts may be evaluated in any order."""
        sends = [n for n in ir.walk(one) if isinstance(n, ir.Call) and self.is_one(n)]
        changes = not self.calm_value(one)
        self.seen |= {s.span for s in sends}
        if sends and (changes or on):
            self.late |= {s.span for s in sends}
        waits = not sends and not changes and self.waits(one)
        return changes or (on and not waits)

    def is_one(self, call: ir.Call) -> bool:
        """Whether a call is one of those that are looked for."""
        return word_of(call) == self.word

    def _refuse(self, one: ir.Stmt) -> None:
        sends = {n.span for n in ir.walk(one) if isinstance(n, ir.Call) and self.is_one(n)}
        self.seen |= sends
        self.late |= sends

    def waits(self, one: ir.Expr) -> bool:
        """Whether evaluating an expression always waits."""
        if isinstance(one, ir.Branch):
            return self.waits(one.condition)
        word = word_of(one) if isinstance(one, ir.Call) else ""
        if word in (SENT, FETCHED) or (word == COPY and isinstance(one, ir.Call) and way_of(one) == TO_HOST):
            return True
        return any(self.waits(c) for c in ir.children(one) if isinstance(c, ir.Expr))

    # ---- changes -----------------------------------------------------------------------------------------------

    def calm_value(self, one: ir.Expr) -> bool:
        """Whether an expression changes nothing that may be a source, and tells nobody else to."""
        if is_volatile(one):
            return False
        match one:
            case ir.Unknown() | ir.New():
                return False
            case ir.Assign():
                mine = self.holds(one.target)
            case ir.Call():
                mine = self.calls(one)
            case _:
                mine = True
        return mine and all(self.calm_value(c) for c in ir.children(one) if isinstance(c, ir.Expr))

    def calls(self, call: ir.Call) -> bool:
        """Whether a call changes nothing by itself, whatever its arguments do."""
        word = word_of(call)
        if (call.span, call.key) in self.proven:
            return True
        if not call.standard and not word.startswith(("kesco_", *SETS)):
            return not any(call.references) and self._only_calm(call.key)
        if word in (SENT, SEND, FETCH, FETCHED) or (word == COPY and way_of(call) == TO_HOST):
            return True
        if word in LEAVES or word == "__assert_fail":
            return True
        if word == "kesco_free" or (word in FILLS and call.arguments):
            target = ir.bare(call.arguments[0])
            by_name = word == "kesco_free" or (word == "kesco_malloc" and isinstance(target, ir.Name))
            return by_name or (isinstance(target, ir.AddressOf) and self.holds(target.target))
        if word in COPIES:
            return way_of(call) in (1, 3)
        if call.constructs:
            return word == "dim3"
        plain = not (call.runs or call.destroys)
        return plain and (call.name in ("std::min", "std::max") or _READERS.fullmatch(call.name) is not None)

    def _only_calm(self, key: str) -> bool:
        """Whether a function of the file does nothing that is a change, wherever it comes from."""
        function = self.bodies.get(key)
        if function is None or function.virtual or function.template or key in self.calm:
            return self.calm.get(key, False)
        self.calm[key] = False
        self.calm[key] = all(self.small(p.type) for p in function.parameters) and self._calm_body(function.body, True)
        return self.calm[key]

    def _calm_body(self, one: ir.Stmt, last: bool = False) -> bool:
        match one:
            case ir.Block():
                return all(self._calm_body(s, last and s is one.body[-1]) for s in one.body)
            case ir.Leave(how="return"):
                return last and (one.value is None or self.calm_value(one.value))
            case ir.If() if self._says_why(one.then) and one.other is None:
                return not one.before and self.calm_value(one.condition)
            case ir.Declare() if not self.small(one.variable.type) or one.variable.scope is not ir.Scope.LOCAL:
                return False
            case ir.Evaluate() | ir.Declare() | ir.If() | ir.Loop():
                inner = ir.children(one)
                return all(self._calm_body(c) if isinstance(c, ir.Stmt) else self.calm_value(c) for c in inner)
        return False

    def _says_why(self, one: ir.Stmt) -> bool:
        """Whether a statement only prints and ends the process; then exit handlers wait for what is being read."""
        body = one.body if isinstance(one, ir.Block) else (one,)
        calls = [s.expression for s in body if isinstance(s, ir.Evaluate) and isinstance(s.expression, ir.Call)]
        if not body or len(calls) < len(body) or not (calls[-1].standard and word_of(calls[-1]) in ENDS):
            return False
        return all(self.printed(c) for call in calls for c in (call, *ir.children(call))[call is calls[-1] :])

    def printed(self, one: ir.Expr | ir.Stmt) -> bool:
        """Whether printing an expression changes nothing."""
        if isinstance(one, ir.Call) and one.standard and word_of(one) in PRINTS:
            return all(self.printed(c) for c in ir.children(one))
        return isinstance(one, ir.Expr) and self.calm_value(one)

    def is_calm(self, loop: ir.Loop) -> bool:
        """Whether a loop changes nothing but small variables that it names, and those by no other name."""
        targets = (n.target for n in ir.walk(loop) if isinstance(n, ir.Assign))
        names = (n.variable for one in targets for n in ir.walk(one) if isinstance(n, ir.Name))
        calls = ir.changes_others(loop, {key: one.body for key, one in self.bodies.items()})
        return self._calm_body(loop) and not calls and not any(v.type.shape is ir.Shape.REFERENCE for v in names)

    # ---- variables ---------------------------------------------------------------------------------------------

    def holds(self, target: ir.Expr) -> bool:
        """Whether what is written lies in a variable that cannot hold a source."""
        match target:
            case ir.Name():
                return self.small(target.variable.type)
            case ir.Select(arrow=False, base=ir.Expr() as base):
                return self.holds(base)
            case ir.Subscript(array=True):
                return self.holds(target.base)
        return False

    def small(self, kind: ir.Type) -> bool:
        """Whether a variable of this type cannot hold what is looked for."""
        bytes_of = self._bytes(kind, 8)
        return 0 < bytes_of < self.least

    def _bytes(self, kind: ir.Type, depth: int) -> int:
        """An upper bound of a type's size, 0 where there is none or where more happens when one goes."""
        if depth == 0:
            return 0
        if kind.shape in _WORDS:
            return _WORDS[kind.shape]
        if kind.shape is ir.Shape.ARRAY:
            return max(kind.count, 0) * self._bytes(kind.element, depth - 1) if kind.element is not None else 0
        plain = kind.spelling.replace("const ", "")
        record = self.program.records.get(kind.record) if kind.shape is ir.Shape.RECORD else None
        if plain in _OTHERS and kind.shape is not ir.Shape.REFERENCE:
            return _OTHERS[plain]
        if record is None or not record.plain or record.standard or record.destructor or record.ambiguous:
            return 0
        parts = [self._bytes(f.type, depth - 1) for f in record.fields]
        return 0 if record.bases or 0 in parts or not parts else 2 * sum(parts) + 16


def word_of(call: ir.Call) -> str:
    """The bare name of what is called."""
    return call.name.rpartition("::")[2]


def later_in(function: ir.Function) -> tuple[ir.Call, ...]:
    """The calls in a function behind ``KescoLater``."""
    found = []
    for node in ir.walk(function.body):
        if isinstance(node, ir.Binary) and node.operator == ",":
            first, call = ir.bare(node.left), ir.bare(node.right)
            if isinstance(first, ir.Call) and word_of(first) == LATER and isinstance(call, ir.Call):
                found.append(call)
    return tuple(found)


def way_of(call: ir.Call) -> int:
    """The direction of a copy; 0 where it is not written as a constant."""
    at = COPIES.get(word_of(call), 3)
    kind = call.arguments[at] if len(call.arguments) > at else None
    if kind == ir.Literal("default"):
        return TO_DEVICE
    return kind.value if isinstance(kind, ir.Constant) else 0


def _variables(scope: tuple[ir.Stmt, ...]) -> list[ir.Type]:
    """The types of the variables that statements declare in their own scope."""
    flat = [s for one in scope for s in (one.body if isinstance(one, ir.Block) and one.declares else (one,))]
    return [s.variable.type for s in flat if isinstance(s, ir.Declare)]
