"""Arguments of one call are evaluated in any order: does that matter for these?

In: the arguments as expressions. Out: whether one of them may change a variable that another mentions. C++ leaves the
order open (compilers differ, and nvcc with GCC goes from right to left), so no value is known where it matters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import fields

from kesco.frontend.api_table import cuda_call
from kesco.ir import program as ir
from kesco.ir.volatiles import type_of

IN_ORDER = ("&&", "||", ",", "<<", ">>")
"""Operators whose left operand comes first."""
_ANYTHING = "*"
_FLOATING = ("float", "double", "long double")
_READS = (ir.Call, ir.Cast, ir.Unary, ir.Binary, ir.Constant, ir.Literal, ir.Name, ir.Select, ir.Subscript, ir.Decay)
_NAMED = ("name", "key", "member", "arrow", "operator", "value")
_ONLY_TELL = frozenset(  # of the standard library's members, those that change no object
    ("operator[]", "operator*", "operator->", "operator bool", "at", "front", "back", "data", "get",
     "size", "length", "empty", "begin", "end", "cbegin", "cend", "count", "find", "c_str", "str", "value", "has_value")
)  # fmt: skip
_IN_ANY_ORDER = frozenset(
    f"operator{one}" for one in ("+", "-", "*", "/", "%", "&", "|", "^", "==", "!=", "<", ">", "<=", ">=", "<=>")
)
_ASSIGNS = frozenset(f"operator{one}=" for one in ("", *"+-*/%&|^", "<<", ">>"))
"""With these the argument comes first."""
_SEALED = re.compile(
    r"(?:const )?std::(?:mersenne_twister_engine|linear_congruential_engine|subtract_with_carry_engine|\w+_distribution"
    r"|random_device)\b.*"
)
"""Classes of the library without bases, into whose objects no pointer leads."""
_HOLDS = re.compile(
    r"(?:std::(?:__cxx11::)?(?:vector|array|basic_string|deque|list|(?:unordered_)?(?:multi)?(?:map|set)|pair|optional"
    r"|chrono::\w+)|__gnu_cxx::__normal_iterator)::[^:]*"
)
"""Members of classes of the library that have no virtual ones."""
_VALUES = frozenset(
    ("dim3", "min", "max", "abs", "fabs", "ceil", "ceilf", "floor", "floorf", "round", "sqrt", "sqrtf", "pow", "log2")
)
"""What of the library makes a value of values."""
_SAYS = frozenset(("size", "empty", "data", "get", "front", "back", "begin", "end", "cbegin", "cend", "at"))
"""Members of classes of the library that only say what is there."""
_REACHES = frozenset(("operator[]", "operator*", "operator->"))
"""Those that say it, too, but where a map makes what it is asked for."""
_THRUST = (*_SAYS, "raw_pointer_cast")


def parts(call: ir.Call) -> tuple[ir.Expr, ...]:
    """What is evaluated in any order for a call: its arguments, and the object of an operator that names no order."""
    alone = call.receiver is None or call.name.rpartition("::")[2] not in _IN_ANY_ORDER
    return call.arguments if alone or call.receiver is None else (call.receiver, *call.arguments)


def drawn(part: ir.Expr) -> object:
    """What an argument calls, if that is all it does, and its value is of a floating type; else None.

    Two of which this is equal are evaluated as well in the other order: the same is done then, one behind the other,
    and no more is known of either's value. So it is with ``make_float2(n(engine), 2 * n(engine))``.
    """
    nodes = list(ir.walk(part))
    kind = getattr(ir.bare(part), "type", None) if not isinstance(part, ir.Cast) else part.type
    if (
        kind is None
        or kind.spelling.removeprefix("const ") not in _FLOATING
        or not all(isinstance(n, _READS) for n in nodes)
    ):
        return None
    if any(isinstance(n, ir.Binary) and n.operator in IN_ORDER for n in nodes):
        return None
    return tuple(_shape(n) for n in nodes if isinstance(n, ir.Call)) or None


def _shape(node: ir.Expr | ir.Stmt) -> object:
    """An expression without its places; a literal, whose text may not be known, is equal to no other."""
    if isinstance(node, ir.Literal):
        return object()
    named = {one.name: getattr(node, one.name) for one in fields(node) if one.name in _NAMED}
    for one in ("type", "source"):
        named[one] = getattr(getattr(node, one, None), "spelling", None)
    if isinstance(node, ir.Name):
        named["variable"] = node.variable.key
    return (type(node), *named.items(), *map(_shape, ir.children(node)))


def before_arguments(call: ir.Call) -> tuple[ir.Expr, ...]:
    """What of the object of a call is taken to be evaluated before the arguments, and may be behind them."""
    if call.receiver is None or call.name.rpartition("::")[2] not in _ASSIGNS:
        return parts(call)[: len(parts(call)) - len(call.arguments)]
    where = tuple(_read_for(call.receiver))
    return (ir.InitList(where),) if where else ()


def assigned(node: ir.Assign) -> tuple[ir.Expr, ...]:
    """The sides of an assignment: what says where it goes, and the value.

    C++17 has the value first. The host's compiler takes it so, but for what a call there changes of variables that the
    other side reads.
    """
    where = tuple(_read_for(node.target))
    return (ir.InitList(where), node.value) if where and not isinstance(node.value, (ir.Constant, ir.Literal)) else ()


def _read_for(target: ir.Expr) -> Iterator[ir.Expr]:
    """What is read to say where a target is."""
    if isinstance(target, ir.Subscript):
        yield from _read_for(target.base) if target.array else (target.base,)
        yield target.index
    elif isinstance(target, ir.Dereference):
        yield target.pointer
    elif isinstance(target, ir.Select):
        if target.base is not None:
            yield from (target.base,) if target.arrow else _read_for(target.base)
    elif not isinstance(target, ir.Name):
        yield target


def order_matters(
    arguments: tuple[ir.Expr, ...],
    pure: Collection[str],
    exposed: Callable[[ir.Variable], bool],
    *,
    floating: bool = True,
) -> bool:
    """Whether one argument may change what another mentions, or what another one's call reads.

    Not `floating`: numbers of floating types do not count, where no code of the program's runs. `pure` are the keys of
    functions that change nothing; `exposed` tells whether unseen code may change a variable.
    """
    floating = floating or any(runs_code(n, pure) for a in arguments for n in ir.walk(a))
    changed = [_changed_by(argument, pure, floating=floating) for argument in arguments]
    if not any(changed):
        return False
    put = [i for i, a in enumerate(arguments) if any(_is_seen(n, exposed) for n in ir.walk(a))]
    called = [i for i, a in enumerate(arguments) if any(map(is_of_the_program, ir.walk(a)))]
    if any(i != j for i in put for j in called):
        return True
    mentioned = [_mentioned(argument) for argument in arguments]
    for index, keys in enumerate(changed):
        others = set().union(*(m for i, m in enumerate(mentioned) if i != index))
        if keys & others:
            return True
        rest = [n for i, a in enumerate(arguments) if i != index for n in ir.walk(a)]
        changes = [n.variable for n in ir.walk(arguments[index]) if isinstance(n, ir.Name) and n.variable.key in keys]
        changes = [one for one in changes if exposed(one)]
        if (_ANYTHING in keys or changes) and any(
            _is_exposed(n, exposed) and (_ANYTHING in keys or any(_may_meet(one, n) for one in changes)) for n in rest
        ):
            return True
    return False


def _is_seen(node: ir.Expr | ir.Stmt, exposed: Callable[[ir.Variable], bool]) -> bool:
    """Whether it assigns to what code that does not name it may read."""
    if not isinstance(node, ir.Assign):
        return False
    return not isinstance(node.target, ir.Name) or exposed(node.target.variable)


def is_of_the_program(node: ir.Expr | ir.Stmt) -> bool:
    """Whether code of the program's runs in a call."""
    return isinstance(node, ir.Call) and (not node.standard or node.runs or node.destroys)


