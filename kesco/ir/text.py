"""The printable form of every value that the stages hand to each other, for ``--dump`` and golden tests.

In: a value. Out: text, the same for equal values on every machine: no identities of objects, no order of sets, and no
paths but those in the value. A place is a line and a column; other files than the value's own go by their last name.

Method: one short function a noun, found by its type. What comes from parts of the compiler above this one
(toolchain, outcome of a function) is known by the fields it has.

What it refuses to do: print an object whose form would not be the same twice.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kesco.ir import program as ir
from kesco.ir.access import Access
from kesco.ir.effects import KernelEffects, RootEffect
from kesco.ir.flow import Handle, Region, Role, Site
from kesco.ir.host import HostFacts
from kesco.ir.host import lines as host_lines
from kesco.ir.schedule import Schedule
from kesco.ir.summary import Summary
from kesco.source import Span

if TYPE_CHECKING:
    from kesco.ir.dfg import Dfg
    from kesco.ir.syncplan import SyncPlan


def dump_text(value: object) -> str:
    """The value as text, without a final newline unless it is text that has one."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "\n".join(_lines(value)).encode("utf-8", "replace").decode()


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, ir.Program):
        yield from _program(value)
    elif isinstance(value, ir.Expr):
        yield _Printer("").expression(value)
    elif isinstance(value, ir.Stmt):
        yield from _Printer(value.span.path).statement(value, 0)
    elif isinstance(value, KernelEffects):
        yield _kernel(value)
    elif isinstance(value, Region):
        yield from _region(value)
    elif isinstance(value, Summary):
        yield from value.lines()
    elif isinstance(value, Schedule):
        yield from _schedule(value)
    elif hasattr(value, "waits") and hasattr(value, "joins"):
        yield from _plan(value)
    elif hasattr(value, "dependences") and hasattr(value, "graph"):
        yield from _dfg(value)
    elif hasattr(value, "dfg") and hasattr(value, "plan"):
        yield from _function(value)
    elif isinstance(value, HostFacts):
        yield from host_lines(value)
    elif hasattr(value, "choices"):
        yield from _toolchain(value)
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            yield from _lines(value[key])
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _lines(one)
    else:
        yield _plain(value)


def _plain(value: Any) -> str:
    """Any other value of enumerations, numbers, texts, collections and frozen dataclasses."""
    if isinstance(value, Span):
        return f"{value.line}:{value.column}"
    if isinstance(value, enum.Enum):
        return value.name or str(value.value)
    if dataclasses.is_dataclass(value):
        fields = ((one.name, getattr(value, one.name)) for one in dataclasses.fields(value))
        return f"{type(value).__name__}({', '.join(f'{name}={_plain(one)}' for name, one in fields)})"
    if isinstance(value, frozenset | set):
        return "{" + ", ".join(sorted(map(_plain, value))) + "}"
    if isinstance(value, tuple | list):
        return "(" + ", ".join(map(_plain, value)) + ")"
    if value is None or isinstance(value, str | int | float):
        return repr(value)
    raise TypeError(f"no printable form of {type(value).__name__}")


def _numbers(values: Iterable[int]) -> str:
    return " ".join(map(str, values)) or "none"


# ---- effects -----------------------------------------------------------------------------------------------


def _root(effect: RootEffect) -> str:
    return effect.direct.text + (f" deep {effect.deep.text}" if effect.deep else "")


def _kernel(effects: KernelEffects) -> str:
    """One kernel in a line; parameters count from 1, as in all messages."""
    parts = []
    for one in effects.params:
        whole = len(one.fields) == 1 and one.fields[0][0] == 0
        inner = ", ".join(f"{offset}: {_root(effect)}" for offset, effect in one.fields)
        if one.fields:
            parts.append(f"{one.index + 1} {_root(one.fields[0][1]) if whole else '{' + inner + '}'}")
    text = f"{effects.display} [{effects.name}]: {', '.join(parts) or 'no parameter'}"
    if effects.symbols:
        text += "; symbols " + ", ".join(f"{name} {_root(effect)}" for name, effect in effects.symbols)
    if effects.order:
        text += f"; order {', '.join(sorted(effects.order))}"
    if effects.outputs is not None:
        text += f"; outputs {effects.outputs}"
    if effects.priority is not None:
        text += f"; priority {effects.priority}"
    text += "; may keep addresses" if effects.keeps else ""
    return text + (f"; opaque: {effects.opaque}" if effects.opaque else "")


# ---- regions -----------------------------------------------------------------------------------------------


