"""Launches and calls → sites.

In: a launch or call and the state it happens in. Out: its site in the current region, with what it reads and writes, and
what the call does to the store. This is the one place where facts about the CUDA API (data, in
`frontend/resources`) meet pointer values.

1. A launch touches what its kernel's effects say, through its arguments. 2. An API call does what the table says.
3. A function of this file is walked with its arguments. 4. A C or C++ library function that the table knows does what the
table says. 5. Anything else is opaque: pending work is joined before it, and all it can reach is forgotten.
"""

from __future__ import annotations

import re
from dataclasses import replace

from kesco.analysis.api import CudaApi
from kesco.analysis.memory import NOTHING, TOP, Object, ObjectKind, Place, Value, pointer
from kesco.analysis.region import Draft
from kesco.analysis.state import KESCO, State, is_kesco
from kesco.frontend.api_table import HostCall, cuda_call, host_call, is_cuda_name
from kesco.ir import program as ir
from kesco.ir.access import DEVICE_HEAP, DEVICE_PRINTF, UNKNOWN, AccessMode, Buffer, BufferKind
from kesco.ir.effects import KernelEffects, RootEffect
from kesco.ir.flow import Role, SiteKind
from kesco.source import Span

_BOTH = AccessMode.READ_WRITE
_CUDA_VALUE_TYPE = re.compile(r"dim3|u?(?:int|char|short|long|longlong)[1-4]|(?:float|double)[1-4]")


