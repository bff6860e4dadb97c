"""Types and records of the parsed file, reduced to what decides where pointers point.

In: libclang types. Out: `ir.program.Type` values, and `Record` values for every class that is met. Kept apart from
the expressions because types are interned: one look at each canonical type, however often it occurs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from clang.cindex import Cursor, CursorKind, TokenKind, TypeKind
from clang.cindex import Type as ClangType

from kesco.frontend.clang import kind_of, members
from kesco.frontend.standard import is_standard_path, is_toolkit_path
from kesco.ir.program import Field, Record, Shape, Type
from kesco.ir.types import MARKS

_INTEGERS = {
    TypeKind.BOOL, TypeKind.CHAR_U, TypeKind.UCHAR, TypeKind.CHAR16, TypeKind.CHAR32, TypeKind.USHORT, TypeKind.UINT,
    TypeKind.ULONG, TypeKind.ULONGLONG, TypeKind.CHAR_S, TypeKind.SCHAR, TypeKind.WCHAR, TypeKind.SHORT, TypeKind.INT,
    TypeKind.LONG, TypeKind.LONGLONG, TypeKind.ENUM,
}  # fmt: skip
_ARRAYS = {
    TypeKind.CONSTANTARRAY,
    TypeKind.INCOMPLETEARRAY,
    TypeKind.VARIABLEARRAY,
    TypeKind.DEPENDENTSIZEDARRAY,
}
_INDIRECT = (TypeKind.POINTER, TypeKind.LVALUEREFERENCE, TypeKind.RVALUEREFERENCE)
_FUNCTIONS = (TypeKind.FUNCTIONPROTO, TypeKind.FUNCTIONNOPROTO, TypeKind.MEMBERPOINTER)
_STANDARD_NAME = re.compile(r"\b(?:std|__gnu_cxx)(?:::\w+)+")
_WITH_FUNCTIONS = re.compile(  # they keep functions, deleters or the user's objects that their own type does not name
    r"\bstd::(?:\w+::)*_*(?:unique_ptr|shared_ptr|shared_count|function|move_only_function|Function_base|any|"
    r"j?thread|lock_guard|\w+_lock|\w*future\w*|promise|packaged_task|polymorphic_allocator)\b"
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_PLAIN_WORDS = frozenset("char unsigned signed int long short float double bool const void true false UL L U".split())
_CUDA_STRUCT = re.compile(r"(?:cuda|CU)\w+|u?(?:char|short|int|long|longlong)[1-4]|(?:float|double)[1-4]")
_OTHER = Type(Shape.OTHER, "?")
_BIT_FIELD = Type(Shape.OTHER, "bit-field")  # which keeps only some bits of its type


class TypeTable:
    """Interns types by spelling and collects the records that they mention."""

    def __init__(self, operators: bool = False, allocates: bool = False, wraps: bool = False) -> None:
        self._types: dict[str, Type] = {}
        self._lowered: dict[bytes, Type] = {}  # by libclang's own value, which is one type as long as the file is read
        self._with_code: dict[bytes, bool] = {}
        self._standard: dict[bytes, bool] = {}
        self.records: dict[str, Record] = {}
        self.operators = operators  # whether the user's code defines functions that the library finds by their name
        self.allocates = allocates  # whether it says itself how objects get their memory
        self.wraps = wraps  # whether it has objects of the library that keep the addresses of what they are made of
        self.with_code: dict[str, bool] = {}

    def lower(self, clang_type: ClangType) -> Type:
        """The canonical form of a libclang type; types of one spelling are told apart by the record they lead to."""
        same = bytes(clang_type)
        found = self._lowered.get(same)
        if found is not None:
            return found
        canonical = clang_type.get_canonical()
        key = canonical.spelling + _record_behind(canonical)
        found = self._types.get(key)
        if found is None:
            self._types[key] = _OTHER  # a type that mentions itself stays opaque below its first level
            found = self._types[key] = self._build(canonical)
        if found is not _OTHER:
            self._lowered[same] = found
        return found

    def may_follow_a_comma(self, returned: ClangType) -> bool:
        """Whether a call may stand behind a comma with nothing else in it: before C++17 its value is moved then."""
        lowered = self.lower(returned)
        if lowered.shape is Shape.RECORD:
            known = self.records.get(lowered.record)
            return known is not None and known.standard
        return lowered.shape in (Shape.INTEGER, Shape.POINTER, Shape.OTHER, Shape.REFERENCE)

    def is_standard(self, declaration: Cursor) -> bool:
        """`is_standard`, asked once for each declaration."""
        same = bytes(declaration)
        found = self._standard.get(same)
        if found is None:
            found = self._standard[same] = is_standard(declaration) and not _has_own_body(declaration)
        return found

    def _build(self, canonical: ClangType) -> Type:
        kind = canonical.kind
        volatile = bool(canonical.is_volatile_qualified())
        spelling = canonical.spelling
        if kind is TypeKind.ENUM and canonical.get_declaration().enum_type.kind is TypeKind.BOOL:
            return Type(Shape.OTHER, spelling, volatile=volatile)  # it holds 0 and 1, whatever it is made of
        if kind in _INTEGERS:
            return Type(Shape.INTEGER, spelling, volatile=volatile)
        if kind is TypeKind.POINTER:
            restrict = bool(canonical.is_restrict_qualified())
            pointee = self.lower(canonical.get_pointee())
            return Type(Shape.POINTER, spelling, pointee, volatile=volatile, restrict=restrict)
        if kind in (TypeKind.LVALUEREFERENCE, TypeKind.RVALUEREFERENCE):
            return Type(Shape.REFERENCE, spelling, self.lower(canonical.get_pointee()))
        if kind in _ARRAYS:
            count = canonical.element_count if kind is TypeKind.CONSTANTARRAY else -1
            return Type(Shape.ARRAY, spelling, self.lower(canonical.element_type), count, volatile=volatile)
        if kind is TypeKind.RECORD:
            return self._class(canonical, spelling, volatile)
        return Type(Shape.OTHER, spelling, volatile=volatile)

    def _class(self, canonical: ClangType, spelling: str, volatile: bool) -> Type:
        name = canonical.get_declaration().get_usr() or spelling
        self._record(name, canonical)
        vector = spelling.removeprefix("const ").startswith("std::vector<")
        holds = self.lower(canonical.get_template_argument_type(0)) if vector else None
        return Type(Shape.RECORD, spelling, record=name, volatile=volatile, holds=holds)

    def _record(self, name: str, canonical: ClangType) -> None:
        if name in self.records:
            return
        declaration = canonical.get_declaration()
        standard = is_standard(declaration)
        self.records[name] = Record(declaration.spelling, (), False, standard, False)
        fields: list[Field] = []
        destructor = defaults = code = False
        of_c = "::" not in canonical.spelling and canonical.is_pod()  # such as timeval
        plain = simple = not standard or of_c or _CUDA_STRUCT.fullmatch(declaration.spelling) is not None
        bases: list[Cursor] = []
        own = {c.spelling: c.type for c in canonical.get_fields()}  # in an instance of a template, not in the template
        for child in members(declaration):
            kind = kind_of(child)
            if kind is CursorKind.FIELD_DECL:
                bits = -1 if standard else int(canonical.get_offset(child.spelling))
                its = own.get(child.spelling, child.type)
                kept = _BIT_FIELD if child.is_bitfield() else self.lower(its)
                fields.append(Field(child.spelling, kept, bits // 8 if bits >= 0 else -1))
                simple = simple and not its.get_canonical().kind.name.endswith("REFERENCE")
                before = child.location.offset  # what stands before its name is part of its type
                behind = [
                    c for c in child.get_children() if kind_of(c).is_expression() and c.extent.start.offset >= before
                ]
                initialised = [c for c in behind if not _is_size(child, c)]
                defaults = defaults or bool(initialised)
                code = code or any(kind_of(n) not in _NO_CODE for i in initialised for n in i.walk_preorder())
            elif kind is CursorKind.DESTRUCTOR:
                destructor = destructor or not child.is_default_method()
            elif kind is CursorKind.CXX_BASE_SPECIFIER:
                bases.append(child)
            elif kind in (CursorKind.CONSTRUCTOR, CursorKind.CXX_METHOD):
                written = kind is CursorKind.CONSTRUCTOR or child.spelling == "operator="
                simple = simple and not (written and not child.is_default_method()) and not child.is_virtual_method()
        for base in bases:
            inner = self.records.get(self.lower(base.type).record)
            destructor = destructor or inner is None or inner.destructor
            plain = plain and inner is not None and inner.plain
            fields = [Field(f.name, f.type, -1) for f in (inner.fields if inner else ())] + fields
        for one in fields:
            destructor = destructor or self.destroys(one.type)
            inside = self.records.get(one.type.record)
            code = code or (inside is not None and inside.code)
            defaults = defaults or (inside is not None and inside.defaults)
            plain, simple = plain and self._is_plain(one.type), simple and self._is_simple(one.type)
        if standard:
            spelling = canonical.spelling.removeprefix("const ")
            theirs = destructor and not spelling.startswith(("std::", "__gnu_cxx::", MARKS))  # frees device memory
            destructor = theirs or _runs_user_code(spelling)
        plain, simple = plain and simple and not code, simple and not code
        union = kind_of(declaration) is CursorKind.UNION_DECL
        names = [f.name for f in fields]
        ambiguous = union or len(set(names)) != len(names) or "" in names
        self.records[name] = Record(
            declaration.spelling, tuple(fields), destructor, standard, plain, ambiguous, defaults, code,
            tuple(self.lower(base.type).record for base in bases), canonical.get_size(), simple,
        )  # fmt: skip

    def references(self) -> bool:
        """Whether any of the user's classes that were met has a member that is a reference."""
        users = (record for record in self.records.values() if not record.standard)
        return any(field.type.shape is Shape.REFERENCE for record in users for field in record.fields)

    def has_code(self, one: ClangType) -> bool:
        """Whether library code that handles a value of this type may run code of the user's classes."""
        same = bytes(one)
        found = self._with_code.get(same)
        if found is None:  # a class within itself counts as having code, and then it has: no answer changes later
            found = self._with_code[same] = any(self._is_more_than_data(d) for d in _users_classes(one))
        return found

    def is_called(self, one: ClangType, depth: int = 4) -> bool:
        """Whether a value of this type is a function, points to one or keeps one, as ``std::bind`` and others do."""
        canonical = one.get_canonical()
        while canonical.kind in _INDIRECT:
            canonical = canonical.get_pointee().get_canonical()
        if canonical.kind is not TypeKind.RECORD or not depth:
            return canonical.kind in _FUNCTIONS
        count = max(canonical.get_num_template_arguments(), 0)
        return any(self.is_called(canonical.get_template_argument_type(i), depth - 1) for i in range(count))

    def _is_more_than_data(self, declaration: Cursor) -> bool:
        key = declaration.get_usr()
        if key not in self.with_code:
            self.with_code[key] = True  # for a class within itself
            inner = members(declaration)
            fields = [c.type for c in inner if kind_of(c) is CursorKind.FIELD_DECL]
            self.with_code[key] = (
                self.operators
                or any(kind_of(c) in _MEMBERS_WITH_CODE for c in inner)
                or any(self.has_code(f) for f in fields if f.get_canonical().kind is not TypeKind.POINTER)
            )
        return self.with_code[key]

    def _class_of(self, one: Type) -> Record | None:
        """The class of a value, or of an array's elements."""
        while one.shape is Shape.ARRAY and one.element is not None:
            one = one.element
        return self.records.get(one.record) if one.shape is Shape.RECORD else None

    def _is_plain(self, one: Type) -> bool:
        record = self._class_of(one)
        return record.plain if record is not None else one.shape is not Shape.RECORD

    def _is_simple(self, one: Type) -> bool:
        record = self._class_of(one)
        return record is None or record.simple or (record.standard and not record.destructor)

    def destroys(self, one: Type) -> bool:
        """Whether destroying an object of this type runs code."""
        record = self._class_of(one)
        return record is not None and record.destructor


