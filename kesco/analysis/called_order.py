"""Whether calls within arguments meet in memory that no argument names: ``Meetings(program).matter(arguments, pure)``.

In: a parsed file; arguments of one call, or operands. Out: whether a function that one of them calls may change what a
function that another one calls reads or changes: a variable of the file, or memory behind pointers. Apart from what
the arguments mention themselves (`evaluation_order`), as it is found once for each function, in what it calls, too.

What it does not see, it takes for anything: calls through pointers, lambdas, virtual functions. Of two functions of
other files nothing is known in either order, so they do not meet.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from kesco.analysis.evaluation_order import names_what_changes, roots, says_where
from kesco.frontend.api_table import cuda_call
from kesco.frontend.library_table import library_call
from kesco.ir import program as ir

_MEMORY, _UNSEEN = "*", "?"
_STREAMS = ("c:@stderr", "c:@stdout", "c:@stdin", "c:@N@std@")
_KEEP_NOTHING = ("cuda", "std::swap", "std::exchange", "std::getline", "std::operator", "std::move", "std::min")
_SHIFTS = ("operator<<", "operator>>")
_FILLS = (
    "alloc",
    "alias",
    "copy",
    "device",
    "event_create",
    "query",
    "stream_create",
    "stream_destroy",
    "event_destroy",
)
_Sets = tuple[frozenset[str], frozenset[str]]
"""What is read, and what is changed."""


@dataclass
class Meetings:
    """Answers for one file; what was found of a function is kept."""

    program: ir.Program
    _functions: dict[str, ir.Function] = field(default_factory=dict)
    _own: dict[str, tuple[_Sets, frozenset[str]]] = field(default_factory=dict)
    _known: dict[str, _Sets] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._functions = {one.key: one for one in self.program.functions if not (one.template or one.virtual)}

    def matter(self, arguments: tuple[ir.Expr, ...], pure: Collection[str]) -> bool:
        """Whether the order matters; `pure` are the keys of functions that change nothing."""
        every = [self._called(argument, pure) for argument in arguments]
        return any(
            _meet(one[1], other[0] | other[1])
            for index, one in enumerate(every)
            for at, other in enumerate(every)
            if at != index
        )

    def matters_to(self, sides: tuple[ir.Expr, ...], pure: Collection[str]) -> bool:
        """Whether a call in one side of an assignment may change what the other side reads by itself, or in a call."""
        one, other = sides
        for a, b in ((one, other), (other, one)):
            reads = self._called(b, pure)[0].union(*map(_named, ir.walk(b)))
            if _meet(self._called(a, pure)[1], reads):
                return True
        return names_what_changes(one, other, pure)

    def _called(self, argument: ir.Expr, pure: Collection[str]) -> _Sets:
        reads, writes = set[str](), set[str]()
        for node in ir.walk(argument):
            if isinstance(node, ir.Call):
                its = self._of_call(node)
                reads |= its[0]
                writes |= its[1] if node.key not in pure else frozenset()
        return frozenset(reads), frozenset(writes)

    def _of_call(self, call: ir.Call) -> _Sets:
        if call.key in self._functions:
            return self._of_function(self._functions[call.key])
        both = frozenset((_MEMORY,))
        if says_where(call):
            return frozenset(), frozenset()
        if call.standard or (call.constructs and call.implicit):
            return (both, both) if call.runs or call.destroys else (frozenset(), frozenset())
        other_file = call.key and call.receiver is None and not call.constructs and "lambda" not in call.name
        return (frozenset((_UNSEEN,)), frozenset((_UNSEEN,))) if other_file else (both, both)

    def _of_function(self, function: ir.Function) -> _Sets:
        """Of a function with all that it may call; functions may call each other in turn."""
        if function.key not in self._known:
            reads, writes, seen, work = set[str](), set[str](), set[str](), [function.key]
            while work:
                key = work.pop()
                if key in seen:
                    continue
                seen.add(key)
                its, called = self._in(self._functions[key])
                reads |= its[0]
                writes |= its[1]
                work += called
            self._known[function.key] = frozenset(reads), frozenset(writes)
        return self._known[function.key]

    def _in(self, function: ir.Function) -> tuple[_Sets, frozenset[str]]:
        """Of a function by itself, and which ones of the file it calls."""
        if function.key not in self._own:
            reads, writes, called = set[str](), set[str](), set[str]()
            for node in ir.walk(function.body):
                reads |= _named(node)
                if isinstance(node, ir.Assign):
                    writes |= _behind(node.target)
                elif isinstance(node, ir.Call):
                    if node.key in self._functions:
                        called.add(node.key)
                    else:
                        its = self._of_call(node)
                        reads |= its[0]
                        writes |= its[1]
                    given = [a for a, changes in zip(node.arguments, node.references, strict=False) if changes]
                    given += [a for a in node.arguments if isinstance(a, ir.AddressOf)]
                    given += [node.receiver] if node.receiver is not None else []
                    writes |= {key for one in given for key in _behind(one) - {_MEMORY}}
            self._own[function.key] = (frozenset(reads), frozenset(writes)), frozenset(called)
        return self._own[function.key]


def bound(program: ir.Program) -> frozenset[str]:
    """The variables that may have a second name: a reference or a pointer, one in an object or a lambda, or one that a
    call kept.
    """
    code = (*(function.body for function in program.functions), *program.inside)
    every = [node for one in code for node in ir.walk(one)]
    cuda = [n for n in every if isinstance(n, ir.Call) and _is_of_cuda(n)]
    filled = {id(inner) for n in cuda for a in n.arguments for inner in ir.walk(a)}
    taken = (n.target for n in every if isinstance(n, ir.AddressOf) and id(n) not in filled)
    found: list[ir.Expr] = [root for one in taken for root in roots(one)]
    for node in every:
        if isinstance(node, ir.Declare) and node.initial is not None:
            record = program.records.get(node.variable.type.record)
            held = record is not None and any(one.type.shape is ir.Shape.REFERENCE for one in record.fields)
            found += [node.initial] if held or node.variable.type.shape is ir.Shape.REFERENCE else []
        elif isinstance(node, ir.Unknown) and node.what == "lambda":
            found += node.parts
        elif isinstance(node, ir.Call) and not (node.standard and node.name.startswith(_KEEP_NOTHING)):
            given = (a for a, changes in zip(node.arguments, node.references, strict=False) if changes)
            found += [a for a in given if not isinstance(a, ir.Call) or a.reference]  # others are values
    return frozenset(n.variable.key for one in found for n in ir.walk(one) if isinstance(n, ir.Name))


def _is_of_cuda(call: ir.Call) -> bool:
    """Whether a call keeps no address of a variable that it fills."""
    if not call.standard:
        return False
    entry = cuda_call(call.name, len(call.arguments))
    if entry is not None:
        return entry.kind in _FILLS
    return library_call(call.name, len(call.arguments)) is not None


def shifts(program: ir.Program, call: ir.Call) -> bool:
    """Whether it is ``a << b``, whose left side compilers evaluate first, whichever function that calls."""
    written = program.text[call.span.start : call.span.end]
    return call.name.rpartition("::")[2] in _SHIFTS and b"operator" not in written


def _meet(changed: frozenset[str], touched: frozenset[str]) -> bool:
    if not changed or not touched or changed | touched == {_UNSEEN}:
        return False
    return bool(changed & touched) or bool({_MEMORY, _UNSEEN} & (changed | touched))


def _behind(target: ir.Expr) -> set[str]:
    """What is changed through an expression."""
    return {key for node in ir.walk(target) for key in _named(node)}


def _named(node: ir.Expr | ir.Stmt) -> set[str]:
    """What of others a node by itself stands for: a variable of the file, or memory behind a pointer."""
    if isinstance(node, ir.Name):
        one = node.variable
        own = one.scope in (ir.Scope.LOCAL, ir.Scope.PARAMETER) or one.constant is not None
        return set() if own or one.key.startswith(_STREAMS) else {one.key}
    reaches = isinstance(node, ir.Dereference) or (isinstance(node, ir.Subscript) and not node.array)
    of_this = isinstance(node, ir.Select) and (node.base is None or _is_this(node.base))  # which the argument names
    reaches = reaches or (isinstance(node, ir.Select) and node.arrow and not of_this)
    return {_MEMORY} if reaches else set()


def _is_this(base: ir.Expr) -> bool:
    """Whether it is the object of which this is a method."""
    return isinstance(base, ir.Name) and base.variable.name == "this"
