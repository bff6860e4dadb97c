"""What the text says of what a turn keeps for the next one: ``Named.of(program, turn)``.

In: a program, a loop (`kesco.ir.deferred`). Out: the local variables that the kept part names, and how each could be
held; what speaks against keeping it that the host's IR does not show. Apart from the rest because it asks no IR.

1. A number, a pointer, a small plain struct or array is copied; what a reference names is named again; a vector of
numbers, which copies of CUDA's alone are given ahead of the kept part, is moved. 2. What the kept part declares must
not have the name of anything that is named behind it, where it would no longer be seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kesco.ir import program as ir
from kesco.ir.deferred import Turn

_WORD = re.compile(rb"[A-Za-z_]\w*")
_BOUND = re.compile(rb"\bauto\b[^;={}()]*\[[^\]]*\]\s*[={(:]")
_CALLER = re.compile(rb"\b(?:__builtin_(?:FUNCTION|LINE)|source_location)\b")
_ALIGNED = re.compile(rb"\balignas\b|\baligned\b|__align__|\b_Alignas\b")
_DECLARES = re.compile(rb"\b(?:struct|class|union|enum|using|typedef|namespace)\b|^[ \t]*#", re.MULTILINE)
_OPENMP = re.compile(rb"#[ \t]*pragma[ \t]+omp[^\n]*\n(?:[^\n;{}]*\n)*[^\n;{}]*\Z")
_NUMBERS = ("float", "double", "long double")
_LOCAL = (ir.Scope.LOCAL, ir.Scope.PARAMETER)
_MOST, _ELEMENTS = 256, 512  # bytes of a struct that is copied, and elements of an array


@dataclass(frozen=True, slots=True)
class Named:
    """The local variables in question by their keys; of these, those of the `turn` itself.

    `copied` has for those that can be held so what is written, `moved` for vectors the statement that makes them.
    `returned` are the statements that may return an object, which compilers make in different ways.
    """

    variables: Mapping[str, ir.Variable] = field(default_factory=dict)
    turn: frozenset[str] = frozenset()
    copied: Mapping[str, str] = field(default_factory=dict)
    moved: Mapping[str, int] = field(default_factory=dict)
    returned: frozenset[int] = frozenset()
    why: str = ""

    @classmethod
    def of(cls, program: ir.Program, turn: Turn) -> Named:
        """See the module's docstring."""
        function = next(
            f for f in program.functions if f.here and f.span.start <= turn.whole.start < f.span.end and not f.template
        )
        loop = next(n for n in ir.walk(function.body) if isinstance(n, ir.Loop) and n.number == turn.number)
        text = program.text
        if _BOUND.search(text, function.span.start, function.span.end):
            return cls(why="there are structured bindings")
        if _CALLER.search(text):
            return cls(why="something asks for the function that it is in")
        if _OPENMP.search(text, max(0, turn.whole.start - 2000), turn.whole.start):
            return cls(why="its turns may run on several threads")
        return _Text(program, turn, function, loop).named()