def _region(region: Region) -> Iterator[str]:
    told = ", open" * region.open + ", on memory of its own" * region.fresh + ", trusting" * region.trusting
    yield f"region {region.function} at {_plain(region.span)}{told}"
    if region.serial_because:
        yield f"  serial because {region.serial_because}"
    if region.guards:
        yield f"  guards {', '.join(region.guards)}"
    if any(site.calls or site.role is Role.MOVABLE for site in region.sites):
        yield f"  follows its caller: {f'no, {region.not_followed}' if region.not_followed else 'it may'}"
    for who, accesses in zip(("device", "host"), region.general, strict=True):
        if accesses:
            yield f"  the {who} touches {', '.join(map(_access, accesses))}"
    if region.members:
        yield f"  with {', '.join(f'{name} at {_plain(span)}' for name, span in region.members)}"
    for one in region.scratch:
        decides = "behind that" if one.values is None else f"first, by {', '.join(one.values) or 'nothing'}"
        yield f"  scratch @{one.operation} [{one.start}, {one.end}) {decides}: {', '.join(sorted(one.buffers))}"
    for site, after in zip(region.sites, region.successors, strict=True):
        yield "  " + _site(site, after)
    if region.linked is not None:
        yield from _region(region.linked)
    if region.calling is not None:
        yield "with calls that may move:"
        yield from _region(region.calling)


def _site(site: Site, successors: tuple[int, ...]) -> str:
    text = f"{site.number} {site.label} {site.role.value} {site.kind.value} {_plain(site.span)}"
    text += f" @{site.operation}" if site.operation >= 0 else ""
    if site.iterations:
        text += " (" + ", ".join(f"{i.counter} = {i.value}, {i.index} of {i.trips}" for i in site.iterations) + ")"
    text += f" → {_numbers(successors)}"
    for word, handle in (("stream", site.stream), ("event", site.event)):
        text += f"; {word} {_handle(handle)}" if handle else ""
    text += f"; priority {site.priority}" if site.priority != 1 or site.task else ""
    text += f" of task '{site.task}'" if site.task else ""
    text += f"; {site.mark.name.lower()} {site.loop}" if site.mark is not None else ""
    text += f"; calls {', '.join(f'{name} at {_plain(span)}' for name, span in site.calls)}" if site.calls else ""
    text += f"; runs {', '.join(sorted(kind.value for kind in site.does))}" if site.does else ""
    text += "; foreign" * site.foreign + "; put in" * site.added + "; may be none" * (not site.acts)
    text += f"; {site.bytes} bytes" if site.bytes is not None else ""
    text += f"; only sets to zero @{site.zeroes}" if site.zeroes >= 0 else ""
    text += f"; holds the host: {site.held.value}" if site.held is not None and site.role is Role.MOVABLE else ""
    after = " among other work" * site.busy + ", waited for later" * site.later + ", with own memory" * site.takes
    text += f"; holds the host for copies{after}" if site.holds or site.takes else ""
    text += f": {', '.join(map(_access, site.accesses))}" if site.accesses else ""
    text += "; may show how far the device is" if site.looks else ""
    text += "; the host goes outside behind it" if site.outside else ""
    text += "; a call of CUDA has failed" if site.failed else ""
    return text + (f"; note: {site.note}" if site.note else "")


def _access(access: Access) -> str:
    part = "" if access.bytes is None else f" {access.bytes}"
    return f"{access.mode.text} {access.buffer.name}{part}" + (f" ({access.why})" if access.why else "")


def _handle(handle: Handle) -> str:
    return handle.name + " non-blocking" * (not handle.blocking) + " uncertain" * (not handle.certain)


# ---- functions ---------------------------------------------------------------------------------------------


def _function(function: Any) -> Iterator[str]:
    done = f"left because {function.left_because}" if function.left_because else "rewritten"
    region = function.region
    yield f"function {region.function} at {_plain(region.span)}: {done}, width {function.width}"
    if function.sends is not None:
        places = len(function.sends.before) + len(function.sends.ends)
        yield f"  read in the background: {_numbers(sorted(function.sends.operations))}, awaited in {places} places"
    if function.fetches is not None:
        places = len(function.fetches.before) + len(function.fetches.ends)
        yield f"  waited for later: {_numbers(sorted(function.fetches.operations))}, in {places} places"
    for part in (function.dfg, function.schedule, function.plan):
        yield from ("  " + line for line in _lines(part))


def _dfg(dfg: Dfg) -> Iterator[str]:
    yield f"dependences of {_numbers(sorted(dfg.graph.nodes))}"
    for one in dfg.dependences:
        yield f"  {one.source} → {one.target} {one.reason(dfg.region)}"


