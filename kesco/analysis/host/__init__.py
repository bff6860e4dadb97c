"""The host side of a program, executed abstractly: text of LLVM IR → `HostFacts`.

In: the IR of a file's host side, as clang prints it without optimizing. Out: each launch and call of CUDA that control
may reach, with where each of its pointers comes from. A stage of its own because it knows neither C++ nor its text:
constructors, templates, lambdas and containers are calls, loads and stores like any other.

1. LLVM reads the text and takes variables out of memory that need not be there (SROA, and nothing else).
2. What runs before ``main`` runs, then ``main``.
3. What code may call that is not followed, and what no path reached though it launches something, is entered with
   parameters and variables that may be anything. So no launch is left out.

What cannot be followed has its consequence, and is named: so is a call that takes too long. It refuses a program with
`setjmp` or coroutines, and one that takes too long even so.
"""

from __future__ import annotations

from collections.abc import Iterator

from kesco.analysis.host.calls import Calls
from kesco.analysis.host.engine import PUSH, STUB, Engine
from kesco.analysis.host.frames import Outcome
from kesco.analysis.host.memory import State
from kesco.analysis.host.models import Models
from kesco.analysis.host.record import Refused, Visit, refused_by
from kesco.analysis.host.values import (
    NOTHING,
    NUMBER,
    Object,
    Pointer,
    Scalar,
    Value,
    number,
    scalar,
    unknown,
    why_unknown,
)
from kesco.analysis.host.walk import run
from kesco.ir.host import HostEntry, HostFacts, HostOperation, Origin, Pointed
from kesco.llvm.canonical import canonical
from kesco.llvm.module import Module
from kesco.llvm.names import kernel_of
from kesco.llvm.types import Type
from kesco.llvm.values import Aggregate, Function, Instruction, Integer, callee, symbols_in

_CONSTRUCTORS = "llvm.global_ctors"
_MAIN = "main"
_WRAPPERS = ("/cuda_runtime.h",)


def host_facts(ir_text: str) -> HostFacts:
    """The facts of a module; `InputError` (K110) if LLVM cannot read it."""
    return facts_of(Module(canonical(ir_text, "host", sroa=True)))


def facts_of(module: Module) -> HostFacts:
    """The facts of a module that was read."""
    engine = Engine(module, Models())
    return _told(engine, refused_by(lambda: everywhere(engine)))


def everywhere(engine: Engine) -> None:
    """Walk all paths: from main, and from what others may call; raises `Refused`."""
    calls = Calls(engine)
    engine.know_names()
    engine.show_initial()
    main = engine.module.function(_MAIN)
    if main is not None:
        _from_main(engine, calls, main)
    _from_elsewhere(engine, calls)


def _from_main(engine: Engine, calls: Calls, main: Function) -> None:
    begin = State(engine)
    begin.escaped = engine.outside()  # of which others may have the addresses, though nothing of theirs is called
    state: State | None = begin
    engine.record.root = _MAIN
    for name in constructors(engine):
        function = engine.module.function(name)
        if function is not None and state is not None:
            state = run(engine, function, [], state, engine.context(0, first(function)), calls.call).state
    if state is not None:
        _enter(engine, calls, main, state)


def constructors(engine: Engine) -> list[str]:
    """What runs before main, in order; those that only make kernels known to the runtime are left out."""
    variable = engine.module.variable(_CONSTRUCTORS)
    initial = variable.initial if variable is not None else None
    entries = [e.parts for e in initial.parts if isinstance(e, Aggregate)] if isinstance(initial, Aggregate) else []
    entries.sort(key=lambda parts: parts[0].value if isinstance(parts[0], Integer) else 0)  # the priority
    names = [name for parts in entries for name in symbols_in(parts[1])]
    return [name for name in names if engine.module.has_body(name) and "__cuda_" not in name]


def _enter(engine: Engine, calls: Calls, function: Function, state: State) -> None:
    if not function.is_read:
        raise Refused(f"{function.name} has an instruction that is not understood")
    arguments: list[Value] = []
    for index, parameter in enumerate(function.parameters):
        byval = parameter.promised("byval")
        what = unknown(f"parameter {index} of {function.name}")
        if byval is not None and byval.type is not None:
            one = engine.resource("outside", f"parameter {index} of {function.name}")
            arguments.append(frozenset((Pointer(one, (0, 0)),)))
        else:
            arguments.append(_any(engine, parameter.type, what))
    engine.stack.append(function.name)
    try:
        handed_on(run(engine, function, arguments, state, engine.context(0, first(function)), calls.call))
    finally:
        engine.stack.pop()


def handed_on(left: Outcome) -> None:
    """A path ends: whoever called knows what it returns, and finds what it left in memory that others reach."""
    if left.state is not None:
        left.state.escape(left.value)
        left.state.lose_escaped()


def _any(engine: Engine, type_: Type, what: Scalar) -> Value:
    return NUMBER if type_.kind in ("int", "float") else engine.constants.uniform(type_, what)


def first(function: Function) -> Instruction:
    """Where a function begins."""
    return function.blocks[0].instructions[0]


