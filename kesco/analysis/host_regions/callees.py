"""What a function of the text is in the one that called it, once it came back.

In: the activation that came back, the state behind it. Out: a site of the caller. Apart from `watching` because only
here two functions meet.

1. One that gives the device something is a join, or work on the stream that is set for it. 2. One that gives it nothing
is a use by the host, which touches what its host code did, and looks where that looked. 3. What host code alone touches
orders no calls: the host runs them one after the other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kesco.analysis.called import add_touched, touched_in
from kesco.analysis.following import by_host
from kesco.analysis.host.memory import State
from kesco.ir.access import BY_HOST_IN_CALL, BufferKind
from kesco.ir.flow import CURRENT, Region, Role, Site

if TYPE_CHECKING:
    from kesco.analysis.host_regions.activations import Activation
    from kesco.analysis.host_regions.watching import Watching

_VAGUE = (BufferKind.UNKNOWN, BufferKind.UNSEEN_HOST, BufferKind.ENTRY)


def without_hosts_own(region: Region) -> Region:
    """The region without what calls touch on the host and nothing else does, if all is known that is touched."""
    every = [(s, a) for s in region.sites for a in s.accesses]
    if any(a.buffer.kind in _VAGUE for _, a in every):
        return region
    others = {a.buffer for s, a in every if s.role is not Role.HOST and a.why != BY_HOST_IN_CALL}

    def kept(site: Site) -> Site:
        mine = tuple(
            a for a in site.accesses
            if a.why != BY_HOST_IN_CALL or a.buffer in others or a.buffer.kind is not BufferKind.HOST
        )  # fmt: skip
        return site if len(mine) == len(site.accesses) else replace(site, accesses=mine)

    return replace(region, sites=tuple(map(kept, region.sites)))


def call_site(watching: Watching, inner: Activation, name: str, state: State) -> None:
    """What was called is a join of its caller, or work on the stream that is set for it."""
    activation = watching.now.activation
    touched = activation.touches_device
    stream = watching.stream_of(inner)
    moves = stream is not None and stream != CURRENT
    site = watching.call(state, name, Role.MOVABLE if moves else Role.JOIN, stream)
    if site is not None:
        site.callees, site.stream = site.callees | {inner.function.key: inner}, stream
        passing = watching.texts.passing
        add_touched(site, inner, touched_in(inner, passing=passing), passing)
        if moves:
            looks, outside = by_host(inner)
            site.looks, site.outside = site.looks or looks, site.outside or outside
        site.foreign = site.foreign or inner.foreign or inner.lends or (inner.device_changed and touched)
    activation.foreign = activation.foreign or inner.foreign
    activation.lends = activation.lends or inner.lends
    activation.device_changed = activation.device_changed or inner.device_changed
    activation.exits = activation.exits or inner.exits


def used_inside(watching: Watching, inner: Activation, state: State) -> None:
    """Let the function that control is in again use what `inner` used."""
    drafts = inner.builder.drafts
    now = watching.now.activation
    for number in state.frontier:
        before = now.builder.drafts[number]
        before.outside = before.outside or any(one.outside for one in drafts)
        before.seen |= {one for draft in drafts for one in draft.seen}
    if any(one.looks for one in drafts):
        watching.looked(state)
    every = [entry for one in touched_in(inner).values() for entry in one.items()]
    if every:
        use = watching.used(state)
        for (buffer, part), mode in every:
            use.touch(buffer, BY_HOST_IN_CALL, mode, part)
