"""Which functions follow the stream of whoever calls them, so that a call of one is an operation of its caller.

In: the activations of all functions as they were walked. Out: for each function why it does not follow, or an empty
text; and in a caller, the calls that may go to any stream. Apart from the walk because a function has one text, which
must be right for all calls of it.

1. An *activation* follows where all that it gives the device is in the file's own text and can be put on a stream
there: launches, memsets, copies, calls of libraries, and of functions that follow. 2. So it has no join, no unseen
code, changes no device, is told of no flag that the host may watch, and throws nothing: who catches that may look at
the default stream. It waits for nothing but ``cudaMemcpy`` between host and device, for which it only waits until the
host's memory is done with, and ``cudaDeviceSynchronize``, for which it waits for its stream (`Site.holds`). 3. A
*function* follows where all its activations do. 4. A handle of a library that code gave which is not seen is no reason
against it: nobody sets a stream there, and then the handle keeps the one that it has. 5. A call may move where it is a
statement, or a value that is declared or assigned, with nothing else for the device in that statement: what is set for
the call ends with the statement.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from kesco.analysis.passing import Passing
from kesco.analysis.region import Draft, Walked
from kesco.ir import program as ir
from kesco.ir.access import BY_HOST_IN_CALL, Access, AccessMode, Buffer
from kesco.ir.flow import CURRENT, Handle, Held, Region, Role, SiteKind
from kesco.ir.transfers import SETS
from kesco.ir.walking import leaves

_WAIT = b"cudaDeviceSynchronize("
_PASSED = (Role.ENTRY, Role.EXIT, Role.HOST)
_MOVES = (SiteKind.KERNEL, SiteKind.COPY, SiteKind.MEMSET, SiteKind.LIBRARY)


def why_not_followed(
    activation: Walked, current: Handle | None, known: dict[int, str] | None = None, frees: Collection[int] = ()
) -> str:
    """Why what an activation does is not all on the current stream, as `current` names it; empty where it is.

    The operations `frees` end memory that a function has taken for itself.
    """
    known = {} if known is None else known  # by activation: each is looked at once
    if id(activation) in known:
        return known[id(activation)]
    before = len(known)
    known[id(activation)] = ""  # what calls itself follows if all else in it does
    found = _own(activation, current, known, frees)
    if found:  # so may those not that were seen since, as they may call it
        for one in [key for key in list(known)[before:] if not known[key]]:
            del known[one]
    known[id(activation)] = found
    return found


def unkept(assumed: Iterable[Walked]) -> str:
    """Why one of these, all of which is known now, does not follow the current stream; empty where all do."""
    known: dict[int, str] = {}
    return next(filter(None, (why_not_followed(one, CURRENT, known) for one in assumed)), "")


def _own(activation: Walked, current: Handle | None, known: dict[int, str], frees: Collection[int]) -> str:
    if activation.builder.serial_because:
        return activation.builder.serial_because
    if activation.throws:
        return "it may throw"
    if activation.exits:
        return "it may end the process, and other code may run then"
    hidden = "code that is not seen runs in it, or it changes the device"
    why = next(filter(None, (_why(draft, current, known, frees) for draft in activation.builder.drafts)), "")
    return why or (hidden if activation.device_changed or activation.foreign else "")


def _why(draft: Draft, current: Handle | None, known: dict[int, str], frees: Collection[int]) -> str:
    if draft.role in _PASSED:
        return ""
    where = f"'{draft.name}' (line {draft.span.line})"
    if draft.kind is SiteKind.CALL and draft.callees and draft.role is Role.JOIN:
        all_follow = not any(why_not_followed(one, current, known, frees) for one in draft.callees.values())
        follows = draft.stream == current and all_follow
        return "" if follows else f"{where} does not follow"
    if draft.lent:
        return ""
    if draft.foreign:
        return f"what {where} does is not seen"
    if is_held_copy(draft) and (draft.stream == current if current is not None else draft.role is Role.LEGACY):
        return ""
    if is_wait_here(draft) or (draft.kind is SiteKind.FREE and draft.role is Role.JOIN):
        own = draft.operation in frees or is_wait_here(draft)
        return "" if (own if current is None else draft.stream == current) else f"{where} is a barrier"
    if draft.role is not Role.MOVABLE or draft.kind not in _MOVES or draft.held is not None:
        return f"{where} stays on the default stream" if draft.role is Role.LEGACY else f"{where} is a barrier"
    if draft.note and current is None:  # later it is on that stream, or not
        return f"{where}: {draft.note}"
    return "" if draft.stream == current else f"{where} is on a stream of its own"


def is_held_copy(one: Draft) -> bool:
    """Whether it is a ``cudaMemcpy`` that keeps the host until it is done with the host's memory."""
    return one.kind is SiteKind.COPY and one.held in (Held.SOURCE, Held.ALL) and one.name == "cudaMemcpy"


