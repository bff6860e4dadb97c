"""What came into a function from outside: pointers with the names by which its text can compare them.

In: a function of the text, entered by nobody knows whom. Out: an object for each pointer that it is given, or that it
finds in what it is given, and in variables of the file. Each stands for an allocation of its own, which the output
checks when it runs unless it is ``__restrict__``; one without a name is unknown memory.

1. A parameter has its name; a member of what a parameter refers to has that name in front of its own. 2. What an object
held when the path began is asked for by its offset (`held_at_first`): a member that is a pointer leads to an object of
its own. 3. Whatever has no member with a name there is not known,
nor what is behind a pointer that may lead nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kesco.analysis.certain_dereference import certainly_followed
from kesco.analysis.host.engine import Engine
from kesco.analysis.host.values import NUMBER, Object, Scalar, pointer, unknown
from kesco.ir import program as ir
from kesco.ir.types import Scope, Shape, Type

_WORD = 8
_NUMBERS = (
    "float", "double", "int", "unsigned int", "short", "unsigned short", "char", "signed char", "unsigned char",
    "__half",
)  # fmt: skip
MARK = "|"
"""In an object's name, between the function that it came into and how it is written there."""


@dataclass(frozen=True, slots=True)
class _Known:
    """How an object is written: what stands in front of its members, and its type; what its name rests on."""

    before: str
    type: Type | None
    steps: frozenset[str]


@dataclass(slots=True)
class Entries:
    """Objects from outside, by name; `steps` are the variables and members that each name is made of.

    `numbers` are those that pointers to numbers lead to, of types in which nobody keeps addresses.
    """

    engine: Engine
    program: ir.Program
    sizes: tuple[int, int] = (0, 0)  # how many streams and events kesco's own prologue has
    steps: dict[str, frozenset[str]] = field(default_factory=dict)
    numbers: set[Object] = field(default_factory=set)
    _known: dict[Object, _Known] = field(default_factory=dict)
    _function: str = ""
    _followed: frozenset[str] = frozenset()

    def begin(self, function: ir.Function | None) -> None:
        """The names that follow are those of this function."""
        self._function = function.key if function is not None else ""
        self._followed = certainly_followed(function) if function is not None else frozenset()

    def given(self, name: str, type_: Type | None, key: str) -> Scalar:
        """What a parameter that is a pointer or a reference, or ``this``, leads to."""
        if type_ is None or type_.shape not in (Shape.POINTER, Shape.REFERENCE):
            return unknown(f"parameter {name}")
        inner = type_.element
        one = self._object(name if type_.shape is Shape.POINTER else f"&{name}")
        reference = type_.shape is Shape.REFERENCE
        # what may lead nowhere has no members that the output could compare
        before = f"{name}." if reference else f"{name}->" if key in self._followed else ""
        self._lead(one, type_)
        self._keep(one, before, inner if before else None, {key}, promised=type_.restrict)
        return pointer(one)

    def by_value(self, name: str, type_: Type | None, key: str) -> Scalar:
        """A record that is a parameter itself."""
        one = self._object(f"&{name}")
        self._keep(one, f"{name}.", type_, {key})
        return pointer(one)

    def this(self, record: str) -> Scalar:
        """The object that a method is called for."""
        one = self._object("this")
        self._keep(one, "this->", Type(Shape.RECORD, "", record=record), {"this"})
        return pointer(one)

    def _object(self, name: str) -> Object:
        return self.engine.resource("entry", f"{self._function}{MARK}{name}")

    def _lead(self, one: Object, type_: Type) -> None:
        """A pointer of this type leads there."""
        if type_.element is not None and type_.element.spelling.removeprefix("const ") in _NUMBERS:
            self.numbers.add(one)

    def _keep(self, one: Object, before: str, type_: Type | None, steps: set[str], *, promised: bool = False) -> None:
        self._known[one] = _Known(before, type_, frozenset(steps))
        if not promised:
            self.steps[one.name] = frozenset(steps)

    def held_at_first(self, one: Object, at: int, size: int) -> Scalar:
        """What an object held when the path began."""
        if size < _WORD:
            return NUMBER
        if one.kind == "kesco":
            return self._of_streams(at)
        known = self._known.get(one) or self._global(one)
        if known is None or known.type is None:
            return unknown("what came in")
        member = _member(self.program, known.type, at, known.before)
        if member is None:
            return unknown("what came in")
        name, type_, steps = member
        if type_.shape is Shape.INTEGER:
            return NUMBER
        if type_.shape is not Shape.POINTER:
            return unknown("what came in")
        new = self._object(name)
        if new not in self._known:
            self._lead(new, type_)
            self._keep(new, "", None, {*known.steps, *steps}, promised=type_.restrict)
        return pointer(new)

    def _of_streams(self, at: int) -> Scalar:
        """The stream or event at an offset of what `kesco_streams` returns."""
        streams, events = self.sizes
        for kind, first, count in (
            ("stream", 0, streams),
            ("done", streams, events),
            ("tail", streams + events, streams),
        ):
            if not at % _WORD and first <= at // _WORD < first + count:
                return pointer(self.engine.resource("kesco", f"{kind}:{at // _WORD - first}"))
        return unknown("beside the streams")

    def _global(self, one: Object) -> _Known | None:
        """A variable of the file, whose value when the path began has its name."""
        for variable, _ in self.program.globals:
            plain = variable.qualified == variable.name  # in no namespace and no class
            names = (variable.name, f"_ZL{len(variable.name)}{variable.name}") if plain else ()
            if variable.scope is Scope.GLOBAL and one.kind == "global" and one.name in (variable.mangled, *names):
                return _Known(f"::{variable.qualified}", variable.type, frozenset({variable.key}))
        return None


def _member(program: ir.Program, type_: Type, at: int, before: str) -> tuple[str, Type, tuple[str, ...]] | None:
    """The member at an offset: how it is written, its type, the names on the way."""
    if type_.shape is Shape.ARRAY and type_.element is not None:
        return _element(program, type_, type_.element, at, before)
    if type_.shape is not Shape.RECORD:
        return (before.rstrip("."), type_, ()) if at == 0 and not before.endswith("->") else None
    record = program.records.get(type_.record)
    if record is None or record.standard or record.ambiguous:
        return None
    best = None
    for one in record.fields:
        if 0 <= one.offset <= at and (best is None or one.offset >= best.offset):
            best = one
    if best is None:
        return None
    dot = before if before.endswith((".", "->")) else f"{before}."
    if best.type.shape in (Shape.RECORD, Shape.ARRAY):
        inner = _member(program, best.type, at - best.offset, f"{dot}{best.name}.")
        return None if inner is None else (inner[0], inner[1], (best.name, *inner[2]))
    return (f"{dot}{best.name}", best.type, (best.name,)) if best.offset == at else None


def _element(
    program: ir.Program, array: Type, element: Type, at: int, before: str
) -> tuple[str, Type, tuple[str, ...]] | None:
    """The same in an array's element at an offset."""
    record = program.records.get(element.record)
    size = _WORD if element.shape is Shape.POINTER else record.size if record is not None else -1
    index = at // size if size > 0 else -1
    if not 0 <= index < array.count or not before.endswith("."):
        return None
    name = f"{before.removesuffix('.')}[{index}]"
    return _member(program, element, at - index * size, f"{name}." if element.shape is Shape.RECORD else name)
