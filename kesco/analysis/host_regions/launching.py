"""Launches → sites with what their kernels touch.

In: the launch, the values of its arguments, the effects of kernels. Out: a site of the function that control is in.

1. A launch touches what its kernel's effects say of each parameter, and of each pointer inside one; which bytes, where
its numbers are known. 2. What is not known may be any memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kesco.analysis.extents import LaunchValues, extent
from kesco.analysis.host.cuda import Launch
from kesco.analysis.host.memory import State
from kesco.analysis.host.values import Value, number
from kesco.analysis.host_regions.handles import handle_of
from kesco.analysis.host_regions.pointing import Pointing
from kesco.analysis.host_regions.texts import LAUNCH
from kesco.analysis.host_regions.watching import Watching
from kesco.ir import program as ir
from kesco.ir.access import (
    DEVICE_HEAP,
    DEVICE_PRINTF,
    UNKNOWN,
    AccessMode,
    Buffer,
    through_parameter,
)  # fmt: skip
from kesco.ir.effects import KernelEffects, RootEffect
from kesco.ir.flow import Role, SiteKind
from kesco.ir.poly import ByteRange, Poly, constant
from kesco.ir.volatiles import is_watched, points_to_volatile
from kesco.llvm.names import kernel_of

_BOTH = AccessMode.READ_WRITE
_Touched = dict[tuple[Buffer, str, ByteRange | None], AccessMode]


@dataclass(slots=True)
class Launching:
    """Makes sites of launches."""

    pointing: Pointing
    effects: Mapping[str, KernelEffects]

    @property
    def paths(self) -> Watching:
        """Where the sites go."""
        return self.pointing.paths

    def launches(
        self, stub: str, launch: Launch, found: list[tuple[str, Value]], numbers: dict[int, int], state: State
    ) -> None:
        """A kernel is launched with these pointers and numbers; no name: it is not known which."""
        kernel = kernel_of(stub)
        effects = self.effects.get(kernel) if stub else None
        node = self._launch_node(launch)
        name = node.kernel.name if node is not None else kernel or "a kernel"
        note = ""
        touched: _Touched = {}
        settings = dict(launch.settings)
        dimensions = tuple(size for one in ("grid", "block") for size in _three(settings.get(one)))
        given_ = LaunchValues(tuple(_constant(numbers.get(i)) for i in range(max(numbers, default=-1) + 1)), dimensions)
        if effects is None or effects.opaque or self._is_stated(node):
            why = effects.opaque if effects is not None and effects.opaque else "its body is not visible"
            touched[UNKNOWN, why, None] = _BOTH
            self._order(frozenset({"unseen"}), touched)
        if effects is not None:
            note = self._apply(effects, found, touched, given_)
        handle = handle_of(settings.get("stream", frozenset()))
        role = Role.MOVABLE if not note or handle is not None else Role.LEGACY
        draft = self.paths.site(state, name, LAUNCH, SiteKind.KERNEL, role, handle)
        if draft is None:
            return
        draft.note = note or draft.note
        draft.acts = draft.acts and all(_positive(settings.get(one)) for one in ("grid", "block"))
        self.pointing.put_on(draft, handle, name)
        if node is not None and node.kernel.priority is not None:
            draft.priority = node.kernel.priority
        for (buffer, why, part), mode in touched.items():
            draft.touch(buffer, why, mode, part)
        parameters = node.kernel.parameters if node is not None else ()
        records = self.paths.texts.program.records
        given = node.arguments if node is not None else ()
        if any(is_watched(one, records) for one in parameters) or any(points_to_volatile(a, records) for a in given):
            self.paths.volatile.add(draft.operation)
        if effects is None or effects.keeps:
            self.paths.told |= {buffer for _, value in found for buffer in self.pointing.pointed(value)}

    def _launch_node(self, launch: Launch) -> ir.Launch | None:
        activation, at, _, own = self.paths.where()
        operation = self.paths.operation(activation, at, LAUNCH) if own else -1
        nodes = (n for n in ir.walk(activation.function.body) if isinstance(n, ir.Launch))
        return next((n for n in nodes if n.operation == operation >= 0), None)

    def _is_stated(self, node: ir.Launch | None) -> bool:
        """Whether the author says what a kernel does: that is not used here."""
        if node is None:
            return False
        stated = any(one.kernel == node.kernel.name for one in self.paths.texts.program.stated)
        return stated or node.kernel.outputs is not None

    def _apply(
        self, effects: KernelEffects, found: list[tuple[str, Value]], touched: _Touched, launched: LaunchValues
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
            buffer = self.pointing.symbol(symbol)
            touched[buffer, "device symbol", None] = effect.direct
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
        self, values: list[Value], effect: RootEffect, why: str, touched: _Touched, launched: LaunchValues
    ) -> None:
        if effect.direct:
            parts = [part for value in values for part in self.pointing.parts(value)] or [(UNKNOWN, None)]
            for buffer, offset in parts:
                reason = why if buffer is not UNKNOWN else f"{why} may point anywhere"
                key = (buffer, reason, extent(_constant(offset), effect.footprint, launched))
                touched[key] = touched.get(key, AccessMode.NONE) | effect.direct
        if effect.deep:
            deep = (UNKNOWN, f"through pointers loaded from {why}", None)
            touched[deep] = touched.get(deep, AccessMode.NONE) | effect.deep

    def _order(self, order: frozenset[str], touched: _Touched) -> None:
        orders = {one for effects in self.effects.values() for one in effects.order}
        for name, buffer in (("printf", DEVICE_PRINTF), ("heap", DEVICE_HEAP)):
            if name in order or ("unseen" in order and name in orders):
                touched[buffer, buffer.name, None] = _BOTH


def _constant(value: int | None) -> Poly | None:
    return None if value is None else constant(value)


def _three(value: Value | None) -> tuple[Poly | None, ...]:
    """The dimensions of a grid or block."""
    if not isinstance(value, tuple) or len(value) != 3:
        return (None,) * 3
    found = [number(one) for one in value]
    return tuple(_constant(one) if one is not None and one > 0 else None for one in found)


def _positive(value: Value | None) -> bool:
    """Whether a number of blocks or threads is known, and none of its dimensions 0."""
    if not isinstance(value, tuple):
        return False
    found = [number(one) for one in value]
    return all(one is not None and one > 0 for one in found)
