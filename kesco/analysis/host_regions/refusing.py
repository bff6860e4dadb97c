"""What of a program its IR does not say: where another compiler may see something else.

In: the parsed program, a function of it. Out: a reason in words, or an empty text.

1. C++ leaves the order open in which the arguments of a call, and the operands of most operators, are evaluated: clang
has one, the host's compiler may have another. Where one may change what another mentions, nothing is known of the
program. 2. What may mean something else to another compiler, and operations in the middle of expressions, cannot be
told from the IR, or not be edited. 3. Who looks at memory before the device is done with it sees how far it is: that is
not followed here. What is promised to them the serial program says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kesco.analysis.called_order import Meetings, bound, shifts
from kesco.analysis.evaluation_order import (
    IN_ORDER,
    assigned,
    atomic_operands,
    changes_nothing,
    is_floating,
    order_matters,
    parts,
    pure_functions,
    runs_code,
)
from kesco.analysis.host_regions.quiet import Quiet
from kesco.ir import program as ir
from kesco.ir.access import AccessMode, BufferKind
from kesco.ir.flow import Region, Role
from kesco.ir.volatiles import is_watched, type_of
from kesco.source import Span

_SAME = frozenset(
    ("goto", "a label", "a try block", "a statement of unknown form", "a computed goto", "an OpenMP directive",
     "inline assembly", ir.CLOSURE)
)  # fmt: skip
_OF_A_LAMBDA = "@Sa@F@operator()"  # in the USR of what is called
_WATCHES = re.compile(rb"\bvolatile\b|\batomic(?:_ref)?\s*<|\b__atomic_")
_CONSTANT = re.compile(rb"\s*(?:[-+]?[\d.][\w.']*|nullptr|NULL|true|false|\{\}|\"\w*\"|'.')\s*$")
"""A default argument that is one."""
_EXPANDED = re.compile(rb"(\w+)\s*(?:<[^;{}()]*(?:\([^;{}()]*\))?>)?\s*\([^;{}()]*\)\s*(?:[-+*/%&|^]\s*)?\.\.\.")
"""A call in what a pack is expanded with; with a comma the order is said."""
_DEFAULT = re.compile(
    rb"([(,])\s*(?:const\s+)?(?:[\w:<>]+(?:\s*[*&]+\s*|\s+)\w+"
    rb"|(?:unsigned|int|long|short|char|bool|float|double|size_t|\w+\s*[*&]+))\s*=\s*([^,;{}]*)"
)
_ACTS = re.compile(rb"\+\+|--|(?<![=!<>])=(?!=)|\w\s*\(")
"""What in a default argument may change something: it is evaluated with the others, and stands nowhere in the call."""
_SIZE_OF = re.compile(rb"\bsizeof\s*\([^()]*(?:\+\+|--)")
_PUNS = re.compile(rb"reinterpret_cast\s*<\s*(?:float|double)\s*[*&]|\(\s*(?:float|double|\w+)\s*[*&]\s*\)\s*&\s*\w")
_NAMES = ("a name of unknown form", "an object that a lambda holds")


class Open(NamedTuple):
    """An expression whose parts may be evaluated in any order, and where the function is that it stands in."""

    inside: Span
    node: ir.Launch | ir.Call | ir.Binary | ir.Assign
    parts: tuple[ir.Expr, ...]


@dataclass(slots=True)
class OrdersOfText:
    """What the text says of such expressions."""

    program: ir.Program
    quiet: Quiet
    _pure: frozenset[str] = field(init=False)
    _meetings: Meetings = field(init=False)
    _bound: frozenset[str] = field(init=False)
    _acting: bool = field(init=False)  # whether a default argument may change something
    _sizing: bool = field(init=False)  # whether a size's operand may

    def __post_init__(self) -> None:
        self._pure, self._meetings = pure_functions(self.program), Meetings(self.program)
        self._bound = bound(self.program)
        text = self.program.text
        heads = (m for m in _DEFAULT.finditer(text) if not (m[1] == b"(" and _is_head(text, m.start())))
        self._acting = any(_ACTS.search(m[2]) for m in heads)
        self._sizing = _SIZE_OF.search(text) is not None

    def every(self) -> Iterator[Open]:
        """The expressions with several parts; of a template its instances, in which it is known what is called."""
        program = self.program
        every = [(f.span, node) for f in program.functions if not f.template for node in ir.walk(f.body)]
        every += [(one.span, node) for one in program.inside for node in ir.walk(one)]
        for inside, node in every:
            if isinstance(node, (ir.Launch, ir.Call, ir.Binary, ir.Assign)):
                arguments = _parts(program, node)
                if len(arguments) > 1:
                    yield Open(inside, node, arguments)

    def expands_calls(self) -> bool:
        """Whether a lambda expands a pack with calls, of which its text shows one."""
        texts = (self.program.text[one.span.start : one.span.end] for one in self.program.inside)
        every = (one[1] for text in texts if b"..." in text for one in _EXPANDED.finditer(text))
        return any(not name.endswith((b"forward", b"move")) for name in every)

    def changes(self, one: Open) -> frozenset[str] | None:
        """The functions that change nothing, if a part may change something: None if none does."""
        if changes_nothing(one.parts, self._pure):
            return None
        called = {n.key for a in one.parts for n in ir.walk(a) if isinstance(n, ir.Call)}
        asked = (f for f in self.program.functions if f.key in called and not f.virtual)
        known = self._pure | {f.key for f in asked if f.key not in self._pure and self.quiet(f)}
        lambdas = {key for key in called if _OF_A_LAMBDA in key}
        known |= lambdas if lambdas and self.quiet.lambdas() else set()
        calls = (n for a in one.parts for n in ir.walk(a) if isinstance(n, ir.Call) and n.key not in known)
        known |= {n.key for n in calls if _is_quiet_in_each_class(self.program, n, self.quiet)}
        return None if changes_nothing(one.parts, known) else known

    def matters(self, one: Open) -> bool:
        """Whether the order may matter."""
        known = self.changes(one)
        if known is None:
            return False
        floating = self._overlays(one)
        named = order_matters(one.parts, known, self._is_exposed, floating=floating)
        return named or self._meetings.matter(one.parts, known)

    def acts_unseen(self, one: Open) -> bool:
        """Whether something may change what a part reads that no part shows: a default argument, or a size."""
        calls = [n for a in (one.node, *one.parts) for n in ir.walk(a) if isinstance(n, ir.Call) and not n.standard]
        left_out = self._acting and any(self._acts_by_default(n) for n in calls)
        reads = any(not isinstance(n, (ir.Constant, ir.Literal)) for a in one.parts for n in ir.walk(a))
        return reads and (left_out or self._sizing)

    def _acts_by_default(self, call: ir.Call) -> bool:
        """Whether a default argument of a call may change something; one that is not found may."""
        given = _defaults(self.program, call)
        return bool(given) and any(one is None or _ACTS.search(one) for one in given)

    def has_more(self, one: Open) -> bool:
        """Whether parts of an expression stand elsewhere: default arguments that may be more than constants."""
        return isinstance(one.node, ir.Call) and _evaluates_more(self.program, one.node)

    def meet_by_name(self, one: Open, stores: Sequence[int]) -> bool:
        """Whether a part assigns to a variable that another one names, or may have another name for.

        What a part assigns otherwise than to a variable by its name may be in registers, too, where it has fewer
        `stores` to memory that is not its own.
        """
        pure = self.changes(one) or frozenset()
        plain = not (self._overlays(one) or any(runs_code(n, pure) for a in one.parts for n in ir.walk(a)))
        found = [[target for n in ir.walk(a) for target in _targets(n)] for a in one.parts]
        put = [[target for target in each if not (plain and is_floating(target))] for each in found]
        if not any(put):
            return False
        roots = [{_root(target) for target in each} - {""} for each in put]
        named = [{n.variable for n in ir.walk(a) if isinstance(n, ir.Name)} for a in one.parts]
        others = [any(map(_is_another_name, ir.walk(a))) for a in one.parts]
        exposed = [any(map(self._is_exposed, each)) for each in named]
        hidden = [sum(map(_is_elsewhere, each)) > count for each, count in zip(put, stores, strict=True)]
        known = [
            any(self._is_exposed(v) for v in each if v.key in keys) for each, keys in zip(named, roots, strict=True)
        ]
        return any(
            roots[i] & {v.key for v in named[j]}
            or (known[i] and others[j])
            or (hidden[i] and (others[j] or exposed[j]))
            for i in range(len(put))
            for j in range(len(put))
            if i != j
        )

    def _overlays(self, one: Open) -> bool:
        """Whether a floating number may be another one: in a union, or by a pointer to something else."""
        if _PUNS.search(self.program.text):
            return True
        nodes = [n for a in one.parts for n in ir.walk(a) if isinstance(n, ir.Expr)]
        kinds = filter(None, map(type_of, nodes))
        selects = (n for n in nodes if isinstance(n, ir.Select) and n.base is not None)
        return any(self._has_union(kind, 6) for kind in kinds) or any(map(self._is_of_unnamed, selects))

    def _is_of_unnamed(self, one: ir.Select) -> bool:
        """Whether it is a member of a union without a name, which is no field of the class."""
        kind = type_of(one.base) if one.base is not None else None
        kind = kind.element if one.arrow and kind is not None else kind
        record = self.program.records.get(kind.record) if kind is not None else None
        return record is not None and one.member not in {f.name for f in record.fields}

    def _has_union(self, kind: ir.Type, depth: int) -> bool:
        while kind.element is not None:
            kind = kind.element
        record = self.program.records.get(kind.record)
        if record is None or record.standard:
            return False
        return record.ambiguous or not depth or any(self._has_union(f.type, depth - 1) for f in record.fields)

    def _is_exposed(self, variable: ir.Variable) -> bool:
        own = variable.scope in (ir.Scope.LOCAL, ir.Scope.PARAMETER)
        return not own or variable.type.shape is ir.Shape.REFERENCE or variable.key in self._bound


def assigns(node: ir.Expr | ir.Stmt) -> bool:
    """Whether it assigns to a variable, which may be in a register."""
    return bool(_targets(node))


def _targets(node: ir.Expr | ir.Stmt) -> list[ir.Expr]:
    """What is assigned to: by an assignment, by one of a class that copies its fields, or by its address.

    Of what compilers know (``memcpy``, ``__builtin_add_overflow``) there may be no call.
    """
    if isinstance(node, ir.Assign):
        return [node.target]
    if not isinstance(node, ir.Call):
        return [*filter(None, map(_pointed, atomic_operands(node)))]
    by_address = map(_pointed, node.arguments) if node.standard or node.name.startswith("__") else ()
    return [*filter(None, by_address), *([node.receiver] if node.copies and node.receiver is not None else [])]


def _pointed(given: ir.Expr) -> ir.Expr | None:
    """What an argument is the address of, where it is written so."""
    argument = ir.bare(given)
    if isinstance(argument, ir.AddressOf):
        return argument.target
    return argument.array if isinstance(argument, ir.Decay) and not isinstance(argument.array, ir.Literal) else None


def _is_another_name(node: ir.Expr | ir.Stmt) -> bool:
    """Whether it may be another name of a variable of the function."""
    if isinstance(node, ir.Name):
        return node.variable.type.shape is ir.Shape.REFERENCE or not node.variable.key
    reaches = isinstance(node, ir.Subscript) and not node.array
    return reaches or isinstance(node, (ir.Dereference, ir.Unknown)) or (isinstance(node, ir.Select) and node.arrow)


def _root(target: ir.Expr) -> str:
    """The variable that an assignment is to, or to a part of."""
    inner: ir.Expr | None = target
    while inner is not None:
        if isinstance(inner, ir.Name):
            return inner.variable.key
        if isinstance(inner, ir.Cast):
            inner = inner.operand
        elif isinstance(inner, ir.Select):
            inner = None if inner.arrow else inner.base
        else:
            inner = inner.base if isinstance(inner, ir.Subscript) and inner.array else None
    return ""


def _is_elsewhere(target: ir.Expr) -> bool:
    """Whether an assignment may be to a variable that has another name."""
    return not _root(target) or any(isinstance(n, ir.Name) and _is_another_name(n) for n in ir.walk(target))


def _parts(program: ir.Program, node: ir.Launch | ir.Call | ir.Binary | ir.Assign) -> tuple[ir.Expr, ...]:
    """What is evaluated in any order for an expression."""
    if isinstance(node, ir.Assign):
        return assigned(node)
    if isinstance(node, ir.Launch):
        return (*(one for one in node.configuration if not _is_a_stream_of_ours(one)), *node.arguments)
    if isinstance(node, ir.Binary):
        return () if node.operator in IN_ORDER else (node.left, node.right)
    return () if shifts(program, node) else parts(node)


def _evaluates_more(program: ir.Program, call: ir.Call) -> bool:
    """Whether default arguments of a call, which are evaluated with the others, may be more than constants."""
    return any(one is None or _CONSTANT.fullmatch(one) is None for one in _defaults(program, call))


def _defaults(program: ir.Program, call: ir.Call) -> Sequence[bytes | None]:
    """The default arguments that a call of the program's takes; None for each that is not found."""
    left_out = sum(one == ir.Literal("default") for one in call.arguments)
    ours = call.name.rpartition("::")[2].startswith("kesco_")  # which are constants
    if not left_out or call.standard or ours:
        return ()
    called = next((f for f in program.functions if f.key == call.key and f.here), None)
    spans = [one.span for one in called.parameters[-left_out:]] if called is not None else []
    given = [program.text[one.start : one.end].partition(b"=")[2] for one in spans]
    return [one or None for one in given] if len(given) == left_out else [None] * left_out


