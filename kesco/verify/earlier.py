"""Which sites must come before which: ``those_before(sites, accesses)``, for work and for the host.

In: the sites of the concurrent region, and what each touches. Out: for each the mask of those that it must come behind.
Apart from `conflicts` because what keeps the host, or does not, matters here.

1. What a copy has read when it lets the host go is read; so is what was copied in a call that keeps the host. 2. Where
the host need not have waited for a copy to it (``kesco_fetch``), the host's memory is no matter of order between that
copy and the host, or another of kesco's own copies: before the host looks it waits, which is proven apart
(`destinations`), and the calls wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from kesco.ir.access import BY_HOST_IN_CALL, HELD_IN_CALL, Access, AccessMode
from kesco.ir.flow import Held, Role, Site
from kesco.verify.conflicts import conflicts, union
from kesco.verify.trips import Lanes


def those_before(
    sites: Sequence[Site], accesses: Sequence[tuple[Access, ...]], loop: str = "", lanes: Lanes = ()
) -> list[int]:
    """For each site the mask of the sites that it must come behind; with `loop`, only in other trips of that loop.

    With `lanes`, only in trips of such loops in which their counters have different values.
    """
    count = len(sites)
    behind = [mask >> count for mask in conflicts([*accesses, *_still_done(sites, accesses)], loop, lanes)[:count]]
    if not any(map(_is_later, sites)):
        return behind
    less = [_of_the_device(site, one) if _is_later(site) else one for site, one in zip(sites, accesses, strict=True)]
    apart = [mask >> count for mask in conflicts([*less, *_still_done(sites, less)], loop, lanes)[:count]]
    others = union(1 << n for n, site in enumerate(sites) if not _waits_by_itself(site))
    return [b & others | a if _waits_by_itself(s) else b for s, b, a in zip(sites, behind, apart, strict=True)]


def _still_done(sites: Sequence[Site], accesses: Sequence[tuple[Access, ...]]) -> list[tuple[Access, ...]]:
    """What a site still does when the host has gone on: a copy to the device has read its source."""
    pairs = zip(sites, accesses, strict=True)
    return [tuple(a for a in a_s if not _is_done(site, a)) for site, a_s in pairs]


def _is_done(site: Site, access: Access) -> bool:
    """Whether what a site touches there is done with when the host goes on."""
    in_call = site.holds and access.why in ((BY_HOST_IN_CALL,) if site.later else (HELD_IN_CALL, BY_HOST_IN_CALL))
    read = site.held is Held.SOURCE and site.role is Role.MOVABLE and AccessMode.WRITE not in access.mode
    return in_call or read


def _is_later(site: Site) -> bool:
    return (site.held is Held.LATER or site.later) and site.role is Role.MOVABLE


def _waits_by_itself(site: Site) -> bool:
    return site.role is Role.HOST or ((site.held is not None or site.later) and site.role is Role.MOVABLE)


def _of_the_device(site: Site, listed: tuple[Access, ...]) -> tuple[Access, ...]:
    """What a copy to the host, or a call with such, touches, without what it writes: the host's memory."""
    return tuple(a for a in listed if (a.why != HELD_IN_CALL if site.later else a.mode != AccessMode.WRITE))