def _is_size(field: Cursor, expression: Cursor) -> bool:
    """Whether an expression behind a field's name is an array's bound or a bit-field's width, and no initialiser."""
    before, after = "", ""
    start, end = expression.extent.start.offset, expression.extent.end.offset
    for token in field.get_tokens():
        if token.kind is TokenKind.COMMENT:
            continue
        if token.extent.end.offset <= start:
            before = token.spelling
        elif token.extent.start.offset >= end:
            after = token.spelling
            break
    return (before, after) == ("[", "]") or (before == ":" and field.is_bitfield())


_NO_CODE = frozenset({
    CursorKind.INTEGER_LITERAL, CursorKind.FLOATING_LITERAL, CursorKind.CHARACTER_LITERAL, CursorKind.STRING_LITERAL,
    CursorKind.CXX_BOOL_LITERAL_EXPR, CursorKind.CXX_NULL_PTR_LITERAL_EXPR, CursorKind.GNU_NULL_EXPR,
    CursorKind.UNARY_OPERATOR, CursorKind.BINARY_OPERATOR, CursorKind.PAREN_EXPR, CursorKind.INIT_LIST_EXPR,
    CursorKind.UNEXPOSED_EXPR, CursorKind.CSTYLE_CAST_EXPR, CursorKind.CXX_STATIC_CAST_EXPR, CursorKind.TYPE_REF,
    CursorKind.NAMESPACE_REF, CursorKind.CXX_UNARY_EXPR,
})  # fmt: skip
_MEMBERS_WITH_CODE = (
    CursorKind.CXX_METHOD, CursorKind.CONSTRUCTOR, CursorKind.DESTRUCTOR, CursorKind.CONVERSION_FUNCTION,
    CursorKind.FUNCTION_TEMPLATE, CursorKind.FRIEND_DECL, CursorKind.CXX_BASE_SPECIFIER,
)  # fmt: skip