def runs_code(node: ir.Expr | ir.Stmt, pure: Collection[str]) -> bool:
    """Whether code of the program's runs that may change something, or the device is given work."""
    harmless = isinstance(node, ir.Call) and node.key in pure and not (node.runs or node.destroys)
    return isinstance(node, ir.Launch) or (is_of_the_program(node) and not harmless)


def atomic_operands(node: ir.Expr | ir.Stmt) -> tuple[ir.Expr, ...]:
    """What an operation of the compiler's own that is no call, such as ``__atomic_store_n``, may be given."""
    return node.parts if isinstance(node, ir.Unknown) and node.what == "unexposed_expr" else ()


def is_floating(target: ir.Expr) -> bool:
    """Whether what is assigned to is a number of a floating type, whose value is never known."""
    kind, inner = type_of(target), target
    while isinstance(inner, (ir.Select, ir.Subscript, ir.Dereference)):
        through = inner.pointer if isinstance(inner, ir.Dereference) else inner.base
        if through is None:
            break
        inner = through
    return kind is not None and kind.spelling in _FLOATING and not isinstance(inner, (ir.Cast, ir.Unknown))


def names_what_changes(one: ir.Expr, other: ir.Expr, pure: Collection[str]) -> bool:
    """Whether one expression mentions a variable that the other changes by its name."""
    return bool(_changed_by(one, pure) & _mentioned(other)) or bool(_changed_by(other, pure) & _mentioned(one))


