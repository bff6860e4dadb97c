"""Memory of the host that is copied: cell by cell where it is known what is where, and as a whole elsewhere.

In: a state, two addresses and a size. Out: the state is changed. Apart from `memory`, whose methods it is made of.
"""

from __future__ import annotations

from kesco.analysis.host.contents import FEW
from kesco.analysis.host.memory import CHANGED, State
from kesco.analysis.host.values import (
    ANYWHERE,
    NOTHING,
    Atom,
    Object,
    Pointer,
    Scalar,
    Unknown,
    Value,
    is_known,
    offset_of,
    pointers,
    scalar,
    united,
)  # fmt: skip


def copy_bytes(state: State, to: Value, source: Value, size: int | None, *, members: bool = False) -> None:
    """Copy memory; whose size may not be known. Of what is blurred, pointers are copied as `members` of a class alone.

    Bytes that are copied may be those of a number, whatever was put there.
    """
    if size == 0:
        return
    targets, sources = pointers(to), pointers(source)
    for found, writes in ((targets, True), (sources, False)):
        for one, offset in found:
            if state.is_reached(one):
                state.touch(one, offset, size, writes=writes)
    strange = [one for one in scalar(source) if type(one) is Unknown]
    for origin, _ in sources:
        state.come_to(origin)
    held = _held(state, sources, strange, members=members)
    for found, writes in ((targets, True), (sources, False)):
        for one, offset in found:
            state.note(one, offset, size, held, writes=writes)
    if not is_known(to) or not is_known(source):
        state.touch(None, writes=not is_known(to))
        if not is_known(source):
            state.note(None, ANYWHERE, 1, NOTHING, writes=False)
    if len(targets) == 1 and len(sources) == 1 and not strange and size is not None:
        (target, (a, b)), (origin, (c, d)) = targets[0], sources[0]
        code = "function" in (target.kind, origin.kind)
        if not a and not c and not target.many and not code and is_known(to):
            _copy_exactly(state, target, b, origin, d, size, members=members)
            return
    if not is_known(to):
        state.escape(held)
        state.lose_escaped()
    for target, _ in targets:
        if target.kind == "function" or not held:
            continue
        if state.look(target).volatile or state.look(target).blurred:
            state.escape(held)
        if state.look(target).volatile:
            continue
        contents = state.change(target)
        if contents.lazy:
            state.written |= {target}
        contents.blurred |= any(state.look(one).blurred for one, _ in sources)
        contents.add((8, 0), 8, held)


def _held(state: State, sources: list[Pointer], strange: list[Unknown], *, members: bool) -> Scalar:
    """What may be held by all that is copied from."""
    held: set[Atom] = set(strange)
    for origin, _ in sources:
        if origin.kind != "function":
            contents = state.look(origin)
            held |= CHANGED if contents.volatile or (contents.blurred and not members) else NOTHING
            for value in contents.held():
                held |= scalar(value)
    return united(frozenset(held))


def _copy_exactly(state: State, target: Object, to: int, origin: Object, at: int, size: int, *, members: bool) -> None:
    source = state.look(origin)
    if state.look(target).volatile or state.look(target).blurred:
        for value in source.held():
            state.escape(value)
    if state.look(target).volatile:
        return
    if source.volatile or source.lazy or state.look(target).lazy or (source.blurred and not members):
        state.fill(frozenset((Pointer(target, (0, to)),)), size, CHANGED)
        return
    cells = [(o, source.cells[o]) for o in source.overlapping(at, size)]
    weak = list(source.weak.items())
    rest = source.rest
    contents = state.change(target)
    contents.blurred |= source.blurred
    contents.cut(to, size, state.part)
    if rest:
        covered = {b for o, (s, _) in cells for b in range(o, o + s)} if size <= FEW else set()
        if size <= FEW:
            first = at
            while first < at + size:
                if first in covered:
                    first += 1
                    continue
                end = first
                while end < at + size and end not in covered and end - first < 8:
                    end += 1
                contents.cells[first - at + to] = (end - first, rest)
                first = end
        else:
            contents.add((0, to), size, rest)
    for o, (s, value) in cells:
        first, end = max(o, at), min(o + s, at + size)
        if (first, end) == (o, o + s):
            contents.cells[o - at + to] = (s, value)
        else:
            contents.cells[first - at + to] = (end - first, state.part(value))
    for (stride, r, length), value in weak:
        if stride:
            contents.add(offset_of(stride, r - at + to), length, value)
        elif r < at + size and at < r + length:
            contents.add((0, r - at + to), length, value)
