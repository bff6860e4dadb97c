"""Statements whose control flow is not followed: ``has_obstacle(statement)``.

In: a statement of the parsed program. Out: the first reason why a walk of it would not come by everywhere, in words.
"""

from __future__ import annotations

from kesco.ir import program as ir


def _hidden_case(statement: ir.Stmt) -> bool:
    """Whether a switch's label stands where a walk of its block does not come by."""
    if isinstance(statement, ir.Block):
        return any(map(_hidden_case, statement.body))
    if isinstance(statement, ir.Case):
        return _hidden_case(statement.body)
    if isinstance(statement, ir.Switch):
        return False
    return any(isinstance(n, ir.Case) for n in ir.walk(statement))


def has_obstacle(statement: ir.Stmt) -> str:
    """The reason why control flow of a statement is not followed, or an empty text."""
    if isinstance(statement, ir.Obstacle):
        return statement.reason
    inner: list[ir.Stmt | None] = []
    if isinstance(statement, ir.Switch) and _hidden_case(statement.body):
        return "a case label inside another statement"
    if isinstance(statement, ir.Block):
        inner = list(statement.body)
    elif isinstance(statement, ir.If):
        inner = [*statement.before, statement.then, statement.other]
    elif isinstance(statement, (ir.Loop, ir.Switch)):
        inner = [*statement.before, statement.body]
    elif isinstance(statement, ir.Case):
        inner = [statement.body]
    return next((r for r in map(has_obstacle, filter(None, inner)) if r), "")
