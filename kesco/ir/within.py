"""What a call of a function does with a pointer that it is given: ``Within(program)``.

In: a call of one of the program's functions, and the number of an argument. Out: whether the pointer goes to the
device's work and nowhere else, and what decides which bytes that writes, in the caller's own expressions. Apart because
whoever plans turns of loops asks it, and the proof of them.

1. A parameter stands for what it is given while nothing changes it; a variable that is set once, for what it is set to.
2. All work that is given the pointer is on each way through the function, once. A kernel writes the same bytes where
what decides (`Steering`) is the same; a copy or memset where its size is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kesco.ir import program as ir
from kesco.ir.handing import carries, is_from, works_on
from kesco.ir.replay import FILL
from kesco.ir.transfers import COPY_HERE
from kesco.ir.turns import Steering

_MOVES = ("cudaMemcpy", "cudaMemcpyAsync", "cudaMemset", "cudaMemsetAsync", COPY_HERE, FILL)
_DEEP = 4


@dataclass(frozen=True, slots=True)
class Within:
    """What is known of the functions of a program."""

    program: ir.Program
    _functions: dict[str, ir.Function] = field(default_factory=dict)
    _lent: set[str] = field(default_factory=set)

    def stays(self, loop: ir.Loop, one: ir.Expr | ir.Stmt) -> bool:
        """Whether a member of an object has one value in a loop in which nothing changes what the loop does not name.

        The object is a variable of the function's own, by no other name.
        """
        if not isinstance(one, ir.Select) or one.type.shape is not ir.Shape.INTEGER or self.is_lent(one.member):
            return False
        inner: ir.Expr | None = one
        while isinstance(inner, ir.Select) and not inner.arrow:
            inner = inner.base
        if not isinstance(inner, ir.Name) or inner.variable.type.shape is not ir.Shape.RECORD or one.type.volatile:
            return False
        named = {key for n in ir.walk(loop) if isinstance(n, ir.Assign) for key in ir.names(n.target)}
        named |= {n.variable.key for n in ir.walk(loop) if isinstance(n, ir.Declare)}
        return inner.variable.key not in named and inner.variable.scope in (ir.Scope.LOCAL, ir.Scope.PARAMETER)

    def is_lent(self, member: str) -> bool:
        """Whether a member of some class has another name somewhere, or its address is taken."""
        if not self._lent:
            self._lent.add("")
            for function in self.program.functions:
                for node in ir.walk(function.body):
                    for one in _lent_in(node):
                        self._lent.update(n.member for n in ir.walk(one) if isinstance(n, ir.Select))
        return member in self._lent

    def hands_on(self, call: ir.Call, index: int, depth: int = _DEEP) -> bool:
        """Whether a pointer that is given to a function goes to the device's work and nowhere else."""
        function = self._function(call)
        if function is None or not depth or index >= len(function.parameters):
            return False
        pointer = function.parameters[index]
        plain = pointer.type.shape is ir.Shape.POINTER and not pointer.type.volatile
        if not plain or pointer.key in _changed(function):
            return False
        return all(self._handed(function.body, pointer.key, depth))

    def deciding(self, call: ir.Call, index: int, steering: Steering, depth: int = _DEEP) -> list[ir.Expr] | None:
        """What decides which bytes a call writes through an argument, whatever memory holds; None if more does.

        The argument itself is among it. For a call that reads none of them.
        """
        function = self._function(call)
        if function is None or not self.hands_on(call, index, depth):
            return None
        key, body = function.parameters[index].key, function.body
        nodes = (n for n in ir.walk(body) if isinstance(n, (ir.Launch, ir.Call)))
        work = [n for n in nodes if any(is_from(one, key) for one in n.arguments)]
        found: list[ir.Expr] = []
        for node in work:
            inner = self._deciding_in(node, key, steering, depth)
            once = ir.always(body, node) and not _is_in_loop(body, node)
            if inner is None or not once:
                return None
            found += inner
        told = [self._in_caller(function, call, one, depth=8) for one in found]
        if not work or any(one is None for one in told):
            return None
        return [expression for one in told for expression in one or ()]

    def is_reckoned(self, node: ir.Expr | ir.Stmt) -> bool:
        """Whether a node's value is reckoned from those in it alone, as that of a function of one expression is."""
        match node:
            case ir.Constant() | ir.Binary() | ir.Unary() | ir.Cast() | ir.Branch():
                return True
            case ir.Literal():
                return node not in (ir.VARYING, ir.DEFAULT)
            case ir.Select(arrow=False, base=ir.Name(variable=shape)):
                return _is_dim3(shape)
            case ir.Call(constructs=True):
                return node.name.rpartition("::")[2] == "dim3"
            case ir.Call(standard=True):
                return node.name in ("std::min", "std::max")
            case ir.Call(receiver=None):
                function = self._function(node)
                body = function.body if function is not None else None
                single = isinstance(body, ir.Block) and len(body.body) == 1 and ir.DEFAULT not in node.arguments
                return single and isinstance(body, ir.Block) and self._is_value(body.body[0], function)
        return False

    def _is_value(self, one: ir.Stmt, function: ir.Function | None) -> bool:
        """Whether a statement returns what is reckoned from integers that a function is given."""
        if not isinstance(one, ir.Leave) or one.how != "return" or one.value is None or function is None:
            return False
        given = {p.key for p in function.parameters if p.type.shape is ir.Shape.INTEGER}
        return all(
            self.is_reckoned(n)
            or (isinstance(n, ir.Name) and (n.variable.constant is not None or n.variable.key in given))
            for n in ir.walk(one.value)
        )

    def _function(self, call: ir.Call) -> ir.Function | None:
        if not self._functions:
            self._functions.update({f.key: f for f in self.program.functions})
        function = self._functions.get(call.key)
        if function is None or call.standard or call.constructs or function.virtual or function.template:
            return None
        return function if len(function.parameters) == len(call.arguments) else None

    def handed(self, node: ir.Expr | ir.Stmt, key: str) -> Iterator[bool]:
        """True for each mention of a pointer whose value goes to work and nowhere else."""
        return self._handed(node, key, _DEEP)

    def _handed(self, node: ir.Expr | ir.Stmt, key: str, depth: int, inside: bool = False) -> Iterator[bool]:
        """True for each mention of a pointer whose value goes to work and nowhere else."""
        if isinstance(node, ir.Name):
            if node.variable.key == key:
                yield inside
            return
        for child in ir.children(node):
            passes = works_on(node, child) or (inside and carries(node, child))
            if isinstance(node, ir.Call) and not passes and not node.standard and isinstance(child, ir.Expr):
                given = [n for n, one in enumerate(node.arguments) if one is child and is_from(one, key)]
                passes = bool(given) and self.hands_on(node, given[0], depth - 1)
            yield from self._handed(child, key, depth, passes)

    def _deciding_in(self, node: ir.Launch | ir.Call, key: str, steering: Steering, depth: int) -> list[ir.Expr] | None:
        """The same for work in a function, in that function's expressions."""
        given = [n for n, one in enumerate(node.arguments) if key in ir.names(one)]
        if len(given) != 1:
            return None
        at = given[0]
        if isinstance(node, ir.Call):
            if node.name.rpartition("::")[2] not in _MOVES:
                return self.deciding(node, at, steering, depth - 1)
            return [node.arguments[at], node.arguments[2]] if at == 0 and len(node.arguments) > 2 else None
        deciding = {at}
        for kernel in node.kernel.candidates:
            decides = steering.get(kernel, {}).get(at)
            if decides is None:
                return None
            deciding |= decides
        if not node.kernel.candidates or max(deciding) >= len(node.arguments):
            return None
        found = [node.arguments[n] for n in sorted(deciding)]
        return None if ir.DEFAULT in found else [*found, *node.configuration[:3]]

    def _in_caller(self, function: ir.Function, call: ir.Call, one: ir.Expr, depth: int) -> list[ir.Expr] | None:
        """What an expression of a function is reckoned from, in its caller's expressions; None if from more."""
        changed = _changed(function)
        pairs = zip(function.parameters, call.arguments, strict=True)
        given = {p.key: a for p, a in pairs if a != ir.DEFAULT}  # that may be another one each time
        found: list[ir.Expr] = []
        for node in ir.walk(one):
            if isinstance(node, ir.Name):
                variable = node.variable
                if variable.constant is not None:
                    continue
                if variable.key in changed or variable.type.volatile or not depth:
                    return None
                if variable.key in given and variable.type.shape in (ir.Shape.INTEGER, ir.Shape.POINTER):
                    found.append(given[variable.key])
                    continue
                inner = self._of_local(function, call, variable, depth - 1)
                if inner is None:
                    return None
                found += inner
            elif isinstance(node, ir.Select) and ir.named(node) is not None:
                own = is_this(call.receiver)
                if (own and not function.method_of) or node.type.shape is not ir.Shape.INTEGER or node.type.volatile:
                    return None
                if f".{node.member}" in changed:
                    return None
                object_ = None if own else call.receiver
                found.append(node if own else ir.Select(object_, node.member, False, node.type, node.span))
            elif not self.is_reckoned(node) and node not in (ir.DEFAULT, ir.Literal("this")):
                return None
        return found

    def _of_local(
        self, function: ir.Function, call: ir.Call, variable: ir.Variable, depth: int
    ) -> list[ir.Expr] | None:
        """The same for a variable that is declared with a value once, on each way to its use."""
        declared = [n for n in ir.walk(function.body) if isinstance(n, ir.Declare) and n.variable.key == variable.key]
        whole = variable.type.shape is ir.Shape.INTEGER or _is_dim3(variable)
        if len(declared) != 1 or not whole or declared[0].initial is None or variable.scope is not ir.Scope.LOCAL:
            return None
        return self._in_caller(function, call, declared[0].initial, depth)


