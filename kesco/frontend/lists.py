"""Lists in braces: which item is which member, and which items are converted on the way.

In: the type of a list and its items. Out: the item of each member or element, or how far the list can be
followed. Apart from other expressions because libclang shows lists as they are written: the conversions that all other
expressions have around them (an array to a pointer, an object by a function or a constructor of the user's) are not
there.

1. An item with a designator is the member that it names; one without comes next. 2. Where braces are left out, or the
class has bases or members without a name, items are not told apart. 3. Where an item becomes an object of a class with
constructors, or an object becomes something else, code runs that the text does not name.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from clang.cindex import Cursor, CursorKind, TypeKind
from clang.cindex import Type as ClangType

from kesco.frontend.clang import children, kind_of, members
from kesco.frontend.types import TypeTable
from kesco.ir.program import Shape

K = CursorKind
_ARRAYS = (TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY, TypeKind.VARIABLEARRAY)


class Followed(enum.IntEnum):
    """How far a list can be followed."""

    ITEMS = 0
    WHOLE = 1  # it is not known which item is which member
    CODE = 2  # code runs that is not seen


def is_array(one: ClangType) -> bool:
    """Whether a type is that of an array."""
    return one.get_canonical().kind in _ARRAYS


def placed(types: TypeTable, whole: ClangType, items: Sequence[Cursor]) -> list[Cursor | None] | Followed:
    """The item of each member or element up to the last that is given, or why they are not told apart."""
    declared = types.lower(whole)
    record = types.records.get(declared.record) if declared.shape is Shape.RECORD else None
    if whole.get_canonical().kind is TypeKind.VOID:  # what a constructor is given
        return Followed.WHOLE
    if declared.shape not in (Shape.RECORD, Shape.ARRAY):
        return list(items)
    if record is not None and record.standard and not record.plain:
        return Followed.CODE if types.has_code(whole) else Followed.WHOLE
    found = _members(whole.get_canonical(), items)
    if found is None:
        objects = (i for i in items if i.type.get_canonical().kind in (TypeKind.RECORD, TypeKind.VOID))
        return Followed.CODE if any(objects) else Followed.WHOLE
    if _leaves_out_code(types, whole.get_canonical(), found):
        return Followed.CODE
    far = max((_followed(types, t, c) for t, c in found if c is not None), default=Followed.ITEMS)
    return far if far is not Followed.ITEMS else [item for _, item in found]


def _members(whole: ClangType, items: Sequence[Cursor]) -> list[tuple[ClangType, Cursor | None]] | None:
    """The type and the item of each member or element; None where it is not known which is which."""
    if whole.kind in _ARRAYS:
        return None if any(map(_designator, items)) else [(whole.element_type, item) for item in items]
    fields = list(whole.get_fields())
    bases = any(kind_of(c) is K.CXX_BASE_SPECIFIER for c in members(whole.get_declaration()))
    if bases or not all(str(f.spelling).isidentifier() for f in fields):
        return None
    names = [str(f.spelling) for f in fields]
    found: dict[int, Cursor] = {}
    at = -1
    for item in items:
        name = _designator(item)
        at = at + 1 if not name else names.index(name) if name in names else len(fields)
        if at >= len(fields) or at in found:
            return None
        found[at] = item
    return [(fields[i].type, found.get(i)) for i in range(max(found, default=-1) + 1)]


def _leaves_out_code(types: TypeTable, whole: ClangType, found: list[tuple[ClangType, Cursor | None]]) -> bool:
    """Whether something that a list does not give is made by a constructor of the user's."""
    if whole.kind in _ARRAYS:
        left = [whole.element_type] if whole.kind is TypeKind.CONSTANTARRAY and len(found) < whole.element_count else []
    else:
        left = [t for t, item in found if item is None] + [f.type for f in whole.get_fields()][len(found) :]
    return not all(_is_plain(types, one) for one in left)


