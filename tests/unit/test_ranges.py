"""Whether two byte ranges can meet: the proof must confirm what the compiler says (`parts`), and neither be wrong."""

from __future__ import annotations

import random

import pytest

from kesco.ir.poly import ByteRange, Poly, Symbol, constant, of
from kesco.parts import apart
from kesco.verify.ranges import cannot_meet

N, M = Symbol("n", -(2**31), 2**31 - 1), Symbol("m", 0, 2**32 - 1)
K, C = Symbol("k", 1, 1024), Symbol("c", -3, 5)
SYMBOLS = (N, M, K, C)
PRODUCTS = [(N,), (M,), (K,), (C,), (N, K), (M, K), (N, N), (C, K)]
NUMBERS = (0, 1, 2, 3, -1, -2, 5, 7, 100, 2**31 - 1, -(2**31))


def poly(r: random.Random, most: int) -> Poly:
    found = constant(r.choice([0, 0, 1, 4, -4, 8, 12, 3, -7, 16]))
    for _ in range(r.randint(0, most)):
        product = constant(r.choice([1, 2, 4, -4, 8, -1, 3, -8, 12]))
        for symbol in r.choice(PRODUCTS):
            product = product * of(symbol)
        found = found + product
    return found


def pair(r: random.Random) -> tuple[ByteRange, ByteRange]:
    """Two ranges, often one right behind the other, or with a gap that is made of the same products."""
    low, size = poly(r, 3), poly(r, 2)
    a = ByteRange(low, low + size)
    begin = (
        poly(r, 3) if r.random() < 0.5 else a.high + (poly(r, 1) if r.random() < 0.5 else constant(r.choice([0, 4])))
    )
    return a, ByteRange(begin, begin + (size if r.random() < 0.5 else poly(r, 2)))


def value(one: Poly, at: dict[Symbol, int]) -> int:
    made = one.substituted(lambda symbol: constant(at[symbol]))
    assert made is not None and made.constant is not None
    return made.constant


@pytest.mark.parametrize("seed", [0, 1, 11, 28])  # the last two: once the compiler knew more than the proof
def test_the_proof_confirms_the_compiler_and_neither_is_wrong(seed: int) -> None:
    r = random.Random(seed)
    found = 0
    for _ in range(500):
        a, b = pair(r)
        said, proven = apart(a, b), cannot_meet(a, b)
        assert proven or not said, f"{a} {b}"
        if not proven:
            continue
        found += 1
        for _ in range(20):
            at = {s: max(s.low, min(s.high, r.choice(NUMBERS))) for s in SYMBOLS}
            ends = [(value(one.low, at), value(one.high, at)) for one in (a, b)]
            assert max(low for low, _ in ends) >= min(high for _, high in ends), f"{a} {b} {at}"
    assert found > 100
