"""Releases: work that writes what the host may look at before it waits comes behind all that it may look at then.

In: the activations of all functions as they were walked. Out: drafts that touch more than they did. A flag in pinned
memory says that what came before it is done, so whoever sees it may go on to read and overwrite what the others wrote
and read. A release therefore counts as doing itself what is done by whoever sees it: that gives it the dependences of
the host. Other work need not wait for a release, unless it writes what is looked at. It does not matter how the host
looks: volatile, atomic, or plainly in a loop that gives up its time.

1. For each site: what the host may read and write behind it before it next waits for the device. A call of a function
of the file is entered, and left into its caller; unseen code may do all to what it knows. So may whoever copies on a
stream that does not wait for the others. 2. Work that writes what is read then is a release, and touches it all, and
what threads of unseen code may have been told of. 3. Where others may look who are not seen (callers of what came in as
a pointer to volatile memory, who was told of the flag), or callers whose memory has no name here, it touches all
memory. 4. Tasks that the author marked may end in any order: a release does not wait for another task because the host
decides by that one's flag, too, where to go on, if it reads it as volatile.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kesco.analysis.memory import Object
from kesco.analysis.region import Draft, Seen, Walked
from kesco.ir.access import RELEASED, UNKNOWN, UNSEEN_HOST, AccessMode, Buffer, BufferKind, may_alias
from kesco.ir.flow import Held, Role, SiteKind

Activations = Mapping[str, Mapping[Any, Walked]]
_Node = tuple[int, int, bool]  # activation, site, whether a function that it calls has returned
_Looks = frozenset[Seen]
_NOT_SHOWN = (BufferKind.DEVICE, BufferKind.ORDER, BufferKind.UNKNOWN)  # the last comes behind all else as it is
_OWN = (BufferKind.PINNED, BufferKind.MANAGED)  # memory that CUDA gave to the process: others must be told of it
_UNKNOWN = (BufferKind.UNKNOWN, BufferKind.UNSEEN_HOST)
_READS = (AccessMode.READ, AccessMode.READ_WRITE)
_ANYTHING: _Looks = frozenset({(UNKNOWN, AccessMode.READ_WRITE, False)})
_NOTHING: _Looks = frozenset()
_WORK = (Role.MOVABLE, Role.LEGACY)


@dataclass(frozen=True, slots=True)
class Watchers:
    """Who may watch what: `volatile` are operations that are given a pointer to volatile memory, `watched` is memory

    that is volatile where the host names it, `told` is what code that is not seen may know, and `tasks` has the name of
    the marked task of each operation that has one.
    """

    watched: frozenset[Buffer]
    volatile: frozenset[int]
    told: frozenset[Buffer]
    tasks: Mapping[int, str]

    @classmethod
    def of(
        cls, watched: Iterable[Buffer], volatile: Iterable[int], told: Iterable[Object], tasks: Mapping[int, str]
    ) -> Watchers:
        """The same, of what the walk noted."""
        known = frozenset(one.buffer for one in told if one.buffer is not None)
        return cls(frozenset(watched), frozenset(volatile), known, tasks)

    def elsewhere(self, written: Buffer) -> bool:
        """Whether code that is not seen may look at a buffer."""
        return written.kind not in (*_OWN, BufferKind.DEVICE) or written in self.told

    def tells(self, draft: Draft, shown: Iterable[Buffer]) -> bool:
        """Whether the program says that a draft writes what is watched; members have one name in all functions."""
        if draft.operation in self.volatile:
            return True
        names = {_last(one) for one in self.watched if one.kind is BufferKind.ENTRY}
        return any(one in self.watched or (one.kind is BufferKind.ENTRY and _last(one) in names) for one in shown)


def _last(buffer: Buffer) -> str:
    """The last of the names in what a pointer was called that came in from outside."""
    return re.split(r"->|\.|::", buffer.name)[-1]


def mark_releases(activations: Activations, watchers: Watchers) -> None:
    """Let work that the host may watch touch what whoever sees it may touch."""
    every = [a for known in activations.values() for a in known.values()]
    drafts = [(a, d, _shown(d)) for a in every for d in a.builder.drafts if d.role is Role.MOVABLE and d.held is None]
    looks = _looks(every)
    polled = {b for a in every for d in a.builder.drafts if _is_alone(d) for b, mode, _ in _at(d) if mode in _READS}
    drafts = [(a, d, shown | (_written(d) & polled)) for a, d, shown in drafts]
    found = [(a, d, _released(d, shown, looks[id(a), d.number, False], watchers)) for a, d, shown in drafts]
    released = {d.operation for a, d, seen in found if seen and not a.generic}
    touched = _Touched(every, watchers)
    for activation, draft, seen in found:
        if activation.generic and draft.operation in released:
            seen |= _ANYTHING  # a caller looks, too, whose memory has other names here
        if seen:
            draft.note = RELEASED
        for buffer, mode in touched.by(activation, draft, seen):
            draft.touch(buffer, RELEASED, mode)


def _released(draft: Draft, shown: Iterable[Buffer], looks: _Looks, watchers: Watchers) -> _Looks:
    """What whoever sees what a draft writes may do; nothing if nobody may see it before the host waits."""
    tells = watchers.tells(draft, shown)
    if any(watchers.elsewhere(one) and (tells or _may_show(one, looks, watchers)) for one in shown):
        return _ANYTHING
    return looks if any(_may_show(one, looks, watchers) for one in shown) else _NOTHING


def _may_show(written: Buffer, looks: _Looks, watchers: Watchers) -> bool:
    """Whether one of the looks may be one at `written`.

    Unseen code is not taken to watch what came in from outside, unless it is given it or its type says so: most
    functions return before their work is done, and their callers wait. It cannot look at what it was not told of.
    """
    hidden = written.kind is BufferKind.ENTRY or not watchers.elsewhere(written)
    reads = (seen for seen, mode, _ in looks if mode & AccessMode.READ)
    return any(may_alias(written, seen) and not (hidden and seen == UNKNOWN) for seen in reads)


def _shown(draft: Draft) -> set[Buffer]:
    """What work writes that the host can reach without CUDA."""
    if draft.kind is SiteKind.PREFETCH:
        return set()
    return {one for one in _written(draft) if one.kind not in _NOT_SHOWN and not one.on_device}


def _written(draft: Draft) -> set[Buffer]:
    return {one[0] for one, mode in draft.accesses.items() if mode & AccessMode.WRITE}


def _is_alone(draft: Draft) -> bool:
    """Whether a site is on a stream of the program's own that does not wait for other work."""
    return draft.stream is not None and not (draft.stream.blocking and draft.stream.certain)


