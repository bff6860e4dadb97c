"""Where the value of a pointer goes on: ``carries(node, child)`` and ``works_on(node, child)``.

In: an expression and one that is directly in it. Out: whether a pointer's value is that of the whole, moved by an
integer at most; and whether the device's work is given it as a pointer to memory. Apart because whoever gives a buffer
another place asks it, and the proof of that: what else is reckoned from an address would show where it is.
"""

from __future__ import annotations

from kesco.ir import program as ir
from kesco.ir.replay import FILL
from kesco.ir.transfers import COPIES

_POINTERS: dict[str, tuple[int, ...]] = {"cudaMemset": (0,), "cudaMemsetAsync": (0,), FILL: (0,)}
for _name in COPIES:
    _of_symbol = (0,) if "from_symbol" in _name or "FromSymbol" in _name else (1,)
    _POINTERS[_name] = _of_symbol if "ymbol" in _name else (0, 2) if "2d" in _name or "2D" in _name else (0, 1)


def carries(node: ir.Expr | ir.Stmt, child: ir.Expr | ir.Stmt) -> bool:
    """Whether an expression is a pointer that is in it, with an integer added or not."""
    match node:
        case ir.Cast(type=kind):
            return kind.shape is ir.Shape.POINTER
        case ir.Binary(operator="+", left=left, right=right):
            return not _has_pointer(right if child is left else left)
        case ir.Binary(operator="-", left=left, right=right):
            return child is left and not _has_pointer(right)
    return False


def works_on(node: ir.Expr | ir.Stmt, child: ir.Expr | ir.Stmt) -> bool:
    """Whether a launch, copy or memset is given a pointer there to read or write what it points to."""
    if isinstance(node, ir.Launch):
        kinds = node.kernel.parameters
        at = next((n for n, one in enumerate(node.arguments) if one is child), -1)
        known = kinds[at].shape if 0 <= at < len(kinds) else ir.Shape.POINTER  # of a template that may not be
        return at >= 0 and known is ir.Shape.POINTER
    if isinstance(node, ir.Call):
        places = _POINTERS.get(node.name.rpartition("::")[2], ())
        return any(at < len(node.arguments) and node.arguments[at] is child for at in places)
    return False


def is_from(one: ir.Expr, key: str) -> bool:
    """Whether an expression is the value of a pointer, with an integer added or not."""
    variable = ir.named(one) if isinstance(one, (ir.Name, ir.Select)) else None
    if variable is not None:
        return variable.key == key
    return any(isinstance(c, ir.Expr) and carries(one, c) and is_from(c, key) for c in ir.children(one))


def _has_pointer(one: ir.Expr) -> bool:
    """Whether something in an expression is no integer."""
    leaves = (n for n in ir.walk(one) if isinstance(n, (ir.Name, ir.Select)))
    kinds = (n.variable.type if isinstance(n, ir.Name) else n.type for n in leaves)
    return any(kind.shape in (ir.Shape.POINTER, ir.Shape.ARRAY) for kind in kinds)
