"""Types, records and variables of the host program, as far as they decide where pointers point."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from kesco.source import Span


class Shape(enum.Enum):
    """What a type is, as far as the analysis cares."""

    INTEGER = "integer"
    POINTER = "pointer"
    ARRAY = "array"
    RECORD = "record"
    REFERENCE = "reference"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Type:
    """A canonical type. `element` is the pointee, array element or referenced type; `record` names a record.

    `holds` is what a ``std::vector`` has elements of.
    """

    shape: Shape
    spelling: str
    element: Type | None = None
    count: int = -1
    record: str = ""
    volatile: bool = False
    restrict: bool = False
    holds: Type | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """A non-static data member; `offset` in bytes, -1 where unknown."""

    name: str
    type: Type
    offset: int


@dataclass(frozen=True, slots=True)
class Record:
    """A class or struct: its fields in order.

    `destructor`: destroying one runs code that is not visible here. `plain`: constructing and copying one does nothing
    but copy its fields; `simple`: the same, but for fields of the library's classes, of which no code of the program's
    is run. `ambiguous`: it is a union, or inherits two fields of one name, so that names do not tell
    fields apart. `bases`: the classes it is derived from, whose constructors run before its own. `size`
    in bytes, -1 where unknown.
    """

    name: str
    fields: tuple[Field, ...]
    destructor: bool
    standard: bool
    plain: bool = True
    ambiguous: bool = False
    defaults: bool = False
    code: bool = False
    bases: tuple[str, ...] = ()
    size: int = -1
    simple: bool = True


MARKS = "nvtx3::"
"""Where the classes are declared whose objects mark how far the host is, from their construction to their end."""


class Scope(enum.Enum):
    """Where a variable lives."""

    LOCAL = "local"
    PARAMETER = "parameter"
    STATIC = "static"  # a function's static variable
    GLOBAL = "global"
    SYMBOL = "symbol"  # __device__, __constant__ or __managed__


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable; `key` is unique in the file. `internal` tells that no other file can name it.

    What is `fixed` is a ``__constant__`` variable, which no kernel may write, and which no other file can name; in
    `Program.globals` also one whose address nobody asks for.
    """

    key: str
    name: str
    type: Type
    scope: Scope
    span: Span
    internal: bool = True
    constant: int | None = None
    mangled: str = ""
    managed: bool = False
    qualified: str = ""
    fixed: bool = False


def held_by(kind: Type | None, records: Mapping[str, Record]) -> Type | None:
    """What a vector, or a reference to one, has elements of: pointers, or structs that are `simple`; else None."""
    kind = kind.element if kind is not None and kind.shape is Shape.REFERENCE else kind
    held = kind.holds if kind is not None else None
    record = records.get(held.record) if held is not None else None
    simple = record is not None and record.simple and not (record.standard or record.ambiguous or record.bases)
    return held if held is not None and (held.shape is Shape.POINTER or simple) else None
