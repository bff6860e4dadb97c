"""What a launch is given: values → arguments in words and places, and the bytes of all of them where they are known.

In: the pointers and numbers of a launch. Out: `Argument`s, which a pair of programs is compared by, and a `Launched`,
by which it can be found out which bytes such a launch touches.
"""

from __future__ import annotations

from collections.abc import Mapping

from kesco.analysis.host.engine import Engine
from kesco.analysis.host.values import Value
from kesco.analysis.host_order.pointing import Pointing
from kesco.analysis.host_regions.kernels import shape_of
from kesco.ir.execution import Argument, Launched
from kesco.llvm.types import Type

_POINTER = 8


def argument_of(pointing: Pointing, inside: list[tuple[str, Value]], words: str) -> list[Argument]:
    """One argument of a launch: the pointers in it, or its words."""
    if not inside:
        return [Argument(words=words)]
    return [pointing.argument(value) for _, value in inside]


def launched_with(
    engine: Engine,
    pointing: Pointing,
    kernel: str,
    types: tuple[Type, ...],
    given: Mapping[str, Value],
    numbers: Mapping[int, int],
    settings: Mapping[str, Value],
    deciding: frozenset[int] | None,
) -> Launched | None:
    """The bytes of a launch's arguments, its grid and block; None where one that decides is not known."""
    grid, block = shape_of(settings.get("grid")), shape_of(settings.get("block"))
    if grid is None or block is None:
        return None
    found: list[bytes] = []
    for index, type_ in enumerate(types):
        real = engine.layouts.resolved(type_)
        size = engine.layouts.size(type_)
        if real.kind == "ptr":
            place = pointing.only(given.get(str(index), frozenset()))
            if place is None:
                return None
            pointing.buffer(place[0])
            found.append((((place[0].number + 1) << 36) + place[1]).to_bytes(_POINTER, "little"))
        elif real.kind == "int" and index in numbers:
            found.append(numbers[index].to_bytes(size + 1, "little", signed=True)[:size])
        elif deciding is not None and index not in deciding:
            found.append(bytes(size))
        else:
            return None
    return Launched(kernel, tuple(found), grid, block)