def _from_elsewhere(engine: Engine, calls: Calls) -> None:
    """Enter what was not entered yet, or with other arguments."""
    engine.knows_globals = False
    done: set[str] = set()
    if engine.open or not engine.module.has_body(_MAIN):
        others = (name for name in engine.module.defined() if name != _MAIN and STUB not in name)
        engine.record.wanted |= {
            n: None for n in others if engine.is_callable_from_outside(n) and engine.leads_to_cuda(n)
        }
    while True:
        todo = [name for name in engine.record.wanted if name not in done]
        if not todo:
            reached = set().union(*engine.record.reached.values(), ())
            todo = [
                n
                for n in engine.module.defined()
                if STUB not in n and n not in reached | done and engine.holds_launch(n)
            ]
            todo = todo[:1]
        if not todo:
            return
        for at, name in enumerate(todo):
            done.add(name)
            function = engine.module.function(name)
            if function is None or not engine.leads_to_cuda(name):
                continue
            engine.record.root = name
            engine.allow(len(todo) - at)
            state = State(engine)
            state.escaped = engine.outside()
            _enter(engine, calls, function, state)


def _launches_in(function: Function) -> Iterator[Instruction]:
    """Where a function launches: by settings that are pushed, or by a call of the runtime."""
    for one in (one for block in function.blocks for one in block.instructions):
        if callee(one) == PUSH or callee(one).startswith("cudaLaunchKernel"):
            yield one


# ---- telling


def _told(engine: Engine, refused: str) -> HostFacts:
    record = engine.record
    by: dict[str, dict[tuple[str, str, str, int], list[Visit]]] = {}
    for (root, instruction, name, _), visit in record.visits.items():
        places, function = _places(engine, visit.instruction.place, visit.function, visit.context)
        key = (function, name, places[0] if places else "", instruction if STUB in name else 0)
        by.setdefault(root, {}).setdefault(key, []).append(visit)
    entries = []
    for root, functions in record.reached.items():
        operations = [_operation(engine, *key[:3], visits) for key, visits in by.get(root, {}).items()]
        if operations or root == _MAIN:
            entries.append(HostEntry(root, tuple(operations), tuple(sorted(functions))))
    return HostFacts(tuple(entries), tuple(record.lost), tuple(_unreached(engine)), refused)


def _unreached(engine: Engine) -> list[str]:
    visited = {key[1] for key in engine.record.visits} | engine.record.pushed
    found = []
    for name in engine.module.defined():
        function = engine.module.function(name) if STUB not in name and engine.holds_launch(name) else None
        for one in _launches_in(function) if function is not None else ():
            if id(one) not in visited:
                found.append(f"a launch in {name} at {engine.module.place(one.place) or 'no place'}")
    return found


def _places(engine: Engine, own: int, function: str, context: int) -> tuple[tuple[str, ...], str]:
    """The places that lead outward from an instruction, and the function of the first; wrappers of CUDA's are none."""
    numbers = [(own, function), *((one.place, caller) for one, caller in engine.chain(context))]
    found = [(str(place), caller) for n, caller in numbers if (place := engine.module.place(n)) is not None]
    while len(found) > 1 and found[0][0].partition(":")[0].endswith(_WRAPPERS):
        del found[0]
    return tuple(place for place, _ in found), found[0][1] if found else function


def _operation(engine: Engine, function: str, call: str, place: str, visits: list[Visit]) -> HostOperation:
    names = list(dict.fromkeys(name for visit in visits for name, _ in visit.values))
    pointed = []
    for name in names:
        values = [value for visit in visits for n, value in visit.values if n == name]
        pointed.append(_pointed(engine, name, values))
    settings: dict[str, set[str]] = {}
    configured = ""
    for visit in visits:
        for name, value in visit.settings:
            if name == "<<<":
                pushed = number(value)
                there = engine.module.place(pushed) if pushed is not None else None
                configured = str(there or "")
            else:
                settings.setdefault(name, set()).add(_setting(engine, value))
    shown = tuple((name, " or ".join(sorted(texts))) for name, texts in settings.items())
    kernel = (kernel_of(call) if STUB in call else "") if call else "?"
    return HostOperation(function, call, place, kernel, tuple(pointed), shown, len(visits), configured)


def _pointed(engine: Engine, name: str, values: list[Value]) -> Pointed:
    found: dict[Origin, set[int | None]] = {}
    why = ""
    for value in values:
        why = why or why_unknown(value)
        for atom in scalar(value):
            if type(atom) is Pointer:
                at = None if atom.offset[0] else atom.offset[1]
                found.setdefault(_origin(engine, atom.object), set()).add(at)
            elif type(atom) is int and atom:
                why = why or "a number that is used as an address"
        if value == NOTHING:
            why = why or "what nobody initialised"
    origins = tuple((one, next(iter(at)) if len(at) == 1 else None) for one, at in sorted(found.items()))
    return Pointed(name, origins, why)


def _origin(engine: Engine, one: Object) -> Origin:
    return Origin(one.kind, one.name, _places(engine, one.place, "", one.context)[0])


def _setting(engine: Engine, value: Value) -> str:
    if isinstance(value, tuple):
        return "×".join(_setting(engine, part) for part in value)
    one = number(value)
    if one is not None:
        return str(one)
    names = [_origin(engine, atom.object).text for atom in value if type(atom) is Pointer]
    return " or ".join(sorted(names)) + ("?" if why_unknown(value) or not names else "")
