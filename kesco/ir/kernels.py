"""What decides where kernels touch memory, and what they write there, so that launches can be compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kesco.ir.tree import (
    DEFAULT,
    Binary,
    Branch,
    Call,
    Cast,
    Constant,
    Expr,
    Launch,
    Name,
    Select,
    Unary,
)
from kesco.ir.turns import Steering
from kesco.ir.walking import bare

Key = tuple[str, tuple[int, ...]]
"""A write: what it depends on, in words, and the arguments that these name, in that order."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a kernel writes through a parameter: what it `surely` does, and all that it may, where that is known."""

    surely: frozenset[Key] = frozenset()
    every: frozenset[Key] | None = None


Writes = Mapping[str, Mapping[int, Written]]
"""Kernel → pointer parameter → what is written through it."""


@dataclass(frozen=True, slots=True)
class Kernels:
    """What decides which bytes kernels touch, and what they write."""

    steering: Steering = field(default_factory=dict)
    writes: Writes = field(default_factory=dict)


def writes_no_more(
    writes: Writes, first: tuple[Launch, int], other: tuple[Launch, int], kept: Callable[[Expr], str]
) -> bool:
    """Whether a launch writes through an argument nothing but what the first one has written through its own.

    `kept` names variables that have one value at both; an empty word is one that is not known.
    """
    (one, at), (two, index) = first, other
    kernels = one.kernel.candidates, two.kernel.candidates
    if any(len(names) != 1 for names in kernels):
        return False
    done = writes.get(kernels[0][0], {}).get(at, Written()).surely
    more = writes.get(kernels[1][0], {}).get(index, Written()).every
    if not done or not more:
        return False
    shapes = [[word_in(part, kept) for part in launch.configuration[:2]] for launch in (one, two)]
    pointers = word_in(bare(one.arguments[at]), kept), word_in(bare(two.arguments[index]), kept)
    if shapes[0] != shapes[1] or not all(shapes[0]) or pointers[0] != pointers[1] or not pointers[0]:
        return False

    def given(launch: Launch, key: Key) -> tuple[str, tuple[str, ...]] | None:
        words = tuple(word_in(launch.arguments[n], kept) if n < len(launch.arguments) else "" for n in key[1])
        return (key[0], words) if all(words) else None

    known = {given(one, key) for key in done} - {None}
    return {given(two, key) for key in more} <= known


def word_in(one: Expr, kept: Callable[[Expr], str]) -> str:
    """An expression in a word that is the same for two of the same value; empty where there is none.

    What is reckoned depends on the types of the operands, which it names, and so do steps of pointers.
    """
    match one:
        case Constant(value=value):
            return str(value)
        case Name(variable=variable) if variable.constant is not None:
            return str(variable.constant)
        case Name() | Select():
            return kept(one)
        case Cast(operand=operand, type=kind):
            inner = word_in(operand, kept)
            return f"({kind.spelling}){inner}" if inner else ""
        case Binary(operator=operator, left=left, right=right, type=kind) if kind is not None:
            words = [word_in(left, kept), word_in(right, kept)]
            return f"({words[0]}{operator}{words[1]}:{kind.spelling})" if all(words) else ""
        case Unary(operator=operator, operand=operand, type=kind) if kind is not None:
            inner = word_in(operand, kept)
            return f"({operator}{inner}:{kind.spelling})" if inner else ""
        case Branch(condition=condition, then=then, other=other):
            words = [word_in(part, kept) for part in (condition, then, other)]
            return "({}?{}:{})".format(*words) if all(words) else ""
        case Call(constructs=True, name=name, arguments=arguments) if name.rpartition("::")[2] == "dim3":
            words = ["1" if part == DEFAULT else word_in(part, kept) for part in arguments]
            single = len(words) == 1 and words[0].startswith("dim3(")
            return (words[0] if single else f"dim3({','.join(words)})") if all(words) else ""
        case Call():
            return kept(one)
    return ""
