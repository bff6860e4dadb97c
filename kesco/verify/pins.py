"""Memory that is pinned while a loop runs is there, and stays: ``pin_problems(program)``.

In: the concurrent program as read from its text. Out: what speaks against its calls of ``kesco_pin``, in words, each
with its place. It goes the way back through the statements that `sources` goes, from each ``kesco_turned``.

1. What it is given is a vector, or a pointer that is only ever set to what an allocation gives. 2. Until
``kesco_turned``, nothing may free memory or make a container move it. That each call belongs to a loop with turns is
shown where those are.
"""

from __future__ import annotations

from kesco.ir import program as ir
from kesco.ir.pins import holds_block
from kesco.ir.turns import PIN, TURNED
from kesco.verify.sources import Ahead, Problem, Reader, word_of


def pin_problems(program: ir.Program) -> tuple[Problem, ...]:
    """All that speaks against the memory that is pinned."""
    found: list[Problem] = []
    reader = _Blocks(program)
    for function in program.functions if PIN.encode() in program.text else ():
        pins = [n for n in ir.walk(function.body) if isinstance(n, ir.Call) and word_of(n) == PIN]
        if pins:
            reader.before(function.body, Ahead(True, True, True))
        for one in pins:
            given = [ir.bare(a) for a in one.arguments[1:]]
            if not all(isinstance(a, ir.Name) and holds_block(program, function, a.variable) for a in given):
                found.append((one.span, "what is pinned need not be where a block of memory begins"))
    found += [(span, "the host may free what is pinned before the loop has ended") for span in sorted(reader.late)]
    return tuple(found)


class _Blocks(Reader):
    """Finds what may free memory between ``kesco_pin`` and the end of its loop."""

    word = PIN

    def waits(self, one: ir.Expr) -> bool:
        """Whether evaluating an expression ends a loop."""
        return any(isinstance(n, ir.Call) and word_of(n) == TURNED for n in ir.walk(one))