def is_this(receiver: ir.Expr | None) -> bool:
    """Whether a method is called for the object whose method calls it."""
    inner = ir.bare(receiver) if receiver is not None else None
    inner = ir.bare(inner.pointer) if isinstance(inner, ir.Dereference) else inner
    return inner is None or inner == ir.Literal("this")


def _is_dim3(variable: ir.Variable) -> bool:
    """Whether a variable is the shape of a grid or a block."""
    return variable.type.spelling.removeprefix("const ") == "dim3"


def _changed(function: ir.Function) -> set[str]:
    """The variables that a function may give another value than they begin with, and members, with a dot."""
    targets = (n.target for n in ir.walk(function.body) if isinstance(n, ir.Assign))
    members = (f".{n.member}" for one in targets for n in ir.walk(one) if isinstance(n, ir.Select))
    return {*ir.reassigned(function.body), *members}


def _lent_in(node: ir.Expr | ir.Stmt) -> list[ir.Expr | ir.Stmt]:
    """What somebody may change by another name behind a node."""
    match node:
        case ir.AddressOf() | ir.Unknown() | ir.New() | ir.Obstacle():
            return ir.children(node)
        case ir.Declare(initial=ir.Expr() as value) if node.variable.type.shape is ir.Shape.REFERENCE:
            return [value]
        case ir.Call():
            return [one for one, changes in zip(node.arguments, node.references, strict=False) if changes]
    return []


def _is_in_loop(body: ir.Stmt, node: ir.Expr | ir.Stmt) -> bool:
    """Whether something is in a loop that may have several turns."""
    loops = (n for n in ir.walk(body) if isinstance(n, ir.Loop) and not _is_once(n))
    return any(one is node for loop in loops for one in ir.walk(loop))


def _is_once(loop: ir.Loop) -> bool:
    """Whether it is the ``do … while (0)`` of a macro."""
    return loop.tested_after and loop.condition is not None and ir.bare(loop.condition) == ir.Constant(0)
