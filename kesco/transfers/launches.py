"""The launches of a function that lines can be put around: ``launches(body)``.

In: a function's body. Out: each launch that is a statement, with the loops around it. Apart because both directions of
a prefetch begin with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kesco.ir import program as ir


@dataclass(frozen=True, slots=True)
class Around:
    """A loop around a launch; `in_block`: lines can be put before it and behind it."""

    loop: ir.Loop
    in_block: bool


@dataclass(frozen=True, slots=True)
class Launched:
    """A launch that is a statement, and the loops around it, the outermost first."""

    node: ir.Launch
    loops: tuple[Around, ...]

    @property
    def changes(self) -> bool:
        """Whether evaluating it assigns anything, so that its arguments must not be written a second time."""
        parts = (*self.node.configuration, *self.node.arguments)
        return any(isinstance(n, ir.Assign) for part in parts for n in ir.walk(part))


def launches(node: ir.Expr | ir.Stmt, loops: tuple[Around, ...] = (), in_block: bool = False) -> Iterator[Launched]:
    """The launches inside `node`, in the text's order."""
    if isinstance(node, ir.Loop):
        loops = (*loops, Around(node, in_block))
    if isinstance(node, ir.Evaluate) and isinstance(node.expression, ir.Launch):
        yield Launched(node.expression, loops)
    if isinstance(node, ir.Stmt):
        for child in ir.children(node):
            yield from launches(child, loops, isinstance(node, ir.Block))