def _may_meet(changed: ir.Variable, node: ir.Expr | ir.Stmt) -> bool:
    """Whether what an expression reads may be a part of a variable's object."""
    if isinstance(node, ir.Name) and ir.Shape.REFERENCE not in (changed.type.shape, node.variable.type.shape):
        return node.variable.key == changed.key
    kind = changed.type.element if changed.type.shape is ir.Shape.REFERENCE else changed.type
    if kind is None or not _SEALED.fullmatch(kind.spelling):
        return True
    return isinstance(node, ir.Name) and kind.spelling.removeprefix("const ") in node.variable.type.spelling


def changes_nothing(arguments: tuple[ir.Expr, ...], pure: Collection[str]) -> bool:
    """Whether evaluating all of these changes nothing but maps, which make what they are asked for in any order."""
    nodes = [n for a in arguments for n in ir.walk(a)]
    asked = [n for n in nodes if isinstance(n, ir.Call) and _asks_a_map(n)]
    maps = {n.receiver.variable.key for n in asked if isinstance(n.receiver, ir.Name)}
    if sum(isinstance(n, ir.Name) and n.variable.key in maps for n in nodes) != len(asked):
        maps = set()
    return all(_changed_by(argument, pure) <= maps for argument in arguments)


def _asks_a_map(call: ir.Call) -> bool:
    """Whether it is ``m[key]`` of a sorted map, and no code of the program's runs in it."""
    mine = call.runs or call.destroys or not isinstance(call.receiver, ir.Name)
    return call.standard and call.name == "std::map::operator[]" and not mine


def _is_exposed(node: ir.Expr | ir.Stmt, exposed: Callable[[ir.Variable], bool]) -> bool:
    """Whether what an expression reads may be changed by code that does not name it."""
    if isinstance(node, ir.Name):
        return node.variable.constant is None and exposed(node.variable)
    reaches = isinstance(node, ir.Subscript) and not node.array
    member = isinstance(node, ir.Select) and (node.arrow or node.base is None)
    return reaches or member or isinstance(node, ir.Dereference)


def _changed_by(argument: ir.Expr, pure: Collection[str], *, floating: bool = True) -> set[str]:
    """The variables that evaluating an argument may change; `_ANYTHING` for those that unseen code may change."""
    found: set[str] = set()
    for node in ir.walk(argument):
        if isinstance(node, ir.Assign):
            if not floating and is_floating(node.target):
                continue
            found |= {one.variable.key for one in roots(node.target)}
            if not isinstance(node.target, ir.Name):
                found.add(_ANYTHING)
        elif isinstance(node, ir.Launch) or (isinstance(node, ir.New) and not node.bare) or runs_defaults(node):
            found.add(_ANYTHING)
        elif isinstance(node, ir.Call) and node.key not in pure and not says_where(node):
            given = [a for a, changes in zip(node.arguments, node.references, strict=False) if changes]
            given = [a for a in given if not _is_temporary(a)]
            given += [a for a in map(ir.bare, node.arguments) if isinstance(a, ir.AddressOf)]
            asks = node.name.rpartition("::")[2] in _ONLY_TELL and "map::operator[]" not in node.name
            tells = node.standard and (asks or (_is_const(node) and _HOLDS.fullmatch(node.name) is not None))
            if node.receiver is not None and not tells:
                given.append(node.receiver)
            found |= {key for one in given for key in _mentioned(one)}
            if not (node.standard or (node.constructs and node.implicit)) or node.destroys or node.runs:
                found.add(_ANYTHING)
        else:
            given = [a for a in map(ir.bare, atomic_operands(node)) if isinstance(a, ir.AddressOf)]
            found |= {key for one in given for key in _mentioned(one)}
    return found


def runs_defaults(node: ir.Expr | ir.Stmt) -> bool:
    """Whether code runs where a class gives its members what a list does not: it stands in the class."""
    return isinstance(node, ir.Unknown) and node.what == "default of a member"


def _is_temporary(argument: ir.Expr) -> bool:
    """Whether it is a text that a call gives, which nothing else names: it is no view of another object."""
    kind = argument.type if isinstance(argument, ir.Call) and not argument.reference else None
    return kind is not None and "basic_string<" in kind.spelling