class Calls(CudaApi):
    """Walks calls; control flow is left to the subclass."""

    def __init__(self, program: ir.Program, effects: dict[str, KernelEffects], *, streams: bool) -> None:
        super().__init__(program, streams=streams)
        self.effects = effects
        self.by_name: dict[str, list[KernelEffects]] = {}
        for one in effects.values():
            self.by_name.setdefault(one.display.rpartition("::")[2].partition("<")[0], []).append(one)
        self.functions = {f.key: f for f in program.functions}
        self.escaped: set[Object] = set()

    # ---- escaping ---------------------------------------------------------------------------------------------------

    def escape_values(self, state: State, *values: Value) -> None:
        """Whatever these values reach may from now on be changed by code that is not seen."""
        places = [p for v in values for p in v.every_place()]
        self.escaped |= {o for o in state.store.reachable(places) if o.handle is None}

    def clobber_escaped(self, state: State) -> None:
        """A store through an unknown pointer: what has escaped, globals, and what came in from outside may have changed."""
        shared = {o for k, o in self.objects.items() if self.variables[k].scope is ir.Scope.GLOBAL}
        state.store.clobber(self.escaped | shared | {o for o in state.store.objects if o.entry})

    # ---- launches ---------------------------------------------------------------------------------------------------

    def launch(self, state: State, launch: ir.Launch) -> Value:
        """A kernel launch written with ``<<<…>>>``."""
        configuration = [self.evaluate(state, c) for c in launch.configuration]
        arguments = [self.evaluate(state, a) for a in launch.arguments]
        stream = configuration[3] if len(configuration) > 3 else NOTHING
        self.kernel_site(state, launch.kernel, arguments, launch.operation, launch.span, stream, len(configuration) > 3)
        return NOTHING

    def kernel_site(
        self,
        state: State,
        kernel: ir.Kernel,
        arguments: list[Value],
        operation: int,
        span: Span,
        stream: Value,
        has_stream: bool,
    ) -> None:
        """The site of a launch of `kernel` with these argument values."""
        touched: dict[tuple[Buffer, str], AccessMode] = {}
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
        for value in arguments:  # what a kernel is given may be kept and changed by it
            self.escape_values(state, value)
        if any(m & AccessMode.WRITE for m in touched.values()):
            self.device_wrote(state, arguments)
        site = self.device_site(state, kernel.name, SiteKind.KERNEL, operation, span, stream, has_stream, note)
        for key, mode in touched.items():
            site.accesses[key] = site.accesses.get(key, AccessMode.NONE) | mode
        if kernel.priority is not None:
            site.priority = kernel.priority

    def device_wrote(self, state: State, arguments: list[Value]) -> None:
        """Host variables whose address a kernel was given may hold anything afterwards."""
        state.store.clobber(
            o for o in state.store.reachable([p for v in arguments for p in v.every_place()]) if self.holds(state, o)
        )

    def holds(self, state: State, one: Object) -> bool:
        """Whether the host has stored something in an object that could be forgotten."""
        return one in state.store.objects and one.handle is None

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

    def _unseen(self, kernel: ir.Kernel, arguments: list[Value], touched: dict[tuple[Buffer, str], AccessMode]) -> str:
        """A kernel whose body is not visible: everything, unless its author stated the number of outputs."""
        if kernel.outputs is None:
            touched[UNKNOWN, "its body is not visible"] = _BOTH
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
        touched: dict[tuple[Buffer, str], AccessMode],
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
        touched: dict[tuple[Buffer, str], AccessMode],
    ) -> str:
        if effects.opaque:
            touched[UNKNOWN, effects.opaque] = _BOTH
        for parameter in effects.params:
            value = arguments[parameter.index] if parameter.index < len(arguments) else TOP
            declared = kernel.parameters[parameter.index] if parameter.index < len(kernel.parameters) else None
            for offset, effect in parameter.fields:
                self._root(self._part(value, declared, offset), effect, f"parameter {parameter.index + 1}", touched)
        for symbol, effect in effects.symbols:
            touched[self.symbol_buffer(symbol), "device symbol"] = effect.direct
            if effect.deep:
                touched[UNKNOWN, f"through pointers stored in {symbol}"] = effect.deep
        if "printf" in effects.order:
            touched[DEVICE_PRINTF, "prints"] = _BOTH
        if "heap" in effects.order:
            touched[DEVICE_HEAP, "allocates on the device"] = _BOTH
        if "texture" in effects.order:
            touched[UNKNOWN, "reads a texture"] = AccessMode.READ
        if "launch" in effects.order:
            touched[UNKNOWN, "launches kernels itself"] = _BOTH
        return "it reads a clock, so running beside others would change what it measures" if "clock" in effects.order else ""

    def symbol_buffer(self, mangled: str) -> Buffer:
        """The buffer of a device symbol, the same whether a kernel or the host names it."""
        for one in self.objects.values():
            if one.buffer is not None and one.buffer.key == mangled:
                return one.buffer
        return Buffer(mangled, mangled, BufferKind.SYMBOL)

    def _part(self, value: Value, declared: ir.Type | None, offset: int) -> Value:
        """The pointer at a byte offset of a by-value argument."""
        if declared is None or declared.shape is not ir.Shape.RECORD:
            return value if not value.fields else Value(value.every_place(), None, value.any_unknown())
        path = self._field_path(declared, offset) if offset >= 0 else None
        if path is not None:
            for at, part in value.fields:
                if at == path:
                    return part
        return Value(value.every_place(), None, True)

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
            simple = element is not None and element.shape is ir.Shape.POINTER
            return (best.name, (offset - best.offset) // 8) if simple else None
        return (best.name,) if best.offset == offset else None

    def _root(
        self, value: Value, effect: RootEffect, why: str, touched: dict[tuple[Buffer, str], AccessMode]
    ) -> None:
        if effect.direct:
            self._touch_value(value, effect.direct, why, touched)
        if effect.deep:
            key = (UNKNOWN, f"through pointers loaded from {why}")
            touched[key] = touched.get(key, AccessMode.NONE) | effect.deep

    def _touch_value(
        self, value: Value, mode: AccessMode, why: str, touched: dict[tuple[Buffer, str], AccessMode]
    ) -> None:
        places = value.every_place()
        for place in places:
            buffer = self.buffer_of(place)
            touched[buffer, why] = touched.get((buffer, why), AccessMode.NONE) | mode
        null = value.number == 0 and not places
        if value.any_unknown() or (not places and not null):
            key = (UNKNOWN, f"{why} may point anywhere")
            touched[key] = touched.get(key, AccessMode.NONE) | mode

    # ---- calls ------------------------------------------------------------------------------------------------------

    def call(self, state: State, call: ir.Call) -> Value:
        """Any call that is not written with ``<<<…>>>``."""
        if self.streams and is_kesco(call.name):
            return pointer(Place(KESCO))
        if call.constructs and call.standard and _CUDA_VALUE_TYPE.fullmatch(call.name.rpartition("::")[2]):
            for argument in call.arguments:
                self.evaluate(state, argument)
            return NOTHING
        if call.constructs and call.implicit and self._is_plain(call):
            if len(call.arguments) == 1:
                return self.evaluate(state, call.arguments[0])
            if not call.arguments:
                return NOTHING
        cuda = cuda_call(call.name, len(call.arguments)) if "::" not in call.name else None
        if cuda is not None and call.key not in self.functions:
            return self.cuda(state, call, cuda)
        function = self.functions.get(call.key)
        if function is not None and self.can_walk(function):
            return self.walk_call(state, call, function)
        if function is None:
            host = host_call(call.name, len(call.arguments)) if self._is_library(call) else None
            if host is not None and not host.callbacks and host.kind != "thread" and not call.destroys:
                return self._host(state, call, host)
            if call.name.startswith("__builtin_") and not self._calls_back(call):
                return self._standard(state, call)
            library = call.standard and call.name.startswith(("std::", "__gnu_cxx::"))
            if library and not call.destroys and not self._calls_back(call):
                return self._standard(state, call)
        return self.opaque(state, call)

    def _is_library(self, call: ir.Call) -> bool:
        return call.standard and not is_cuda_name(call.name)

    def _is_plain(self, call: ir.Call) -> bool:
        """Whether a constructor that the compiler wrote does nothing but copy fields, or nothing at all."""
        record = self.program.records.get(call.type.record if call.type is not None else "")
        return record is not None and record.plain

    def _calls_back(self, call: ir.Call) -> bool:
        def code(expression: ir.Expr) -> bool:
            if isinstance(expression, ir.Unknown):
                return expression.what == "lambda" or any(code(p) for p in expression.parts)
            if isinstance(expression, ir.Cast):
                return code(expression.operand)
            if isinstance(expression, ir.Call):
                return any(code(a) for a in expression.arguments)
            if isinstance(expression, ir.Name) and "(lambda" in expression.variable.type.spelling:
                return True
            return isinstance(expression, ir.FunctionName)

        return any(code(a) for a in call.arguments)

    def can_walk(self, function: ir.Function) -> bool:
        """Whether a function of this file can be walked from here: no recursion, not too deep, nothing hidden."""
        return (
            len(self.stack) < 12
            and all(a.function.key != function.key for a in self.stack)
            and not function.template
            and not function.virtual
            and not has_obstacle(function.body)
        )

    def arguments(self, state: State, call: ir.Call) -> list[Value]:
        """The values of the receiver, if any, and of the arguments."""
        values = []
        if call.receiver is not None:
            places, unknown = self.places(state, call.receiver)
            values.append(Value(places, None, unknown))
        return values + self.argument_values(state, call)

    def _host(self, state: State, call: ir.Call, host: HostCall) -> Value:
        values = self.argument_values(state, call)
        count = len(values)
        reads = set(host.reads) | set(range(host.reads_from, count) if host.reads_from is not None else ())
        writes = set(host.writes) | set(range(host.writes_from, count) if host.writes_from is not None else ())
        for index, value in enumerate(values):
            for place in value.places:
                if index in reads:
                    self.touch(place, AccessMode.READ)
                if index in writes:
                    self.touch(place, AccessMode.WRITE)
        if host.kind == "swap":
            return self._swap(state, call)
        written = [values[i] for i in writes | set(host.out) if i < count]
        state.store.clobber(o for v in written for p in v.places if self.holds(state, o := p.object))
        for value in written:
            if value.unknown:
                self.clobber_escaped(state)
        if host.allocates is not None:
            made = Place(self.fresh(f"host:{call.operation}", call.name), (0,))
            if host.frees is not None:  # realloc: what was there is there now
                state.store.clobber((made.object,))
            if host.allocates < 0:
                return pointer(made)
            if host.allocates < count:
                target = values[host.allocates]
                self.assign(state, target.places, target.unknown, pointer(made))
        if host.kind == "exit":
            self.leave(state, "exit", call.span)
        if host.kind == "container":
            return self._standard(state, call)
        return NOTHING if host.kind in ("io", "clock") else _numeric(call)

    def _swap(self, state: State, call: ir.Call) -> Value:
        if len(call.arguments) != 2:
            return self.opaque(state, call)
        (a, a_unknown), (b, b_unknown) = (self.places(state, x) for x in call.arguments)
        first, second = self.read_all(state, a, a_unknown), self.read_all(state, b, b_unknown)
        self.assign(state, a, a_unknown, second)
        self.assign(state, b, b_unknown, first)
        return NOTHING

    def _standard(self, state: State, call: ir.Call) -> Value:
        """A C++ library function: it launches nothing, but may read and change all that it is given."""
        values = self.arguments(state, call)
        reach = state.store.reachable([p for v in values for p in v.every_place()])
        for one in reach:
            self.touch(Place(one), _BOTH)
        changed = [o for o in reach if self.holds(state, o) or o.kind is not ObjectKind.BUFFER]
        state.store.clobber(changed)
        self.escaped |= set(changed)
        if any(v.any_unknown() for v in values):
            self.clobber_escaped(state)
        return TOP

    def opaque(self, state: State, call: ir.Call, name: str = "", foreign: bool = True) -> Value:
        """A call that may do anything: work is joined before it, and what it can reach is forgotten."""
        values = self.arguments(state, call)
        self.escape_values(state, *values)
        site = self.unseen_site(state, name or call.name or "a call through a pointer", call.operation, call.span)
        site.foreign = foreign
        for one in state.store.reachable([p for v in values for p in v.every_place()]):
            if one.buffer is not None:
                site.accesses[one.buffer, "reachable from its arguments"] = _BOTH
        self.forget(state)
        return TOP

    def unseen_site(self, state: State, name: str, operation: int, span: Span) -> Draft:
        """The join at which code that is not seen runs."""
        site = self.site(state, name, SiteKind.CALL, Role.JOIN, operation, span)
        site.foreign = True
        site.accesses[UNKNOWN, "what it does is not visible"] = _BOTH
        self.now.touches_device = self.now.foreign = True
        return site

    def run_unseen(self, state: State, what: str, span: Span) -> None:
        """Code that no call in the text names runs here: a destructor, an expression of unknown form."""
        self.unseen_site(state, what, -2 - span.start, span)
        self.forget(state)

    def forget(self, state: State) -> None:
        """Unseen code ran: what has escaped and what it can name may hold anything."""
        state.store.clobber(self.escaped | self.outside_globals())

    def outside_globals(self) -> set[Object]:
        """Globals that code outside this file, or functions it may call back, could change."""
        return {
            self.objects[k]
            for k, v in self.variables.items()
            if v.scope in (ir.Scope.GLOBAL, ir.Scope.STATIC) and (not v.internal or k in self.written_outside)
        }

    written_outside: frozenset[str] = frozenset()

    def walk_call(self, state: State, call: ir.Call, function: ir.Function) -> Value:
        raise NotImplementedError


def _numeric(call: ir.Call) -> Value:
    return NOTHING if call.type is None or call.type.shape is not ir.Shape.POINTER else TOP


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
    elif isinstance(statement, ir.Loop):
        inner = [*statement.before, statement.body]
    elif isinstance(statement, ir.Switch):
        inner = [*statement.before, statement.body]
    elif isinstance(statement, ir.Case):
        inner = [statement.body]
    return next((r for r in map(has_obstacle, filter(None, inner)) if r), "")

