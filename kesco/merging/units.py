"""One program as libclang reads it: its files, and what every name in them refers to.

In: a path, its text, the compiler's arguments. Out: a `Unit`. The references are what the check of the merged text
rests on: two texts with the same sequence of references mean the same, name by name.

1. A thing that the program itself declares is known by its number in the order in which the program names things; one
of the system or of CUDA by its USR. 2. What the merged text calls instead of the CUDA API has the name it stands for.
3. A type is written without the namespace that a program is put into.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from clang.cindex import Cursor, CursorKind

from kesco.frontend.clang import (
    SourceFile,
    binary_operator,
    file_place,
    inclusions,
    kind_of,
    literal,
    unary_operator,
)
from kesco.frontend.standard import is_standard_path
from kesco.merging.settings import harmless
from kesco.source import Span

PREFIX = "kesco_"
"""Before the names of the CUDA API in a merged text, and before those of the namespaces."""
_REFERENCES = (
    CursorKind.DECL_REF_EXPR,
    CursorKind.MEMBER_REF_EXPR,
    CursorKind.TYPE_REF,
    CursorKind.TEMPLATE_REF,
    CursorKind.MEMBER_REF,
    CursorKind.CALL_EXPR,
    CursorKind.OVERLOADED_DECL_REF,
)
_LITERALS = (
    CursorKind.INTEGER_LITERAL,
    CursorKind.FLOATING_LITERAL,
    CursorKind.STRING_LITERAL,
    CursorKind.CHARACTER_LITERAL,
    CursorKind.CXX_BOOL_LITERAL_EXPR,
)
_SHARED = 3  # the child of a launch's configuration that says how much shared memory
_LAUNCH = "__cudaPushCallConfiguration"
_FILE = re.compile(r"[\w.+-]+\.[\w+]+@(?:\d+@)?")
_FUNCTIONS = (CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD, CursorKind.VAR_DECL)


@dataclass(frozen=True, slots=True)
class Reference:
    """A name in the text: what it refers to, of which type, and where it stands; `name` is fully qualified."""

    to: str
    type: str
    name: str
    span: Span
    device: bool = False
    callable: bool = False


def is_system_name(one: Reference) -> bool:
    """Whether it refers to something that the program does not declare itself."""
    return not one.to.isdigit()


@dataclass(frozen=True, slots=True)
class Inclusion:
    """An ``#include`` that was entered: the file and line it stands on, and the file it brought."""

    source: str
    line: int
    file: str


@dataclass(frozen=True, slots=True)
class Unit:
    """A parsed program."""

    path: str
    text: bytes
    references: tuple[Reference, ...]
    inclusions: tuple[Inclusion, ...]
    main: int | None  # offset of its closing brace, where the file itself defines it
    elsewhere: tuple[Reference, ...]  # what the program uses and does not define, with C++ linkage
    c_names: frozenset[str]  # what it defines with C linkage
    brought: tuple[Inclusion, ...]  # headers of the system, each with the line of the program that brought it
    harmless: frozenset[tuple[str, int]] = frozenset()  # places of calls that set what is set already


def read_unit(path: str, text: bytes, arguments: tuple[str, ...]) -> Unit:
    """A program by itself; raises `InputError` with clang's messages."""
    file = SourceFile(path, text, arguments)
    top = [c for c in file.unit.cursor.get_children() if not is_standard_path(_file_of(c))]
    included = [Inclusion(*one) for one in inclusions(path, text, arguments)]
    main = next((c for c in top if c.spelling == "main" and c.is_definition() and file.is_here(c)), None)
    closing = None if main is None else main.extent.end.offset - 1
    walked = list(_walk(top))
    references = tuple(_references(walked, ""))
    elsewhere = tuple(_elsewhere(walked))
    users = tuple(one for one in included if not is_standard_path(one.source))
    brought = tuple(_brought(included))
    return Unit(path, text, references, users, closing, elsewhere, _c_names(top), brought, harmless(top, main))


