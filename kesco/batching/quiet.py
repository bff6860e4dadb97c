"""Which code of the host could not tell whether a launch has been made: ``Quiet(program)``.

In: expressions and statements. Out: whether they are quiet. Apart from the walk through a loop because it is asked of
functions that are called, too, wherever they are.

Reading and writing memory is quiet, whoever else uses it: that is not in order with a launch, which the program has not
waited for, either. Calls are not, but for those of functions that are seen and quiet, and some of the library's. A
function that only ends the process, or throws, because a call of CUDA failed is quiet: nobody looks behind that.
"""

from __future__ import annotations

from collections.abc import Collection

from kesco.ir import program as ir
from kesco.ir.batches import CONSTRUCTED, GIVES, OPAQUE, OWN, is_last_word, is_own_event, is_quiet_name
from kesco.ir.pieces import pieces
from kesco.ir.replay import ENDS, STATUS
from kesco.ir.walking import leaves

_ERRORS = ("cudaError", "cudaError_t")


class Quiet:
    """Answers for one program, and remembers them."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self._headers = pieces("", program.text)
        patterns = [f for f in program.functions if f.here and f.template]
        self._templates = {f.body.span for f in patterns}
        launches = (n for f in patterns for n in ir.walk(f.body) if isinstance(n, ir.Launch))
        self._written = {one.span.start: one.operation for one in launches}
        self._functions = {f.key: f for f in program.functions}
        self._known: dict[str, bool] = {}

    def is_own(self, function: ir.Function) -> bool:
        """Whether a function can be edited, and is this file's alone: of a header's another file may have its own.

        Instances of a template are edited as the template is.
        """
        edited = not function.template if function.here else function.body.span in self._templates
        return edited and not self._headers.is_header(function.span.start)

    def number(self, launch: ir.Launch) -> int:
        """The operation that is edited for a launch: in an instance, that of the template."""
        known = launch.operation >= 0 and self.program.operations[launch.operation].stream_text is not None
        return launch.operation if known else self._written.get(launch.span.start, launch.operation)

    def function(self, call: ir.Call) -> ir.Function | None:
        """The function that a call certainly runs, if its body is seen."""
        found = self._functions.get(call.key) if call.key else None
        return None if found is None or found.virtual or call.standard else found

    def is_quiet(self, node: ir.Expr | ir.Stmt, known: Collection[int] = ()) -> bool:
        """Whether nothing in an expression or statement could tell; `known` are nodes that are answered for."""
        return all(id(one) in known or self._is_quiet(one) for one in ir.walk(node))

    def _is_quiet(self, one: ir.Expr | ir.Stmt) -> bool:
        if isinstance(one, ir.Call):
            return self._is_quiet_call(one)
        if isinstance(one, ir.Unknown):
            return one.what in OPAQUE or one.what == ir.RANGE_ELEMENT
        if isinstance(one, ir.Name):
            return not _is_volatile(one.variable.type)
        if isinstance(one, ir.Select):
            return not _is_volatile(one.type)
        if isinstance(one, ir.Declare):
            return self.is_plain(one.variable.type)
        if isinstance(one, ir.Block):
            return one.end < 0
        return not isinstance(one, (ir.Launch, ir.New, ir.Obstacle, ir.Switch))

    def _is_quiet_call(self, call: ir.Call) -> bool:
        name = call.name.rpartition("::")[2]
        if name in OWN or is_own_event(call):
            return True
        if call.standard or not call.key:
            copies = call.constructs and (call.implicit or name in CONSTRUCTED)
            told = is_quiet_name(call.name) and not (call.runs or call.destroys) and self._gives(call)
            return call.standard and (name in STATUS or copies or told)
        function = self.function(call)
        if function is None:
            record = self.program.records.get(call.type.record) if call.type is not None else None
            return call.constructs and call.implicit and record is not None and record.plain
        if function.key not in self._known:
            self._known[function.key] = False  # one that calls itself
            self._known[function.key] = self._is_quiet_body(function.body)
        return self._known[function.key]

    def _gives(self, call: ir.Call) -> bool:
        """Whether what trades places is plain, if anything does."""
        kinds = [_type_of(one) for one in call.arguments] if call.name in GIVES else []
        return all(kind is not None and self.is_plain(kind) for kind in kinds)

    def _is_quiet_body(self, statement: ir.Stmt) -> bool:
        """Whether a function is quiet: it may also end the process where a call of CUDA has failed."""
        if isinstance(statement, ir.Block):
            return statement.end < 0 and all(self._is_quiet_body(one) for one in statement.body)
        if isinstance(statement, ir.If):
            if statement.other is None and leaves(statement.then) and self.is_last_words(statement):
                return self.is_quiet(statement.condition) and all(map(self.is_quiet, statement.before))
            parts = (*statement.before, statement.then, *((statement.other,) if statement.other is not None else ()))
            return self.is_quiet(statement.condition) and all(self._is_quiet_body(one) for one in parts)
        if isinstance(statement, ir.Loop):
            heads = [one for one in (statement.condition, statement.step) if one is not None]
            return statement.condition is not None and all(map(self.is_counting, heads)) and self.is_quiet(statement)
        return self.is_quiet(statement)

    def is_last_words(self, one: ir.If) -> bool:
        """Whether a branch that leaves does nothing but say why: because of an error of CUDA's, or by an exception."""
        calls = [n for n in ir.walk(one.then) if isinstance(n, ir.Call)]
        names = {n.name.rpartition("::")[2] for n in calls}
        if not all(n.standard and is_last_word(n.name) for n in calls):
            return False
        if any(isinstance(n, (ir.Launch, ir.Obstacle, ir.Loop, ir.Switch)) for n in ir.walk(one.then)):
            return False
        about = [n.variable.type.spelling for n in ir.walk(one.condition) if isinstance(n, ir.Name)]
        failed = bool(about) and all(spelling.endswith(_ERRORS) for spelling in about)
        return failed or not names & ENDS

    def is_counting(self, expression: ir.Expr) -> bool:
        """Whether an expression only depends on variables of its function's own: no other thread could change it."""
        kinds = (ir.Binary, ir.Unary, ir.Cast, ir.Constant, ir.Literal, ir.Name, ir.Assign)
        scopes = (ir.Scope.LOCAL, ir.Scope.PARAMETER)
        return all(
            isinstance(n, kinds) and (not isinstance(n, ir.Name) or n.variable.scope in scopes)
            for n in ir.walk(expression)
        ) and self.is_quiet(expression)

    def is_plain(self, kind: ir.Type) -> bool:
        """Whether nothing happens at the end of a variable of this type but that memory of the host is freed."""
        if kind.shape is ir.Shape.ARRAY and kind.element is not None:
            return self.is_plain(kind.element)
        if kind.shape is not ir.Shape.RECORD:
            return not _is_volatile(kind)
        record = self.program.records.get(kind.record)
        if record is None or record.destructor:
            return False
        return record.standard or all(self.is_plain(one.type) for one in record.fields)


def _type_of(one: ir.Expr) -> ir.Type | None:
    """The type of an expression, as far as the program says it."""
    one = ir.bare(one)
    if isinstance(one, ir.Name):
        kind: ir.Type | None = one.variable.type
    elif isinstance(one, ir.Subscript):
        base = _type_of(one.base)
        kind = (base.element or base.holds) if base is not None else None
    else:
        kind = one.type if isinstance(one, (ir.Select, ir.Call)) else None
    return kind.element if kind is not None and kind.shape is ir.Shape.REFERENCE else kind


def _is_volatile(kind: ir.Type) -> bool:
    """Whether a type, or what it points to, is volatile: somebody else may look at it, or write it."""
    return kind.volatile or (kind.element is not None and _is_volatile(kind.element))
