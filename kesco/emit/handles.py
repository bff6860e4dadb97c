"""Calls of libraries on streams: the lines that set the stream of a handle in front of a call, and put it back behind.

In: a rewrite, and the text of each operation's stream. Out: lines before and behind operations. Apart from the rest of
the writing because a handle keeps its stream: what a call leaves matters to whoever uses the handle next.

1. A call puts the default stream back unless, on every way on, the next to use the handle is a call that sets it, or
what ends the handle. Who uses it: another call with it, what is called and may know it, whoever comes behind the
function. 2. A call sets the stream unless the handle certainly has it: from a call right before, with no barrier in
between, where a set of streams may have been taken for another. 3. A handle that works on several streams is given a
workspace for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kesco.ir import program as ir
from kesco.ir.access import Buffer
from kesco.ir.flow import Region, Role, Site, SiteKind, is_barrier

_ENDS = ("cublasDestroy", "cufftDestroy", "curandDestroyGenerator", "cusparseDestroy", "cusolverDnDestroy")
BLAS, CURRENT = "kesco_blas", "kesco_current()"
SHARES = ("cublasSetStream",)  # what it sets may be several streams, with a workspace for each
Lines = dict[int, list[str]]
Handle = frozenset[Buffer]
"""The workspaces by which the handle of a call is known: one for each way in which its function is called."""


def add_handles(
    lines: tuple[Lines, Lines],
    program: ir.Program,
    region: Region,
    streams: Mapping[int, int],
    text_of: Callable[[int], str],
) -> None:
    """Add the lines before and behind operations; `streams` has the stream of each site that is on one."""
    before, after = lines
    moved = {s.number: _workspaces(s) for s in region.sites if s.kind is SiteKind.LIBRARY and s.number in streams}
    if not moved:
        return
    sites = region.sites
    inside = [span for _, span in region.members]  # a function gives back what it is given
    lends = [n for n in moved if any(one.start <= sites[n].span.start < one.end for one in inside)]
    back = {sites[n].operation for n in moved if n in lends or _is_missed(region, n, moved)}
    for operation in sorted({sites[n].operation for n in moved}):
        handle = program.operations[operation].handle
        assert handle is not None
        setter, named = handle[0], program.text[handle[1] : handle[2]].decode()
        every = [n for n in moved if sites[n].operation == operation]
        if any(not _has_it(region, n, moved, streams, back) for n in every):
            several = _may_share(program, setter) and any(_is_spread(region, n, streams) for n in every)
            named_setter = BLAS if several else setter
            line = f"{named_setter}({named}, {text_of(operation)});  // kesco: {sites[every[0]].label} runs there"
            before.setdefault(operation, []).append(line)
        if operation in back:
            after.setdefault(operation, []).append(f"{setter}({named}, 0);  // kesco: others find it as it was")


def lent(program: ir.Program, operation: ir.Operation, label: str, *, seen: bool) -> tuple[str, str]:
    """The lines before and behind a call in a function that follows; `seen`: all its callers are in the program.

    Others have a stream of their own in the handle, perhaps, and never set a current one.
    """
    assert operation.handle is not None
    setter, named = operation.handle[0], program.text[slice(*operation.handle[1:])].decode()
    given = "" if seen else f"if ({CURRENT} != nullptr) "
    on = BLAS if _may_share(program, setter) else setter
    return (
        f"{given}{on}({named}, {CURRENT});  // kesco: {label.removesuffix('_v2')} runs there",
        f"{given}{setter}({named}, 0);  // kesco: others find it as it was",
    )


def is_lent(program: ir.Program, region: Region) -> bool:
    """Whether a function that follows its caller works with a handle that may work on several streams."""
    return any(_shares(program, one) for one in region.sites)


def is_spread(program: ir.Program, region: Region, streams: Mapping[int, int]) -> bool:
    """Whether a handle that may work on several streams does."""
    moved = (s for s in region.sites if s.kind is SiteKind.LIBRARY and s.number in streams)
    return any(_shares(program, s) and _is_spread(region, s.number, streams) for s in moved)


def _shares(program: ir.Program, site: Site) -> bool:
    handle = program.operations[site.operation].handle if site.operation >= 0 else None
    return handle is not None and _may_share(program, handle[0])


def _may_share(program: ir.Program, setter: str) -> bool:
    """Whether handles may have several streams: not where the program asks how much memory there is."""
    return setter in SHARES and b"cudaMemGetInfo" not in program.text


def _is_spread(region: Region, number: int, streams: Mapping[int, int]) -> bool:
    """Whether the handle of a call may also work on other streams, perhaps in functions that are called there."""
    own, elsewhere = (
        _workspaces(region.sites[number]),
        (n for n, stream in streams.items() if stream != streams[number]),
    )
    return any(not own.isdisjoint(_workspaces(region.sites[n])) for n in elsewhere)


def _workspaces(site: Site) -> Handle:
    return frozenset(a.buffer for a in site.accesses if a.buffer.key.startswith("library:"))


def _is_same(one: Handle, other: Handle) -> bool:
    """Whether two calls are certainly given the same handle, in whichever way their function is called."""
    ways = {buffer.key.partition("@")[2] for buffer in one}
    return one == other and len(ways) == len(one)


def _is_missed(region: Region, number: int, moved: Mapping[int, Handle]) -> bool:
    """Whether somebody behind a call may need the default stream in its handle."""
    for site in _next(region, number, lambda s: _uses(s, moved[number])):
        sets = site.number in moved and _is_same(moved[site.number], moved[number])
        if not (sets or site.label.partition("#")[0] in _ENDS):
            return True
    return False


def _uses(site: Site, handle: Handle) -> bool:
    """Whether a site uses a handle, or may."""
    if site.kind is SiteKind.LIBRARY:
        return not _workspaces(site).isdisjoint(handle)
    return site.role is Role.EXIT or site.kind is SiteKind.CALL or site.foreign


def _next(region: Region, number: int, stops: Callable[[Site], bool]) -> Iterable[Site]:
    """The first sites on each way behind one at which to stop."""
    seen: set[int] = set()
    stack = list(region.successors[number])
    while stack:
        one = stack.pop()
        if one in seen:
            continue
        seen.add(one)
        if stops(region.sites[one]):
            yield region.sites[one]
        else:
            stack += region.successors[one]


def _has_it(
    region: Region, number: int, moved: Mapping[int, Handle], streams: Mapping[int, int], back: set[int]
) -> bool:
    """Whether the handle has its stream already, on every way to a call."""
    before: list[list[int]] = [[] for _ in region.sites]
    for one, successors in enumerate(region.successors):
        for after in successors:
            before[after].append(one)
    seen: set[int] = set()
    stack = list(before[number])
    while stack:
        one = stack.pop()
        if one in seen:
            continue
        seen.add(one)
        site = region.sites[one]
        if one in moved and _is_same(moved[one], moved[number]):
            if streams[one] != streams[number] or site.operation in back:
                return False
        elif is_barrier(site) or _uses(site, moved[number]) or site.role is Role.DEVICE_SYNC or not before[one]:
            return False
        else:
            stack += before[one]
    return bool(seen)