def _schedule(schedule: Schedule) -> Iterator[str]:
    urgent = f", urgent {_numbers(schedule.urgent)}" if schedule.urgent else ""
    urgent += f", ranks {_numbers(schedule.ranks)}" if schedule.ranks else ""
    yield f"schedule {schedule.strategy}, streams {schedule.streams}, order {_numbers(schedule.order)}{urgent}"
    for stream in sorted({stream for _, stream in schedule.stream_of}):
        yield f"  stream {stream}: {_numbers(site for site, at in schedule.stream_of if at == stream)}"
    for one in schedule.barriers:
        yield f"  barrier {one.source} → {one.target}: {one.why}"
    for hold in schedule.holds:
        yield f"  hold {hold.target} behind {hold.share} % of {hold.mark}: {hold.why}"
    for site, why in schedule.released:
        yield f"  {site} is released: {why}"


def _plan(plan: SyncPlan) -> Iterator[str]:
    yield f"plan, events {_numbers(plan.events)}, fences {_numbers(plan.fences)}, stretches {_numbers(plan.stretches)}"
    if plan.needless:
        yield f"  needless waits of the host: {_numbers(plan.needless)}"
    if plan.paces:
        yield f"  paced in line {', '.join(str(place.line) for place in plan.paces)}"
    if plan.pauses:
        yield f"  the clock stops at {_numbers(plan.pauses)}"
    for replay in plan.replays:
        how = "alone, " if replay.alone else ""
        values = ", ".join(replay.values) or "none"
        yield f"  graph of {_numbers(replay.sites)} on stream {replay.stream}: {how}values {values}"
    for wait in plan.waits:
        why = ", ".join(f"{d.kind.value} on {d.buffer.name}" + " carried" * d.carried for d in wait.dependences)
        why = why or wait.why
        yield f"  wait {wait.source} → {wait.target}" + (f": {why}" if why else "")
    for join in plan.joins:
        yield f"  join before {join.target}: streams {_numbers(join.streams)}"
    for one in plan.removed:
        yield f"  no wait {one.source} → {one.target}: {one.because}"


# ---- toolchain ---------------------------------------------------------------------------------------------


def _toolchain(toolchain: Any) -> Iterator[str]:
    for one in toolchain.choices:
        yield f"{one.what}: {one.value} ({one.origin}; {one.why})"
        yield from (f"  not {other}" for other in one.alternatives)


# ---- programs ----------------------------------------------------------------------------------------------


def _program(program: ir.Program) -> Iterator[str]:
    yield f"program {program.path}"
    printer = _Printer(program.path)
    yield from (f"construct {name} at {printer.place(span)}" for name, span in program.constructs)
    if program.kernels:
        yield f"kernels {', '.join(program.kernels)}"
    for record in sorted(program.records.values(), key=lambda one: one.name):
        if not record.standard:
            fields = ", ".join(f"{one.type.spelling} {one.name} at {one.offset}" for one in record.fields)
            yield f"record {record.name}: {fields or 'no field'}" + ", destructor" * record.destructor
    for task in program.tasks:
        yield f"task '{task.name}' of priority {task.priority} at {printer.place(task.span)}: {_plain(task.marked)}"
    for variable, initial in program.globals:
        yield "global " + printer.declared(variable, initial)
    for function in program.functions:
        if function.here:
            marks = [word for word in ("internal", "address_taken", "template") if getattr(function, word)]
            method = f", method of {function.method_of}" if function.method_of else ""
            listed = ", ".join(f"{p.type.spelling} {p.name}" for p in function.parameters)
            head = f"function {function.name}({listed}) at {printer.place(function.span)}"
            yield head + "".join(f", {word.replace('_', ' ')}" for word in marks) + method
            yield from printer.statement(function.body, 1)
    for function in program.functions:
        if not function.here:
            yield f"function {function.name} at {printer.place(function.span)}, not edited"
    for one in program.operations:
        if one.stuck and one.span.path == program.path:
            yield f"operation @{one.number} at {printer.place(one.span)}: {one.stuck}"


