"""Kernel launches → what they touch.

In: a launch, the values of its arguments, and the effects of the kernels it may mean. Out: the site with its accesses.
It is here that parameters, fields of by-value structs and device symbols of a kernel meet the buffers of the host
program.

1. Find the effects of every kernel the launch may mean. 2. Map each root to the places its argument may point to.
3. What is not visible, or reached through pointers loaded from memory, is unknown memory, which conflicts with
everything.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import or_

from kesco.analysis.api import CudaApi
from kesco.analysis.extents import LaunchValues, launch_values
from kesco.analysis.extents import touched as extent
from kesco.analysis.memory import NOTHING, TOP, Object, ObjectKind, Value, may_equal
from kesco.analysis.state import State
from kesco.ir import program as ir
from kesco.ir.access import DEVICE_HEAP, DEVICE_PRINTF, UNKNOWN, AccessMode, Buffer, BufferKind, through_parameter
from kesco.ir.effects import Footprint, KernelEffects, RootEffect
from kesco.ir.flow import SiteKind
from kesco.ir.poly import ByteRange
from kesco.ir.volatiles import is_watched
from kesco.source import Span

_BOTH = AccessMode.READ_WRITE
_Touched = dict[tuple[Buffer, str, ByteRange | None], AccessMode]


class Launches(CudaApi):
    """Walks launches; other calls are left to the subclass."""

    def __init__(self, program: ir.Program, effects: dict[str, KernelEffects], *, streams: bool) -> None:
        super().__init__(program, streams=streams)
        self.effects = effects
        self.given = LaunchValues()  # of the launch that is walked
        self._orders = frozenset(order for one in effects.values() for order in one.order)
        self.by_name: dict[str, list[KernelEffects]] = {}
        for one in effects.values():
            self.by_name.setdefault(one.display.rpartition("::")[2].partition("<")[0], []).append(one)
        self.functions = {f.key: f for f in program.functions}
        every = (n for f in program.functions for n in ir.walk(f.body) if isinstance(n, ir.Launch))
        self._certain = {n.operation for n in every if all(map(_is_positive, n.configuration[:2]))}
        users = (r for r in program.records.values() if not r.standard)
        self.bases = frozenset(base for r in users for base in r.bases)

    # ---- launches ---------------------------------------------------------------------------------------------------

    def launch(self, state: State, launch: ir.Launch) -> Value:
        """A kernel launch written with ``<<<…>>>``."""
        configuration = [self.evaluate(state, c) for c in launch.configuration]
        values = [*configuration, *(self.evaluate(state, a) for a in launch.arguments)]
        values = self.in_any_order(state, launch, (*launch.configuration, *launch.arguments), values)
        arguments = values[len(configuration) :]
        stream = configuration[3] if len(configuration) > 3 else NOTHING
        self.kernel_site(
            state, launch.kernel, arguments, values[: len(configuration)], launch.operation, launch.span, stream,
            len(configuration) > 3, launch.arguments,
        )  # fmt: skip
        return NOTHING

    def kernel_site(
        self,
        state: State,
        kernel: ir.Kernel,
        arguments: list[Value],
        configuration: list[Value],
        operation: int,
        span: Span,
        stream: Value,
        has_stream: bool,
        given: tuple[ir.Expr, ...] = (),
    ) -> None:
        """The site of a launch of `kernel` with these argument values, `given` as these expressions."""
        touched: _Touched = {}
        self.given = launch_values(kernel, arguments, configuration, given)
        note = ""
        candidates = self._candidates(kernel)
        if candidates is None and not self._stated(kernel):
            note = self._unseen(kernel, arguments, touched)
        stated = self._stated(kernel)
        for effects in candidates or ():
            seen = replace(effects, opaque="") if stated else effects
            note = self._apply(kernel, seen, arguments, touched) or note
        if stated and (candidates is None or any(e.opaque for e in candidates)):
            self._apply_stated(kernel, stated, arguments, touched)
        keeps = candidates is None or any(effects.keeps for effects in candidates)
        for index, value in enumerate(arguments):  # what a kernel is given may be kept and changed by it
            declared = kernel.parameters[index] if index < len(kernel.parameters) else None
            known = declared is not None and declared.shape is ir.Shape.POINTER
            self.escape_values(state, value, told=keeps or not known)
            self.told |= state.store.reachable(value.every_place()) - {p.object for p in value.every_place()}
        written = {key[0] for key, m in touched.items() if m & AccessMode.WRITE}
        self.note_reached(p.object for v in arguments for p in v.every_place())
        if written:
            self.device_wrote(state, arguments, written)
        site = self.device_site(state, kernel.name, SiteKind.KERNEL, operation, span, stream, has_stream, note)
        site.acts = operation in self._certain
        for (buffer, why, part), mode in touched.items():
            site.touch(buffer, why, mode, part)
        if any(is_watched(one, self.program.records) for one in kernel.parameters):
            self.volatile.add(operation)
        self.note_volatile(operation, given)
        if kernel.priority is not None:
            site.priority = kernel.priority

    def device_wrote(self, state: State, arguments: list[Value], written: set[Buffer]) -> None:
        """What the host keeps in memory that a kernel wrote, or whose address it was given, may be anything now."""
        reached = state.store.reachable([p for v in arguments for p in v.every_place()])
        state.store.clobber(o for o in reached if self.holds(state, o))
        state.store.clobber(o for o in state.store.objects if o.buffer in written)
        if any(b.kind is BufferKind.UNKNOWN for b in written):
            self.clobber_escaped(state)
            state.store.clobber(o for o in state.store.objects if o.buffer is not None)

    def holds(self, state: State, one: Object) -> bool:
        """Whether the host has stored something in an object that could be forgotten."""
        return one.handle is None and (one.kind is not ObjectKind.BUFFER or one in state.store.objects)

    def _candidates(self, kernel: ir.Kernel) -> list[KernelEffects] | None:
        found: list[KernelEffects] = []
        for symbol in kernel.candidates:
            if symbol.startswith("?"):
                found += self.by_name.get(symbol[1:], [])
            elif symbol in self.effects:
                found.append(self.effects[symbol])
            else:
                return None
        return found or None

    def _unseen(self, kernel: ir.Kernel, arguments: list[Value], touched: _Touched) -> str:
        """A kernel whose body is not visible: everything, unless its author stated the number of outputs."""
        if kernel.outputs is None:
            touched[UNKNOWN, "its body is not visible", None] = _BOTH
            self._observed(frozenset({"unseen"}), touched)
            return ""
        position = 0
        for value in arguments:
            if not value.every_place() and not value.any_unknown():
                continue
            mode = _BOTH if position < kernel.outputs else AccessMode.READ
            position += 1
            self._touch_value(value, mode, f"stated by 'outputs = {kernel.outputs}'", touched)
        return ""

    def _stated(self, kernel: ir.Kernel) -> ir.Stated | None:
        """What a pragma says of a kernel."""
        return next((s for s in self.program.stated if s.kernel == kernel.name), None)

    def _apply_stated(
        self,
        kernel: ir.Kernel,
        stated: ir.Stated,
        arguments: list[Value],
        touched: _Touched,
    ) -> None:
        known = dict(zip(kernel.names, arguments, strict=False))
        for names, mode in ((stated.reads, AccessMode.READ), (stated.writes, _BOTH)):
            for name in names:
                self._touch_value(known.get(name, TOP), mode, f"stated for '{name}'", touched)

    def _apply(
        self,
        kernel: ir.Kernel,
        effects: KernelEffects,
        arguments: list[Value],
        touched: _Touched,
    ) -> str:
        if effects.opaque:
            touched[UNKNOWN, effects.opaque, None] = _BOTH
        for parameter in effects.params:
            value = arguments[parameter.index] if parameter.index < len(arguments) else TOP
            declared = kernel.parameters[parameter.index] if parameter.index < len(kernel.parameters) else None
            for offset, effect in parameter.fields:
                self._root(self._part(value, declared, offset), effect, through_parameter(parameter.index), touched)
        for symbol, effect in effects.symbols:
            touched[self.symbol_buffer(symbol), "device symbol", None] = effect.direct
            if effect.deep:
                touched[UNKNOWN, f"through pointers stored in {symbol}", None] = effect.deep
        self._observed(effects.order, touched)
        if "texture" in effects.order:
            touched[UNKNOWN, "reads a texture", None] = AccessMode.READ
        if "launch" in effects.order:
            touched[UNKNOWN, "launches kernels itself", None] = _BOTH
        if "spin" in effects.order:
            return "its blocks wait for each other, so that all of them must be on the GPU at once"
        return (
            "it reads a clock, so running beside others would change what it measures"
            if "clock" in effects.order
            else ""
        )

    def _observed(self, order: frozenset[str], touched: _Touched) -> None:
        """What a kernel does that is no memory: code that is not seen may do what a kernel of this file does, too."""
        for name, buffer, why in (
            ("printf", DEVICE_PRINTF, "prints"),
            ("heap", DEVICE_HEAP, "allocates on the device"),
        ):
            if name in order:
                touched[buffer, why, None] = _BOTH
            elif "unseen" in order and name in self._orders:
                touched[buffer, f"perhaps {why}", None] = _BOTH

    def symbol_buffer(self, mangled: str) -> Buffer:
        """The buffer of a device symbol, the same whether a kernel or the host names it."""
        for one in self.objects.values():
            if one.buffer is not None and one.buffer.key == mangled:
                return one.buffer
        fixed = self.program.is_fixed(mangled)
        return Buffer(mangled, mangled, BufferKind.SYMBOL, apart=not self.has_managed, fixed=fixed)

    def _part(self, value: Value, declared: ir.Type | None, offset: int) -> Value:
        """The pointer at a byte offset of a by-value argument."""
        if declared is None or declared.shape is not ir.Shape.RECORD:
            return value if not value.fields else value.without_shape()
        path = self._field_path(declared, offset) if offset >= 0 else None
        parts = [part for at, part in value.fields if path is not None and may_equal(at, path)]
        if path is None or not parts:
            return Value(value.every_place(), None, True)
        whole = value.unknown or any(
            part.unknown and len(at) < len(path) and may_equal(at, path[: len(at)]) for at, part in value.fields
        )
        return reduce(or_, parts, TOP) if whole else reduce(or_, parts)

    def _field_path(self, declared: ir.Type, offset: int) -> tuple[str | int | None, ...] | None:
        record = self.program.records.get(declared.record)
        best = None
        for one in record.fields if record else ():
            if 0 <= one.offset <= offset and (best is None or one.offset >= best.offset):
                best = one
        if best is None:
            return None
        if best.type.shape is ir.Shape.RECORD:
            inner = self._field_path(best.type, offset - best.offset)
            return None if inner is None else (best.name, *inner)
        if best.type.shape is ir.Shape.ARRAY:
            element = best.type.element
            at, within = divmod(offset - best.offset, 8)
            simple = element is not None and element.shape is ir.Shape.POINTER and within == 0
            return (best.name, at) if simple and at < best.type.count else None  # behind it are members without a name
        return (best.name,) if best.offset == offset else None

    def _root(self, value: Value, effect: RootEffect, why: str, touched: _Touched) -> None:
        if effect.direct:
            self._touch_value(value, effect.direct, why, touched, effect.footprint)
        if effect.deep:
            key = (UNKNOWN, f"through pointers loaded from {why}", None)
            touched[key] = touched.get(key, AccessMode.NONE) | effect.deep

    def _touch_value(
        self, value: Value, mode: AccessMode, why: str, touched: _Touched, footprint: Footprint | None = None
    ) -> None:
        places = value.every_place()
        for place in places:
            at = (self.buffer_of(place), why, extent(place, footprint, self.given))
            touched[at] = touched.get(at, AccessMode.NONE) | mode
        null = value.number == 0 and not places
        if value.any_unknown() or (not places and not null):
            key = (UNKNOWN, f"{why} may point anywhere", None)
            touched[key] = touched.get(key, AccessMode.NONE) | mode


def _is_positive(expression: ir.Expr) -> bool:
    """Whether a number of blocks or threads is a constant, and none of its dimensions 0."""
    if isinstance(expression, ir.Cast):
        return _is_positive(expression.operand)
    if isinstance(expression, ir.Call) and expression.constructs and expression.name == "dim3::dim3":
        return all(one == ir.Literal("default") or _is_positive(one) for one in expression.arguments)
    number = expression.variable.constant if isinstance(expression, ir.Name) else None
    if isinstance(expression, ir.Constant):
        number = expression.value
    return number is not None and number > 0
