"""What a call of a function of the file is in its caller, once the function was walked: ``after_call(…)``.

In: the walk, a call, and the activation of what it called. Out: one site of the caller, or a use by the host. Apart
from the walk because it is the only place where two functions meet.

1. A function that gives the device nothing is what its host code touches. 2. One that does is a join, with all that it
touches. 3. In a text in which a stream is set for the call, and all that is called goes to the current stream, it is
work on that stream. A stream that is set for any other call is not followed: the caller stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING

from kesco.analysis.following import by_host, is_wait_here, why_not_followed
from kesco.analysis.passing import Passing
from kesco.analysis.region import Draft, Walked
from kesco.ir import program as ir
from kesco.ir.access import BY_HOST_IN_CALL, HELD_IN_CALL, IN_CALL, AccessMode, Buffer, in_call
from kesco.ir.flow import CURRENT, HOSTS_SIDE, Handle, Role, SiteKind
from kesco.ir.poly import ByteRange

if TYPE_CHECKING:
    from kesco.analysis.interpreter import Interpreter
    from kesco.analysis.state import Activation, State

_Touched = dict[tuple[Buffer, ByteRange | None], AccessMode]
_MOST_PARTS = 8
"""Of one buffer that a call touches; with more, it touches all of it."""


def after_call(walk: Interpreter, state: State, call: ir.Call, callee: Activation) -> None:
    """In the caller, what was called is one site if it touches the device, and else a use by the host."""
    name, now, drafts = callee.function.name, walk.now, callee.builder.drafts
    if callee.throws and not callee.touches_device:
        walk.may_throw(state, name, call.operation, call.span)
    now.throws = now.throws or (callee.throws and not now.failing)
    touched = touched_in(callee, walk.in_loops(), walk.passing)
    if not callee.touches_device:
        for (buffer, _), mode in (entry for one in touched.values() for entry in one.items()):
            now.host[buffer] = now.host.get(buffer, AccessMode.NONE) | mode
        walk.go_outside(any(d.outside for d in drafts))
        now.seen |= {one for d in drafts for one in d.seen}
        if not now.failing:
            now.looked = now.looked or any(d.looks for d in drafts)
        return
    before = now.touches_device
    stream = _stream_of(walk, call, callee)
    moves = stream is not None and stream != CURRENT
    site = walk.site(state, name, SiteKind.CALL, Role.MOVABLE if moves else Role.JOIN, call.operation, call.span)
    site.callees, site.stream = {callee.function.key: callee}, stream
    add_touched(site, callee, touched, walk.passing)
    if moves:
        looks, outside = by_host(callee)
        site.looks, site.outside = site.looks or looks, site.outside or outside
    site.foreign = site.foreign or callee.foreign or (callee.device_changed and before)
    now.device_changed = now.device_changed or callee.device_changed
    now.foreign = now.foreign or callee.foreign
    if site.foreign:
        now.unseen_in = now.statement


def touched_in(callee: Walked, around: Collection[str] = (), passing: Passing | None = None) -> dict[str, _Touched]:
    """What is touched in a function, by `Access.why` at its call, in few parts that mean something in its caller.

    `around` are the loops that its caller is in, whose counters keep their values during the call. What is touched
    through one argument alone `passing` says.
    """
    touched: dict[str, _Touched] = {}
    own = passing.own(callee.builder.drafts) if passing is not None else ()
    for draft in callee.builder.drafts:
        for (buffer, why, part), mode in draft.accesses.items():
            if buffer in own:
                continue
            way = BY_HOST_IN_CALL if draft.role is Role.HOST else _at_call(draft, why, mode)
            if way == IN_CALL and passing is not None:
                way = in_call(passing.parameter(callee.function, draft, why, mode))
            found = touched.setdefault(way, {})
            gone = part is not None and any(c.turn is None or c.turn.loop not in around for c in part.counters)
            at = buffer, None if gone else part
            found[at] = found.get(at, AccessMode.NONE) | mode
    return {why: _with_few_parts(one) for why, one in touched.items()}


def _at_call(draft: Draft, why: str, mode: AccessMode) -> str:
    if why in (BY_HOST_IN_CALL, HELD_IN_CALL):
        return why
    if draft.held is None:
        return IN_CALL
    return HELD_IN_CALL if mode == HOSTS_SIDE[draft.held] else IN_CALL


def add_touched(site: Draft, callee: Walked, touched: dict[str, _Touched], passing: Passing) -> None:
    """The site of a call touches what is touched in the function, and keeps the host where copies do so in it."""
    for why, accesses in touched.items():
        for (buffer, part), mode in accesses.items():
            site.touch(buffer, why, mode, part)
    drafts = callee.builder.drafts
    if passing.own(drafts) or any(d.takes for d in drafts):
        site.takes = site.stuck = True
    if any(d.holds or _is_held(d) for d in drafts):
        site.holds = site.stuck = True
        site.busy = any(d.busy or (d.role is Role.MOVABLE and not d.holds and not _is_held(d)) for d in drafts)
        site.bytes = site.bytes if site.busy else max(site.bytes, sum(d.bytes for d in drafts))


def _is_held(draft: Draft) -> bool:
    return is_wait_here(draft) or (draft.kind is SiteKind.COPY and draft.held is not None)


def _with_few_parts(touched: _Touched) -> _Touched:
    parts = Counter(buffer for buffer, _ in touched)
    found: _Touched = {}
    for (buffer, part), mode in touched.items():
        at = buffer, part if parts[buffer] <= _MOST_PARTS else None
        found[at] = found.get(at, AccessMode.NONE) | mode
    return found


def _stream_of(walk: Interpreter, call: ir.Call, callee: Activation) -> Handle | None:
    """The stream of all that a call gives the device, in a text that sets streams; None where it is not on one."""
    if not walk.streams:
        return None
    follows = not why_not_followed(callee, CURRENT)
    if walk.follows is None:
        return CURRENT if follows else None
    operation, stream = walk.follows
    if operation != call.operation or not follows:
        walk.stay_serial(f"a stream is set for '{call.name}', which does not follow it", call.span)
    return stream if follows else None
