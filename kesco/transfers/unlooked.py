"""Statements that do not look at what a copy to the host may still be writing either: ``Unlooked(program, copies)``.

In: a program, and its copies on streams, which look after each other as the program runs. Out: as of `Harmless`. Apart
because there reading is free, and here every way to read memory counts.

1. Variables that are too small to be a destination may be read, and all addresses may be computed. 2. What is read
through a pointer or a reference, an element of a container, and what any other call may read is a look: a copy from the
host's memory on the default stream is, too, since the processor may read that at once. An element that is a container
itself may be read: only its own functions may write its bytes ([basic.types]). 3. So are functions with copies,
and what is printed, unless it is a number, a string literal or what the driver calls an error.
"""

from __future__ import annotations

import re

from kesco.ir import program as ir
from kesco.ir.transfers import COPIES, LEAST_FETCHED, ON_DEVICE, PRINTS
from kesco.ir.volatiles import is_volatile, type_of
from kesco.ir.within import is_this
from kesco.transfers.harmless import Harmless

_LOOKS = frozenset({"operator[]", "front", "back"})
_THIS = ir.Literal("this")
_CONTAINER = re.compile(r"(?:const )?std::(?:__cxx11::)?(?:vector|basic_string)<.*>")
_WORDS = ("const char *", "const char *const")
_STREAMS = frozenset({"cerr", "cout", "clog", "stderr", "stdout", "endl"})


