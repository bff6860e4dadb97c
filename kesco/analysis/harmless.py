"""Which functions of the user's change nothing but variables of their own, such as those that check for errors.

In: a program. Out: `Harmless`, which is asked about calls and bodies. Apart from the walks because it is asked of the
text alone: whether a member or a variable of the file keeps its value while a function runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kesco.analysis.scratch_words import LESSER, word_of
from kesco.ir import program as ir
from kesco.ir.transfers import SETS

_DEEP = 4
_RECKONED = (
    ir.Constant, ir.Literal, ir.Name, ir.Select, ir.Cast, ir.Binary, ir.Unary, ir.Branch, ir.Subscript, ir.Dereference,
)  # fmt: skip


@dataclass
class Harmless:
    """Answers for one program."""

    program: ir.Program
    _functions: dict[str, ir.Function] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._functions = {f.key: f for f in self.program.functions}

    def returned(self, call: ir.Call, depth: int = 0) -> ir.Expr | None:
        """What a function of the user's returns that does nothing else, and nothing by reckoning that."""
        function = self._functions.get(call.key) if not call.standard and depth < _DEEP else None
        body = function.body if function is not None and not function.virtual else None
        statements = tuple(ir.flat(body)) if isinstance(body, ir.Block) else ()
        one = statements[0] if len(statements) == 1 else None
        if not isinstance(one, ir.Leave) or one.how != "return" or one.value is None:
            return None
        for node in ir.walk(one.value):
            if isinstance(node, ir.Call):
                if not (node.standard and node.name in LESSER) and self.returned(node, depth + 1) is None:
                    return None
            elif not isinstance(node, _RECKONED):
                return None
        return one.value

    def is_number(self, call: ir.Call, depth: int = 0) -> bool:
        """Whether what a call gives is reckoned from the integers that it is given alone."""
        function, value = self._functions.get(call.key), self.returned(call, depth)
        if function is None or value is None or not is_spelled_out(call, len(function.parameters)):
            return False
        for node in ir.walk(value):
            if isinstance(node, ir.Name) and node.variable.constant is None:
                own = node.variable.scope is ir.Scope.PARAMETER and node.variable.type.shape is ir.Shape.INTEGER
                if not own:
                    return False
            elif isinstance(node, (ir.Select, ir.Subscript, ir.Dereference)):
                return False
            elif isinstance(node, ir.Call):
                lesser = node.standard and node.name in LESSER
                if not lesser and not self.is_number(node, depth + 1):
                    return False
        return True

    def keeps_all(self, body: ir.Stmt, *, members: bool = False, depth: int = 0) -> bool:
        """Whether what runs in a body changes no member, and no variable of the file; with `members`, not by a call.

        Then it may assign to members by their names. Objects that go run no code of the user's.
        """
        for node in ir.walk(body):
            if isinstance(node, (ir.New, ir.Obstacle)) or (isinstance(node, ir.Unknown) and not members):
                return False
            targets: list[ir.Expr] = []
            if isinstance(node, ir.Declare) and self._destroys(node.variable.type):
                return False
            if isinstance(node, ir.Assign):
                targets = [node.target]
            elif isinstance(node, ir.Call):
                if not self._is_harmless(node, depth):
                    return False
                pairs = zip(node.arguments, node.references, strict=False)
                targets = [one for one, changes in pairs if changes]
                looks = node.receiver is None or self.returned(node) is not None or word_of(node).startswith("kesco_")
                targets += [node.receiver] if node.receiver is not None and not looks else []
            if not all(_is_own(one) or (members and _is_member(one)) for one in targets):
                return False
        return True

    def _is_harmless(self, call: ir.Call, depth: int) -> bool:
        if self._destroys(call.type) and call.constructs:
            return False
        own = word_of(call).startswith("kesco_") or word_of(call) in SETS
        library = call.standard and not (call.runs or call.destroys)
        if own or library or self.returned(call) is not None:
            return True
        function = self._functions.get(call.key)
        known = function is not None and not function.virtual and depth < _DEEP
        return known and function is not None and self.keeps_all(function.body, depth=depth + 1)

    def _destroys(self, kind: ir.Type | None) -> bool:
        """Whether code of the user's may run where an object of a type goes."""
        while kind is not None and kind.shape is ir.Shape.ARRAY:
            kind = kind.element
        if kind is None or kind.shape is not ir.Shape.RECORD or kind.spelling.removeprefix("const ") == "dim3":
            return False
        record = self.program.records.get(kind.record)
        if record is None or (record.destructor and not record.standard):
            return True
        users = (one for one in self.program.records.values() if not one.standard and one.destructor)
        return record.standard and any(one.name.rpartition("::")[2] in kind.spelling for one in users)


def is_spelled_out(call: ir.Call, parameters: int) -> bool:
    """Whether a call gives all arguments itself."""
    return len(call.arguments) == parameters and ir.DEFAULT not in call.arguments


def _is_own(target: ir.Expr) -> bool:
    """Whether it is a plain variable of a function's own, or one of the library's, such as ``std::cerr``."""
    one = ir.bare(target)
    if isinstance(one, ir.Subscript) and one.array:
        return _is_own(one.base)
    if not isinstance(one, ir.Name) or one.variable.type.shape is ir.Shape.REFERENCE:
        return isinstance(one, ir.Call) and one.standard
    local = one.variable.scope in (ir.Scope.LOCAL, ir.Scope.PARAMETER)
    return local or one.variable.qualified.startswith("std::")


def _is_member(target: ir.Expr) -> bool:
    """Whether it is a member, or a variable of the file, that its own name says."""
    one = ir.bare(target)
    if isinstance(one, ir.Select):
        return one.base is None or not one.arrow or ir.bare(one.base) == ir.Literal("this")
    return isinstance(one, ir.Name) and one.variable.type.shape is not ir.Shape.REFERENCE
