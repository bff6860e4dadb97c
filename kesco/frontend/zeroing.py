"""Statements that do nothing but set a number behind a pointer to zero, such as ``*p = 0.0f;`` and ``p[2] = 0;``.

In: the cursor of a statement and what it became. Out: its `Zeroing`, or None. Apart from the statements because it
compares text and tree: what is written must be all there is, so that a call can be put in its place.

1. It is a plain assignment of the language's own, and no part of a macro. 2. The pointer is a name, or a member of one.
3. The value is a literal whose bytes are all zero, which ``-0.0`` is not. 4. What is set is a number of a plain type:
no class (``std::atomic``), no bit-field, nothing volatile.
"""

from __future__ import annotations

import re

from clang.cindex import Cursor, CursorKind, TypeKind

from kesco.frontend.clang import children, kind_of
from kesco.ir import program as ir
from kesco.ir.walking import children as parts_of

_NAME = r"[A-Za-z_]\w*(?:(?:\.|->)[A-Za-z_]\w*)*"
_TARGET = re.compile(rf"\*(?P<whole>{_NAME})|(?P<base>{_NAME})\[(?P<index>\d+)\]")
_ZERO = re.compile(r"0[uUlL]*|0x0|false|(?:0+\.0*|\.0+)[fF]?")
_NUMBERS = frozenset({
    TypeKind.BOOL, TypeKind.CHAR_U, TypeKind.UCHAR, TypeKind.USHORT, TypeKind.UINT, TypeKind.ULONG,
    TypeKind.ULONGLONG, TypeKind.CHAR_S, TypeKind.SCHAR, TypeKind.SHORT, TypeKind.INT, TypeKind.LONG,
    TypeKind.LONGLONG, TypeKind.FLOAT, TypeKind.DOUBLE,
})  # fmt: skip
_ELEMENTS = (CursorKind.UNARY_OPERATOR, CursorKind.ARRAY_SUBSCRIPT_EXPR)


def zeroing(cursor: Cursor, text: bytes, lowered: ir.Stmt) -> ir.Zeroing | None:
    """What the statement sets to zero, if that is all it does."""
    one = lowered.expression if isinstance(lowered, ir.Evaluate) else None
    if kind_of(cursor) is not CursorKind.BINARY_OPERATOR or not isinstance(one, ir.Assign) or one.operator:
        return None
    number = children(cursor)[0]
    canonical = number.type.get_canonical()
    if kind_of(number) not in _ELEMENTS or canonical.kind not in _NUMBERS or canonical.is_volatile_qualified():
        return None
    written = text[lowered.span.start : lowered.span.end].decode("utf-8", "replace")
    target, _, value = ("".join(part.split()) for part in written.partition("="))
    found = _TARGET.fullmatch(target)
    if found is None or _ZERO.fullmatch(value) is None or not _is_zero(one.value):
        return None
    if isinstance(one.target, ir.Dereference) and found["whole"] == _spelled(one.target.pointer):
        return ir.Zeroing(found["whole"], target, canonical.get_size())
    if not isinstance(one.target, ir.Subscript) or one.target.array or found["base"] != _spelled(one.target.base):
        return None
    known = one.target.index == ir.Constant(int(found["index"]))
    return ir.Zeroing(f"&{target}", target, canonical.get_size()) if known else None


def _is_zero(value: ir.Expr) -> bool:
    """Whether the literal that is written is all the tree has, converted perhaps."""
    value = ir.bare(value)
    return value == ir.Constant(0) or (isinstance(value, ir.Literal) and not parts_of(value) and not value.text)


def _spelled(pointer: ir.Expr) -> str:
    """A name, or a member of one, as it must be written to be just that."""
    if isinstance(pointer, ir.Name):
        return pointer.variable.name
    if not isinstance(pointer, ir.Select) or not pointer.member.isidentifier():
        return ""
    if pointer.base is None:
        return pointer.member
    base = _spelled(pointer.base)
    return f"{base}{'->' if pointer.arrow else '.'}{pointer.member}" if base else ""