def _brought(included: Sequence[Inclusion]) -> Iterator[Inclusion]:
    by_file = {one.file: one for one in reversed(included)}
    for file, one in by_file.items():
        if not is_standard_path(file):
            continue
        seen = {file}
        while is_standard_path(one.source) and one.source in by_file and one.source not in seen:
            seen.add(one.source)
            one = by_file[one.source]
        yield Inclusion(one.source, one.line, file)


def merged_units(path: str, text: bytes, arguments: tuple[str, ...], parts: Mapping[str, bytes]) -> dict[str, Unit]:
    """The programs in a merged text, by name, each with the text of its part; raises `InputError` as `read_unit`.

    One of which a launch is not on the task's stream has no references.
    """
    file = SourceFile(path, text, arguments)
    found: dict[str, Unit] = {}
    for name, part in parts.items():
        spaces = [
            c
            for c in file.unit.cursor.get_children()
            if kind_of(c) is CursorKind.NAMESPACE and c.spelling == PREFIX + name
        ]
        top = [child for space in spaces for child in space.get_children()]
        walked = list(_walk(top))
        references = tuple(_references(walked, PREFIX + name))
        launches = [c for c, _ in walked if kind_of(c) is CursorKind.CALL_EXPR and c.spelling == _LAUNCH]
        if not all(any(c.spelling == f"{PREFIX}on" for c, _ in _walk([launch])) for launch in launches):
            references = ()
        main = next((c for c in top if c.spelling == "main" and c.is_definition()), None)
        found[name] = Unit(
            path, part, references, (), None, tuple(_elsewhere(walked)), _c_names(top), (), harmless(top, main)
        )
    return found


def _walk(cursors: Iterable[Cursor], device: bool = False) -> Iterator[tuple[Cursor, bool]]:
    """All cursors below these, in the order of the text, and whether they are in a function of the device."""
    for cursor in cursors:
        inside = device or any(
            kind_of(c) in (CursorKind.CUDAGLOBAL_ATTR, CursorKind.CUDADEVICE_ATTR)
            for c in (cursor.get_children() if kind_of(cursor).is_declaration() else ())
        )
        yield cursor, inside
        children = list(cursor.get_children())
        if kind_of(cursor) is CursorKind.CALL_EXPR and cursor.spelling == _LAUNCH:
            children = [c for n, c in enumerate(children) if n != _SHARED or literal(c) != "0"]  # as if left out
        yield from _walk(children, inside)


def _references(walked: Iterable[tuple[Cursor, bool]], space: str) -> Iterator[Reference]:
    numbers: dict[int, int] = {}
    for cursor, device in walked:
        kind = kind_of(cursor)
        if kind.is_declaration():
            numbers.setdefault(cursor.canonical.hash, len(numbers))
            yield Reference(f"declares {numbers[cursor.canonical.hash]}", _type(cursor, space), "", _span(cursor))
        value = _value(cursor)
        if value:
            if space:  # __PRETTY_FUNCTION__, as in assert
                value = value.replace(f"{space}::", "")
            yield Reference(value, "", "", _span(cursor), device)
        if kind not in _REFERENCES:
            continue
        for target in _targets(cursor):
            name = qualified(target).removeprefix(f"{space}::" if space else "")
            if name == f"{PREFIX}on":
                continue
            plain = name.rpartition("::")[2]
            if plain.startswith(PREFIX) and is_standing_in(target):
                to = name = plain.removeprefix(PREFIX)
            elif is_users(target) or (space and name != qualified(target)):
                number = numbers.setdefault(target.canonical.hash, len(numbers))
                to = f"{number}"
            else:
                to = name if _is_api(name) else _usr(target, space)
            type_ = "" if _is_api(plain.removeprefix(PREFIX)) else _type(cursor, space)
            calls = kind_of(target) in (CursorKind.FUNCTION_DECL, CursorKind.FUNCTION_TEMPLATE)
            yield Reference(to, type_, name, _span(cursor), device, calls)


