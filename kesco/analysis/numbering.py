"""Which number an allocation of a family has that was first held by a plain variable: ``p = new_buffer(); v[i] = p;``.

In: a store, an allocation as it is made, and a pointer to it as it goes into an element. Out: the store in which all
pointers to it have that number. Apart from `families` because that is about offsets only.

1. Each execution of the call has one number. Until it has one (it is *new*), all pointers to it say so, wherever they
are kept; the first element of known number that it is stored to gives it that number, in all of them at once.
2. At most one execution of a call is new at a time. What is new when a trip of a loop ends, or when the call is
executed again, may be any of the family from then on.
3. Where control has come along two paths, and on one of them there is a number already, no number is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kesco.analysis.families import is_new, numbered
from kesco.analysis.memory import Object, ObjectKind, Place, Store, Value, number
from kesco.ir.poly import Poly

_FAMILY, _NEW = "[]", "new one of "


def begin(store: Store, made: Object) -> None:
    """One of a family has been allocated for a plain variable."""
    _rewrite(store, lambda place: _anywhere(place) if place.object == made else place)
    store.write((_waits(made),), number(1))


def given(store: Store, at: Place, value: Value) -> Value:
    """A value as it goes to a place: what is new in it gets the number of the element, if that is known."""
    new = {place.object for place in value.every_place() if is_new(place.offset)}
    element = at.element
    if not new or element is None:
        return value
    waiting = {one for one in new if store.read(_waits(one)).number == 1}
    for one in waiting:
        store.write((_waits(one),), number(0))
    kept = element if all(symbol.turn is not None for symbol in element.symbols) else None
    _rewrite(store, lambda place: _numbered(place, kept, waiting) if place.object in new else place)
    return value.elsewhere(lambda place: _numbered(place, element, waiting) if place.object in new else place)


def end_trip(store: Store) -> None:
    """A trip of a loop has ended."""
    _rewrite(store, _anywhere)
    for one in [o for o in store.objects if o.key.startswith(_NEW)]:
        store.write((Place(one),), number(0))


def made_for_variables(value: Value, at: Place) -> set[int]:
    """The calls that allocated, for a plain variable, what goes to an element whose number is not constant."""
    if at.element is None or at.element.constant is not None:
        return set()
    keys = (p.object.key for p in value.every_place() if p.object.many and p.object.kind is ObjectKind.BUFFER)
    return {int(key.split(":")[1]) for key in keys if key.startswith("alloc:") and not key.endswith(_FAMILY)}


def _waits(made: Object) -> Place:
    """Where it is kept whether the latest of a family has no number yet."""
    return Place(Object(f"{_NEW}{made.key}", "new", ObjectKind.VARIABLE))


def _anywhere(place: Place) -> Place:
    return replace(place, offset=None) if is_new(place.offset) else place


def _numbered(place: Place, element: Poly | None, waiting: set[Object]) -> Place:
    if place.offset is None or not is_new(place.offset):
        return place
    known = element is not None and place.object in waiting
    return replace(place, offset=numbered(place.offset, element) if known and element is not None else None)


def _rewrite(store: Store, moved: Callable[[Place], Place]) -> None:
    """Change what all values of a store point to."""
    for one, entries in list(store.objects.items()):
        changed = {path: value.elsewhere(moved) for path, value in entries.items()}
        if changed != entries:
            store.objects[one] = changed
