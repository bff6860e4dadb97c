"""Variables in what a turn keeps for the next one: ``Names.of(program, turn)``.

In: a program, a loop (`kesco.ir.deferred`). Out: what has to be held of the turn, since it is gone or changed when the
kept part is run, and which statements meet that by a variable. Apart from what the IR says because a variable may be in
a register there, which is no memory.

1. Of the turn is what the loop's head or body declares, and what they change. The kept part holds a copy of each such
variable that it names, if that is a number, a pointer or a plain struct; and what a reference names. 2. What the kept
part changes must not be named elsewhere in the loop. 3. Where the address of a variable in registers is kept in another
one, neither may be named in the loop: a change by that would not show.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kesco.ir import program as ir
from kesco.ir.deferred import AROUND, Turn
from kesco.llvm.types import Type

_WORD = re.compile(rb"[A-Za-z_]\w*")
_BOUND = re.compile(rb"\bauto\b[^;={}()]*\[[^\]]*\]\s*[={(:]")
_NUMBERS = ("float", "double", "long double")
_SCALARS = (ir.Shape.INTEGER, ir.Shape.POINTER)
_LOCAL = (ir.Scope.LOCAL, ir.Scope.PARAMETER)


@dataclass(frozen=True, slots=True)
class Names:
    """What is held, in the order of the text; the statements that meet the kept part; or `why` it cannot be kept.

    `own` are the places where the names of those are declared that each turn has by itself,
    `made` the statements that make the memory of such.
    """

    held: tuple[str, ...] = ()
    own: frozenset[int] = frozenset()
    made: frozenset[int] = frozenset()
    meets: frozenset[int] = frozenset()
    why: str = ""

    @classmethod
    def of(cls, program: ir.Program, turn: Turn, in_memory: Mapping[int, Type]) -> Names:
        """See the module's docstring; `in_memory` are the IR's variables, by where they are declared in the text."""
        function = next(
            f for f in program.functions if f.here and f.span.start <= turn.whole.start < f.span.end and not f.template
        )
        loop = next(n for n in ir.walk(function.body) if isinstance(n, ir.Loop) and n.number == turn.number)
        if _BOUND.search(program.text, function.span.start, function.span.end):
            return cls(why="there are structured bindings")
        return _Names(program, turn, function, loop, in_memory).found()


@dataclass(frozen=True, slots=True)
class _Names:
    program: ir.Program
    turn: Turn
    function: ir.Function
    loop: ir.Loop
    in_memory: Mapping[int, Type]

    def found(self) -> Names:
        groups = self._groups()
        by_itself = [n for one in groups.pop() for n in ir.walk(one)]
        around = [n for one in (*self._head(), *groups.pop()) for n in ir.walk(one)]
        part = [n for one in groups[self.turn.kept] for n in ir.walk(one)]
        others = [[n for one in group for n in ir.walk(one)] for group in groups[: self.turn.kept]]
        if kept := self._address_kept([*around, *part, *(n for one in others for n in one)]):
            return Names(why=f"the address of '{kept}' is kept")
        body = [n for one in others for n in one]
        gone = _declared(around) | _declared(body)
        changing = _changed([*around, *body])
        mine, changed = _declared(part), _changed(part)
        named = {**_named(part), **self._written()}
        for key, one in _named(by_itself).items():
            if key in mine | changed or (key in _handed(part) and key in gone | changing):
                return Names(why=f"'{one.name}' is held as it is ahead of the wait")
        held, own, made = list[str](), set[int](), set[int]()
        for key, one in sorted(named.items(), key=lambda item: item[1].span.start):
            if key in mine or one.scope not in _LOCAL:
                continue
            if key in gone and key in changed and key in _declared(around):
                return Names(why=f"'{one.name}' counts the turns, and is changed")
            if key not in gone and key not in changing:
                if _is_variable_array(one.type):
                    return Names(why=f"'{one.name}' has no constant size")
                continue
            if key not in gone and key in changed:
                continue  # they meet
            statement = self._made_in(one, groups)
            if statement is not None and key not in _named(around):
                held.append(f"{one.name} = std::move({one.name})")
                own.add(one.span.start)
                made.add(statement)
                continue
            if (text := self._held(one)) is None:
                return Names(why=f"'{one.name}' is gone when the next turn has launched")
            held.append(text)
            own |= {one.span.start} if key in _declared(body) and text == one.name else set()
        shared = {key for key in changed if key not in mine and key not in gone}
        meets = {n for n, one in enumerate(others) if not shared.isdisjoint(_named(one))}
        meets |= {AROUND} if not shared.isdisjoint(_named(around)) else set()
        return Names(tuple(held), frozenset(own), frozenset(made), frozenset(meets))

    def _head(self) -> Iterator[ir.Expr | ir.Stmt]:
        yield from self.loop.before
        yield from (one for one in (self.loop.condition, self.loop.step) if one is not None)
        if self.loop.inner is not self.loop.body and isinstance(self.loop.body, ir.Block):
            yield from self.loop.body.body[:-1]

    def _groups(self) -> list[list[ir.Stmt]]:
        """The statements of the body by their numbers; of what is kept, of what is behind that, and kept by itself."""
        turn = self.turn
        groups: list[list[ir.Stmt]] = [[] for _ in range(turn.kept + 3)]
        starts = [one.start for one in self.turn.statements]
        body = self.loop.inner
        assert isinstance(body, ir.Block)
        for one in body.body:
            at = max(n for n, start in enumerate(starts) if start <= one.span.start)
            groups[min(at, turn.kept) if at < turn.last else -1 if at < turn.beyond else -2].append(one)
        return groups

    def _written(self) -> dict[str, ir.Variable]:
        """The variables of the function whose names stand in the kept part's text, where no other has the name."""
        text = self.program.text[slice(*self.turn.part)]
        words = {one.decode() for one in _WORD.findall(text)}
        declared = [n.variable for n in ir.walk(self.function.body) if isinstance(n, ir.Declare)]
        every = [one for one in (*self.function.parameters, *declared) if one.name in words]
        names = [one.name for one in every]
        return {one.key: one for one in every if names.count(one.name) == 1}

    def _made_in(self, one: ir.Variable, groups: list[list[ir.Stmt]]) -> int | None:
        """The statement that makes a vector of numbers which copies of CUDA's alone are then given; None for others."""
        holds = one.type.holds
        plain = holds is not None and (holds.shape is ir.Shape.INTEGER or holds.spelling in _NUMBERS)
        if one.type.shape is not ir.Shape.RECORD or not one.type.spelling.startswith("std::vector<") or not plain:
            return None
        found = None
        for number, group in enumerate(groups[: self.turn.kept]):
            nodes = [n for each in group for n in ir.walk(each)]
            if len(group) == 1 and isinstance(group[0], ir.Declare) and group[0].variable.key == one.key:
                found = number
                continue
            copies = [n for n in nodes if isinstance(n, ir.Call) and n.name.startswith("cudaMemcpy")]
            given = [m for n in copies for each in n.arguments for m in ir.walk(each)]
            if _mentions(nodes, one) > _mentions(given, one):
                return None
        return found

    def _held(self, one: ir.Variable) -> str | None:
        """How a variable of the turn is held; None if it cannot be."""
        kind = one.type
        if kind.volatile:
            return None
        if kind.shape is ir.Shape.REFERENCE:
            return f"&{one.name} = {one.name}"
        record = self.program.records.get(kind.record)
        number = kind.shape is ir.Shape.OTHER and kind.spelling.removeprefix("const ") in _NUMBERS
        plain = kind.shape is ir.Shape.RECORD and record is not None and record.plain and not record.destructor
        return one.name if kind.shape in _SCALARS or number or plain else None

    def _address_kept(self, inside: Sequence[ir.Expr | ir.Stmt]) -> str:
        """A variable whose address another one keeps, if either is named in the loop."""
        here = _named(inside)
        for n in ir.walk(self.function.body):
            holder, value = _assigned(n)
            if value is None:
                continue
            for one in _addressed(value, refers=isinstance(n, ir.Declare) and _refers(n.variable)):
                by = holder is not None and holder.key in here
                if one.scope in _LOCAL and (one.key in here or by) and not self._is_in_memory(one):
                    return one.name
        return ""

    def _is_in_memory(self, one: ir.Variable) -> bool:
        """Whether all of a variable is in memory: an aggregate may be there in part."""
        kind, found = one.type, self.in_memory.get(one.span.start)
        if found is None:
            return False
        if kind.shape is ir.Shape.ARRAY:
            return found.kind == "array" and found.number == kind.count
        if kind.shape is ir.Shape.RECORD:
            return found.kind == "named" and found.name.partition(".")[2].startswith(kind.record)
        return found.kind in ("int", "float", "ptr")


