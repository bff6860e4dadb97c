"""Calls that set what all programs of a process share, where they change nothing: ``harmless(top, main)`` → places.

In: what a program declares, and its ``main``. Out: the places of these calls in the text. Apart because it is about
where a call stands; what may not be called at all is in `state`.

1. ``cudaSetDevice(0)`` sets what is set already, while nobody sets another one. 2. ``cudaDeviceReset()`` where ``main``
does nothing for the device any more: the end of the process does the same for all programs, and what stands in its
place waits for the program's own work. Behind it there is nothing but the C library: no function of the program's, no
lambda, and no destructor, neither at the end of ``main`` nor at that of the process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clang.cindex import Cursor, CursorKind, StorageClass

from kesco.frontend.clang import constant, file_place, kind_of
from kesco.frontend.declarations import FUNCTIONS
from kesco.frontend.standard import is_standard_path
from kesco.frontend.types import TypeTable
from kesco.ir.failures import LEAVE

K = CursorKind
Place = tuple[str, int]
_SET, _RESET = "cudaSetDevice", "cudaDeviceReset"
_TELL = ("cudaGetErrorString", "cudaGetErrorName")
_AT_THE_END = ("atexit", "on_exit", "at_quick_exit")
_VALUES = (K.VAR_DECL, K.PARM_DECL, K.ENUM_CONSTANT_DECL)


def harmless(top: Sequence[Cursor], main: Cursor | None) -> frozenset[Place]:
    """The places of calls that change nothing for others, and of nothing else that names these functions."""
    named = [c for c in _all(top) if kind_of(c) is K.DECL_REF_EXPR and _name(c) in (_SET, _RESET)]
    if not named:
        return frozenset()
    callees = [_callee(c) for c in _all(top) if kind_of(c) is K.CALL_EXPR and c.spelling == _SET and _is_zero(c)]
    fine = [*callees, *(_last(top, main) if main is not None else ())]
    found = {_place(c) for c in named if c in fine}
    return frozenset(found - {_place(c) for c in named if c not in fine})


def _all(cursors: Sequence[Cursor]) -> Iterator[Cursor]:
    return (c for one in cursors for c in one.walk_preorder())


def _place(cursor: Cursor) -> Place:
    place = file_place(cursor.location)
    return place.file, place.offset


def _name(cursor: Cursor) -> str:
    """What is named; in a merged text, what that stands in for."""
    return str(cursor.spelling).removeprefix("kesco_")


def _callee(call: Cursor) -> Cursor | None:
    """Where a call names its function."""
    at: Cursor | None = call
    while at is not None and kind_of(at) is not K.DECL_REF_EXPR:
        at = next(iter(at.get_children()), None)
    return at


def _is_zero(call: Cursor) -> bool:
    arguments = [a for a in call.get_arguments() if a is not None]
    return len(arguments) == 1 and constant(arguments[0]) == 0


def _last(top: Sequence[Cursor], main: Cursor) -> Iterator[Cursor]:
    """Where ``main`` names the reset in statements behind which it does nothing for the device."""
    types = TypeTable()
    objects = (c for c in _all(top) if kind_of(c) is K.VAR_DECL and types.destroys(types.lower(c.type)))
    if any(_goes_later(c, main) and not c.type.spelling.endswith(LEAVE) for c in objects):
        return
    if any(kind_of(c) is K.DECL_REF_EXPR and c.spelling in _AT_THE_END for c in _all(top)):
        return
    body = next((c for c in main.get_children() if kind_of(c) is K.COMPOUND_STMT), None)
    for statement in reversed(list(body.get_children()) if body is not None else []):
        inside = list(statement.walk_preorder())
        if not all(map(_is_quiet, inside)):
            return
        yield from (c for c in inside if kind_of(c) is K.DECL_REF_EXPR and _name(c) == _RESET)


def _goes_later(variable: Cursor, main: Cursor) -> bool:
    """Whether a variable may go when ``main`` or the process ends."""
    parent = variable.semantic_parent
    inside = parent is not None and kind_of(parent) in FUNCTIONS and parent != main
    return not inside or variable.storage_class is StorageClass.STATIC


def _is_quiet(cursor: Cursor) -> bool:
    """Whether this does nothing for the device but to reset it, and calls nothing of the program's."""
    kind = kind_of(cursor)
    if kind in (K.LAMBDA_EXPR, K.CXX_DELETE_EXPR):
        return False
    target = cursor.referenced if kind in (K.CALL_EXPR, K.DECL_REF_EXPR) else None
    if target is None or kind_of(target) in _VALUES:
        return kind is not K.CALL_EXPR
    name, file = _name(target), file_place(target.location).file
    ours = bool(file) and not is_standard_path(file) and name == target.spelling
    return name in (_RESET, *_TELL) or not (ours or name.startswith(("cu", "__cuda")))