def _value(cursor: Cursor) -> str:
    """What a literal is worth, or the operator of an expression: macros may have changed them."""
    kind = kind_of(cursor)
    if kind in _LITERALS:
        return f"= {literal(cursor).replace(_here(), '')}"
    if kind in (CursorKind.BINARY_OPERATOR, CursorKind.COMPOUND_ASSIGNMENT_OPERATOR):
        return f"operator {binary_operator(cursor)}"
    return f"operator {unary_operator(cursor)}" if kind is CursorKind.UNARY_OPERATOR else ""


def _targets(cursor: Cursor) -> list[Cursor]:
    """What a reference refers to; of one that only an instance of a template settles, all that it may be."""
    if kind_of(cursor) is CursorKind.OVERLOADED_DECL_REF:
        from clang import cindex

        count = cindex.conf.lib.clang_getNumOverloadedDecls(cursor)
        return [cindex.conf.lib.clang_getOverloadedDecl(cursor, number) for number in range(count)]
    target = cursor.referenced
    return [target] if target is not None and kind_of(target).is_declaration() else []


def _usr(target: Cursor, space: str) -> str:
    """The USR without the namespace and without the files that what has internal linkage is named after."""
    usr = _FILE.sub("@", target.get_usr())
    return usr.replace(f"@N@{space}", "") if space else usr


def is_standing_in(target: Cursor) -> bool:
    """Whether a function stands in a merged text for one of the CUDA API or the C library."""
    parent = target.semantic_parent
    return parent is None or kind_of(parent) is CursorKind.TRANSLATION_UNIT


def is_users(target: Cursor) -> bool:
    """Whether the program itself declares something."""
    return not is_standard_path(_file_of(target)) and bool(_file_of(target))


def _is_api(name: str) -> bool:
    from kesco.merging.state import own_calls

    return name.removeprefix("std::") in own_calls()


def _file_of(cursor: Cursor) -> str:
    return file_place(cursor.location).file


def _type(cursor: Cursor, space: str) -> str:
    spelled = str(cursor.type.get_canonical().spelling)
    spelled = spelled.replace(_here(), "")  # of a lambda it names the file
    return spelled.replace(f"{space}::", "") if space else spelled


def _here() -> str:
    """What stands before a path where headers are precompiled, and does not where they are not."""
    return f"{os.getcwd()}/"  # noqa: PTH109 (asked for every name)


def _span(cursor: Cursor) -> Span:
    place = file_place(cursor.location)
    return Span(place.file, place.offset, place.offset + 1, place.line, place.column)


def qualified(cursor: Cursor) -> str:
    """The name with its namespaces and classes, without inline namespaces."""
    parts = [cursor.spelling]
    parent = cursor.semantic_parent
    while parent is not None and kind_of(parent) is not CursorKind.TRANSLATION_UNIT:
        spelling = parent.spelling
        if spelling and not (spelling.startswith("__") and kind_of(parent) is CursorKind.NAMESPACE):
            parts.append(spelling)
        parent = parent.semantic_parent
    return "::".join(reversed(parts))


def _elsewhere(walked: Iterable[tuple[Cursor, bool]]) -> Iterator[Reference]:
    """What the program declares and uses, and some other file defines."""
    for cursor, device in walked:
        if kind_of(cursor) not in _REFERENCES or device:
            continue
        for target in _targets(cursor):
            if kind_of(target) not in _FUNCTIONS or not is_users(target) or target.linkage.name != "EXTERNAL":
                continue
            if target.get_definition() is None and "@" in target.get_usr() and not _is_c(target):
                yield Reference("", "", qualified(target), _span(cursor))


def _is_c(cursor: Cursor) -> bool:
    return not cursor.mangled_name.startswith("_Z") and cursor.mangled_name == cursor.spelling


def _c_names(top: Iterable[Cursor]) -> frozenset[str]:
    """What the program defines with C linkage."""
    blocks = [c for c in top if kind_of(c) in (CursorKind.LINKAGE_SPEC, CursorKind.UNEXPOSED_DECL)]
    return frozenset(
        inside.spelling
        for block in blocks
        for inside in block.get_children()
        if kind_of(inside).is_declaration() and inside.is_definition() and inside.linkage.name == "EXTERNAL"
    )
