"""Which branches of a program are only taken where a call of the CUDA runtime has failed.

In: a condition. Out: which of its branches that is. What a program prints there tells that it failed, not how far the
device is: it is not what a wait of the host is for.
"""

from __future__ import annotations

from kesco.ir import program as ir

_STATUS = ("cudaError", "const cudaError", "cudaError_t", "const cudaError_t")


def where_it_failed(condition: ir.Expr) -> bool | None:
    """True for the branch taken if the condition holds, False for the other one, None for neither."""
    if isinstance(condition, ir.Unary) and condition.operator == "!":
        inner = where_it_failed(condition.operand)
        return None if inner is None else not inner
    if _is_status(condition):
        return True
    if not isinstance(condition, ir.Binary) or condition.operator not in ("!=", "=="):
        return None
    sides = condition.left, condition.right
    if all(map(_is_status, sides)) and any(isinstance(s, ir.Cast) and s.operand == ir.Constant(0) for s in sides):
        return condition.operator == "!="
    return None


def _is_status(value: ir.Expr) -> bool:
    """Whether a number is the status that a call of the runtime has returned; 0 is success."""
    return isinstance(value, ir.Cast) and value.source is not None and value.source.spelling in _STATUS