class Unlooked(Harmless):
    """What may stand between a copy to the host and the wait for it."""

    def __init__(
        self, program: ir.Program, copies: frozenset[int], *, to_numbers: bool, this: str = "",
        calls: frozenset[int] = frozenset(), own_this: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(program, copies, LEAST_FETCHED)
        self.to_numbers, self.this, self.calls = to_numbers, program.records.get(this), calls
        self.own_this = own_this  # whether ``this`` is a variable that is too small
        self.known_of: dict[bool, dict[str, bool]] = {}

    def statement(self, one: ir.Stmt) -> bool:
        """Whether a statement changes no memory that may be a destination, and looks at none."""
        if isinstance(one, ir.Declare) and one.variable.type.shape is ir.Shape.REFERENCE and one.initial is not None:
            return self._address(one.initial)
        return super().statement(one)

    def expression(self, one: ir.Expr) -> bool:
        """Whether evaluating an expression changes no memory that may be a destination, and looks at none."""
        if is_volatile(one):
            return False
        match one:
            case ir.Name():
                return self.fits(one.variable.type)
            case ir.AddressOf():
                return self._address(one.target)
            case ir.Decay():
                return self._address(one.array)
            case ir.Select() if self.is_small(one) or (self.to_numbers and self._is_member(one)):
                return one.type.shape is not ir.Shape.REFERENCE
            case ir.Select() | ir.Subscript():
                return self._own(one) and self._inside(one)
            case ir.Dereference():
                return False
        return super().expression(one)

    def _address(self, one: ir.Expr) -> bool:
        """Whether it only takes small variables to find out where something is."""
        match one:
            case ir.Literal():
                return True
            case ir.Name():
                return one.variable.type.shape is not ir.Shape.REFERENCE
            case ir.Select(base=ir.Expr() as base):
                return self.expression(base) if one.arrow else self._address(base)
            case ir.Subscript():
                begins = self._address(one.base) if one.array else self.expression(one.base)
                return begins and self.expression(one.index)
            case ir.Call(receiver=ir.Name()) if one.standard and one.name.rpartition("::")[2] in _LOOKS:
                return one.name.startswith("std::vector::") and all(map(self.expression, one.arguments))
        return False

    def _is_member(self, one: ir.Select) -> bool:
        """Whether it is a member of an object that holds more than numbers, and only such are read to come to it."""
        if one.type.shape is ir.Shape.REFERENCE:
            return False
        if one.base is None:
            return self.this is not None and not self.this.plain and self._has_more(self.this, 4)
        kind = type_of(one.base)
        kind = kind.element if one.arrow and kind is not None else kind
        if kind is None or not self._is_more(kind, 4):
            return False
        if one.arrow or (isinstance(one.base, ir.Name) and one.base.variable.scope is ir.Scope.PARAMETER):
            record = self.program.records.get(kind.record)  # any bytes may be taken for an object of a plain class
            if record is None or record.plain or any(isinstance(n, ir.Cast) for n in ir.walk(one.base)):
                return False
        return self.expression(one.base) if one.arrow else isinstance(one.base, ir.Name) or self._address(one.base)

    def _is_more(self, kind: ir.Type, depth: int) -> bool:
        """Whether objects of a class hold a pointer, or one of the library's that does."""
        record = self.program.records.get(kind.record) if kind.shape is ir.Shape.RECORD else None
        if record is None or not depth:
            return False
        container = record.standard and _CONTAINER.fullmatch(kind.spelling) is not None
        return container or self._has_more(record, depth)

    def _has_more(self, record: ir.Record, depth: int) -> bool:
        return any(f.type.shape is ir.Shape.POINTER or self._is_more(f.type, depth - 1) for f in record.fields)

    def _inside(self, one: ir.Expr) -> bool:
        if isinstance(one, ir.Call) and one.operation in self.calls:
            return self._given(one) and (one.receiver is None or self._object(one.receiver))
        if not isinstance(one, ir.Call) or one.receiver is None:
            return super()._inside(one)
        known = (
            isinstance(one.receiver, ir.Name)
            or is_this(one.receiver)
            or (_is_container(one.receiver) and self.expression(one.receiver))
        )
        return known and all(map(self.expression, one.arguments))

    def is_small(self, one: ir.Expr | None) -> bool:
        """Whether it is a variable of a class that is too small to be a destination, or a member of one."""
        while isinstance(one, ir.Select) and one.base is not None and not one.arrow:
            one = one.base
        if (isinstance(one, ir.Select) and one.base in (None, _THIS)) or is_this(one):
            return self.own_this
        kind = one.variable.type if isinstance(one, ir.Name) else None
        record = self.program.records.get(kind.record) if kind is not None and kind.shape is ir.Shape.RECORD else None
        return record is not None and 0 < record.size < self.least

    def _object(self, one: ir.Expr) -> bool:
        """Whether it is no look to say which object a method is called for."""
        if isinstance(one, ir.Dereference):
            return self.expression(one.pointer)
        return isinstance(one, ir.Name) or self._address(one)

    def _given(self, call: ir.Call) -> bool:
        """Whether what is given to a call with copies of its own is no look: to refer to something is none."""
        function = self.functions.get(call.key)
        kinds = [p.type.shape for p in function.parameters] if function is not None else []
        refers = [kind is ir.Shape.REFERENCE for kind in kinds]
        return len(kinds) == len(call.arguments) and all(
            self.expression(a) or (by and self._address(a)) for a, by in zip(call.arguments, refers, strict=True)
        )

    def _call(self, call: ir.Call) -> bool:
        name = call.name.rpartition("::")[2]
        if call.operation in self.ours:
            return True
        if call.standard and name in COPIES:
            at = COPIES[name]
            return len(call.arguments) > at and call.arguments[at] == ir.Constant(ON_DEVICE)
        if call.receiver is not None and name in _LOOKS and not _is_container(call):
            return False
        function = self.functions.get(call.key)
        if function is not None and not call.standard:
            if any(isinstance(n, ir.Call) and n.name in COPIES for n in ir.walk(function.body)):
                return False  # it may have waits of its own, which would be told what went wrong before
            pairs = zip(function.parameters, call.arguments, strict=False)
            words = (a for p, a in pairs if p.type.spelling in _WORDS)  # the callee may print them
            if any(isinstance(n, ir.Name) for a in words for n in ir.walk(a)):
                return False
            before = self.this, self.own_this, self.known
            self.own_this = bool(function.method_of) and self.is_small(call.receiver)
            self.this, self.known = self.program.records.get(function.method_of), self._known()
            calm = super()._call(call)
            self.this, self.own_this, self.known = before
            return calm
        return super()._call(call)

    def _known(self) -> dict[str, bool]:
        """What is known of functions, in the same kind of object."""
        return self.known_of.setdefault(self.own_this, {})

    def _says(self, one: ir.Expr) -> bool:
        """What is printed: no memory but that of string literals, also where they are a parameter."""
        match one:
            case ir.Name(variable=known):
                words = known.scope is ir.Scope.PARAMETER and known.type.spelling in _WORDS
                value = self.fits(known.type) and known.type.shape in (ir.Shape.INTEGER, ir.Shape.OTHER)
                return words or value or known.name in _STREAMS
            case ir.Literal() | ir.Constant() | ir.FunctionName():
                return True
            case ir.Call(standard=True) if one.name.rpartition("::")[2] in PRINTS:
                return all(isinstance(a, ir.Expr) and self._says(a) for a in ir.children(one))
            case ir.Call(standard=True, name="cudaGetErrorString" | "cudaGetErrorName"):
                return self.expression(one)
            case ir.Cast() | ir.Decay() | ir.Binary() | ir.Unary() | ir.Branch():
                return all(isinstance(a, ir.Expr) and self._says(a) for a in ir.children(one))
        return False


def _is_container(one: ir.Expr) -> bool:
    """Whether it is an element of a container, or a member of an object, that has its memory elsewhere."""
    element = isinstance(one, ir.Call) and one.standard and one.receiver is not None
    if not (element or isinstance(one, ir.Select)) or not isinstance(one, (ir.Call, ir.Select)) or one.type is None:
        return False
    kind = one.type.element if one.type.shape is ir.Shape.REFERENCE else one.type
    return kind is not None and _CONTAINER.fullmatch(kind.spelling) is not None
