"""Statements that neither write nor free what a copy in the background may be reading: ``Harmless(program)``.

In: a program, and which of its copies to the host wait for all that they could write. Out: whether a statement, with
all that is in it, is harmless. Apart from where the waits go because it is about single statements only.

1. Calls of CUDA that give the device work, ask it, or wait for it are, where the list in ``ir.transfers`` has them. 2.
So is writing a variable that was declared with fewer bytes than the smallest copy in the background has: a source is a
part of one object. 3. So are functions of the program that do nothing else, and branches that end the process after
they have said why. 4. All else is not: stores through pointers, containers, calls, the end of a scope with objects.
"""

from __future__ import annotations

from kesco.ir import program as ir
from kesco.ir.replay import ENDS
from kesco.ir.transfers import COPIES, FILLS, LEAST, LEAVES, ON_DEVICE, PRINTS, TO_DEVICE
from kesco.ir.volatiles import is_volatile

_PURE = (ir.Constant, ir.Literal, ir.FunctionName, ir.Name, ir.Select, ir.Subscript, ir.Dereference, ir.AddressOf)
_LOOKS = frozenset({"data", "size", "empty", "operator[]", "begin", "cbegin", "front", "back"})
_CONTAINERS = ("std::vector::", "std::array::", "std::__cxx11::basic_string::", "std::basic_string::")
_VALUES = frozenset({"std::min", "std::max"})
_FLOATING = frozenset({"float", "double", "long double", "bool"})


class Harmless:
    """What may stand between a copy in the background and the wait for it."""

    def __init__(self, program: ir.Program, ours: frozenset[int], least: int = LEAST) -> None:
        self.program, self.ours, self.least = program, ours, least
        self.functions = {f.key: f for f in program.functions}
        self.known: dict[str, bool] = {}

    def statement(self, one: ir.Stmt) -> bool:
        """Whether a statement and all in it is harmless, and control goes on behind it."""
        if isinstance(one, ir.Block):
            return all(self.statement(s) for s in one.body)
        if isinstance(one, ir.Evaluate):
            return self.expression(one.expression)
        if isinstance(one, ir.Declare):
            fits = one.variable.scope is ir.Scope.LOCAL and self.fits(one.variable.type)
            return fits and (one.initial is None or self.expression(one.initial))
        if isinstance(one, ir.If):
            arms = (one.then, one.other) if one.other is not None else (one.then,)
            inside = all(self.ending(arm) or self.statement(arm) for arm in arms)
            return inside and all(map(self.statement, one.before)) and self.expression(one.condition)
        if isinstance(one, ir.Loop):
            header = [e for e in (one.condition, one.step) if e is not None]
            return all(map(self.statement, (*one.before, one.body))) and all(map(self.expression, header))
        return False

    def ending(self, one: ir.Stmt) -> bool:
        """Whether a statement does nothing but say why and end the process, which waits for what is being read."""
        body = one.body if isinstance(one, ir.Block) else (one,)
        calls = [s.expression for s in body if isinstance(s, ir.Evaluate)]
        if not calls or len(calls) != len(body):
            return False
        *before, last = calls
        ends = isinstance(last, ir.Call) and last.standard and _last(last) in ENDS
        return ends and all(map(self._says, before)) and self._inside(last)

    def _says(self, one: ir.Expr) -> bool:
        if isinstance(one, ir.Call) and one.standard and _last(one) in PRINTS:
            return all(isinstance(a, ir.Expr) and self._says(a) for a in ir.children(one))
        return self.expression(one)

    def _inside(self, one: ir.Expr) -> bool:
        return all(isinstance(c, ir.Expr) and self.expression(c) for c in ir.children(one))

    def expression(self, one: ir.Expr) -> bool:
        """Whether evaluating an expression is harmless."""
        if is_volatile(one):
            return False
        inner = self._inside(one)
        if isinstance(one, ir.Assign):
            return inner and self._own(one.target)
        if isinstance(one, ir.Call):
            return inner and self._call(one)
        plain = (*_PURE, ir.Decay, ir.Binary, ir.Unary, ir.Branch, ir.Cast, ir.InitList, ir.Launch)
        return inner and isinstance(one, plain)

    def _call(self, call: ir.Call) -> bool:
        name = _last(call)
        if call.operation in self.ours or (call.standard and (name in LEAVES or name == "__assert_fail")):
            return True
        if call.standard and name in COPIES and len(call.arguments) > COPIES[name]:
            kind = call.arguments[COPIES[name]]
            return kind in (ir.Constant(TO_DEVICE), ir.Constant(ON_DEVICE), ir.Literal("default"))
        if call.standard and name in FILLS and call.arguments:
            return self._own(_pointed(call.arguments[0]))
        if call.standard and call.constructs:
            return name == "dim3"
        if call.standard and not (call.destroys or call.runs):
            return call.name in _VALUES or (call.name.startswith(_CONTAINERS) and name in _LOOKS)
        return call.key in self.functions and not any(call.references) and self._function(call.key)

    def _function(self, key: str) -> bool:
        """Whether calling a function of the program is harmless, whatever its arguments."""
        if key not in self.known:
            self.known[key] = False  # while it is looked at: recursion is not followed
            function = self.functions[key]
            body = function.body
            fits = (
                not function.virtual and not function.template and all(self.fits(p.type) for p in function.parameters)
            )
            if fits and isinstance(body, ir.Block):
                last = body.body[-1:] if body.body and isinstance(body.body[-1], ir.Leave) else ()
                values = [s.value for s in last if isinstance(s, ir.Leave) and s.value is not None]
                rest = body.body[: len(body.body) - len(last)]
                self.known[key] = all(map(self.statement, rest)) and all(map(self.expression, values))
        return self.known[key]

    def _own(self, target: ir.Expr | None) -> bool:
        """Whether an lvalue is a part of a variable that is too small to be a source."""
        while isinstance(target, (ir.Subscript, ir.Select)):
            if isinstance(target, ir.Subscript):
                target = target.base if target.array else None
            else:
                target = None if target.arrow else target.base
        return isinstance(target, ir.Name) and self.fits(target.variable.type)

    def fits(self, kind: ir.Type) -> bool:
        """Whether a variable of this type is smaller than any source, and nothing happens when it goes."""
        size = self._size(kind)
        return size is not None and size < self.least

    def _size(self, kind: ir.Type) -> int | None:
        """At most how many bytes a type has; None where that is not known, or destroying one is not nothing."""
        if kind.shape in (ir.Shape.INTEGER, ir.Shape.POINTER):
            return 16
        bare = kind.spelling.removeprefix("const ")
        if kind.shape is ir.Shape.OTHER:
            return 16 if bare in _FLOATING else None
        if kind.shape is ir.Shape.ARRAY and kind.element is not None and kind.count > 0:
            inner = self._size(kind.element)
            return None if inner is None else inner * kind.count
        if kind.shape is not ir.Shape.RECORD:
            return None
        if bare == "dim3":
            return 16
        record = self.program.records.get(kind.record)
        if record is None or record.standard or record.destructor or record.bases or record.ambiguous:
            return None
        sizes = [self._size(f.type) for f in record.fields] if record.plain else [None]
        return None if None in sizes else sum(s or 0 for s in sizes) + 16


def _last(call: ir.Call) -> str:
    return call.name.rpartition("::")[2]


def _pointed(argument: ir.Expr) -> ir.Expr | None:
    """What an argument points to, where it is written as its address."""
    argument = ir.bare(argument)
    return argument.target if isinstance(argument, ir.AddressOf) else None
