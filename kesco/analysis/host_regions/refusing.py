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
from collections.abc import Collection, Iterator
from typing import NamedTuple

from kesco.analysis.called_order import Meetings, bound, shifts
from kesco.analysis.evaluation_order import changes_nothing, order_matters, parts, pure_functions
from kesco.analysis.host_regions.quiet import Quiet
from kesco.ir import program as ir
from kesco.ir.access import AccessMode, BufferKind
from kesco.ir.flow import Region, Role
from kesco.ir.volatiles import is_watched
from kesco.source import Span

_SAME = frozenset(
    ("goto", "a label", "a try block", "a statement of unknown form", "a computed goto", "an OpenMP directive",
     "inline assembly", ir.CLOSURE)
)  # fmt: skip
_OF_A_LAMBDA = "@Sa@F@operator()"  # in the USR of what is called
_IN_ORDER = ("&&", "||", ",", "<<", ">>")
_WATCHES = re.compile(rb"\bvolatile\b|\batomic(?:_ref)?\s*<|\b__atomic_")
_CONSTANT = re.compile(rb"=\s*(?:[-+]?[\d.][\w.']*|nullptr|NULL|true|false|\{\}|\"\w*\"|'.')\s*[,)]")
"""A default argument that is one."""
_NAMES = ("a name of unknown form", "an object that a lambda holds")


class Open(NamedTuple):
    """An expression whose parts may be evaluated in any order, and where the function is that it stands in.

    `matters`: the text says that the order may matter. Without it, one part changes something, and what that is only
    the paths tell. There are no parts where some of them are default arguments, which stand elsewhere.
    """

    inside: Span
    node: ir.Launch | ir.Call | ir.Binary
    parts: tuple[ir.Expr, ...]
    matters: bool


def open_orders(program: ir.Program, quiet: Quiet) -> Iterator[Open]:
    """The expressions whose order of evaluation may matter."""
    pure, meetings = pure_functions(program), Meetings(program)
    # of a template its instances, in which it is known what is called
    every = [(f.span, node) for f in program.functions if not f.template for node in ir.walk(f.body)]
    every += [(one.span, node) for one in program.inside for node in ir.walk(one)]
    named = bound(program)

    def exposed(variable: ir.Variable) -> bool:
        own = variable.scope in (ir.Scope.LOCAL, ir.Scope.PARAMETER)
        return not own or variable.type.shape is ir.Shape.REFERENCE or variable.key in named

    def matters(arguments: tuple[ir.Expr, ...], pure: Collection[str]) -> bool:
        return order_matters(arguments, pure, exposed) or meetings.matter(arguments, pure)

    for inside, node in every:
        if not isinstance(node, (ir.Launch, ir.Call, ir.Binary)):
            continue
        arguments = _parts(program, node)
        if len(arguments) < 2 or changes_nothing(arguments, pure):
            continue
        called = {n.key for a in arguments for n in ir.walk(a) if isinstance(n, ir.Call)}
        asked = (f for f in program.functions if f.key in called and not f.virtual)
        known = pure | {f.key for f in asked if f.key not in pure and quiet(f)}
        lambdas = {key for key in called if _OF_A_LAMBDA in key}
        known |= lambdas if lambdas and quiet.lambdas() else set()
        calls = (n for a in arguments for n in ir.walk(a) if isinstance(n, ir.Call) and n.key not in known)
        known |= {one.key for one in calls if _is_quiet_in_each_class(program, one, quiet)}
        if not changes_nothing(arguments, known):
            hidden = isinstance(node, ir.Call) and _evaluates_more(program, node)
            yield Open(inside, node, () if hidden else arguments, hidden or matters(arguments, known))


def _parts(program: ir.Program, node: ir.Launch | ir.Call | ir.Binary) -> tuple[ir.Expr, ...]:
    """What is evaluated in any order for an expression."""
    if isinstance(node, ir.Launch):
        return (*(one for one in node.configuration if not _is_a_stream_of_ours(one)), *node.arguments)
    if isinstance(node, ir.Binary):
        return () if node.operator in _IN_ORDER else (node.left, node.right)
    return () if shifts(program, node) else parts(node)


def _evaluates_more(program: ir.Program, call: ir.Call) -> bool:
    """Whether default arguments of a call, which are evaluated with the others, may be more than constants."""
    left_out = sum(one == ir.Literal("default") for one in call.arguments)
    if not left_out or call.standard:
        return False
    called = next((f for f in program.functions if f.key == call.key and f.here), None)
    head = b"" if called is None else program.text[called.span.start : called.body.span.start]
    return len(_CONSTANT.findall(head)) < left_out


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
