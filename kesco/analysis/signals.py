"""Signals to the host: work that writes what the host may look at before it waits stays on the default stream.

In: the activations of all functions as they were walked. Out: drafts that were movable and are not. On the default
stream a kernel that sets a flag runs when all before it is done, so a host that sees the flag may read what the others
wrote. It does not matter how the host looks: volatile, atomic, or plainly in a loop that gives up its time.

1. For each site: what the host may read behind it before it next waits for the device. A call of a function of the file
is entered, and left into its caller; unseen code may look at all that the host can reach. 2. Work that writes any of
that keeps its place, in all calls and iterations of its text. 3. So does what writes memory that is volatile where the
program names it, since callers that are not seen may watch that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kesco.analysis.region import Draft
from kesco.analysis.state import Activation
from kesco.ir.access import UNKNOWN, AccessMode, Buffer, BufferKind, may_alias
from kesco.ir.flow import Held, Role, SiteKind

Activations = Mapping[str, Mapping[str, Activation]]
_Node = tuple[int, int, bool]  # activation, site, whether a function that it calls has returned
_NOT_SHOWN = (BufferKind.DEVICE, BufferKind.ORDER, BufferKind.UNKNOWN)  # the last comes behind all else as it is
_NOTHING: frozenset[Buffer] = frozenset()


def keep_signals(activations: Activations, watched: set[Buffer], volatile: set[int]) -> None:
    """Put what the host may watch back on the default stream.

    `watched` is memory that is volatile where the host names it, `volatile` the operations that are given a pointer to
    such memory.
    """
    every = [a for known in activations.values() for a in known.values()]
    writers = [(a, d, _shown(d)) for a in every for d in a.builder.drafts if d.role is Role.MOVABLE]
    writers = [(a, d, shown) for a, d, shown in writers if shown and d.held is None and d.stream is None]
    if not writers:
        return
    looks = _looks(every)
    kept = set()
    for activation, draft, shown in writers:
        seen = looks[id(activation), draft.number, False]
        tells = draft.operation in volatile or any(one in watched for one in shown)
        if tells or any(_may_show(one, look) for one in shown for look in seen):
            kept.add(draft.operation)
    for _, draft, _ in writers:
        if draft.operation in kept:
            draft.role, draft.note = Role.LEGACY, "the host may watch what it writes"


def _shown(draft: Draft) -> set[Buffer]:
    """What work writes that the host can reach without CUDA."""
    if draft.kind is SiteKind.PREFETCH:
        return set()
    written = {one[0] for one, mode in draft.accesses.items() if mode & AccessMode.WRITE}
    return {one for one in written if one.kind not in _NOT_SHOWN and not one.on_device}


def _may_show(written: Buffer, seen: Buffer) -> bool:
    """Whether a look at `seen` may be one at `written`.

    Unseen code is not taken to watch what came in from outside, unless it is given it or its type says so: most
    functions return before their work is done, and their callers wait.
    """
    return may_alias(written, seen) and not (seen == UNKNOWN and written.kind is BufferKind.ENTRY)


def _waits(activation: Activation, draft: Draft) -> bool:
    """Whether the host waits at a site until all before it is done."""
    if draft.role is Role.DEVICE_SYNC or draft.waits or (draft.held is Held.ALL and draft.acts):
        return True
    before = activation.builder.before(draft.number) if draft.awaits else []
    return bool(before) and all(one.records == draft.awaits for one in before)


def _at(draft: Draft) -> frozenset[Buffer]:
    """What the host may read at a site, which is no wait and no call of a function that was walked."""
    if draft.role not in (Role.HOST, Role.JOIN) or draft.callee is not None:
        return _NOTHING
    return frozenset(one[0] for one, mode in draft.accesses.items() if mode & AccessMode.READ)


def _looks(activations: Iterable[Activation]) -> dict[_Node, frozenset[Buffer]]:
    """For each site, what the host may read behind it before it waits."""
    after: dict[_Node, list[_Node]] = {}
    own: dict[_Node, frozenset[Buffer]] = {}
    stops: set[_Node] = set()
    for activation in activations:
        me = id(activation)
        for draft in activation.builder.drafts:
            node = me, draft.number, False
            following = [(me, one, False) for one in activation.builder.after(draft.number)]
            after[node], own[node] = following, _at(draft) | draft.seen
            if _waits(activation, draft):
                stops.add(node)
                own[node] = frozenset(draft.seen)
            if draft.callee is None or node in stops:
                continue
            after[node], own[node] = [(id(draft.callee), 0, False)], _NOTHING
            back = me, draft.number, True
            after[back], own[back] = following, frozenset(draft.seen)
            for left in (d for d in draft.callee.builder.drafts if d.role is Role.EXIT):
                after.setdefault((id(draft.callee), left.number, True), []).append(back)
                own.setdefault((id(draft.callee), left.number, True), _NOTHING)
    _return(after, activations)
    return _behind(after, own, stops)


def _return(after: dict[_Node, list[_Node]], activations: Iterable[Activation]) -> None:
    """Where a function that was entered is left, control is behind the call."""
    for activation in activations:
        for draft in (d for d in activation.builder.drafts if d.role is Role.EXIT):
            node = id(activation), draft.number, True
            after[id(activation), draft.number, False] += [node] if node in after else []


def _behind(
    after: dict[_Node, list[_Node]], own: dict[_Node, frozenset[Buffer]], stops: set[_Node]
) -> dict[_Node, frozenset[Buffer]]:
    """The union of what is looked at at a node and at all that follow it, up to those that stop."""
    before: dict[_Node, list[_Node]] = {}
    for node, following in after.items():
        for one in following:
            before.setdefault(one, []).append(node)
    found = dict(own)
    work = list(found)
    while work:
        node = work.pop()
        for one in before.get(node, []):
            more = found[one] if node in stops else found[one] | found[node]
            if len(more) > len(found[one]):
                found[one] = more
                work.append(one)
    return found
