"""What a launch touches: effects of its kernel, values of its arguments → buffers, each with how and which bytes.

In: the effects, and what answers where a value points. Out: a `Touched` and why the launch must stay where it is, if
so. Apart from `launching`, which makes sites of it, because others ask the same of executions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from kesco.analysis.extents import LaunchValues, extent
from kesco.analysis.host.values import Value, number
from kesco.ir.access import DEVICE_HEAP, DEVICE_PRINTF, UNKNOWN, AccessMode, Buffer, through_parameter
from kesco.ir.effects import KernelEffects, RootEffect
from kesco.ir.poly import ByteRange, Poly, constant

_BOTH = AccessMode.READ_WRITE
Touched = dict[tuple[Buffer, str, ByteRange | None], AccessMode]


class Parts(Protocol):
    """Where values point."""

    def parts(self, value: Value) -> list[tuple[Buffer, int | None]]:
        """The buffers that a pointer may lead to, and where in them if that is known."""

    def symbol(self, mangled: str) -> Buffer:
        """The buffer of a device symbol."""


@dataclass(slots=True)
class Kernels:
    """Answers for the kernels of a program."""

    effects: Mapping[str, KernelEffects]
    pointing: Parts

    def of(
        self,
        effects: KernelEffects | None,
        stated: Touched | None,
        found: list[tuple[str, Value]],
        given: LaunchValues,
    ) -> tuple[Touched, str]:
        """What a launch with these pointers and numbers touches; `stated`: what the author says of what is not seen."""
        touched = dict(stated or {})
        if stated is None and (effects is None or effects.opaque):
            why = effects.opaque if effects is not None and effects.opaque else "its body is not visible"
            touched[UNKNOWN, why, None] = _BOTH
            self._order(frozenset({"unseen"}), touched)
        note = self._apply(effects, found, touched, given) if effects is not None else ""
        return touched, note

    def _apply(
        self, effects: KernelEffects, found: list[tuple[str, Value]], touched: Touched, launched: LaunchValues
    ) -> str:
        given: dict[tuple[int, int], Value] = {}
        for name, value in found:
            number_, _, inside = name.partition(".")
            given[int(number_), int(inside or 0)] = value
        for parameter in effects.params:
            why = through_parameter(parameter.index)
            for offset, effect in parameter.fields:
                if offset < 0:
                    values = [value for (index, _), value in given.items() if index == parameter.index]
                else:
                    values = [given[parameter.index, offset]] if (parameter.index, offset) in given else []
                self._root(values, effect, why, touched, launched)
        for symbol, effect in effects.symbols:
            touched[self.pointing.symbol(symbol), "device symbol", None] = effect.direct
            if effect.deep:
                touched[UNKNOWN, f"through pointers stored in {symbol}", None] = effect.deep
        self._order(effects.order, touched)
        if "texture" in effects.order:
            touched[UNKNOWN, "reads a texture", None] = AccessMode.READ
        if "launch" in effects.order:
            touched[UNKNOWN, "launches kernels itself", None] = _BOTH
        if "spin" in effects.order:
            return "its blocks wait for each other, so that all of them must be on the GPU at once"
        if "clock" in effects.order:
            return "it reads a clock, so running beside others would change what it measures"
        return ""

    def _root(
        self, values: list[Value], effect: RootEffect, why: str, touched: Touched, launched: LaunchValues
    ) -> None:
        if effect.direct:
            parts = [part for value in values for part in self.pointing.parts(value)] or [(UNKNOWN, None)]
            for buffer, offset in parts:
                reason = why if buffer is not UNKNOWN else f"{why} may point anywhere"
                key = (buffer, reason, extent(constant_of(offset), effect.footprint, launched))
                touched[key] = touched.get(key, AccessMode.NONE) | effect.direct
        if effect.deep:
            deep = (UNKNOWN, f"through pointers loaded from {why}", None)
            touched[deep] = touched.get(deep, AccessMode.NONE) | effect.deep

    def _order(self, order: frozenset[str], touched: Touched) -> None:
        orders = {one for effects in self.effects.values() for one in effects.order}
        for name, buffer in (("printf", DEVICE_PRINTF), ("heap", DEVICE_HEAP)):
            if name in order or ("unseen" in order and name in orders):
                touched[buffer, buffer.name, None] = _BOTH


def launch_values_of(numbers: Mapping[int, int], settings: Mapping[str, Value]) -> LaunchValues:
    """What a launch gives its kernel, as far as it is known."""
    dimensions = tuple(size for one in ("grid", "block") for size in _three(settings.get(one)))
    given = tuple(constant_of(numbers.get(i)) for i in range(max(numbers, default=-1) + 1))
    return LaunchValues(given, dimensions)


def constant_of(value: int | None) -> Poly | None:
    """A number, if it is known."""
    return None if value is None else constant(value)


def shape_of(value: Value | None) -> tuple[int, int, int] | None:
    """The dimensions of a grid or block, where all are known and none is 0."""
    if not isinstance(value, tuple) or len(value) != 3:
        return None
    x, y, z = (number(one) for one in value)
    return (x, y, z) if x is not None and y is not None and z is not None and min(x, y, z) > 0 else None


def _three(value: Value | None) -> tuple[Poly | None, ...]:
    if not isinstance(value, tuple) or len(value) != 3:
        return (None,) * 3
    found = [number(one) for one in value]
    return tuple(constant_of(one) if one is not None and one > 0 else None for one in found)
