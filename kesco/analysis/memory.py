"""The abstract memory of the host program: objects, values, and the store that maps places to values.

In and out: values of its own. It is kept apart from the interpreter so that the one thing that must be sound, namely
what a place may hold after a write, can be read and tested alone.

1. An *object* is a variable, a host allocation, a device buffer, a symbol, a stream or an event. 2. A *place* is an
object and a path of field names and element numbers; ``None`` in a path is an unknown element. 3. A *value* is a set of
places it may point to, an integer, unknown, or an aggregate of such by path. 4. A write to one certain place replaces;
every other write adds.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from kesco.analysis.families import filed, found
from kesco.ir.access import Buffer
from kesco.ir.flow import Handle
from kesco.ir.poly import Poly, constant

Path = tuple[str | int | None, ...]
SIZE = "#"
"""A step to how many elements a container has, which is none of them."""
OVERLAID = "|"
"""A step to one of several fields that share their storage, or their name; nothing below it is told apart."""


class ObjectKind(enum.Enum):
    """What an object is."""

    VARIABLE = "variable"
    HEAP = "heap"
    BUFFER = "buffer"
    HANDLE = "handle"


@dataclass(frozen=True, slots=True, eq=False)
class Object:
    """A unit of storage.

    `many` stands for several at once; `entry` makes unwritten places mean their value at entry.
    """

    key: str
    name: str
    kind: ObjectKind
    buffer: Buffer | None = None
    handle: Handle | None = None
    many: bool = False
    entry: bool = False

    @property
    def laid_out(self) -> bool:
        """Whether its members and elements are followed; a `buffer` only stands for what came in where it has these."""
        return self.buffer is None or self.kind is ObjectKind.HEAP

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Object) and self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True, slots=True)
class Place:
    """A location inside an object; `offset` is how many bytes it is behind a buffer's beginning, None if not known.

    `index` is what is known of an element's number, where that is none.
    """

    object: Object
    path: Path = ()
    offset: Poly | None = None
    index: Poly | None = None

    def within(self, step: str | int | None, index: Poly | None = None) -> Place:
        """The part that a step leads to."""
        return self if OVERLAID in self.path else Place(self.object, (*self.path, step), None, self.index or index)

    @property
    def element(self) -> Poly | None:
        """The number of the one element that it is, or is a part of; None where it is in none, or in several."""
        steps = [step for step in self.path if not isinstance(step, str)]
        if len(steps) != 1:
            return None
        return self.index if steps[0] is None else constant(steps[0])

    def renumbered(self, value: Value, how: Callable[..., Poly | None]) -> Value:
        """A value as it goes into this place or comes out; what is in an array of its own is in no one element."""
        own = replace(value, fields=()).moved(partial(how, element=self.element))
        parts = []
        for path, part in value.fields:
            element = self.element if all(isinstance(step, str) for step in path) else None
            parts.append((path, part.moved(partial(how, element=element))))
        return replace(own, fields=tuple(parts))

    @property
    def name(self) -> str:
        """As a person would write it, such as ``x[3]`` or ``d.rows``."""
        text = self.object.name
        for step in self.path:
            text += f".{step}" if isinstance(step, str) else f"[{'?' if step is None else step}]"
        return text


@dataclass(frozen=True, slots=True)
class Value:
    """What a place may hold. No places, no number and not unknown: nothing that could be followed.

    `formula` is an integer that is not a known number, in terms of others. It says something beside the rest: an
    integer may well be unknown, or a pointer in disguise, and have one.
    """

    places: frozenset[Place] = frozenset()
    number: int | None = None
    unknown: bool = False
    fields: tuple[tuple[Path, Value], ...] = ()
    formula: Poly | None = None

    @property
    def integer(self) -> Poly | None:
        """The number or the formula, if it has one."""
        return constant(self.number) if self.number is not None else self.formula

    def __or__(self, other: Value) -> Value:
        if self == other:
            return self
        number = self.number if self.number == other.number else None
        mine, its = dict(self.fields), dict(other.fields)  # a part that one of them leaves out may be anything there
        fields = {path: mine.get(path, NOTHING) | its.get(path, NOTHING) for path in mine.keys() | its.keys()}
        merged = tuple(sorted(fields.items(), key=lambda item: tuple(map(str, item[0]))))
        formula = self.formula if self.formula == other.formula else None
        return Value(self.places | other.places, number, self.unknown or other.unknown, merged, formula)

    def every_place(self) -> frozenset[Place]:
        """All places the value or any part of it may point to."""
        result = self.places
        for _, part in self.fields:
            result |= part.every_place()
        return result

    def moved(self, offset: Callable[[Poly | None], Poly | None]) -> Value:
        """The value with other offsets of all that it may point to."""
        if not any(place.offset is not None and place.offset.terms for place in self.every_place()):
            return self
        return self.elsewhere(lambda place: replace(place, offset=offset(place.offset)))

    def elsewhere(self, moved: Callable[[Place], Place]) -> Value:
        """The value with other places."""
        fields = tuple((path, part.elsewhere(moved)) for path, part in self.fields)
        return replace(self, places=frozenset(map(moved, self.places)), fields=fields)

    def without_shape(self) -> Value:
        """What may be pointed to from anywhere in the value, for who cannot tell its parts apart."""
        return Value(self.every_place(), None, self.any_unknown())

    def any_unknown(self) -> bool:
        """Whether the value or any part of it is unknown."""
        return self.unknown or any(part.any_unknown() for _, part in self.fields)


NOTHING = Value()
TOP = Value(unknown=True)


def number(value: int) -> Value:
    """An integer."""
    return Value(number=value)


def pointer(*places: Place) -> Value:
    """A pointer to any of these places."""
    return Value(frozenset(places))


def may_equal(a: Path, b: Path) -> bool:
    """Whether two paths may lead to the same part of an object."""
    if len(a) != len(b):
        return False
    return all(x == y or ((x is None or y is None) and SIZE not in (x, y)) for x, y in zip(a, b, strict=True))


def _may_begin(prefix: Path, path: Path) -> bool:
    return len(path) > len(prefix) and may_equal(prefix, path[: len(prefix)])


def is_certain(places: Iterable[Place]) -> bool:
    """Whether a write to these places replaces what is there: there is one, and it is one storage location."""
    targets = tuple(places)
    return (
        len(targets) == 1
        and not targets[0].object.many
        and targets[0].object.kind is not ObjectKind.BUFFER
        and None not in targets[0].path
        and OVERLAID not in targets[0].path
    )


@dataclass(slots=True)
class Store:
    """Place → value. Copies share what neither has written since."""

    objects: dict[Object, dict[Path, Value]] = field(default_factory=dict)
    clobbered: frozenset[Object] = frozenset()
    plain: dict[Object, int] = field(
        default_factory=dict
    )  # objects whose paths all have this length and no unknown step

    def copy(self) -> Store:
        """An independent copy."""
        return Store(dict(self.objects), self.clobbered, dict(self.plain))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Store) and self.objects == other.objects and self.clobbered == other.clobbered

    def has(self, place: Place) -> bool:
        """Whether anything was written that a read of this place could see."""
        entries = self.objects.get(place.object, {})
        return any(may_equal(p, place.path) or _may_begin(place.path, p) for p in entries)

    def covers(self, place: Place) -> bool:
        """Whether something that the place is a part of was written as a whole."""
        entries = self.objects.get(place.object, {})
        return any(_may_begin(path, place.path) for path in entries)

    def read(self, place: Place) -> Value:
        """What the place may hold, with its parts when it is an aggregate."""
        value = self._read(place)
        inside = any(not isinstance(step, str) for step in place.path)
        return place.renumbered(value, found) if inside else value

    def _read(self, place: Place) -> Value:
        entries = self.objects.get(place.object)
        result = TOP if place.object in self.clobbered else NOTHING
        if not entries:
            return result
        exact = entries.get(place.path)
        if exact is not None and len(place.path) == self.plain.get(place.object, -1) and None not in place.path:
            return result | exact if result.unknown else exact
        found: Value | None = None
        parts: dict[Path, Value] = {}
        for path, value in entries.items():
            if value.unknown and len(path) < len(place.path) and may_equal(path, place.path[: len(path)]):
                result = TOP  # an unknown whole has unknown parts
            if may_equal(path, place.path):
                found = value if found is None else found | value
            elif _may_begin(place.path, path):
                rest = path[len(place.path) :]
                parts[rest] = parts[rest] | value if rest in parts else value
        base = found or NOTHING
        if result.unknown:
            base = base | result
            parts = {path: part | result for path, part in parts.items()}
        if parts:
            base = replace(base, fields=tuple(sorted(parts.items(), key=lambda item: tuple(map(str, item[0])))))
        return base

    def write(self, places: Iterable[Place], value: Value) -> None:
        """Store `value` at one of these places."""
        targets = tuple(places)
        certain = is_certain(targets)
        for place in targets:
            self._write(place, place.renumbered(value, filed), certain)

    def _write(self, place: Place, value: Value, certain: bool) -> None:
        entries = dict(self.objects.get(place.object, {}))
        scalar = replace(value, fields=())
        parts = dict(value.fields)
        for path in [p for p in entries if p[: len(place.path)] == place.path]:
            if certain:
                del entries[path]
            elif path != place.path and path[len(place.path) :] not in parts:
                entries[path] = entries[path] | NOTHING | scalar  # the new value leaves that part out
        for path, part in (((), scalar), *value.fields):
            at = place.path if OVERLAID in place.path else place.path + path
            if not certain and at in entries:
                part = entries[at] | part
            elif not certain and place.object.entry:
                part = part | TOP  # what was there at entry may be there still
            entries[at] = part
            if self.plain.setdefault(place.object, len(at)) != len(at) or None in at:
                self.plain[place.object] = -2
        self.objects[place.object] = entries

    def clobber(self, objects: Iterable[Object]) -> None:
        """Forget what these objects hold: anything may be there now."""
        self.clobbered |= frozenset(objects)

    def reachable(self, places: Iterable[Place]) -> frozenset[Object]:
        """All objects that can be reached by following pointers from these places."""
        seen: set[Object] = set()
        work = [p.object for p in places]
        while work:
            one = work.pop()
            if one in seen:
                continue
            seen.add(one)
            for value in self.objects.get(one, {}).values():
                work.extend(p.object for p in value.every_place())
        return frozenset(seen)

    def join(self, other: Store) -> Store:
        """What may hold when either of two stores does."""
        if self is other or self == other:
            return self
        objects: dict[Object, dict[Path, Value]] = {}
        for one in self.objects.keys() | other.objects.keys():
            mine, its = self.objects.get(one), other.objects.get(one)
            if mine is None or its is None or mine is its:
                objects[one] = dict(mine or its or {}) if mine is not its else (mine or {})
                if one.entry and (mine is None or its is None):
                    objects[one] = {p: v | TOP for p, v in objects[one].items()}
                continue
            merged: dict[Path, Value] = {}
            for path in mine.keys() | its.keys():
                a, b = mine.get(path), its.get(path)
                if a is None or b is None:
                    merged[path] = (a or b or NOTHING) | (TOP if one.entry else NOTHING)
                else:
                    merged[path] = a | b
            objects[one] = merged
        plain = dict(self.plain)
        for one, length in other.plain.items():
            plain[one] = length if plain.get(one, length) == length else -2
        return Store(objects, self.clobbered | other.clobbered, plain)

    def items(self) -> Iterator[tuple[Object, dict[Path, Value]]]:
        """All objects with what was written to them."""
        return iter(self.objects.items())
