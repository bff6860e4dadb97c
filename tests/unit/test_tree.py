"""The program's tree: what is inside a node is found by the annotations of its fields, each of which must be known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import pytest

from kesco.ir import tree, walking
from kesco.ir.tree import Branch, Call, Constant, Evaluate, Expr, If, Stmt, Unary
from kesco.ir.walking import children, walk
from kesco.source import Span

HERE = Span("a.cu", 0, 1, 1, 1)


def below(kind: type) -> Iterator[type]:
    for one in kind.__subclasses__():
        yield one
        yield from below(one)


def test_every_field_is_known() -> None:
    kinds = [one for base in (Expr, Stmt) for one in below(base) if one.__module__ == tree.__name__]
    assert len(kinds) > 25
    for kind in kinds:
        held = {f.name for f in fields(kind) if "Expr" in str(f.type) or "Stmt" in str(f.type)}
        assert set(walking._slots(kind)) == held


def test_a_field_of_another_kind_is_noticed() -> None:
    @dataclass(frozen=True)
    class Strange(Expr):
        inside: list[Expr]

    with pytest.raises(TypeError, match=r"Strange\.inside"):
        children(Strange([Constant(1)]))


def test_all_inside_is_found() -> None:
    numbers = [Constant(n) for n in range(5)]
    call = Call("f", "f", (numbers[0], Unary("-", numbers[1])), HERE, 0, numbers[2], references=(True, False))
    whole = If(HERE, (Evaluate(HERE, numbers[3]),), Branch(call, numbers[4], numbers[0]), Evaluate(HERE, call), None)
    assert {n.value for n in walk(whole) if isinstance(n, Constant)} == set(range(5))
    assert sum(isinstance(n, Call) for n in walk(whole)) == 2
    assert children(numbers[0]) == []
