"""Proves that a concurrent program keeps every dependence of the serial one.

In: the serial region and the concurrent one, both as read from text. Out: a `Verdict`, which names each pair
of operations that may run in the wrong order. A stage of its own, and without a line in common with the stages
that chose the streams, so that their mistakes are not repeated here.

1. Pair the sites of the two programs (`match.py`).
2. Compute what is ordered before what in the concurrent program (`happens_before.py`).
3. Device work must come after all earlier work that it conflicts with; conflicts are those of the serial
   program, and those that the concurrent text shows by itself. Where two operations conflict within one trip of a
   loop only, those of one trip must (`pipelines.py`).
4. At joins and exits the legacy stream must be ordered after everything: whoever comes next relies on it.
5. What the serial program's host had waited for must be complete wherever the host, a callee or the caller
   may look.
6. Where operations were moved in the text, conflicting ones must still be issued in the serial order.
7. All of it is proven twice where work on the default stream may turn out to be none (0 bytes, 0 blocks): then it
   neither orders nor waits for anything. What turns out to be some comes behind and before all other work by itself,
   whatever the others do.

It refuses to guess: what cannot be paired or proven is reported, never passed over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace

from kesco.ir import program as ir
from kesco.ir.access import BY_HOST_IN_CALL, Access
from kesco.ir.flow import Region, Role, Site, SiteKind
from kesco.verify.conflicts import bits, conflicts, hazards, union
from kesco.verify.earlier import those_before
from kesco.verify.happens_before import HappensBefore
from kesco.verify.knowledge import Facts
from kesco.verify.lifetimes import as_compared, moved_names, problems
from kesco.verify.match import (
    Matching,
    is_work,
    left_out,
    loops,
    match,
    may_be_none,
    plain_label,
    through,
)
from kesco.verify.paths import first_of, reachable, turns_of
from kesco.verify.pipelines import Pipelines
from kesco.verify.rings import Ring
from kesco.verify.turning import Beside, as_waits
from kesco.verify.verdict import Rule, Unordered, Verdict
from kesco.verify.zeroes import with_memsets

_Accesses = tuple[list[tuple[Access, ...]], list[tuple[Access, ...]]]  # by the serial and the concurrent program
_MAY_WAIT = (SiteKind.COPY, SiteKind.ALLOC, SiteKind.FREE)
_BUDGET = 20_000  # block visits spent on telling paths apart before a doubt stands


def verify_region(
    serial: Region, concurrent: Region, rings: tuple[Ring, ...] = (), before: ir.Program | None = None
) -> Verdict:
    """Prove one function, or say what stands against it; `rings` are loops of it, `before` the serial program."""
    names, original = moved_names(concurrent), serial
    waiting = as_waits(as_compared(serial, names), concurrent, rings)
    serial, stores = with_memsets(waiting, concurrent)
    proof = _Proof(serial, concurrent, stores)
    verdict = proof.verdict()
    for ring in rings:
        assert before is not None
        beside = Beside(ring, original, concurrent, proof.matching, proof.awaited, before)
        unordered = (*verdict.unordered, *beside.unordered())
        verdict = replace(verdict, unordered=unordered, unmatched=(*verdict.unmatched, *beside.problems()))
    if names:
        lives = problems(original, concurrent, proof.matching.to_serial)
        verdict = replace(verdict, unmatched=(*verdict.unmatched, *lives))
    vague = frozenset(s.number for s in concurrent.sites if may_be_none(s))
    if not vague:
        return verdict
    theirs = frozenset(s for s, c in enumerate(proof.matching.to_concurrent) if c in vague)
    again = _Proof(left_out(serial, theirs), left_out(concurrent, vague), stores).verdict()
    known = {(u.first.number, u.second.number, u.rule) for u in verdict.unordered}
    more = [u for u in again.unordered if (u.first.number, u.second.number, u.rule) not in known]
    return replace(
        verdict,
        unordered=(*verdict.unordered, *more),
        unmatched=tuple(dict.fromkeys((*verdict.unmatched, *again.unmatched))),
    )


def same_members(serial: Region, concurrent: Region | None) -> Region | None:
    """The concurrent region of several functions in one, if it is made of the same functions as the serial one."""
    if concurrent is None or [name for name, _ in concurrent.members] != [name for name, _ in serial.members]:
        return None
    return concurrent


def _has_host_code(site: Site) -> bool:
    """Whether a call on a stream has host code that looks at the device or its memory: that runs at once."""
    return site.kind is SiteKind.CALL and (site.looks or any(a.why == BY_HOST_IN_CALL for a in site.accesses))


# ---- the proof ----------------------------------------------------


class _Proof:
    """One function's proof; masks and numbers are those of concurrent sites unless said otherwise.

    `stores` are serial sites that were the host's own.
    """

    def __init__(self, serial: Region, concurrent: Region, stores: Collection[int]) -> None:
        self.serial, self.concurrent, self.stores = serial, concurrent, stores
        self.matching: Matching = match(serial, concurrent)
        to_serial, sites = self.matching.to_serial, concurrent.sites
        theirs = [serial.sites[s] if s >= 0 else None for s in to_serial]
        paired = [s.accesses if s is not None else () for s in theirs]
        itself = [s.own if s is not None else () for s in theirs]
        added = {c.number for c in sites if c.kind is SiteKind.PREFETCH and to_serial[c.number] < 0}
        own = [() if c.number in added else c.own for c in sites]  # who may watch the serial program says
        self.accesses = paired, own
        self.conflicts = self._both(self.accesses)
        self.host_conflicts = self.conflicts if itself == paired else self._both((itself, own))
        turning = {one: self._both(self.accesses, (other, one)) for one, other in self._loops()}
        self.pipelines = Pipelines(concurrent, turning)
        self.together = [a | b for a, b in zip(conflicts(paired), conflicts(own), strict=True)]
        self.work = union(1 << s.number for s in sites if is_work(s))
        self.boundary = union(1 << s.number for s in sites if s.role is Role.ENTRY)
        self.foreign = union(1 << s.number for s in sites if s.role is Role.JOIN and s.foreign)
        self._of_host = self._by_host() if any(s.holds for s in sites) else []
        behind = (c.number for c in sites if c.outside and concurrent.function != "main")
        self._outside = union(1 << n for c in behind for n in concurrent.successors[c])
        self.found: list[Unordered] = []
        self._distances: dict[int, dict[int, int]] = {}
        self._budget = _BUDGET
        self._alone: dict[int, dict[int, list[Facts]] | None] = {}

    def _loops(self) -> Iterable[tuple[str, str]]:
        """The loops whose trips are marked in both programs, by their names in the concurrent and the serial one."""
        return loops(self.serial, self.concurrent, self.matching).items()

    def _both(self, accesses: _Accesses, by_loop: tuple[str, str] = ("", "")) -> list[int]:
        """For each site those that it must come behind, by what it touches in the serial or the concurrent program.

        With the names of a loop in both, only in other trips of it.
        """
        sites = self.concurrent.sites
        paired, own = (those_before(sites, one, loop) for one, loop in zip(accesses, by_loop, strict=True))
        return [a | b for a, b in zip(paired, own, strict=True)]

    def _by_host(self) -> list[int]:
        """For each site those that touch what the host code of a call does there, or what any other site touches."""
        sites = self.concurrent.sites

        def kept(accesses: list[tuple[Access, ...]]) -> list[tuple[Access, ...]]:
            pairs = zip(sites, accesses, strict=True)
            return [tuple(a for a in a_s if not s.holds or a.why == BY_HOST_IN_CALL) for s, a_s in pairs]

        return self._both((kept(self.accesses[0]), kept(self.accesses[1])))

    def verdict(self) -> Verdict:
        """Check everything."""
        serial_facts = HappensBefore(self.serial, generous=True).run()
        self.awaited = self._awaited(serial_facts)
        self.order = HappensBefore(self.concurrent, *self.awaited)
        self.facts = self.order.run()
        for site in self.concurrent.sites:
            if site.number in self.facts:
                self._check(site, serial_facts)
                if site.role in (Role.MOVABLE, Role.LEGACY, Role.HOST) and self._outside >> site.number & 1:
                    self._report_all(Rule.HOST, "hidden", self.boundary, site)
        unmatched = list(self.matching.problems)
        if not self.matching.same_paths and self.concurrent.members:
            unmatched.append("its functions do not call each other on the same paths as in the serial program")
        elif not self.matching.same_paths:
            unmatched += self._compare_paths()
        sites = self.concurrent.sites
        return Verdict(
            tuple(sorted(self.found, key=lambda u: (u.second.number, u.first.number, u.rule.value))),
            tuple(unmatched),
            sum(s >= 0 for s in self.matching.to_serial),
            sum((mask & ((1 << n) - 1)).bit_count() for n, mask in enumerate(self.together)),
            sum(s.role is Role.WAIT for s in sites),
            len({s.event.key for s in sites if s.role is Role.RECORD and s.event}),
        )

    # ---- order on the device and for the host ----------------------------------------------------

    def _check(self, site: Site, serial_facts: dict[int, Facts]) -> None:
        conflicting = self.conflicts[site.number]
        if is_work(site):
            self._report_all(Rule.CONFLICT, "unordered", (conflicting | self.boundary) & ~self.foreign, site)
            self._report_all(Rule.FOREIGN, "unordered", self.foreign, site)
            if not _has_host_code(site):
                return
            if site.holds:  # behind the waits in it, which are none any more: nothing may be left to wait for
                seen = self.work if site.looks or site.outside else self._of_host[site.number]
                self._report_all(Rule.HOST, "pending", seen | self.boundary, site)
                return
        seen = self.host_conflicts[site.number]
        if site.role in (Role.JOIN, Role.EXIT):
            seen = self.work
            self._report_all(Rule.JOIN, "unordered", self.work, site)
        elif (site.role is not Role.HOST and not is_work(site)) or site.mark is not None:
            return
        elif site.looks or self._looked(site):
            seen = self.work
        elif not any(one[site.number] for one in self.accesses):
            return  # a query that says nothing of how far the device is
        self._report_all(Rule.HOST, "hidden", seen | self.boundary, site)
        if self.matching.same_paths:
            return
        # Where the text was rearranged, work may now be issued behind the place of the serial program's wait.
        facts, there = self.facts[site.number], serial_facts.get(self.matching.to_serial[site.number])
        for first in bits(facts.pending & seen & ~facts.hidden):
            original = self.matching.to_serial[first]
            if there is None or original < 0 or not there.pending >> original & 1:
                self._report(first, site.number, Rule.HOST)

    def _looked(self, site: Site) -> bool:
        original = self.matching.to_serial[site.number]
        return original >= 0 and self.serial.sites[original].looks

    def _report_all(self, rule: Rule, what: str, against: int, site: Site) -> None:
        """Report each site of `against` that the named fact holds of before `site`."""
        for first in bits(getattr(self.facts[site.number], what) & against):
            excused = (
                rule is Rule.CONFLICT and not self.boundary >> first & 1 and self.pipelines.excuse(first, site.number)
            )
            if not excused and self._confirmed(first, site, what):
                self._report(first, site.number, rule)

    def _confirmed(self, first: int, site: Site, what: str) -> bool:
        """Whether the doubt remains when the paths are told apart."""
        if first not in self._alone:
            self._alone[first] = None
            if self._budget > 0 and (result := self.order.run_alone(first, self._budget)) is not None:
                self._alone[first], self._budget = result
            elif self._budget > 0:
                self._budget //= 2
        alone = self._alone[first]
        return alone is None or any(getattr(f, what) >> first & 1 for f in alone.get(site.number, ()))

    def _awaited(self, facts: dict[int, Facts]) -> tuple[dict[int, int], dict[int, int], set[int]]:
        """What the serial program's host has waited for, before and after concurrent sites.

        A wait that is gone from the concurrent text is taken to stand before whichever paired site comes next.
        Plain calls on the legacy stream may wait: that must not be counted on, nor its absence be seen. Those that
        are the same in both texts are returned, too.
        """
        before: defaultdict[int, int] = defaultdict(int)
        after: defaultdict[int, int] = defaultdict(int)
        alike: set[int] = set()
        to_concurrent = self.matching.to_concurrent
        for site in self.serial.sites:
            here = to_concurrent[site.number]
            if site.number in self.stores and here >= 0:
                after[here] |= 1 << here
            waits = site.role in (Role.DEVICE_SYNC, Role.STREAM_SYNC, Role.EVENT_SYNC)
            may_wait = site.kind in _MAY_WAIT and site.role is Role.LEGACY and "Async" not in site.label
            may_wait = may_wait or (site.holds and site.role is Role.JOIN)
            if site.number not in facts or not (waits or may_wait):
                continue
            done = self._completed(site, facts[site.number])
            if here >= 0:
                after[here] |= done
                other = self.concurrent.sites[here]
                if not waits and other.stream is None and plain_label(other) == plain_label(site):
                    alike.add(here)
                continue
            for successor in through(self.serial, site.number, lambda n: to_concurrent[n] >= 0):
                before[to_concurrent[successor]] |= done
        return before, after, alike

    def _completed(self, site: Site, facts: Facts) -> int:
        """Which sites are complete behind a wait of the serial program: all but work it leaves pending.

        Where the text was rearranged, what it has not issued by then is none that it waits for.
        """
        left = 0
        if site.role is Role.STREAM_SYNC and site.stream is not None:
            left = facts.pending & facts.unordered
        elif not self.matching.same_paths:
            left = ~facts.pending & ((1 << len(self.serial.sites)) - 1)
        return ~union(1 << c for s in bits(left) if (c := self.matching.to_concurrent[s]) >= 0)

    # ---- operations that were moved in the text ----------------------------------------------------

    def _compare_paths(self) -> list[str]:
        """Conflicting operations must be issued in the serial order, and on the same occasions."""
        ours, theirs = self.matching.serial_graph, self.matching.concurrent_graph
        reach, reached = reachable(ours), reachable(theirs)
        sites = self.concurrent.sites
        exits = {n for n in ours if sites[n].role is Role.EXIT}
        barriers = union(1 << n for n in ours if sites[n].role is Role.JOIN)
        everything = union(1 << n for n in ours)
        for first in sorted(ours):
            against = everything if barriers >> first & 1 else self.together[first] | barriers
            for second in bits(against & everything & ~((2 << first) - 1)):
                order = reach[first] >> second & 1, reach[second] >> first & 1
                now = reached.get(first, 0) >> second & 1, reached.get(second, 0) >> first & 1
                if order != now:
                    self._report(*((first, second) if order[0] else (second, first)), Rule.REVERSED)
                elif all(order) and (
                    (turns := turns_of(ours, first, second, exits)) != turns_of(theirs, first, second, exits)
                ):
                    pair = (second, first) if turns[0] - exits == {second} else (first, second)
                    self._report(*pair, Rule.REVERSED)
        if all(len(s) <= 1 for s in (*ours.values(), *theirs.values())):
            return []
        return [
            f"'{sites[n].label}' ({sites[n].span}) is reached on other paths than in the serial program"
            for n in sorted(ours)
            if any(first_of(ours, start, {n} | exits) != first_of(theirs, start, {n} | exits) for start in (0, n))
        ]

    # ---- reporting ----------------------------------------------------

    def _report(self, first: int, second: int, rule: Rule) -> None:
        sites = self.concurrent.sites
        buffer, kinds = hazards(self.accesses[0][first], self.accesses[0][second])
        if not kinds:
            buffer, kinds = hazards(self.accesses[1][first], self.accesses[1][second])
        path = self._path(second, first) if rule is Rule.REVERSED else self._path(first, second)
        self.found.append(Unordered(sites[first], sites[second], buffer, kinds, path, rule))

    def _path(self, first: int, second: int) -> tuple[int, ...]:
        """The first of the shortest ways of control from one site to the other."""
        came_from = self._distances.get(first)
        if came_from is None:
            came_from = {}
            frontier = [first]
            while frontier:
                following = []
                for number in frontier:
                    for successor in self.concurrent.successors[number]:
                        if successor not in came_from:
                            came_from[successor] = number
                            following.append(successor)
                frontier = following
            self._distances[first] = came_from
        if second not in came_from:
            return first, second
        path = [second, came_from[second]]
        while path[-1] != first:
            path.append(came_from[path[-1]])
        return tuple(reversed(path))
