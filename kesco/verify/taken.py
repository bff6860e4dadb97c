"""Memory that a function takes for itself goes nowhere else: ``taken_problems(program)``.

In: the concurrent program as read from its text. Out: what speaks against its calls of ``kesco_take_here`` and
``kesco_give_here``, in words, each with its place. Apart from the order of the device's work, for which such memory is
touched by one call alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kesco.ir import program as ir
from kesco.ir.taken import OwnMemory
from kesco.ir.transfers import GIVE_HERE, TAKE_HERE
from kesco.ir.within import Within
from kesco.source import Span
from kesco.verify.sources import Problem, word_of

_CALLED = re.compile(rb"(?<!cudaError_t )\bkesco_(?:take|give)_here\s*\(")


def taken_problems(program: ir.Program) -> Iterator[Problem]:
    """All that speaks against such memory."""
    stated = len(_CALLED.findall(program.text))
    if not stated:
        return
    own = OwnMemory(program, Within(program), (TAKE_HERE, GIVE_HERE))
    count = 0
    for function in (f for f in program.functions if f.here):
        nodes = [n for n in ir.walk(function.body) if isinstance(n, ir.Call)]
        calls = [n for n in nodes if word_of(n) in (TAKE_HERE, GIVE_HERE)]
        pairs = own.of(function)
        known = {*pairs, *(free.operation for free in pairs.values())}
        count += len(calls)
        for call in (n for n in calls if n.operation not in known):
            yield call.span, "memory that a function takes for itself may be used elsewhere, or not be given back"
    if count != stated:
        yield Span(program.path, 0, 1, 1, 1), "memory is taken for a function where it cannot be followed"