def _mentions(nodes: Iterable[ir.Expr | ir.Stmt], one: ir.Variable) -> int:
    return sum(isinstance(n, ir.Name) and n.variable.key == one.key for n in nodes)


def _is_variable_array(kind: ir.Type) -> bool:
    return kind.shape is ir.Shape.ARRAY and kind.count < 0


def _refers(one: ir.Variable) -> bool:
    return one.type.shape is ir.Shape.REFERENCE


def _assigned(node: ir.Expr | ir.Stmt) -> tuple[ir.Variable | None, ir.Expr | None]:
    """The variable that a node gives a value, and that value."""
    if isinstance(node, ir.Declare):
        return node.variable, node.initial
    if isinstance(node, ir.Assign) and not node.operator:
        return _root(node.target), node.value
    return None, None


def _addressed(value: ir.Expr, *, refers: bool) -> Iterator[ir.Variable]:
    """The variables whose address a value is, or holds; not those that only a call in it is given."""
    todo: list[ir.Expr] = [value]
    if refers:
        yield from _referred(value)
    while todo:
        node = todo.pop()
        inner = node.target if isinstance(node, ir.AddressOf) else node.array if isinstance(node, ir.Decay) else None
        if inner is not None and (one := _root(inner)) is not None:
            yield one
        elif not isinstance(node, (ir.Call, ir.Launch, ir.Subscript, ir.Dereference)):
            todo += [n for n in ir.children(node) if isinstance(n, ir.Expr)]


