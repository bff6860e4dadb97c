"""Which copies to the host are waited for later, and where: ``fetches(…)``, the counterpart of `sending.sends`.

In: a function, its copies to the host for which nothing else has to wait there, and all its copies on streams. Out: the
`Fetches`. A stage of its own, before the data-flow graph: what follows such a copy is not ordered behind it by the host
any more.

1. The same walk as for sources ends where a statement may look at the memory as well (not `Unlooked`). 2. In the serial
program the copy's own check reports what went wrong before it. So the wait is written as the copy is: in the same macro
or function, of which no argument but string literals and the place may differ; or bare, where nobody asks. The macro
must need nothing else of the place and never leave it. 3. One function has one form of the wait; copies of others stay.

What it refuses to do: defer a copy whose result is used in any other way.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from kesco.ir import program as ir
from kesco.ir.alike import is_quiet
from kesco.ir.transfers import FETCHED, Fetches
from kesco.ir.volatiles import type_of
from kesco.transfers.sending import Walk
from kesco.transfers.unlooked import Unlooked

_BEFORE = re.compile(rb"(?:\(\s*void\s*\)\s*)?(?:::)?|([A-Za-z_]\w*)\s*\(\s*(?:::)?")
_OF_THE_PLACE = (ir.Scope.LOCAL, ir.Scope.PARAMETER)
_FROM_NEW = re.compile(r"(?:const )?std::(?:__cxx11::)?(?:vector|basic_string)<([^<>,]+)(?:, std::allocator<\1 ?>)? ?>")
_NUMBER = re.compile(r"(?:(?:unsigned|signed|long|short|int|float|double) ?)+")  # a char may be a part of anything
_BARE = re.compile(rb"\s*;?")
_BEHIND = re.compile(rb'\s*(?:,\s*(?:"[^"\\\n]*"|__FILE__|__LINE__|__func__|__FUNCTION__)\s*)*\)\s*;?')


def fetches(
    program: ir.Program,
    functions: Collection[ir.Function],
    copies: Collection[int],
    ours: Collection[int],
    small: Collection[int] = (),
    later: Collection[int] = (),
    launching: Collection[int] = (),
) -> Fetches | None:
    """What is waited for later, if anything; `copies` are those among `ours`, which has all copies on streams.

    For the `small` ones the host waits at once if they turn out to go to pageable memory. `later` are calls among them,
    with copies in what they run; `launching` are calls that give the device work.
    """
    from kesco.transfers.called import Called

    if not copies:
        return None
    operations: set[int] = set()
    before: set[int] = set()
    ends: set[int] = set()
    wait = ""
    called = Called(program)
    if b"thread_local" in program.text:  # such objects go before anything can wait where the process ends
        return None
    for function in functions:
        nodes = list(ir.walk(function.body))
        calls = [n for n in nodes if isinstance(n, ir.Call)]
        mine = [n for n in calls if n.operation in copies]
        to_numbers = all(called.to_numbers(n) if n.operation in later else is_of_numbers(n.arguments[0]) for n in mine)
        known = {n.operation: called.form(function, n) for n in mine if n.operation in later}
        stay = {one for one, form in known.items() if not form}
        own = frozenset(ours) - stay
        calling = frozenset(later) - stay
        harmless = Unlooked(program, own, to_numbers=to_numbers, this=function.method_of, calls=calling)
        inside = {n.operation for n in calls if n.operation not in small or not _pageable(n)}
        if any(isinstance(n, ir.Obstacle) for n in nodes):
            continue
        forms = {one: known[one] if one in known else form_of(program, function, one) for one in inside & {*copies}}
        forms = {one: form for one, form in sorted(forms.items()) if form}
        wait = wait or next(iter(forms.values()), "")
        chosen = {one for one, form in forms.items() if form == wait}
        while chosen:
            walk = Walk(program, chosen, harmless, launching=launching)
            walk.function(function)
            keep = (chosen & walk.useful) - walk.dropped
            if keep == chosen:
                operations |= chosen
                before |= walk.before
                ends |= walk.ends
                break
            chosen = keep
    return Fetches(frozenset(operations), frozenset(before), frozenset(ends), wait) if operations else None


def _pageable(call: ir.Call) -> bool:
    """Whether a copy goes into memory of a container that has it from ``new``, which is pageable."""
    parts = ir.walk(call.arguments[0]) if call.arguments else ()
    objects = [n.receiver for n in parts if isinstance(n, ir.Call) and n.name.startswith("std::") and n.receiver]
    return any(map(_elements_of, objects))


def is_of_numbers(address: ir.Expr | None) -> bool:
    """Whether an address is that of elements of a container of numbers, among which is no object with members."""
    to = address
    while isinstance(to, (ir.Cast, ir.Binary)):
        to = to.operand if isinstance(to, ir.Cast) else to.left
    if isinstance(to, ir.AddressOf):
        to, name = to.target, "operator[]"
    else:
        name = "data"
    element = _elements_of(to.receiver) if isinstance(to, ir.Call) and to.receiver is not None else ""
    return isinstance(to, ir.Call) and to.name.endswith(f"::{name}") and _NUMBER.fullmatch(element) is not None


def _elements_of(container: ir.Expr) -> str:
    """The type of the elements of a container that has them from ``new``."""
    kind = type_of(container)
    found = _FROM_NEW.fullmatch(kind.spelling) if kind is not None else None
    return found[1].strip() if found is not None else ""


def form_of(program: ir.Program, function: ir.Function, number: int) -> str:
    """The statement that waits in the manner of a copy's, or an empty text."""
    one = program.operations[number]
    if one.statement is None or one.within or one.stuck:
        return ""
    text = program.text
    before = _BEFORE.fullmatch(text[one.statement.start : one.span.start])
    behind = text[one.span.end : one.statement.end]
    if before is None or not (_BEHIND if before[1] else _BARE).fullmatch(behind):
        return ""
    if before[1] and not (
        means_one_thing(program, function, before[1]) and _stands_alone(program, function, one, number)
    ):
        return ""
    tail = " ".join(behind.decode("utf-8", "replace").split()).rstrip("; ")
    return f"{before[1].decode()}({FETCHED}(){tail};" if before[1] else f"{FETCHED}();"


