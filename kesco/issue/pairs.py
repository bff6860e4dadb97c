"""A call and the ``if`` behind it that looks at its status, as one statement: ``statuses`` and ``paired``.

In: the body of a function, and a block of it. Out: the variables that hold nothing but such a status; the block in
which such a call and its check are one statement, as a macro would have made them. Apart from the rest because two
statements of the text are one here.

A *status* is a variable of the function's own that is mentioned nowhere but where a call's result is put in it, with
the check right behind, in that check, which leaves if the call has failed, and where the function returns it. So
wherever control goes on it holds 0, whichever call was the last one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise

from kesco.ir import program as ir
from kesco.ir.failures import leaves_where_it_failed, never_comes_back, where_it_failed

_TYPES = ("cudaError", "cudaError_t")


def statuses(body: ir.Stmt) -> frozenset[str]:
    """The keys of such variables."""
    nodes = list(ir.walk(body))
    mentioned = Counter(n.variable.key for n in nodes if isinstance(n, ir.Name))
    known = Counter[str]()
    for two in (two for n in nodes if isinstance(n, ir.Block) for two in pairwise(n.body)):
        if (key := _status(*two)) is not None:
            known[key] += sum(isinstance(n, ir.Name) and n.variable.key == key for one in two for n in ir.walk(one))
    found = set(known)
    given = (ir.bare(n.value) for n in nodes if isinstance(n, ir.Leave) and n.value is not None)
    known.update(one.variable.key for one in given if isinstance(one, ir.Name))
    return frozenset(key for key in found if mentioned[key] == known[key])


def paired(block: Sequence[ir.Stmt], known: Collection[str]) -> tuple[ir.Stmt, ...]:
    """The statements of a block, calls and their checks as one."""
    found: list[ir.Stmt] = []
    for one in block:
        if known and found and _status(found[-1], one) in known:
            whole = replace(found[-1].span, end=one.span.end)
            found[-1] = ir.Block(whole, (found[-1], one))
        else:
            found.append(one)
    return tuple(found)


def _status(one: ir.Stmt, check: ir.Stmt) -> str | None:
    """The variable in which the first statement puts what a call returns, if the second does nothing but check it."""
    given = one.expression if isinstance(one, ir.Evaluate) else None
    if not isinstance(given, ir.Assign) or given.operator or not isinstance(given.target, ir.Name):
        return None
    variable = given.target.variable
    own = variable.scope is ir.Scope.LOCAL and variable.type.spelling in _TYPES
    if not own or not isinstance(check, ir.If) or check.before or check.other is not None:
        return None
    asked = [n.variable.key for n in ir.walk(check.condition) if isinstance(n, ir.Name)]
    leaves = never_comes_back(check.then) or (_ends(check.then) and leaves_where_it_failed(check))
    return variable.key if asked == [variable.key] and where_it_failed(check.condition) and leaves else None


def _ends(branch: ir.Stmt) -> bool:
    """Whether the last statement of a branch leaves the function."""
    while isinstance(branch, ir.Block) and branch.body:
        branch = branch.body[-1]
    return isinstance(branch, ir.Leave)
