"""What a kernel does to memory, as read from its device LLVM IR or stated by its author.

A kernel is described by the *roots* it reaches memory through. A root is a pointer parameter, a pointer field of a
by-value struct parameter, or a device symbol. `direct` is the access through the root itself; `deep` is the access
through pointers that were loaded from memory reached through the root (``float**``, structs of pointers), any number
of levels down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kesco.ir.access import AccessMode
from kesco.ir.poly import ByteRange, Poly, Symbol

_MOST = {"nctaid": {"x": 2**31 - 1, "y": 65535, "z": 65535}, "ntid": {"x": 1024, "y": 1024, "z": 64}}
_NAMED = {"nctaid": "gridDim", "ntid": "blockDim"}


def dimension(register: str, axis: str) -> Symbol:
    """How many blocks (``nctaid``) or threads a block (``ntid``) a launch has along an axis; CUDA's limits bound it."""
    return Symbol(f"{_NAMED[register]}.{axis}", 1, _MOST[register][axis])


DIMENSIONS = tuple(dimension(register, axis) for register in ("nctaid", "ntid") for axis in "xyz")


def argument(index: int, bits: int, signed: bool) -> Symbol:
    """A kernel's integer argument, counted from 0, as its bits are read with or without a sign."""
    name = f"{'s' if signed else 'u'}{bits} arg{index}"
    return Symbol(name, -(1 << (bits - 1)) if signed else 0, (1 << (bits - signed)) - 1)


ParamBase = tuple[int, int]  # a root among the parameters: which one, and the byte offset in it (-1: any field)


class ArgumentBytes(NamedTuple):
    """Some bytes of one argument of a launch, counted from 0."""

    argument: int
    start: int
    end: int


Steering = Mapping[ParamBase | str, frozenset[ArgumentBytes]]
"""Of a kernel's roots: what decides where its accesses are, and whether they are made; a root left out: everything."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """The bytes that all threads of a launch touch at most through one pointer, from where it points.

    The polynomials are over `argument` symbols and launch dimensions (`DIMENSIONS`). It holds for a launch for which
    each polynomial of `fits` is at most the number beside it: then the kernel's arithmetic does not wrap around.
    """

    bytes: ByteRange
    fits: tuple[tuple[Poly, int], ...] = ()


@dataclass(frozen=True, slots=True)
class RootEffect:
    """Access through one root: `direct` through the pointer, `deep` through pointers loaded from there.

    `footprint` bounds the direct accesses; None where they may be anywhere in the allocation.
    """

    direct: AccessMode = AccessMode.NONE
    deep: AccessMode = AccessMode.NONE
    footprint: Footprint | None = None

    def __or__(self, other: RootEffect) -> RootEffect:
        if not (self.direct and other.direct):
            footprint = self.footprint if self.direct else other.footprint
        else:
            footprint = self.footprint if self.footprint == other.footprint else None
        return RootEffect(self.direct | other.direct, self.deep | other.deep, footprint)


@dataclass(frozen=True, slots=True)
class ParamEffect:
    """Effect through parameter number `index`.

    `fields` holds one effect per byte offset of a pointer inside a by-value struct (offset 0 for a plain pointer).
    A parameter through which no memory is touched has no fields.
    """

    index: int
    fields: tuple[tuple[int, RootEffect], ...] = ()

    @property
    def whole(self) -> RootEffect:
        """The union over all fields."""
        result = RootEffect()
        for _, effect in self.fields:
            result |= effect
        return result


@dataclass(frozen=True, slots=True)
class KernelEffects:
    """All effects of one kernel.

    `name` is the mangled name (``_Z4blurPKfPfi``), `display` the demangled one without parameters.
    `symbols` maps mangled names of device symbols to their effect.
    `opaque` is empty, or the reason why the kernel counts as touching everything reachable from its arguments, all
    symbols and everything it could have been told earlier.
    `order` lists observable orders: ``"printf"``, ``"heap"`` (device malloc and free), ``"clock"`` (the kernel reads a
    timer, so that running it beside others changes what it measures), ``"launch"`` (dynamic parallelism), ``"spin"``
    (it waits for memory that somebody else changes, most likely other blocks of its own),
    ``"assert"`` (may trap), ``"texture"`` (reads a texture or surface object handle that is not a pointer),
    ``"unseen"`` (it calls code that is not seen, which may print and allocate, too).
    `outputs` and `priority` are what the author stated with KeSCo's trailing parameters, if anything.
    `keeps` tells that it may store the address of what it is given where others find it.
    """

    name: str
    display: str
    params: tuple[ParamEffect, ...] = ()
    symbols: tuple[tuple[str, RootEffect], ...] = ()
    opaque: str = ""
    order: frozenset[str] = frozenset()
    outputs: int | None = None
    priority: int | None = None
    keeps: bool = True

    def __or__(self, other: KernelEffects) -> KernelEffects:
        """What holds when either may run: the same kernel compiled for another architecture, say."""
        params = {p.index: dict(p.fields) for p in self.params}
        for one in other.params:
            fields = params.setdefault(one.index, {})
            for offset, effect in one.fields:
                fields[offset] = fields.get(offset, RootEffect()) | effect
        symbols = dict(self.symbols)
        for symbol, effect in other.symbols:
            symbols[symbol] = symbols.get(symbol, RootEffect()) | effect
        merged = tuple(ParamEffect(i, tuple(sorted(f.items()))) for i, f in sorted(params.items()))
        return KernelEffects(
            self.name, self.display, merged, tuple(sorted(symbols.items())), self.opaque or other.opaque,
            self.order | other.order, self.outputs, self.priority, self.keeps or other.keeps,
        )  # fmt: skip
