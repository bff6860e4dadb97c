"""Statements of an output by what they call: which is a call of kesco's, of CUDA's, which mention a variable."""

from __future__ import annotations

from collections.abc import Iterator

from kesco.ir import program as ir
from kesco.verify.sources import word_of


def is_of_cuda(node: ir.Expr | ir.Stmt) -> bool:
    """Whether it is a launch, or a call of CUDA's or of kesco's own."""
    return isinstance(node, ir.Launch) or (isinstance(node, ir.Call) and word_of(node).startswith(("cuda", "kesco")))


def statements_of(block: ir.Block) -> list[ir.Stmt]:
    """The statements of a block; those that declare several variables are as many."""
    return [s for one in block.body for s in (one.body if isinstance(one, ir.Block) and one.declares else (one,))]


def call_in(statement: ir.Stmt, name: str) -> ir.Call | None:
    """The call of this name that a statement consists of, or that a variable begins with."""
    whole = statement.expression if isinstance(statement, ir.Evaluate) else None
    whole = statement.initial if isinstance(statement, ir.Declare) else whole
    bare = ir.bare(whole) if whole is not None else None
    if isinstance(bare, ir.Call) and bare.constructs and len(bare.arguments) == 1:
        bare = ir.bare(bare.arguments[0])
    return bare if isinstance(bare, ir.Call) and word_of(bare) == name else None


def names(node: ir.Expr | ir.Stmt) -> Iterator[str]:
    """The keys of the variables that are mentioned."""
    return (n.variable.key for n in ir.walk(node) if isinstance(n, ir.Name))


def is_of(node: ir.Expr | ir.Stmt, variable: ir.Variable) -> bool:
    """Whether it is the name of a variable."""
    return isinstance(node, ir.Name) and node.variable.key == variable.key


def is_streams(variable: ir.Variable) -> bool:
    """Whether a variable holds streams."""
    return "KescoStreams" in variable.type.spelling