def _is_plain(types: TypeTable, one: ClangType) -> bool:
    """Whether an object is made without code of the user's."""
    while one.get_canonical().kind in _ARRAYS:
        one = one.get_canonical().element_type
    record = types.records.get(types.lower(one).record)
    return one.get_canonical().kind is not TypeKind.RECORD or (record is not None and (record.plain or record.standard))


def _designator(item: Cursor) -> str:
    """The member that an item names, if it has a designator; what is not a name for one of any other form."""
    inner = children(item) if kind_of(item) is K.UNEXPOSED_EXPR and item.type.kind is TypeKind.VOID else []
    if len(inner) < 2:
        return ""
    plain = len(inner) == 2 and kind_of(inner[0]) is K.MEMBER_REF
    return str(inner[0].spelling) if plain else "?"


def _followed(types: TypeTable, target: ClangType, item: Cursor) -> Followed:
    """How far an item can be followed into a member of a type."""
    designated = _designator(item)
    item = children(item)[-1] if designated else item
    target, given = target.get_canonical(), item.type.get_canonical()
    if given.kind is TypeKind.VOID:  # a list that a constructor is given
        return _constructed(types, target, item)
    if kind_of(item) is K.INIT_LIST_EXPR or kind_of(item) is K.STRING_LITERAL:
        return Followed.ITEMS
    if target.kind is TypeKind.RECORD:
        record = types.records.get(types.lower(target).record)
        if record is None:
            return Followed.CODE
        if types.lower(given).record == types.lower(target).record:
            return Followed.ITEMS if _is_made_there(item) or _copies_members(types, target) else Followed.CODE
        return _constructed(types, target, item)
    if target.kind in _ARRAYS:
        while target.kind in _ARRAYS:
            target = target.element_type.get_canonical()
        return Followed.WHOLE if target.kind is not TypeKind.RECORD else _constructed(types, target, item)
    if given.kind is not TypeKind.RECORD or target.kind in (TypeKind.LVALUEREFERENCE, TypeKind.RVALUEREFERENCE):
        return Followed.ITEMS
    record = types.records.get(types.lower(given).record)
    return Followed.WHOLE if record is not None and record.standard else Followed.CODE


def _constructed(types: TypeTable, target: ClangType, item: Cursor) -> Followed:
    """How far an object of a class can be followed that is made from something else."""
    lowered = types.lower(target)
    record = types.records.get(lowered.record) if lowered.shape is Shape.RECORD else None
    if record is None and lowered.shape is not Shape.ARRAY:
        return Followed.CODE
    if record is None or record.standard:
        return Followed.CODE if types.has_code(target) or types.has_code(item.type) else Followed.ITEMS
    return Followed.WHOLE if record.plain else Followed.CODE


def _is_made_there(item: Cursor) -> bool:
    """Whether an item is an object that is made in its place, by a call that the text names."""
    named = item.referenced if kind_of(item) is K.CALL_EXPR else None
    if named is not None and kind_of(named) is not K.CONSTRUCTOR:
        return not str(named.result_type.get_canonical().kind.name).endswith("REFERENCE")
    return kind_of(item) is K.CXX_FUNCTIONAL_CAST_EXPR or named is not None


def _copies_members(types: TypeTable, one: ClangType) -> bool:
    """Whether copying or moving an object runs no code of the user's."""
    while one.get_canonical().kind in _ARRAYS:
        one = one.get_canonical().element_type
    record = types.records.get(types.lower(one).record)
    if one.get_canonical().kind is not TypeKind.RECORD or (record is not None and (record.plain or record.standard)):
        return True
    declared = members(one.get_canonical().get_declaration())
    for child in declared:
        copies = kind_of(child) is K.CONSTRUCTOR and (child.is_copy_constructor() or child.is_move_constructor())
        if kind_of(child) is K.FUNCTION_TEMPLATE or (copies and not child.is_default_method()):
            return False
    bases = [c.type for c in declared if kind_of(c) is K.CXX_BASE_SPECIFIER]
    return all(_copies_members(types, part) for part in (*bases, *(f.type for f in one.get_canonical().get_fields())))
