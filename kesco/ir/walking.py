"""What is in an expression or statement: `children`, `walk`, `bare`, `names`; and how one is left: `breaks`, `leaves`.

`flat` and `always` say in which order statements run. In: a node of `tree`. Out: the nodes in it. Which fields hold
nodes is read off their annotations, so that a new kind of node is walked, too, or refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields

from kesco.ir.replay import ENDS
from kesco.ir.tree import (
    AddressOf,
    Assign,
    Block,
    Branch,
    Call,
    Case,
    Cast,
    Declare,
    Evaluate,
    Expr,
    If,
    Leave,
    Literal,
    Loop,
    Name,
    New,
    Obstacle,
    Select,
    Stmt,
    Subscript,
    Switch,
    Unknown,
)  # fmt: skip
from kesco.ir.types import Scope, Shape, Variable
from kesco.source import Span

_NOWHERE = Span("", 0, 0, 1, 1)
_PLAIN = frozenset(
    {"str", "int", "bool", "Span", "Span | None", "Type", "Variable", "Type | None", "Kernel", "Kernel | None",
     "int | None", "tuple[bool, ...]"}
)  # fmt: skip
"""The annotations of fields that hold no expression or statement."""
_HOLDS = frozenset({"Expr", "Stmt", "Expr | None", "Stmt | None", "tuple[Expr, ...]", "tuple[Stmt, ...]"})
"""The annotations of those that do; there are no others."""
_SLOTS: dict[type, tuple[str, ...]] = {}
_MOST_WALKED = 1000
_WALKED: dict[int, tuple[Block, list[Expr | Stmt]]] = {}
"""What is in the blocks that were walked last: functions' bodies are asked again and again. The nodes do not change."""


def _slots(kind: type[Expr | Stmt]) -> tuple[str, ...]:
    """The fields that hold expressions or statements; a `TypeError` for one of which that is not known."""
    names = []
    for one in fields(kind):
        if str(one.type) in _HOLDS:
            names.append(one.name)
        elif str(one.type) not in _PLAIN:
            raise TypeError(f"{kind.__name__}.{one.name}: may an expression be in a {one.type}?")
    return tuple(names)


def children(node: Expr | Stmt) -> list[Expr | Stmt]:
    """The expressions and statements directly inside one."""
    kind = type(node)
    names = _SLOTS.get(kind)
    if names is None:
        names = _SLOTS[kind] = _slots(kind)
    found: list[Expr | Stmt] = []
    for name in names:
        value = getattr(node, name)
        if value.__class__ is tuple:
            found += value
        elif value is not None:
            found.append(value)
    return found


def walk(node: Expr | Stmt) -> Iterator[Expr | Stmt]:
    """A node and everything inside it, in no particular order."""
    if type(node) is not Block:
        return iter(_inside(node))
    known = _WALKED.get(id(node))
    if known is None or known[0] is not node:
        if len(_WALKED) >= _MOST_WALKED:
            _WALKED.clear()
        known = _WALKED[id(node)] = (node, _inside(node))
    return iter(known[1])


def _inside(node: Expr | Stmt) -> list[Expr | Stmt]:
    found, work = [], [node]
    while work:
        one = work.pop()
        found.append(one)
        if _SLOTS.get(type(one)) != ():
            work += children(one)
    return found


def breaks(statement: Stmt) -> bool:
    """Whether a break or continue inside the statement would leave it."""
    if isinstance(statement, Leave):
        return statement.how in ("break", "continue")
    if isinstance(statement, Block):
        return any(breaks(s) for s in statement.body)
    if isinstance(statement, If):
        return breaks(statement.then) or (statement.other is not None and breaks(statement.other))
    if isinstance(statement, Case):
        return breaks(statement.body)
    return bool(isinstance(statement, Switch))


def leaves(statement: Stmt) -> bool:
    """Whether a statement ends with a way out of its function, or of the process."""
    while isinstance(statement, Block) and statement.body:
        statement = statement.body[-1]
    if isinstance(statement, Evaluate) and isinstance(last := bare(statement.expression), Call):
        return last.name.rpartition("::")[2] in ENDS
    return isinstance(statement, Leave) and statement.how in ("return", "throw")


def flat(block: Block) -> Iterator[Stmt]:
    """The statements of a block; several variables that are declared at once are one statement each."""
    for one in block.body:
        if isinstance(one, Block) and one.declares:
            yield from one.body
        else:
            yield one


