"""Where paths meet: a state that is either of two.

An object that only one path has made stays as it is: the other has no pointer to it. Of a variable that only one has
touched, the other has what it held at first. What nobody initialised is no alternative: no correct program reads it.
"""

from __future__ import annotations

from kesco.analysis.host.contents import Contents
from kesco.analysis.host.memory import State
from kesco.analysis.host.values import NOTHING, Object, joined, united

_ALWAYS = ("global", "outside", "symbol", "entry", "kesco")  # kinds of what is there before any path


def join_states(a: State, b: State, *, widen: bool = False) -> tuple[State, bool]:
    """A state that is either of two, and whether it is more than the first; the second is used up."""
    changed = False
    ours, others = a.memory, b.memory
    for one in [one for one, contents in others.items() if ours.get(one) is not contents]:
        mine, theirs = ours.get(one), others[one]
        if mine is None and one.kind not in _ALWAYS:
            a.put(one, theirs)
            changed = True
            continue
        new = _join_contents(a, one, a.look(one), theirs, widen=widen)
        if new is not None:
            a.put(one, new)
            changed = True
    for one in [one for one in ours if one not in others and one.kind in _ALWAYS]:
        new = _join_contents(a, one, ours[one], b.look(one), widen=widen)
        if new is not None:
            a.put(one, new)
            changed = True
    values = a.values
    for name, value in b.values.items():
        old = values.get(name)
        if old is None:
            values[name] = value
            changed = True
        elif old is not value and old != value:
            new_value = joined(old, value, widen=widen)
            if new_value != old:
                values[name] = new_value
                changed = True
    return a, a.know(b) or changed


def _join_contents(state: State, one: Object, a: Contents, b: Contents, *, widen: bool) -> Contents | None:
    """What is either of two, or None where the second adds nothing to the first."""
    if a is b:
        return None
    if a.volatile:
        for value in b.held():
            state.escape(value)
        return None
    if b.volatile:
        new = a.copy()
        new.volatile = True
        for value in a.held():
            state.escape(value)
        return new
    freed, rest = a.freed and b.freed, a.rest
    if a.rest != b.rest:
        rest = united(a.rest | b.rest, widen=widen)
    differing = [(o, cell) for o, cell in b.cells.items() if a.cells.get(o) != cell]
    only = [o for o in a.cells if o not in b.cells]
    same = freed == a.freed and rest == a.rest and a.blurred >= b.blurred
    if not differing and not only and same and (not b.weak or a.weak == b.weak):
        return None
    new = a.copy()
    new.freed, new.rest, new.blurred = freed, rest, a.blurred or b.blurred
    changed = not same
    for o, (s, value) in differing:
        mine = a.cells.get(o)
        if mine is not None and mine[0] == s:
            both = joined(mine[1], value, widen=widen)
            if both != mine[1]:
                new.cells[o] = (s, both)
                changed = True
            continue
        key = (0, o, s)
        if a.overlapping(o, s):  # other sizes there: neither is certain
            for at in new.overlapping(o, s):
                length, old = new.cells.pop(at)
                new.add((0, at), length, old)
            new.weak[key] = joined(new.weak.get(key, NOTHING), value)
            changed = True
        else:
            both = joined(value, state.rest_of(one, a, o, s), widen=widen)
            known = a.weak.get(key)
            if known is None or joined(known, both) != known:
                new.cells[o] = (s, both)
                changed = True
    for o in only:
        s, value = a.cells[o]
        if o in new.cells and not b.overlapping(o, s):
            both = joined(value, state.rest_of(one, b, o, s), widen=widen)
            if both != value:
                new.cells[o] = (s, both)
                changed = True
    for key, value in b.weak.items():
        old_ = new.weak.get(key)
        both = value if old_ is None else joined(old_, value, widen=widen)
        if old_ is None or both != old_:
            new.weak[key] = both
            changed = True
    return new if changed else None
