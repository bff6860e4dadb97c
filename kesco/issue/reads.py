"""What a statement reads of the host's memory: `Reads`, for statements that may stand beside copies to the host.

In: a program, and statements of it. Out: whether a statement may read what such a copy writes. Apart from `statements`
because here it is asked which memory, not which effect.

1. A plain variable that has no other name keeps its value: one of a function's own, whose address is taken at most
where a call of CUDA puts a pointer or a handle there. 2. Where a container's elements are, and how many, is not among
them. 3. All else may be what the copy writes: elements, members, what a pointer or a reference leads to.
"""

from __future__ import annotations

from collections.abc import Iterator

from kesco.ir import program as ir
from kesco.ir.transfers import FILLS

_WHERE = frozenset({"data", "size", "empty"})
_OWN = (ir.Scope.LOCAL, ir.Scope.PARAMETER)


class Reads:
    """Asks it of the statements of one program."""

    def __init__(self, program: ir.Program) -> None:
        fields = (f.type.shape for record in program.records.values() if not record.standard for f in record.fields)
        refers = ir.Shape.REFERENCE in fields
        self._named = {key for f in program.functions if f.here for key in _with_other_names(f.body, refers)}

    def may_be_written(self, one: ir.Expr | ir.Stmt) -> bool:
        """Whether a copy to the host may write what a statement or expression reads."""
        match one:
            case ir.Name(variable=known):
                reference = known.type.shape is ir.Shape.REFERENCE
                return reference or known.scope not in _OWN or known.key in self._named
            case ir.Call(receiver=ir.Name()) if one.standard and one.name.rpartition("::")[2] in _WHERE:
                return False
            case ir.Call(receiver=ir.Expr()):
                return True
            case ir.Dereference() | ir.Subscript() | ir.Unknown() | ir.Obstacle() | ir.Select(base=None):
                return True
            case ir.Select() if one.arrow or one.type.shape is ir.Shape.REFERENCE:
                return True
        return any(map(self.may_be_written, ir.children(one)))


def _with_other_names(node: ir.Expr | ir.Stmt, refers: bool) -> Iterator[str]:
    """The keys of variables that something else may lead to, as far as what is in `node` shows.

    `refers`: a class has members that are references, which a list may bind.
    """
    inner = list(ir.children(node))
    match node:
        case ir.AddressOf(target=place) | ir.Decay(array=place):
            yield from _names(place)
        case ir.Declare() if node.variable.type.shape is ir.Shape.REFERENCE and node.initial is not None:
            yield from _names(node.initial)
        case ir.Unknown() | ir.New() | ir.Obstacle():
            yield from _names(node)
        case ir.InitList() if refers:
            yield from _names(node)
        case ir.Call():
            yield from (key for a, by in zip(node.arguments, node.references, strict=False) if by for key in _names(a))
            if node.receiver is not None and not node.name.startswith("std::vector::"):  # whose elements are elsewhere
                yield from _names(node.receiver)
            if node.standard and node.name in FILLS:
                inner = [one for one in inner if one is not node.arguments[0]] if node.arguments else inner
    for one in inner:
        yield from _with_other_names(one, refers)


def _names(node: ir.Expr | ir.Stmt) -> Iterator[str]:
    return (n.variable.key for n in ir.walk(node) if isinstance(n, ir.Name))
