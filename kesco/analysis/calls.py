"""Launches and calls → sites.

In: a launch or call and the state it happens in. Out: its site in the current region, with what it reads and writes,
and what the call does to the store. This is the one place where facts about the CUDA API (data, in
`frontend/resources`) meet pointer values.

1. A launch touches what its kernel's effects say, through its arguments. 2. An API call does what the table says.
3. A function of this file is walked with its arguments. 4. A C or C++ library function that the table knows does what
the table says. 5. Anything else is opaque: pending work is joined before it, and all it can reach is forgotten.
"""

from __future__ import annotations

import re
from dataclasses import replace

from kesco.analysis.integers import kind_of
from kesco.analysis.launches import Launches
from kesco.analysis.memory import NOTHING, TOP, Object, ObjectKind, Place, Value, number, pointer
from kesco.analysis.number_containers import is_of_numbers
from kesco.analysis.obstacles import has_obstacle
from kesco.analysis.own_streams import streams_act
from kesco.analysis.region import Draft
from kesco.analysis.state import KESCO, State, current_stream, is_kesco
from kesco.analysis.transfers import COPIED_AS
from kesco.analysis.vectors import constructed, members, of_pointers
from kesco.frontend.api_table import CudaCall, HostCall, cuda_call, host_call, is_cuda_name
from kesco.frontend.library_table import UNKNOWN_HANDLE, setter_of
from kesco.ir import program as ir
from kesco.ir.access import UNKNOWN, AccessMode
from kesco.ir.flow import CURRENT, Role, SiteKind
from kesco.ir.lifetimes import ALLOCATE, FREE, FREED
from kesco.ir.replay import FILL
from kesco.ir.scratch import OWN, OWNED
from kesco.ir.transfers import GIVE_HERE, SETS, TAKE_HERE, WAIT_HERE
from kesco.ir.turns import GIVE, PIN, PLACE, TAKE, TURNED, TURNS
from kesco.source import Span

_BOTH = AccessMode.READ_WRITE
_THROWS = frozenset(
    "any_cast at compare replace rethrow_exception stod stof stoi stol stold stoll stoul stoull substr test"
    " throw_with_nested to_ullong to_ulong value".split()
)
"""Functions of the library that throw where an argument is not what they expect, which a program may well catch."""
_CLEANS = ("exit", "quick_exit")
"""What ends the process and runs what is left to be run, such as destructors."""
_MEMORY = {ALLOCATE: "cudaMallocAsync", FREE: "cudaFreeAsync", FREED: "", FILL: "cudaMemsetAsync"}
_MEMORY |= dict.fromkeys((PLACE, TAKE, TAKE_HERE), "cudaMalloc") | dict.fromkeys((TURNS, TURNED, GIVE, PIN), "")
_CUDA_VALUE_TYPE = re.compile(r"dim3|u?(?:int|char|short|long|longlong)[1-4]|(?:float|double)[1-4]")
_TEXT = re.compile(r"(?:const |volatile )*(?:(?:un)?signed )?char")
_CUDA_MAKER = re.compile(r"make_(?:u?(?:char|short|int|long|longlong)[1-4]|(?:float|double)[1-4]|cuda[A-Z]\w+)")


