"""The standard library's containers of pointers: what their members mean.

In: types and members of ``std::array``, ``std::vector`` and ``std::unique_ptr``. Out: plain expressions for what reads
or names elements, and for the rest of what is followed a word that the analysis knows. Apart from other calls because
here the library's documented behaviour is used, not a function's body.

1. A ``std::array`` of pointers is an array. 2. A ``std::vector`` of pointers is an object with two members: its
elements, which are an array, and its size. A ``std::unique_ptr`` has its pointer in the elements' place. 3. Elements,
``at``, ``front``, ``data``, ``get``, ``size`` and ``empty`` become expressions on these members. 4. What changes the
size or the pointer is a call marked by what it does. It leaves all else (iterators, ``insert``, ``erase``, allocators
and deleters with a state) as calls of the library, which may change anything that they are given.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from clang.cindex import Cursor, CursorKind, TypeKind
from clang.cindex import Type as ClangType

from kesco.frontend.clang import kind_of, members
from kesco.frontend.standard import is_standard_path
from kesco.ir import program as ir
from kesco.ir.types import ELEMENTS, SIZE
from kesco.source import Span

_ARRAY = re.compile(r"(?:const )?std::(?:__\w+::)*array<.*, (\d+)(?:[uU]?[lL]{0,2})>")
_VECTOR = re.compile(r"(?:const )?std::(?:__\w+::)*vector<.*>")
_OWNER = re.compile(r"(?:const )?std::(?:__\w+::)*unique_ptr<.*>")
_COUNT = ir.Type(ir.Shape.INTEGER, "unsigned long")
_WORDS = {
    "push_back": "append", "emplace_back": "append", "pop_back": "pop", "clear": "clear", "resize": "resize",
    "reserve": "keep", "shrink_to_fit": "keep", "back": "last",
}  # fmt: skip
_MOST = {"append": 1, "pop": 0, "clear": 0, "resize": 2, "keep": 1, "last": 0}


@dataclass(frozen=True, slots=True)
class Held:
    """What a container holds; `count` is negative where it may change. One that `owns` holds a pointer to `element`."""

    element: ClangType
    count: int
    owns: bool = False


def held_by(canonical: ClangType) -> Held | None:
    """What one of the followed containers holds; None for all other types."""
    spelling = canonical.spelling
    array = _ARRAY.fullmatch(spelling)
    owner = _OWNER.fullmatch(spelling) is not None
    if array is None and not owner and _VECTOR.fullmatch(spelling) is None:
        return None
    where = canonical.get_declaration().location
    if where.file is None or not is_standard_path(where.file.name) or canonical.get_num_template_arguments() < 2:
        return None
    element = canonical.get_template_argument_type(0).get_canonical()
    if owner:
        deleter = canonical.get_template_argument_type(1).get_canonical()
        pointee = element.element_type if element.kind is TypeKind.INCOMPLETEARRAY else element
        return Held(pointee, 1, owns=True) if _only_deletes(deleter) else None
    if element.kind is not TypeKind.POINTER or element.is_volatile_qualified():
        return None
    if array is not None:
        return Held(element, int(array[1]))
    allocator = canonical.get_template_argument_type(1).get_canonical().spelling
    return Held(element, -1) if allocator.startswith("std::allocator<") else None


def _only_deletes(deleter: ClangType) -> bool:
    """Whether a deleter is a function, or a class without state, constructors and a pointer type of its own."""
    if deleter.kind is TypeKind.POINTER:
        return True
    if deleter.kind is not TypeKind.RECORD:
        return False
    inner = members(deleter.get_declaration())
    calls = [c for c in inner if kind_of(c) is CursorKind.CXX_METHOD and c.spelling == "operator()"]
    rest = [c for c in inner if c not in calls and kind_of(c) is not CursorKind.CXX_ACCESS_SPEC_DECL]
    return bool(calls) and not rest and not any(c.is_virtual_method() for c in calls)


def elements_of(container: ir.Expr, declared: ir.Type) -> ir.Expr | None:
    """What holds the elements of an array or container."""
    if declared.shape is ir.Shape.ARRAY:
        return container
    if not declared.container or declared.element is None:
        return None
    return ir.Select(container, ELEMENTS, False, ir.Type(ir.Shape.ARRAY, "?", declared.element))


def listed(declared: ir.Type, items: tuple[ir.Expr, ...]) -> ir.InitList:
    """A list in braces; a ``std::array`` may be written with those of the array inside it."""
    inner = items[0] if len(items) == 1 and declared.container and declared.shape is ir.Shape.ARRAY else None
    return inner if isinstance(inner, ir.InitList) else ir.InitList(items)


def accessed(
    target: Cursor,
    owner: ir.Type | None,
    receiver: ir.Expr | None,
    parts: list[ir.Expr],
    given: list[ir.Type],
    span: Span,
) -> ir.Expr | None:
    """A call that only names, reads or copies, as an expression without a call; None where it is none."""
    method = target.spelling
    if owner is None:
        moves = method == "move" and len(parts) == 1
        plain = moves and (given[0].container or given[0].shape in (ir.Shape.POINTER, ir.Shape.INTEGER))
        return parts[0] if plain else None
    if not owner.container:
        return None
    fixed = owner.shape is ir.Shape.ARRAY
    if kind_of(target) is CursorKind.CONSTRUCTOR:
        if not fixed or len(parts) > 1:
            return None
        return parts[0] if parts else ir.InitList(())
    if receiver is None:
        return None
    elements = elements_of(receiver, owner)
    assert elements is not None
    if owner.count == 1 and not fixed:
        return _owned(method, ir.Select(receiver, ELEMENTS, False, owner.element or _COUNT), parts, span)
    if method in ("operator[]", "at") and len(parts) == 1:
        return ir.Subscript(elements, parts[0], True, span)
    if method == "front":
        return ir.Subscript(elements, ir.Constant(0), True, span)
    if method == "data":
        return ir.Decay(elements)
    if not fixed:
        size = ir.Select(receiver, SIZE, False, _COUNT)
        return {"size": size, "empty": ir.Unary("!", size, ir.Type(ir.Shape.INTEGER, "bool"))}.get(method)
    if method == "operator=" and len(parts) == 1:
        return ir.Assign(receiver, "", parts[0], span)
    if method == "back" and owner.count > 0:
        return ir.Subscript(elements, ir.Constant(owner.count - 1), True, span)
    effects = any(isinstance(n, (ir.Call, ir.Assign, ir.Unknown)) for n in ir.walk(receiver))
    return ir.Constant(owner.count) if method == "size" and not effects else None


def _owned(method: str, pointer: ir.Expr, parts: list[ir.Expr], span: Span) -> ir.Expr | None:
    """What a member of a ``unique_ptr`` gives that changes nothing."""
    truth = ir.Type(ir.Shape.INTEGER, "bool")
    if method == "operator[]":
        return ir.Subscript(pointer, parts[0], False, span)
    given = {
        "get": pointer,
        "operator->": pointer,
        "operator*": ir.Dereference(pointer, span),
        "operator bool": ir.Unary("!", ir.Unary("!", pointer, truth), truth),
    }
    return given.get(method)


def _owns(target: Cursor, given: list[ir.Type]) -> str:
    """What a call does with a ``unique_ptr``."""
    moved = len(given) == 1 and given[0].container
    pointers = all(one.shape is ir.Shape.POINTER or "nullptr_t" in one.spelling for one in given[:1])
    if kind_of(target) is CursorKind.CONSTRUCTOR:
        return "take" if moved else "own" if pointers else ""
    if target.spelling == "operator=":
        return "retake" if moved else "reset" if pointers else ""
    return {"reset": "reset" if pointers else "", "release": "release"}.get(target.spelling, "")


def worked(target: Cursor, owner: ir.Type | None, parts: list[ir.Expr], given: list[ir.Type]) -> str:
    """What a call does with a vector, as a word; empty where it is not followed."""
    if owner is None or not owner.container or owner.shape is ir.Shape.ARRAY:
        return ""
    written = [p for p in parts if p != ir.Literal("default")]
    if owner.count == 1:
        return _owns(target, given[: len(written)])
    if kind_of(target) is CursorKind.CONSTRUCTOR or target.spelling == "operator=":
        if not written:
            return "make"
        first = next(iter(target.get_arguments())).type.get_canonical()
        if len(written) == 1 and isinstance(written[0], ir.InitList):
            listed_here = first.spelling.startswith("std::initializer_list<") or not written[0].items
            return "list" if listed_here else ""
        if len(written) == 1 and given[0].container:
            return "move" if first.kind is TypeKind.RVALUEREFERENCE else "copy"
        counts = len(written) <= 2 and given[0].shape is ir.Shape.INTEGER
        return "make" if counts and target.spelling != "operator=" else ""
    word = _WORDS.get(target.spelling, "")
    if not word or len(written) > _MOST[word]:
        return ""
    pointers = all(one.shape is ir.Shape.POINTER or "nullptr_t" in one.spelling for one in given)
    return word if word != "append" or pointers else ""