def is_wait_here(one: Draft) -> bool:
    """Whether it is a ``cudaDeviceSynchronize``."""
    return one.kind is SiteKind.SYNC and one.role is Role.DEVICE_SYNC and one.name == "cudaDeviceSynchronize"


def not_followed(program: ir.Program, activations: Mapping[str, Mapping[Any, Walked]], why: str) -> dict[str, str]:
    """For each function why it does not follow; `why` is what keeps the whole file as it is, if anything does."""
    found: dict[str, str] = {}
    frees = Passing(program).frees
    for function in program.functions:
        contexts = activations.get(function.key, {}).values()
        found[function.key] = (
            why
            or ("nothing calls it" if function.name == "main" else "")
            or ("" if function.here else "it is not in this file's own text")
            or ("" if any(a.touches_device for a in contexts) else "it launches nothing")
            or next(filter(None, (_why_not(program, a, frees) for a in contexts)), "")
        )
    while True:
        wrong = {
            key: f"'{draft.name}' (line {draft.span.line}) does not follow"
            for key, reason in found.items()
            if not reason
            for activation in activations[key].values()
            for draft in activation.builder.drafts
            if any(found[one] for one in draft.callees)
        }
        if not wrong:
            return found
        found |= wrong


def _why_not(program: ir.Program, activation: Walked, frees: Collection[int]) -> str:
    return why_not_followed(activation, None, frees=frees) or _fixed_copy(program, activation)


def _fixed_copy(program: ir.Program, activation: Walked) -> str:
    """Why the text of a copy or wait that keeps the host cannot be changed, if it cannot."""

    def is_fixed(draft: Draft) -> bool:
        if is_held_copy(draft):
            return program.operations[draft.operation].rename is None
        if not is_wait_here(draft):
            return False
        return draft.operation < 0 or not program.text.startswith(_WAIT, program.operations[draft.operation].span.start)

    wrong = next((d for d in activation.builder.drafts if is_fixed(d)), None)
    return f"'{wrong.name}' (line {wrong.span.line}) is a barrier" if wrong is not None else ""


def moving_calls(
    program: ir.Program, contexts: Collection[Walked], reasons: Mapping[str, str], *, all_seen: bool = False
) -> set[int]:
    """The operations of a function that are calls which may go to any stream; `contexts` are its activations.

    With `all_seen` there is a site for whatever code does to the device where objects are made, and where they end.
    """
    drafts = [draft for activation in contexts for draft in activation.builder.drafts]
    busy = [draft for draft in drafts if draft.role not in _PASSED and draft.operation >= 0]
    places = {(p.start, p.end): set[int]() for d in busy if (p := program.operations[d.operation].statement)}
    for draft in busy:
        if (place := program.operations[draft.operation].statement) is not None:
            places[place.start, place.end].add(draft.operation)
    alone = {next(iter(numbers)) for numbers in places.values() if len(numbers) == 1}
    stands = alone & _stands(program, contexts, all_seen=all_seen)
    heads = {n.operation for a in contexts for n in _in_heads(a.function.body) if isinstance(n, ir.Call)}
    stands -= {
        d.operation for d in drafts if (d.holds or d.takes) and d.operation in heads
    }  # the host would wait behind the branch
    found = {d.operation for d in drafts if d.callees and d.operation in stands}
    return found - {d.operation for d in drafts if d.operation in found and not _moves(program, d, reasons)}


def with_moving(region: Region, moving: Collection[int], contexts: Collection[Walked]) -> Region:
    """The region in which these calls are work that may go to any stream."""
    if not moving:
        return region
    sites = list(region.sites)
    for site in (s for s in region.sites if s.operation in moving and s.kind is SiteKind.CALL):
        sides = [
            by_host(one)
            for a in contexts
            for d in a.builder.drafts
            if d.operation == site.operation
            for one in d.callees.values()
        ]
        looks, outside = (any(one) for one in zip(*sides, strict=True))
        role = site.role if site.holds or site.takes else Role.MOVABLE  # whether copies move is decided later
        sites[site.number] = replace(site, role=role, looks=looks, outside=site.outside or outside, stuck=False)
    return replace(region, sites=tuple(sites))


def by_host(callee: Walked) -> tuple[bool, bool]:
    """Whether the host may see in a function how far the device is, and touch memory that its caller did not make."""
    reached, todo = {id(callee): callee}, [callee]
    while todo:
        inner = {id(one): one for d in todo.pop().builder.drafts for one in d.callees.values()}
        todo += [one for key, one in inner.items() if key not in reached]
        reached |= inner
    drafts = [draft for one in reached.values() for draft in one.builder.drafts]
    return any(d.looks for d in drafts), any(d.outside for d in drafts)