def _referred(value: ir.Expr) -> Iterator[ir.Variable]:
    """The variables that a reference with this value may name."""
    value = ir.bare(value)
    if isinstance(value, ir.Branch):
        yield from _referred(value.then)
        yield from _referred(value.other)
    elif (one := _root(value)) is not None:
        yield one


def _root(target: ir.Expr) -> ir.Variable | None:
    """The variable that an lvalue is, or is a part of."""
    while True:
        if isinstance(target, ir.Cast):
            target = target.operand
        elif isinstance(target, ir.Subscript) and target.array:
            target = target.base
        elif isinstance(target, ir.Select) and not target.arrow:
            if target.base is None:
                return None
            target = target.base
        elif isinstance(target, ir.Decay):
            target = target.array
        else:
            return target.variable if isinstance(target, ir.Name) else None


def _declared(nodes: Iterable[ir.Expr | ir.Stmt]) -> set[str]:
    return {n.variable.key for n in nodes if isinstance(n, ir.Declare)}


def _named(nodes: Iterable[ir.Expr | ir.Stmt]) -> dict[str, ir.Variable]:
    return {n.variable.key: n.variable for n in nodes if isinstance(n, (ir.Name, ir.Declare))}


def _handed(nodes: Iterable[ir.Expr | ir.Stmt]) -> set[str]:
    """The variables that nodes change, or may, as they hand on an address or a reference."""
    every = list(nodes)
    found: list[ir.Variable | None] = []
    for n in every:
        if isinstance(n, (ir.AddressOf, ir.Decay)):
            found.append(_root(n.target if isinstance(n, ir.AddressOf) else n.array))
        elif isinstance(n, ir.Call):
            found += [_root(one) for one in (*n.arguments, n.receiver) if one is not None and _is_object(one)]
            found += [_root(one) for one, changes in zip(n.arguments, n.references, strict=False) if changes]
    return _changed(every) | {one.key for one in found if one is not None}


def _is_object(one: ir.Expr) -> bool:
    root = _root(one)
    return root is not None and root.type.shape is ir.Shape.RECORD


def _changed(nodes: Iterable[ir.Expr | ir.Stmt]) -> set[str]:
    """The variables that are assigned to; those that a call changes are in memory, which the IR shows."""
    found = (_root(n.target) for n in nodes if isinstance(n, ir.Assign))
    return {one.key for one in found if one is not None}