class Calls(Launches):
    """Walks calls; control flow is left to the subclass."""

    def call(self, state: State, call: ir.Call) -> Value:
        """Any call that is not written with ``<<<…>>>``."""
        if self.streams and call.name.rpartition("::")[2] in COPIED_AS:
            return self.kesco_copy(state, call)
        if self.streams and call.name.rpartition("::")[2] in _MEMORY:
            return self._memory(state, call, call.name.rpartition("::")[2])
        if self.streams and is_kesco(call.name):
            return self._kesco_stream(state, call)
        if (found := of_pointers(self, state, call)) is not None:
            return found
        if call.copies and call.receiver is not None:
            return self._copy_fields(state, call, call.receiver, call.arguments[0])
        if call.constructs and call.standard and _CUDA_VALUE_TYPE.fullmatch(call.name.rpartition("::")[2]):
            items = [self.evaluate(state, argument) for argument in call.arguments]
            self.escape_addresses(state, *items)
            return self._vector(call, items)
        if call.standard and _CUDA_MAKER.fullmatch(call.name):
            made = [self.evaluate(state, argument) for argument in call.arguments]
            self.escape_addresses(state, *(made[1:] if call.name == "make_cudaPitchedPtr" else made))
            return Value(fields=((("ptr",), made[0]),)) if call.name == "make_cudaPitchedPtr" and made else NOTHING
        if call.constructs and call.implicit and (self._is_plain(call) or _is_cuda_struct(call)):
            if len(call.arguments) == 1:
                return self.evaluate(state, call.arguments[0])
            if not call.arguments:
                library = call.standard and not _is_cuda_struct(call)  # which may fill it in some way or other
                return TOP if library or self._has_defaults(call) else NOTHING
        cuda = cuda_call(call.name, len(call.arguments)) if call.standard and "::" not in call.name else None
        if cuda is not None and call.key not in self.functions:
            return self.cuda(state, call, cuda)
        if call.constructs and call.implicit and self._is_simple(call):
            return self._standard(state, call) if call.arguments else members(self.program, call)
        function = self.functions.get(call.key)
        if function is not None and self.can_walk(function) and not call.constructs:
            return self.walk_call(state, call, function)
        if function is None and not (call.standard and call.name.startswith("std::") and self._streams_act()):
            if call.standard and call.name.rpartition("::")[2] in _THROWS:
                self.may_throw(state, call.name, call.operation, call.span)
            host = host_call(call.name, len(call.arguments)) if self._is_library(call) else None
            plain = host is not None and host.kind in ("io", "clock") and not _is_given_code(call)
            calls_back = host is not None and (host.callbacks or (call.runs and not plain))
            if host is not None and not calls_back and host.kind != "thread" and not call.destroys:
                return self._host(state, call, host)
            if call.name.startswith("__builtin_") and not self._calls_back(call):
                return self._standard(state, call)
            library = call.standard and call.name.startswith(("std::", "__gnu_cxx::"))
            if library and not call.destroys and not self._calls_back(call):
                return self._standard(state, call)
        return self.opaque(state, call)

    def _copy_fields(self, state: State, call: ir.Call, target: ir.Expr, source: ir.Expr) -> Value:
        """One struct is assigned to another; as a part of a derived one, which keeps the rest, it is not followed."""
        value = self.evaluate(state, source)
        declared = call.type.element or call.type if call.type is not None else None
        value = value if declared is None else self.made(state, declared, value)
        places, unknown = self.places(state, target)
        self.assign(state, places, unknown, value)
        if declared is None or declared.record in self.bases or not declared.record:
            state.store.clobber(p.object for p in places)
        return Value(places, None, unknown)

    def _kesco_stream(self, state: State, call: ir.Call) -> Value:
        """The streams of the prologue, the current one, or what makes one of them the current one for a call."""
        name = call.name.rpartition("::")[2]
        if name in SETS:
            values = self.argument_values(state, call)
            if self.setting is None or self.setting[0] is not call:
                self.stay_serial("a stream is set where it is not for one call of a statement", call.span)
            else:
                self.follows = self.setting[1].operation, self.handle_of(values[0] if values else TOP)
            return NOTHING
        if name == GIVE_HERE:
            entry = cuda_call("cudaFree", 1)
            return self.cuda(state, call, entry) if entry is not None else NOTHING
        if name == WAIT_HERE:
            where = call.operation, call.span
            self.site(state, "cudaDeviceSynchronize", SiteKind.SYNC, Role.DEVICE_SYNC, *where).stream = CURRENT
            return NOTHING
        if name in (OWN, OWNED):  # whose memory it is `scratch` says
            values = self.argument_values(state, call)
            return values[0] if values else TOP
        return current_stream() if name == CURRENT.name.removesuffix("()") else pointer(Place(KESCO))

    acts: bool | None = None
    at_exit = False  # whether code of this file may run when the process ends
    setting: tuple[ir.Call, ir.Call] | None = None  # what sets a stream in this statement, and for which call

    def _memory(self, state: State, call: ir.Call, name: str) -> Value:
        """A call of the prologue's that sets memory, takes it from a pool, gives it back, or stands where that was."""
        if not _MEMORY[name]:
            if name == FREED:
                self.argument_values(state, call)
            if name != GIVE:
                self.site(state, "cudaDeviceSynchronize", SiteKind.SYNC, Role.DEVICE_SYNC, call.operation, call.span)
            return NOTHING
        if name in (PLACE, TAKE, TAKE_HERE):  # memory of a turn's or call's own, as if it had been allocated there
            at, size = (0, 1) if name == TAKE_HERE else (2, 3 if name == TAKE else None)
            return self.cuda(state, call, CudaCall(name, "alloc", allocates=at, size=size, memory="device"))
        entry = cuda_call(_MEMORY[name], len(call.arguments))
        return self.cuda(state, replace(call, name=name), entry) if entry is not None else self.opaque(state, call)

    def _vector(self, call: ir.Call, given: list[Value]) -> Value:
        """A ``dim3`` and the like: copied, or made of so many numbers. Those that are left out are 1 in a ``dim3``."""
        if len(given) == 1 and given[0].fields:
            return given[0]
        if not call.name.endswith("dim3") or len(given) > 3 or any(one.fields or one.places for one in given):
            return NOTHING
        ones = [number(1) if a == ir.DEFAULT else v for a, v in zip(call.arguments, given, strict=True)]
        return Value(fields=tuple(((axis,), one) for axis, one in zip("xyz", ones, strict=False)))

    def _is_library(self, call: ir.Call) -> bool:
        built_in = call.name.startswith("__builtin_")  # which no header declares
        return (call.standard or built_in) and not is_cuda_name(call.name)

    def _streams_act(self) -> bool:
        self.acts = streams_act(self.program) if self.acts is None else self.acts
        return self.acts

    def _is_plain(self, call: ir.Call) -> bool:
        """Whether a constructor that the compiler wrote does nothing but copy fields, or nothing at all."""
        record = constructed(self.program, call)
        return record is not None and record.plain

    def _is_simple(self, call: ir.Call) -> bool:
        """Whether a constructor that the compiler wrote runs no code but that of the library's members."""
        record = constructed(self.program, call)
        if record is None or record.code or record.bases:
            return False
        return not any(self.is_made_by_code(one.type) for one in record.fields)

    def _has_defaults(self, call: ir.Call) -> bool:
        record = constructed(self.program, call)
        return record is not None and record.defaults

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

        return call.runs or any(code(a) for a in call.arguments)

    def can_walk(self, function: ir.Function) -> bool:
        """Whether a function of this file can be walked from here: no recursion, not too deep, nothing hidden."""
        return (
            len(self.stack) < 12
            and all(a.function.key != function.key for a in self.stack)
            and not function.template
            and not function.virtual
            and not has_obstacle(function.body)
        )

    def _host(self, state: State, call: ir.Call, host: HostCall) -> Value:
        gives = _gives(call)
        plain_swap = host.kind == "swap" and call.name == "std::swap" and call.receiver is None
        hidden = call.receiver is not None or host.kind == "swap" or (gives and host.allocates is None)
        reads_in = call.receiver is not None and host.writes_from is not None
        prints = host.kind in ("io", "clock", "exit") and not reads_in
        if host.kind in ("io", "clock", "exit", "thread"):
            self.look()
        if hidden and not plain_swap and not prints:
            return self._standard(state, call, keeps=host.kind != "memory")
        if call.receiver is not None:
            self.places(state, call.receiver)  # a chain of ``<<`` stands there
        values = self.argument_values(state, call)
        if host.kind == "memory":  # what is in it may be copied to where it is not followed
            self.escape_values(state, *values, told=False)
            self.escape_contents(state, (p.object for value in values for p in value.places))
        count = len(values)
        reads = set(host.reads) | set(range(host.reads_from, count) if host.reads_from is not None else ())
        writes = set(host.writes) | set(range(host.writes_from, count) if host.writes_from is not None else ())
        out = writes | set(host.out)
        if host.counts:
            counted = {i for i, value in enumerate(values) if any(map(self._may_count, value.places))}
            state.store.clobber(p.object for i in counted for p in values[i].places)
            out |= counted
        self.go_outside(host.frees is not None)
        for index, value in enumerate(values):
            self.go_outside(value.unknown and index in reads | out)
            for place in value.places:
                if index in reads:
                    self.touch(place, AccessMode.READ)
                if index in out or index == host.frees:
                    self.touch(place, AccessMode.WRITE)
        if host.kind == "io":  # an address that was printed or stored may be read back
            given = [value for index, value in enumerate(values) if index in reads - out]
            self.escape_contents(state, (p.object for value in given for p in value.places))
            self.escape_values(state, *(given if host.reads_from is not None else ()))
        if host.kind == "swap":
            return self._swap(state, call)
        written = [values[i] for i in out if i < count]
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
            cleans = call.name.rpartition("::")[2] in _CLEANS and (self.at_exit or not self.now.failing)
            self.now.exits = self.now.exits or cleans
            self.leave(state, "exit", call.span)
        if host.kind == "container":
            return self._standard(state, call)
        both = zip(call.arguments, values, strict=False)  # a number made of an address may be made an address again
        self.escape_addresses(state, *(value for one, value in both if not _is_pointer(kind_of(one))))
        return NOTHING if host.kind in ("io", "clock") else _numeric(call)

    def _may_count(self, place: Place) -> bool:
        """Whether ``%n`` may store there: anything of the host's but text."""
        variable = self.variables.get(place.object.key)
        element = variable.type if variable is not None else None
        while element is not None and element.shape is ir.Shape.ARRAY:
            element = element.element
        return place.object.laid_out and (element is None or not _TEXT.fullmatch(element.spelling))

    def _swap(self, state: State, call: ir.Call) -> Value:
        if len(call.arguments) != 2 or call.runs:
            return self.opaque(state, call)
        (a, a_unknown), (b, b_unknown) = (self.places(state, x) for x in call.arguments)
        first, second = self.read_all(state, a, a_unknown), self.read_all(state, b, b_unknown)
        if self.bases and (first.fields or second.fields):  # they may be parts of objects that keep the rest
            return self._standard(state, call)
        self.assign(state, a, a_unknown, second)
        self.assign(state, b, b_unknown, first)
        return NOTHING

    def _standard(self, state: State, call: ir.Call, keeps: bool = True) -> Value:
        """A C++ library function: it launches nothing, but may read and change all that it is given."""
        self.go_outside()  # what it changes, or lets go, may be the caller's
        values = self.arguments(state, call)
        reach = state.store.reachable([p for v in values for p in v.every_place()])
        for one in reach:
            self.touch(Place(one), _BOTH)
        if is_of_numbers(call):  # what else is in the object that it is a part of stays as it is
            reach = state.store.reachable([p for v in values[1:] for p in v.every_place()])
        if keeps and (call.receiver is not None or _gives(call) or call.constructs):
            self.kept |= reach
        changed = [o for o in reach if self.holds(state, o) or o.kind is not ObjectKind.BUFFER]
        state.store.clobber(changed)
        self.escaped |= set(changed)
        if any(v.any_unknown() for v in values):
            self.see("atomic" in call.name)
            self.clobber_escaped(state)
        return TOP

    def opaque(self, state: State, call: ir.Call, name: str = "", foreign: bool = True) -> Value:
        """A call that may do anything: work is joined before it, and what it can reach is forgotten."""
        values = self.arguments(state, call)
        self.escape_values(state, *values)
        site = self.unseen_site(state, name or call.name or "a call through a pointer", call.operation, call.span)
        site.foreign = foreign
        if call.standard and call.key not in self.functions and setter_of(call.name):
            site.note = UNKNOWN_HANDLE
        reached = state.store.reachable([p for v in values for p in v.every_place()])
        numbers = (kind is not None and kind.shape is ir.Shape.INTEGER for kind in map(kind_of, call.arguments))
        own = values[len(values) - len(call.arguments) :]
        unknown = any(v.any_unknown() and not number for v, number in zip(own, numbers, strict=True))
        if unknown or call.receiver is not None or reached & state.store.clobbered:
            self.told |= self.kept
        for one in reached:
            if one.buffer is not None:
                site.touch(one.buffer, "reachable from its arguments", _BOTH)
        self.forget(state)
        return TOP

    def unseen_site(self, state: State, name: str, operation: int, span: Span) -> Draft:
        """The join at which code that is not seen runs."""
        site = self.site(state, name, SiteKind.CALL, Role.JOIN, operation, span)
        site.foreign = True
        site.touch(UNKNOWN, "what it does is not visible", _BOTH)
        if self.outside_globals() & (state.store.clobbered | self.kept):
            self.told |= self.kept
        self.now.touches_device = self.now.foreign = True
        self.now.unseen_in = self.now.statement
        return site

    def run_unseen(self, state: State, what: str, span: Span, operation: int = -1) -> None:
        """Code that no call in the text names runs here: a destructor, an expression of unknown form."""
        self.unseen_site(state, what, operation if operation >= 0 else -2 - span.start, span)
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
        """Left to the subclass."""
        raise NotImplementedError


def _is_cuda_struct(call: ir.Call) -> bool:
    """Whether a compiler-written constructor copies one of CUDA's own structs, which are plain C."""
    return call.standard and re.fullmatch(r"(?:cuda|CU)\w+", call.name.rpartition("::")[2]) is not None


def _gives(call: ir.Call) -> bool:
    return call.reference or (call.type is not None and call.type.shape in (ir.Shape.RECORD, ir.Shape.POINTER))


def _is_pointer(declared: ir.Type | None) -> bool:
    return declared is not None and declared.shape is ir.Shape.POINTER


def _numeric(call: ir.Call) -> Value:
    return NOTHING if call.type is None or call.type.shape is not ir.Shape.POINTER else TOP


def _is_given_code(call: ir.Call) -> bool:
    """Whether a call of the library is given a function that is not the library's, such as a manipulator."""
    nodes = [n for argument in call.arguments for n in ir.walk(argument)]
    own = any(isinstance(n, ir.FunctionName) and not n.key.startswith("c:@N@std@") for n in nodes)
    return own or any(isinstance(n, ir.Name) and "(" in n.variable.type.spelling for n in nodes)