def always(node: Expr | Stmt, target: Expr | Stmt) -> bool:
    """Whether every way through a node executes what is in it."""
    if node is target:
        return True
    parts = children(node)
    if isinstance(node, (If, Branch)):
        parts = [*(node.before if isinstance(node, If) else ()), node.condition]
    elif isinstance(node, Loop):
        parts = [*node.before, node.body] if node.tested_after else [*node.before]
    elif isinstance(node, (Switch, Unknown)):
        return False
    for part in parts:
        if any(one is target for one in walk(part)):
            return always(part, target)
        if any(isinstance(one, Leave) for one in walk(part)):
            return False
    return False


def names(node: Expr | Stmt) -> Iterator[str]:
    """The variables that are named in a node, by their keys."""
    return (n.variable.key for n in walk(node) if isinstance(n, Name))


def lent(node: Expr | Stmt, but: Collection[str] = ()) -> Iterator[str]:
    """The variables whose address is taken, or that get another name, but in the first argument of these calls."""
    skipped: Expr | None = None
    if isinstance(node, AddressOf):
        yield from placed(node.target)
    elif isinstance(node, (Unknown, New, Obstacle)):
        yield from names(node)
    elif isinstance(node, Declare) and node.variable.type.shape is Shape.REFERENCE and node.initial is not None:
        yield from names(node.initial)
    elif isinstance(node, Call):
        skipped = node.arguments[0] if node.name in but and node.arguments else None
        for argument, changes in zip(node.arguments, node.references, strict=False):
            yield from names(argument) if changes else ()
        yield from names(node.receiver) if node.receiver is not None else ()
    for child in children(node):
        if child is not skipped:
            yield from lent(child, but)


def reassigned(body: Stmt) -> set[str]:
    """The variables that may get another value in a function's body than they begin with, by their keys."""
    targets = (n.target for n in walk(body) if isinstance(n, Assign))
    return {*lent(body), *(key for one in targets for key in names(one))}


def placed(target: Expr) -> Iterator[str]:
    """The variables in which a place may be: not those that only tell which element it is."""
    one = bare(target)
    match one:
        case Subscript(base=base):
            yield from placed(base)
        case Select(base=Expr() as base):
            yield from placed(base)
        case Call(receiver=Expr() as receiver) if one.standard and one.name.rpartition("::")[2] == "operator[]":
            yield from placed(receiver)
        case _:
            yield from names(one)


def bare(expression: Expr) -> Expr:
    """What is cast, apart from the casts."""
    while isinstance(expression, Cast):
        expression = expression.operand
    return expression


def named(node: Expr | Stmt) -> Variable | None:
    """The variable whose name an expression is, a member of ``this`` also being one."""
    one = bare(node) if isinstance(node, Expr) else node
    if isinstance(one, Name):
        return one.variable
    if not isinstance(one, Select) or one.span is None or not (one.base is None or bare(one.base) == Literal("this")):
        return None
    return Variable(f"this->{one.member}", one.member, one.type, Scope.GLOBAL, _NOWHERE)


def named_in(node: Expr | Stmt) -> Iterator[str]:
    """The keys of the variables that are mentioned, members of ``this`` among them."""
    leaves = (n for n in walk(node) if isinstance(n, (Name, Select)))
    return (one.key for n in leaves if (one := named(n)) is not None)


def changes_others(node: Expr | Stmt, bodies: Mapping[str, Stmt]) -> bool:
    """Whether a function that is called there may change what is not a variable of its own.

    `bodies` has functions by their keys; what others do is not looked at.
    """
    seen: set[str] = set()
    todo: list[Expr | Stmt] = [node]
    while todo:
        for call in [n for n in walk(todo.pop()) if isinstance(n, Call) and n.key in bodies and n.key not in seen]:
            seen.add(call.key)
            todo.append(bodies[call.key])
            targets = [n.target for n in walk(bodies[call.key]) if isinstance(n, Assign)]
            if not all(_is_own(one) for one in targets):
                return True
    return False


def _is_own(target: Expr) -> bool:
    one = bare(target)
    return (
        isinstance(one, Name) and one.variable.scope is Scope.LOCAL and one.variable.type.shape is not Shape.REFERENCE
    )