def means_one_thing(program: ir.Program, function: ir.Function, name: bytes) -> bool:
    """Whether a name is that of one macro or function throughout a function."""
    if len(re.findall(rb"#[ \t]*(?:define|undef)[ \t]+" + name + rb"\b", program.text)) > 1:
        return False
    declared = (n.variable.name for n in ir.walk(function.body) if isinstance(n, ir.Declare))
    return name.decode() not in {*declared, *(p.name for p in function.parameters)}


def _stands_alone(program: ir.Program, function: ir.Function, one: ir.Operation, number: int) -> bool:
    """Whether the statement around a copy uses no variables but its own, apart from the copy, and never leaves.

    And does nothing else that could be seen where there is no error.
    """
    assert one.statement is not None
    nodes = [s for s in ir.walk(function.body) if isinstance(s, ir.Stmt) and s.span.start == one.statement.start]
    around = [s for s in nodes if s.span.end <= one.statement.end and _has(s, number)]
    if not around:
        return False
    whole = max(around, key=lambda s: sum(1 for _ in ir.walk(s)))
    copy = next(n for n in ir.walk(whole) if isinstance(n, ir.Call) and n.operation == number)
    if not is_quiet(program, whole, copy):
        return False
    mine = {n.variable.key for n in ir.walk(whole) if isinstance(n, ir.Declare)}
    work: list[ir.Expr | ir.Stmt] = [whole]
    while work:
        node = work.pop()
        if isinstance(node, ir.Leave):
            return False
        if isinstance(node, ir.Name) and node.variable.key not in mine and node.variable.scope in _OF_THE_PLACE:
            return False
        work += [c for c in ir.children(node) if not (isinstance(c, ir.Call) and c.operation == number)]
    return True


def _has(statement: ir.Stmt, number: int) -> bool:
    return any(isinstance(n, ir.Call) and n.operation == number for n in ir.walk(statement))