def _users_classes(one: ClangType, depth: int = 4) -> Iterator[Cursor]:
    """The user's classes whose objects a library function may handle when it is given a value of a type."""
    canonical = one.get_canonical()
    if canonical.kind in _INDIRECT:
        canonical = canonical.get_pointee().get_canonical()
    while canonical.kind in _ARRAYS:
        canonical = canonical.element_type.get_canonical()
    if canonical.kind is not TypeKind.RECORD or not depth:
        return
    declaration = canonical.get_declaration()
    if not is_standard(declaration):
        yield declaration
        return
    for index in range(max(canonical.get_num_template_arguments(), 0)):
        inner = canonical.get_template_argument_type(index)
        if inner.get_canonical().kind is TypeKind.RECORD:
            yield from _users_classes(inner, depth - 1)


def _record_behind(canonical: ClangType) -> str:
    """The identity of the record that a type is, points to or is made of; empty for the others."""
    for _ in range(8):
        if canonical.kind in _INDIRECT:
            canonical = canonical.get_pointee()
        elif canonical.kind in _ARRAYS:
            canonical = canonical.element_type
        else:
            break
    return str(canonical.get_declaration().get_usr()) if canonical.kind is TypeKind.RECORD else ""


def _runs_user_code(spelling: str) -> bool:
    """Whether destroying a standard library object may call code that is not the library's own."""
    if _WITH_FUNCTIONS.search(spelling):
        return True
    if not spelling.startswith("std::"):
        return False
    return any(w not in _PLAIN_WORDS for w in _WORD.findall(_STANDARD_NAME.sub(" ", spelling)))


def is_standard(cursor: Cursor) -> bool:
    """Whether something is declared in a system header (the C and C++ libraries, or CUDA's own headers)."""
    where = cursor.location
    if where.file is None:
        return True
    name = where.file.name
    return is_toolkit_path(name) or (where.is_in_system_header and is_standard_path(name))


def _has_own_body(declaration: Cursor) -> bool:
    """Whether the program has a function of its own in the place of the library's: then that is what is called."""
    if kind_of(declaration) is not CursorKind.FUNCTION_DECL:
        return False
    definition = declaration.get_definition()
    return definition is not None and not is_standard(definition)
