"""Pointers and numbers that scratch is about, as expressions: what is in an argument, and which two mean the same."""

from __future__ import annotations

from kesco.ir import program as ir
from kesco.ir.scratch import OWN, OWNED

LESSER = ("std::min", "std::max", "min", "max")
Word = tuple[str, ...]
"""What two expressions have in common that mean the same."""


def word_of(call: ir.Call) -> str:
    """A call's name without what is around it."""
    return call.name.rpartition("::")[2]


def is_ours(call: ir.Call) -> bool:
    """Whether a call says of which memory each stream has its own."""
    return word_of(call) in (OWN, OWNED)


def is_dim3(one: ir.Expr) -> bool:
    """Whether it is a variable of this type."""
    return isinstance(one, ir.Name) and one.variable.type.spelling.removeprefix("const ") == "dim3"


def as_given(one: ir.Expr) -> ir.Expr:
    """An argument without what changes nothing of its value: casts to its own type, and the copy of a ``dim3``."""
    if isinstance(one, ir.Call) and one.constructs and word_of(one) == "dim3" and len(one.arguments) == 1:
        return as_given(one.arguments[0])
    while isinstance(one, ir.Cast) and one.source is not None:
        if one.type.spelling.removeprefix("const ") != one.source.spelling.removeprefix("const "):
            return one
        one = one.operand
    return one


def pointer_in(one: ir.Expr) -> ir.Expr | None:
    """The pointer in an argument, to which integers may be added."""
    match one:
        case ir.Cast(operand=inner):
            return pointer_in(inner)
        case ir.Binary(operator="+", left=left, right=right):
            return pointer_in(left) or pointer_in(right)
        case ir.Binary(operator="-", left=left):
            return pointer_in(left)
        case ir.Name(variable=variable):
            return one if variable.type.shape is ir.Shape.POINTER else None
        case ir.Select(type=kind):
            return one if kind.shape is ir.Shape.POINTER else None
        case ir.Call(type=ir.Type(shape=ir.Shape.POINTER)):
            return one
    return None


def same(one: ir.Expr) -> Word:
    """A word for a variable, member or call without arguments: two with the same one mean the same."""
    match one:
        case ir.Name(variable=variable):
            return (variable.key,)
        case ir.Select(base=base, member=member):
            return (*(("this",) if base is None else same(ir.bare(base))), member)
        case ir.Call(receiver=receiver):
            base = object_of(receiver)
            return (*(("this",) if base is None else same(base)), f"{one.key}()")
    return ("?",)


def object_of(receiver: ir.Expr | None) -> ir.Expr | None:
    """What a method is called for, or a pointer to that; None for ``this``, and where it is no method."""
    inner = ir.bare(receiver) if receiver is not None else None
    if isinstance(inner, ir.Dereference):
        inner = ir.bare(inner.pointer)
    return None if inner == ir.Literal("this") else inner