def touched_by(region: Region) -> tuple[tuple[Access, ...], tuple[Access, ...]]:
    """What the device touches in a region, and what the host does, each buffer once."""
    by_device: dict[Buffer, AccessMode] = {}
    on_host: dict[Buffer, AccessMode] = {}
    for site, access in ((s, a) for s in region.sites for a in s.accesses):
        found = on_host if site.role is Role.HOST or access.why == BY_HOST_IN_CALL else by_device
        found[access.buffer] = found.get(access.buffer, AccessMode.NONE) | access.mode
    device, host = (
        tuple(Access(b, mode) for b, mode in sorted(one.items(), key=_name)) for one in (by_device, on_host)
    )
    return device, host


def _name(item: tuple[Buffer, AccessMode]) -> tuple[str, str]:
    return item[0].name, item[0].key


def _moves(program: ir.Program, draft: Draft, reasons: Mapping[str, str]) -> bool:
    """Whether a call, as it is made there, may go to any stream."""
    if not draft.callees or draft.role is not Role.JOIN or draft.foreign:
        return False
    return program.operations[draft.operation].call is not None and not any(reasons[one] for one in draft.callees)


def _stands(program: ir.Program, contexts: Collection[Walked], *, all_seen: bool) -> set[int]:
    """The calls that are a whole statement, or the value that one declares or assigns.

    Unless all is seen, nothing is made beside them that is destroyed at the statement's end.
    """
    bodies = {activation.function.key: activation.function.body for activation in contexts}
    found = set()
    for whole in (w for body in bodies.values() for w in map(_whole, ir.walk(body)) if w is not None):
        call = _without_assignment(whole)
        others = (
            n for n in ir.walk(whole) if n is not call and isinstance(n, (ir.Call, ir.Launch, ir.New, ir.Unknown))
        )
        if isinstance(call, ir.Call) and (all_seen or all(_leaves_nothing(program, n) for n in others)):
            found.add(call.operation)
    return found


def _in_heads(body: ir.Stmt) -> Iterator[ir.Expr | ir.Stmt]:
    """What is in the heads of branches."""
    for branch in (n for n in ir.walk(body) if isinstance(n, ir.If)):
        yield from ir.walk(branch.condition)
        yield from (n for one in branch.before for n in ir.walk(one))


def _leaves_nothing(program: ir.Program, call: ir.Expr | ir.Stmt) -> bool:
    """Whether a call makes no object that runs code of the user's when it is destroyed, and calls none back.

    Neither does a lambda that holds none.
    """
    if isinstance(call, ir.Unknown) and call.what == "lambda":
        held = (n.variable.type for n in ir.walk(call) if isinstance(n, ir.Name))
        return all(one.shape in (ir.Shape.INTEGER, ir.Shape.POINTER, ir.Shape.OTHER) for one in held)
    if not isinstance(call, ir.Call) or call.runs or call.destroys:
        return False
    if call.standard or call.type is None or call.type.shape is not ir.Shape.RECORD:
        return call.standard or not call.constructs
    record = program.records.get(call.type.record)
    return record is not None and not record.destructor and (record.plain or not call.constructs)


def stream_set(statement: ir.Stmt) -> tuple[ir.Call, ir.Call] | None:
    """What sets a stream in a statement, and the call that it is for, where it is that call's alone."""
    whole = _whole(statement)
    return _set_around(whole) if whole is not None else None


def _whole(node: ir.Expr | ir.Stmt) -> ir.Expr | None:
    """The expression of a statement that ends with it."""
    if isinstance(node, ir.Evaluate):
        return node.expression
    if isinstance(node, ir.Declare) and node.variable.scope is ir.Scope.LOCAL:
        bound = _without_assignment(node.initial) if node.initial is not None else None
        lasts = isinstance(bound, ir.Binary) or (isinstance(bound, ir.Call) and bound.reference)  # it is no temporary
        return node.initial if lasts or node.variable.type.shape is not ir.Shape.REFERENCE else None
    if isinstance(node, ir.If) and node.other is None and not node.before and leaves(node.then):
        return node.condition
    return None


def _without_assignment(whole: ir.Expr) -> ir.Expr:
    """The value that an expression converts, compares or assigns to something, or takes the address of."""
    match whole:
        case ir.Cast(operand=inner) | ir.Assign(value=inner) | ir.AddressOf(target=inner) | ir.Unary(operand=inner):
            return _without_assignment(inner)
        case ir.Binary(operator="==" | "!=" | "<" | ">" | "<=" | ">=", left=inner, right=ir.Constant()):
            return _without_assignment(inner)
    return whole


def _set_around(whole: ir.Expr) -> tuple[ir.Call, ir.Call] | None:
    """Where a statement's expression sets a stream for a call: what sets it, and the call."""
    both = _without_assignment(whole)
    if not isinstance(both, ir.Binary) or both.operator != ",":
        return None
    first, call = _without_assignment(both.left), ir.bare(both.right)
    if not isinstance(first, ir.Call) or first.name.rpartition("::")[2] not in SETS or not isinstance(call, ir.Call):
        return None
    return first, call