def _is_const(call: ir.Call) -> bool:
    """Whether it is a const member function, by its USR: one of the library changes nothing ([res.on.data.races])."""
    return call.receiver is not None and call.key.endswith("#1")


def pure_functions(program: ir.Program) -> frozenset[str]:
    """Functions that change nothing but variables of their own, and call nothing but each other and what only tells."""
    found = {f.key for f in program.functions if not f.template and not f.virtual}
    bodies = [(f.key, list(ir.walk(f.body))) for f in program.functions]
    while True:
        still = {key for key, nodes in bodies if key in found and all(_is_harmless(n, found) for n in nodes)}
        if still == found:
            return frozenset(found | _told_by_exceptions(program, found))
        found = still


def _told_by_exceptions(program: ir.Program, pure: Collection[str]) -> set[str]:
    """The functions that say what an exception is about, where those of the program's own classes only do that."""
    own = [list(ir.walk(f.body)) for f in program.functions if f.name == "what"]
    if not all(_is_harmless(node, pure) for nodes in own for node in nodes):
        return set()
    calls = (n for f in program.functions for n in ir.walk(f.body) if isinstance(n, ir.Call) and n.standard)
    return {one.key for one in calls if one.name.startswith("std::") and one.name.endswith("::what")}


def _is_harmless(node: ir.Expr | ir.Stmt, pure: Collection[str]) -> bool:
    if isinstance(node, ir.Assign):
        target: ir.Expr | None = node.target
        while isinstance(target, ir.Select) and not target.arrow:
            target = target.base
        variable = target.variable if isinstance(target, ir.Name) else None
        own = variable is not None and variable.scope in (ir.Scope.LOCAL, ir.Scope.PARAMETER)
        return own and variable is not None and variable.type.shape is not ir.Shape.REFERENCE
    if isinstance(node, ir.Call):
        tells = _only_tells(node) or _is_value(node) or says_where(node)
        return node.key in pure or (node.constructs and node.implicit) or tells
    return not isinstance(node, (ir.Launch, ir.New, ir.Unknown, ir.Obstacle))


def says_where(call: ir.Call) -> bool:
    """Whether it is a function of Thrust that says where a vector's elements are, or how many; its values are plain."""
    namespace, _, name = call.name.rpartition("::")
    return name in _THRUST and namespace.partition("::")[0] == "thrust" and call.standard and not call.runs


def _only_tells(call: ir.Call) -> bool:
    """Whether a function of the runtime does nothing but tell the name of something."""
    entry = cuda_call(call.name, len(call.arguments)) if call.standard else None
    return entry is not None and entry.kind == "query" and entry.shows == "nothing" and not entry.out


def _is_value(call: ir.Call) -> bool:
    """Whether a function of the library changes nothing, and calls nothing of the user's."""
    if not call.standard or call.runs or call.destroys or any(call.references):
        return False
    namespace, _, name = call.name.rpartition("::")
    if name in _REACHES:
        return namespace.startswith("std::") and "map" not in namespace
    return name in (_VALUES if call.receiver is None else _SAYS) and namespace.partition("::")[0] in ("", "std", "dim3")


def _mentioned(expression: ir.Expr) -> set[str]:
    return {n.variable.key for n in ir.walk(expression) if isinstance(n, ir.Name)}


def roots(place: ir.Expr) -> Iterator[ir.Name]:
    """The variables that an lvalue may be, or be a part of."""
    if isinstance(place, ir.Name):
        yield place
    elif isinstance(place, (ir.Select, ir.Subscript)):
        whole = not place.arrow if isinstance(place, ir.Select) else place.array
        yield from roots(place.base) if whole and place.base is not None else ()
    elif isinstance(place, (ir.Assign, ir.Cast)):
        yield from roots(place.target if isinstance(place, ir.Assign) else place.operand)
    elif isinstance(place, ir.Branch):
        yield from (root for one in (place.then, place.other) for root in roots(one))
    elif isinstance(place, ir.Binary) and place.operator == ",":
        yield from roots(place.right)
    elif isinstance(place, ir.Call) and place.reference:
        given = [a for a, changes in zip(place.arguments, place.references, strict=False) if changes]
        given += [place.receiver] if place.receiver is not None else []
        yield from (root for one in given for root in roots(one))
    elif isinstance(place, ir.Unknown):
        yield from (node for node in ir.walk(place) if isinstance(node, ir.Name))