def _is_quiet_in_each_class(program: ir.Program, call: ir.Call, quiet: Quiet) -> bool:
    """Whether it calls a virtual member of a class of this file, which changes nothing in whatever class has it."""
    owner, _, name = call.name.rpartition("::")
    if call.standard or call.receiver is None or not owner:
        return False
    of_class = rf"\b(?:class|struct)\s+{re.escape(owner.rpartition('::')[2])}\b[^;{{]*\{{"
    mine = [f for f in program.functions if f.virtual and f.name.rpartition("::")[2] == name]
    alone = any(f.name == "main" for f in program.functions) and re.search(of_class.encode(), program.text) is not None
    return alone and bool(mine) and all(f.here and quiet(f) for f in mine)


def _is_a_stream_of_ours(argument: ir.Expr) -> bool:
    """Whether it is a stream that kesco chose, which nothing that the program evaluates changes."""
    nodes = list(ir.walk(argument))
    called = (n.name.rpartition("::")[2] for n in nodes if isinstance(n, ir.Call))
    ours = any(isinstance(n, ir.Name) and n.variable.type.spelling.endswith("KescoStreams *") for n in nodes)
    return ours or "kesco_current" in called


def unreadable(function: ir.Function) -> str:
    """What in a function the IR does not tell, or an empty text."""
    for node in ir.walk(function.body):
        if isinstance(node, ir.Obstacle) and node.reason not in _SAME and not node.reason.startswith(_NAMES):
            return f"it contains {node.reason}"
    return ""