class _Touched:
    """What the device touches: of all that is looked at only that matters."""

    def __init__(self, activations: Iterable[Walked], watchers: Watchers) -> None:
        self._tasks, self._told = watchers.tasks, watchers.told
        self._any: set[Buffer] = set()
        self._in: dict[int, set[Buffer]] = {}
        self._writers: defaultdict[Buffer, set[str]] = defaultdict(set)
        for activation in activations:
            own = self._in[id(activation)] = set()
            for draft in (d for d in activation.builder.drafts if d.role in _WORK):
                for (buffer, _, _), mode in draft.accesses.items():
                    own.add(buffer)
                    if mode & AccessMode.WRITE:
                        self._writers[buffer].add(self._tasks.get(draft.operation, ""))
            self._any |= own

    def by(self, activation: Walked, draft: Draft, looks: _Looks) -> list[tuple[Buffer, AccessMode]]:
        """What a release touches for these looks, with the names that its own function has for it."""
        task = self._tasks.get(draft.operation, "")
        found: defaultdict[Buffer, AccessMode] = defaultdict(lambda: AccessMode.NONE)
        for buffer, mode, watching in looks:
            writers = self._writers[buffer]
            if watching and task and writers and not writers & {task, ""}:
                continue  # another task's flag
            if buffer.kind in _UNKNOWN or buffer in self._in[id(activation)]:
                found[buffer] |= mode
            elif buffer.kind is BufferKind.ENTRY:  # it may be what has another name here
                found[UNSEEN_HOST] |= mode
            elif buffer in self._any:
                found[buffer] |= mode
        if looks:
            found |= dict.fromkeys(self._told & self._any, AccessMode.READ_WRITE)
        return list(found.items())


def _waits(activation: Walked, draft: Draft) -> bool:
    """Whether the host waits at a site until all before it is done."""
    if draft.role is Role.DEVICE_SYNC or draft.waits or (draft.held is Held.ALL and draft.acts):
        return True
    before = activation.builder.before(draft.number) if draft.awaits else []
    return bool(before) and all(one.records == draft.awaits for one in before)


def _at(draft: Draft) -> _Looks:
    """What the host may do at a site, which is no wait and no call of a function that was walked.

    What is on a stream of the program's own that does not wait for others tells as much as the host does. What the host
    reads is among what is seen behind the site before; who frees memory of the device waits.
    """
    if draft.callees or not (_is_alone(draft) or draft.role in (Role.HOST, Role.JOIN)):
        return _NOTHING
    kept = AccessMode.WRITE if draft.role is Role.HOST else AccessMode.READ_WRITE
    done = ((one[0], mode & kept) for one, mode in draft.accesses.items())
    freed = draft.kind is SiteKind.FREE and draft.role is Role.JOIN
    return frozenset((b, mode, False) for b, mode in done if mode and not (freed and b.on_device))


def _behind_it(draft: Draft) -> _Looks:
    """What the host may do behind a site, before the next one."""
    return frozenset(draft.seen)


def _looks(activations: Iterable[Walked]) -> dict[_Node, _Looks]:
    """For each site, what the host may do behind it before it waits."""
    after: dict[_Node, list[_Node]] = {}
    own: dict[_Node, _Looks] = {}
    stops: set[_Node] = set()
    for activation in activations:
        me = id(activation)
        for draft in activation.builder.drafts:
            node = me, draft.number, False
            following = [(me, one, False) for one in activation.builder.after(draft.number)]
            after[node], own[node] = following, _at(draft) | _behind_it(draft)
            if _waits(activation, draft):
                stops.add(node)
                own[node] = _behind_it(draft)
            if not draft.callees or node in stops:
                continue
            after[node], own[node] = [(id(one), 0, False) for one in draft.callees.values()], _NOTHING
            back = me, draft.number, True
            after[back], own[back] = following, _behind_it(draft)
            for one, left in ((c, d) for c in draft.callees.values() for d in c.builder.drafts if d.role is Role.EXIT):
                after.setdefault((id(one), left.number, True), []).append(back)
                own.setdefault((id(one), left.number, True), _NOTHING)
    _return(after, activations)
    return _behind(after, own, stops)


def _return(after: dict[_Node, list[_Node]], activations: Iterable[Walked]) -> None:
    """Where a function that was entered is left, control is behind the call."""
    for activation in activations:
        for draft in (d for d in activation.builder.drafts if d.role is Role.EXIT):
            node = id(activation), draft.number, True
            after[id(activation), draft.number, False] += [node] if node in after else []


def _behind(after: dict[_Node, list[_Node]], own: dict[_Node, _Looks], stops: set[_Node]) -> dict[_Node, _Looks]:
    """The union of what is done at a node and at all that follow it, up to those that stop."""
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
