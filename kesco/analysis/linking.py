"""A function and those that only it calls, as one region: the calls are walked as a part of it.

In: the program, what was found when it was walked, and the regions. Out: a `Region` of the whole, or None. It is a
stage of its own because a region by itself must rely on what comes before it and behind it being joined; here what is
before and behind is seen, so that no join is needed between the functions.

1. A *member* is a function that nothing but the root and other members can call, each time as a statement of its own,
and that comes back. It neither changes the device nor calls code that is not seen, and does more than to wait: else
nothing of it might be left. 2. Each member's sites stand in the
region once, with what any call of it touches; buffers keep their names, since what one call writes another may read.
3. A call leads to the member's entry, and each of its returns leads behind every call of it. So the region has all
paths that the program has, and some more. 4. A throw remains an exit: who catches it is not followed.

It refuses a whole with pointers from outside, and one with work behind code that is not seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from kesco.analysis.region import Walked
from kesco.ir import program as ir
from kesco.ir.access import BY_HOST_IN_CALL, HELD_IN_CALL, IN_CALL, BufferKind, argument_of
from kesco.ir.flow import Region, Role, Site, SiteKind
from kesco.source import Span

_OWN_STREAMS = (
    "kesco_streams_if_distinct",
    "kesco_stretch",
    "kesco_pace",
    "kesco_paced",
    "kesco_replay",
    "kesco_replay_alone",
)
_RETURNS = ("return", "end")
_INSIDE = (IN_CALL, HELD_IN_CALL, BY_HOST_IN_CALL)
_DOES = (Role.MOVABLE, Role.LEGACY, Role.JOIN)


def calls_of(program: ir.Program) -> dict[str, set[int]]:
    """The operations that call each function."""
    calls: dict[str, set[int]] = {}
    for function in program.functions:
        for node in ir.walk(function.body):
            if isinstance(node, ir.Call):
                calls.setdefault(node.key, set()).add(node.operation)
    return calls


def only_called(program: ir.Program) -> set[str]:
    """Functions that nothing names but calls of them."""
    calls = calls_of(program)
    return {
        f.key
        for f in program.functions
        if f.internal
        and not f.address_taken
        and f.key in calls
        and f.name != "main"
        and not f.name.startswith(("operator", "~"))  # called without being named
        and f.mentioned <= f.declared + len(calls[f.key])  # nothing else names it: no template, no unlowered code
    }


def members_of(
    program: ir.Program, root: ir.Function, closed: Collection[str], activations: Mapping[str, Collection[Walked]]
) -> dict[str, ir.Function]:
    """The functions that can be walked as a part of `root`, by key; `activations` are those that begin at `root`."""
    calls: dict[str, list[tuple[str, ir.Call]]] = {}
    for function in program.functions:
        for node in ir.walk(function.body):
            if isinstance(node, ir.Call):
                calls.setdefault(node.key, []).append((function.key, node))
    plain = {operation for f in program.functions if f.here for operation in _plain_calls(f)}
    found = {}
    for function in program.functions:
        contexts = activations.get(function.key, ())
        if (
            function.key in closed
            and function.here
            and contexts
            and all(a.returns and a.touches_device and not a.foreign and not a.device_changed for a in contexts)
            and all(call.operation in plain and not call.receiver for _, call in calls[function.key])
            and any(draft.role in _DOES for a in contexts for draft in a.builder.drafts)
            and _on_shared_streams(function)
        ):
            found[function.key] = function
    while True:
        inside = {root.key, *found}
        kept = {key: f for key, f in found.items() if all(caller in inside for caller, _ in calls[key])}
        if len(kept) == len(found):
            return kept if _on_shared_streams(root) else {}
        found = kept


def _on_shared_streams(function: ir.Function) -> bool:
    """Whether its text takes the streams that every function gets which asks for no others."""
    names = (n.name.rpartition("::")[2] for n in ir.walk(function.body) if isinstance(n, ir.Call))
    return not any(name in _OWN_STREAMS for name in names)


def _plain_calls(function: ir.Function) -> Iterator[int]:
    """The operations of calls that are a statement, an initial value or an assigned one, and call nothing beside."""
    for node in ir.walk(function.body):
        whole = (
            node.expression if isinstance(node, ir.Evaluate) else node.initial if isinstance(node, ir.Declare) else None
        )
        one = whole
        while isinstance(one, (ir.Cast, ir.Assign)):
            one = one.operand if isinstance(one, ir.Cast) else one.value
        if whole is None or not isinstance(one, ir.Call) or one.constructs or one.operation < 0:
            continue
        if sum(isinstance(n, (ir.Call, ir.Launch)) for n in ir.walk(whole)) == 1:
            yield one.operation


def linked(
    program: ir.Program, root: ir.Function, members: Mapping[str, ir.Function], parts: Mapping[str, Region]
) -> Region | None:
    """The whole as one region; `parts` are the regions of the root and of the members, by key."""
    kept = dict(members)
    while True:  # one that stays a join by itself takes those with it that it calls
        kept = {key: f for key, f in kept.items() if not parts[key].serial_because}
        callers = {n.key: {f.key for f in program.functions for m in ir.walk(f.body)
                           if isinstance(m, ir.Call) and m.key == n.key} for n in kept.values()}  # fmt: skip
        inside = {root.key, *kept}
        fewer = {key: f for key, f in kept.items() if callers[key] <= inside}
        if len(fewer) == len(kept):
            break
        kept = fewer
    if not kept or parts[root.key].serial_because or parts[root.key].open:
        return None
    callee = {n.operation: n.key for f in (root, *kept.values()) for n in ir.walk(f.body)
              if isinstance(n, ir.Call) and n.key in kept}  # fmt: skip
    names = {key: (f.name, f.span) for key, f in kept.items()}
    if not all(_is_only(site, names[callee[site.operation]]) for key in (root.key, *kept) for site in parts[key].sites
               if site.operation in callee):  # fmt: skip
        return None
    region = _Whole(root, parts, callee).region(names)
    movable = [s for s in region.sites if s.role is Role.MOVABLE]
    unseen = [s.number for s in region.sites if s.foreign]
    outside = any(a.buffer.kind is BufferKind.ENTRY for s in movable for a in s.accesses)
    if outside or not region.members or any(s.number in _behind(region, unseen) for s in movable):
        return None
    return region


def _is_only(site: Site, callee: tuple[str, Span]) -> bool:
    """Whether all that happens at a call happens in the function that it names."""
    return (
        site.calls == (callee,)
        and not site.foreign
        and all(a.why in _INSIDE or argument_of(a.why) >= 0 for a in site.accesses)
    )


def _behind(region: Region, starts: Collection[int]) -> set[int]:
    found: set[int] = set()
    work = list(starts)
    while work:
        for successor in region.successors[work.pop()]:
            if successor not in found:
                found.add(successor)
                work.append(successor)
    return found


class _Whole:
    """Puts the parts together: each once, behind the first call of it, which is the order they run in."""

    def __init__(self, root: ir.Function, parts: Mapping[str, Region], callee: Mapping[int, str]) -> None:
        self.root, self.parts, self.callee = root, parts, callee
        self.order: list[tuple[str, Site]] = []
        self.numbers: dict[tuple[str, int], int] = {}
        self.placed: set[str] = set()

    def region(self, members: Mapping[str, tuple[str, Span]]) -> Region:
        """The whole."""
        self._place(self.root.key)
        back: dict[str, set[int]] = {}
        for key, site in self.order:
            if self._is_call(site):
                back.setdefault(self.callee[site.operation], set()).update(self._following(key, site))
        sites, successors = [], []
        for number, (key, site) in enumerate(self.order):
            after = self._following(key, site)
            if self._is_call(site):
                after = {self.numbers[self.callee[site.operation], 0]}
                site = _passed(site)
            elif key != self.root.key and site.role is Role.EXIT and site.label.partition("#")[0] in _RETURNS:
                after, site = back[key], _passed(site)
            elif key != self.root.key and site.role is Role.ENTRY:
                site = _passed(site)
            sites.append(replace(site, number=number))
            successors.append(tuple(sorted(after)))
        whole = self.parts[self.root.key]
        there = tuple(members[key] for key in members if key in self.placed)
        sites_of_all = _labelled(sites)
        return replace(whole, sites=sites_of_all, successors=tuple(successors), members=there, calling=None)

    def _is_call(self, site: Site) -> bool:
        return site.role is Role.JOIN and site.kind is SiteKind.CALL and site.operation in self.callee

    def _following(self, key: str, site: Site) -> set[int]:
        return {self.numbers[key, n] for n in self.parts[key].successors[site.number]}

    def _place(self, key: str) -> None:
        self.placed.add(key)
        for site in self.parts[key].sites:
            self.numbers[key, site.number] = len(self.order)
            self.order.append((key, site))
            if self._is_call(site) and self.callee[site.operation] not in self.placed:
                self._place(self.callee[site.operation])


def _passed(site: Site) -> Site:
    """A place that control passes and where nothing happens."""
    return replace(site, role=Role.HOST, kind=SiteKind.HOST_USE, accesses=(), foreign=False)


def _labelled(sites: list[Site]) -> tuple[Site, ...]:
    """The sites with ``#k`` counted through the whole."""
    names = [site.label.partition("#")[0] for site in sites]
    counted: dict[str, int] = {}
    total = {
        name: sum(n == name and s.role is not Role.HOST for n, s in zip(names, sites, strict=True))
        for name in set(names)
    }
    result = []
    for name, site in zip(names, sites, strict=True):
        if total[name] > 1 and site.kind is not SiteKind.BOUNDARY and site.role is not Role.HOST:
            counted[name] = counted.get(name, 0) + 1
            name = f"{name}#{counted[name]}"
        result.append(replace(site, label=name))
    return tuple(result)