def watched(program: ir.Program, region: Region) -> str:
    """Why somebody may see how far the device is by what it writes, or an empty text."""
    moving = [a for s in region.sites if s.role is Role.MOVABLE for a in s.accesses if a.mode & AccessMode.WRITE]
    written = {a.buffer for a in moving if a.buffer.kind is BufferKind.ENTRY}
    members = (one.type for record in program.records.values() for one in record.fields if not record.standard)
    if written and (_WATCHES.search(program.text) or any(is_watched(one, program.records) for one in members)):
        return f"whoever made {min(written).name} may look at it, as the file has pointers to volatile memory"
    for site in region.sites:
        seen = next((a.buffer for a in site.accesses if site.role is Role.HOST and a.buffer in written), None)
        if seen is not None:
            return f"the host looks at {seen.name}, which a kernel writes (line {site.span.line})"
    return ""


def is_as_written(text: bytes, function: ir.Function) -> bool:
    """Whether a line can be put in front of all that a function does: its braces are its own, not a macro's."""
    body = function.body
    ends = text[body.span.start : body.span.start + 1] + text[body.span.end - 1 : body.span.end]
    return isinstance(body, ir.Block) and bool(body.body) and ends == b"{}"


def _is_head(text: bytes, parenthesis: int) -> bool:
    """Whether a parenthesis opens the head of a loop or branch."""
    before = text[max(0, parenthesis - 32) : parenthesis].rstrip()
    return re.search(rb"\b(?:for|if|while|switch)\Z", before) is not None