class _Printer:
    """Statements as an indented tree and expressions much like the C they come from.

    ``@7`` is the number of an operation.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def place(self, span: Span) -> str:
        """Line and column, behind the file's last name where it is another file."""
        return ("" if span.path == self.path else span.path.rpartition("/")[2] + ":") + _plain(span)

    def declared(self, variable: ir.Variable, initial: ir.Expr | None) -> str:
        """A declaration with what it starts as."""
        scope = "" if variable.scope is ir.Scope.LOCAL else f"{variable.scope.value} "
        value = "" if initial is None else f" = {self.expression(initial)}"
        return f"{scope}{variable.type.spelling} {variable.name}{value}"

    def statement(self, one: ir.Stmt, depth: int) -> Iterator[str]:
        """The lines of a statement."""
        if isinstance(one, ir.Block):
            for inner in one.body:
                yield from self.statement(inner, depth)
            return
        head = f"{'  ' * depth}{self.place(one.span)} "
        if isinstance(one, ir.Evaluate):
            yield head + self.expression(one.expression)
        elif isinstance(one, ir.Declare):
            yield head + self.declared(one.variable, one.initial)
        elif isinstance(one, ir.Leave):
            value = "" if one.value is None else f" {self.expression(one.value)}"
            yield head + one.how + value + (f" @{one.operation}" if one.operation >= 0 else "")
        elif isinstance(one, ir.Obstacle):
            yield head + f"obstacle: {one.reason}"
        elif isinstance(one, ir.If | ir.Loop | ir.Switch | ir.Case):
            yield from self._structure(one, head, depth)
        else:
            raise TypeError(f"no printable form of {type(one).__name__}")

    def _structure(self, one: ir.If | ir.Loop | ir.Switch | ir.Case, head: str, depth: int) -> Iterator[str]:
        for before in () if isinstance(one, ir.Case) else one.before:
            yield from self.statement(before, depth)
        if isinstance(one, ir.If):
            yield head + f"if {self.expression(one.condition)}"
            yield from self.statement(one.then, depth + 1)
            if one.other is not None:
                yield "  " * depth + "else"
                yield from self.statement(one.other, depth + 1)
            return
        if isinstance(one, ir.Switch):
            yield head + f"switch {self.expression(one.condition)}"
        elif isinstance(one, ir.Case):
            yield head + ("default" if one.value is None else f"case {one.value}")
        else:
            test = "for ever" if one.condition is None else f"while {self.expression(one.condition)}"
            step = "" if one.step is None else f" step {self.expression(one.step)}"
            yield head + f"loop {one.number} {test}{step}" + ", tested after" * one.tested_after
        yield from self.statement(one.body, depth + 1)

    def _all(self, expressions: Iterable[ir.Expr]) -> str:
        return ", ".join(map(self.expression, expressions))

    def expression(self, one: ir.Expr) -> str:
        """An expression in a line."""
        say = self.expression
        match one:
            case ir.Constant(value):
                return str(value)
            case ir.Name(variable):
                return variable.name
            case ir.FunctionName(name=name):
                return name
            case ir.Select(base=ir.Expr() as base, member="[]"):
                return say(base)
            case ir.Select(base, member, arrow):
                return f"{'this' if base is None else say(base)}{'->' if arrow or base is None else '.'}{member}"
            case ir.Subscript(base, index):
                return f"{say(base)}[{say(index)}]"
            case ir.Dereference(pointer):
                return f"*{say(pointer)}"
            case ir.AddressOf(target):
                return f"&{say(target)}"
            case ir.Decay(array):
                return say(array)
            case ir.Binary(operator, left, right):
                return f"({say(left)} {operator} {say(right)})"
            case ir.Unary(operator, operand):
                return f"{operator}{say(operand)}"
            case ir.Assign(target, operator, value, post=post):
                number = f" @{one.operation}" if one.operation >= 0 else ""
                return f"{say(target)} {operator}= {say(value)}" + " (afterwards)" * post + number
            case ir.Branch(condition, then, other):
                return f"({say(condition)} ? {say(then)} : {say(other)})"
            case ir.Cast(operand, shape):
                return f"({shape.spelling}){say(operand)}"
            case ir.InitList(items):
                return f"{{{self._all(items)}}}"
            case ir.Literal(text):
                return text or "literal"
            case ir.New(inner):
                return f"new({self._all(inner)})"
            case ir.Call():
                receiver = "" if one.receiver is None else f"{say(one.receiver)}."
                return f"{receiver}{one.name or '(pointer)'}({self._all(one.arguments)}) @{one.operation}"
            case ir.Launch(kernel, configuration, arguments, operation=operation):
                return f"{kernel.name}<<<{self._all(configuration)}>>>({self._all(arguments)}) @{operation}"
            case ir.Unknown(parts, what):
                return f"unknown[{what}]({self._all(parts)})"
        raise TypeError(f"no printable form of {type(one).__name__}")