@dataclass(frozen=True, slots=True)
class _Text:
    program: ir.Program
    turn: Turn
    function: ir.Function
    loop: ir.Loop

    def named(self) -> Named:
        groups = self._groups()
        kept = _all(groups[self.turn.kept])
        mine = _declared(kept)
        if why := self._hidden(mine):
            return Named(why=why)
        of_turn = _declared(_all(self._head())) | _declared(n for one in groups[: self.turn.kept] for n in _all(one))
        every = {**_named(kept), **self._written()}
        variables = {key: one for key, one in every.items() if key not in mine and one.scope in _LOCAL}
        if sizes := [one.name for one in variables.values() if one.type.shape is ir.Shape.ARRAY and one.type.count < 0]:
            return Named(why=f"'{sizes[0]}' has no constant size")
        moved = {key: at for key, one in variables.items() if (at := self._made_in(one, groups)) is not None}
        copied = {key: text for key, one in variables.items() if (text := self._copied(one)) is not None}
        return Named(variables, frozenset(of_turn & variables.keys()), copied, moved, self._returned(groups))

    def _hidden(self, mine: set[str]) -> str:
        """Whether something declared in the kept part is named behind it."""
        behind = self.turn.statements[self.turn.last :]
        if not behind:
            return ""
        text, (start, end) = self.program.text, self.turn.part
        words = {word.decode() for word in _WORD.findall(text, end, self.turn.end)}
        names = {n.variable.name for n in ir.walk(self.loop) if isinstance(n, ir.Declare) and n.variable.key in mine}
        if names & words or _DECLARES.search(text, start, end):
            return "what it declares may be named behind it"
        return ""

    def _head(self) -> Iterator[ir.Expr | ir.Stmt]:
        yield from self.loop.before
        yield from (one for one in (self.loop.condition, self.loop.step) if one is not None)
        if self.loop.inner is not self.loop.body and isinstance(self.loop.body, ir.Block):
            yield from self.loop.body.body[:-1]

    def _groups(self) -> list[list[ir.Stmt]]:
        """The statements of the body by their numbers, all that are kept in one, and those behind that."""
        groups: list[list[ir.Stmt]] = [[] for _ in range(self.turn.kept + 2)]
        starts = [one.start for one in self.turn.statements]
        body = self.loop.inner
        assert isinstance(body, ir.Block)
        for one in body.body:
            at = max(n for n, start in enumerate(starts) if start <= one.span.start)
            groups[min(at, self.turn.kept) if at < self.turn.last else -1].append(one)
        return groups

    def _written(self) -> dict[str, ir.Variable]:
        """The variables of the function whose names stand in the kept part's text, where no other has the name."""
        words = {one.decode() for one in _WORD.findall(self.program.text, *self.turn.part)}
        declared = [n.variable for n in ir.walk(self.function.body) if isinstance(n, ir.Declare)]
        every = [one for one in (*self.function.parameters, *declared) if one.name in words]
        names = [one.name for one in every]
        return {one.key: one for one in every if names.count(one.name) == 1}

    def _made_in(self, one: ir.Variable, groups: list[list[ir.Stmt]]) -> int | None:
        """The statement that makes a vector of numbers which copies of CUDA's alone are then given; None for others."""
        holds = one.type.holds
        plain = holds is not None and _is_number(holds)
        if one.type.shape is not ir.Shape.RECORD or not one.type.spelling.startswith("std::vector<") or not plain:
            return None
        found = None
        for number, group in enumerate((*groups[: self.turn.kept], groups[-1])):
            nodes = _all(group)
            if len(group) == 1 and isinstance(group[0], ir.Declare) and group[0].variable.key == one.key:
                found = number
                continue
            copies = [n for n in nodes if isinstance(n, ir.Call) and n.name.startswith("cudaMemcpy")]
            given = [m for n in copies for each in n.arguments for m in ir.walk(each)]
            if _mentions(nodes, one) > (0 if group is groups[-1] else _mentions(given, one)):
                return None
        return found

    def _copied(self, one: ir.Variable) -> str | None:
        """What is written to hold a variable; None if it cannot be."""
        kind = one.type
        if kind.volatile:
            return None
        if kind.shape is ir.Shape.REFERENCE:
            return f"&{one.name} = {one.name}"
        record = self.program.records.get(kind.record)
        if _ALIGNED.search(self.program.text) and kind.shape in (ir.Shape.ARRAY, ir.Shape.RECORD):
            return None  # a copy may stand elsewhere
        array = kind.element is not None and kind.shape is ir.Shape.ARRAY and 0 < kind.count <= _ELEMENTS
        plain = kind.shape is ir.Shape.RECORD and record is not None and record.plain and not record.destructor
        small = record is not None and 0 < record.size <= _MOST
        numbers = array and kind.element is not None and _is_number(kind.element)
        return one.name if kind.shape is ir.Shape.POINTER or _is_number(kind) or numbers or (plain and small) else None

    def _returned(self, groups: list[list[ir.Stmt]]) -> frozenset[int]:
        """The statements ahead of the kept part that return an object."""
        result = self.function.result
        if result is not None and result.shape in (ir.Shape.INTEGER, ir.Shape.POINTER):
            return frozenset()
        leaves = (n for n, one in enumerate(groups[: self.turn.kept]) for each in _all(one) if _is_return(each))
        return frozenset(leaves)


def _all(nodes: Iterable[ir.Expr | ir.Stmt]) -> list[ir.Expr | ir.Stmt]:
    return [n for one in nodes for n in ir.walk(one)]


def _is_number(kind: ir.Type) -> bool:
    return kind.shape is ir.Shape.INTEGER or (
        kind.shape is ir.Shape.OTHER and kind.spelling.removeprefix("const ") in _NUMBERS and not kind.volatile
    )


def _is_return(node: ir.Expr | ir.Stmt) -> bool:
    return isinstance(node, ir.Leave) and node.how == "return" and node.value is not None


def _mentions(nodes: Iterable[ir.Expr | ir.Stmt], one: ir.Variable) -> int:
    return sum(isinstance(n, ir.Name) and n.variable.key == one.key for n in nodes)


def _declared(nodes: Iterable[ir.Expr | ir.Stmt]) -> set[str]:
    return {n.variable.key for n in nodes if isinstance(n, ir.Declare)}


def _named(nodes: Iterable[ir.Expr | ir.Stmt]) -> dict[str, ir.Variable]:
    return {n.variable.key: n.variable for n in nodes if isinstance(n, (ir.Name, ir.Declare))}
