"""New sites in a region: ``Weaver`` puts each before or behind others and numbers all anew.

In: a region, and sites with those that they stand before or behind. Out: a region whose sites are numbered in the order
of the text again, which the stages behind rely on.

1. Every way of control into the given sites goes through the new one: for a loop, those from outside of it; for a
single operation all, also that from itself. 2. A new site stands in the order before the first of those. 3. Behind
sites it is the other way about: every way out of them, for a loop those that leave it, goes through the new one.
"""

from __future__ import annotations

from dataclasses import replace

from kesco.ir.flow import Region, Site


class Weaver:
    """A region that sites are added to."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.sites = list(region.sites)  # by a number that stays until the end
        self.order = list(range(len(region.sites)))
        self.after = [set(successors) for successors in region.successors]

    def add(self, site: Site, before: frozenset[int], *, loop: bool, passed_by: bool = False) -> None:
        """Put a site in front of those with these numbers of the old region, which are all of a loop or one.

        With `passed_by` control may also come there without it, so that no order rests on what it does.
        """
        number = len(self.sites)
        self.sites.append(site)
        entered: set[int] = set()
        for source, targets in enumerate(self.after):
            if loop and source in before:
                continue
            into = targets & before
            if into:
                targets -= set() if passed_by else into
                targets.add(number)
                entered |= into
        self.after.append(entered)
        self.order.insert(min(self.order.index(target) for target in before), number)

    def add_behind(self, site: Site, behind: frozenset[int], *, loop: bool) -> None:
        """Put a site behind those with these numbers of the old region, which are all of a loop or one."""
        number = len(self.sites)
        self.sites.append(site)
        left: set[int] = set()
        for source in behind:
            out = self.after[source] - behind if loop else {*self.after[source]}
            if out:
                self.after[source] -= out
                self.after[source].add(number)
                left |= out
        self.after.append(left)
        self.order.insert(max(self.order.index(source) for source in behind) + 1, number)

    def finish(self) -> Region:
        """The region with all sites; the added ones get ``#k`` where there are several of a name."""
        place = {number: position for position, number in enumerate(self.order)}
        named: dict[str, list[int]] = {}
        for number in self.order:
            if number >= len(self.region.sites):
                named.setdefault(self.sites[number].label, []).append(number)
        sites = []
        for position, number in enumerate(self.order):
            one = self.sites[number]
            same = named.get(one.label, [])
            label = f"{one.label}#{same.index(number) + 1}" if number in same and len(same) > 1 else one.label
            sites.append(replace(one, number=position, label=label))
        after = tuple(tuple(sorted(place[n] for n in self.after[number])) for number in self.order)
        return replace(self.region, sites=tuple(sites), successors=after)
