"""Program and kernel effects → one region for each function: which sites it has and what each touches.

In: `ir.program.Program`, `KernelEffects` by mangled name. Out: a `Region` a function, in source order. It is the stage
that decides from where a function is entered, which is what makes its pointers known or not.

1. A function that others may call (external linkage, address taken) is walked with parameters and globals that each
stand for an allocation of their own; that assumption is listed as the region's guards, which the output checks.
2. A function that only this file calls is walked from each of its calls; its region holds what any of them touches.
3. ``main`` is walked as it is.
4. What cannot be walked (templates, goto, other host threads) gets a region that says why it stays serial.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from kesco.analysis.alike import rolled
from kesco.analysis.certain_dereference import certainly_followed
from kesco.analysis.following import moving_calls, not_followed, touched_by, with_moving
from kesco.analysis.growing import Learned
from kesco.analysis.guards import guards_of, needs_names_of_callers, steps_of
from kesco.analysis.interpreter import Interpreter
from kesco.analysis.linking import calls_of, linked, members_of, only_called
from kesco.analysis.memory import NOTHING, TOP, Object, ObjectKind, Place, Store, Value, pointer
from kesco.analysis.obstacles import has_obstacle
from kesco.analysis.region import RegionBuilder, Walked, without_idle_marks
from kesco.analysis.releases import Watchers, mark_releases
from kesco.analysis.scratch import scratch_of, with_own
from kesco.analysis.state import Activation, State, is_kesco
from kesco.analysis.zero_arrays import only_main_fills
from kesco.analysis.zeroes import only_certain
from kesco.ir import program as ir
from kesco.ir.access import CONTEXT, Buffer, BufferKind
from kesco.ir.effects import KernelEffects
from kesco.ir.flow import Region, Role, SiteKind
from kesco.ir.kernels import Kernels
from kesco.ir.scratch import OWN
from kesco.tasks import task_of

_FILE_WIDE = {
    "threads": "the file starts host threads",
    "openmp": "the file uses OpenMP",
    "coroutines": "the file has coroutines",
    "second names": "the file gives something a second name",
    "per-thread-stream": "it is compiled for the per-thread default stream",
}
_WORKS = (SiteKind.KERNEL, SiteKind.MEMSET, SiteKind.PREFETCH, SiteKind.LIBRARY)
_SINGLE = (BufferKind.DEVICE, BufferKind.MANAGED, BufferKind.PINNED, BufferKind.HOST)


def resolve(
    program: ir.Program,
    effects: Mapping[str, KernelEffects],
    *,
    streams: bool = False,
    looks: bool = False,
    wraps: bool = False,
    strays: bool = False,
    uncounted: set[int] | None = None,
    rolling: bool = False,
    kernels: Callable[[], Kernels] = Kernels,
    learned: Learned | None = None,
) -> tuple[Region, ...]:
    """The regions of all functions; with `streams`, stream and event operations of the text become sites.

    With `looks`, so does what may show how far the device is (see `Site.looks`). `wraps` tells that signed integers
    wrap around (``-fwrapv``): then those that are not known are not followed. With `strays`, what the host does through
    pointers that are not known becomes sites, and stores of zero are told apart. The loops in `uncounted` are not
    unrolled; those that turn out to be of that kind are added to it, and with `rolling` those are not unrolled whose
    trips are alike. `kernels` says when asked what decides which bytes they touch. `learned` is what a walk of it
    has found out already.
    """
    uncounted = set[int]() if uncounted is None else uncounted
    how = {"streams": streams, "looks": looks, "wraps": wraps, "strays": strays, "rolling": rolling}
    walker = Interpreter(program, dict(effects), streams=streams)
    learned = Learned() if learned is None else learned
    walker.unroll, walker.learned = dict.fromkeys(uncounted, False), learned.copy()
    walker.looks, walker.symbols.off, walker.strays = looks, wraps, strays
    walker.written_outside, walker.static_keys = _written_by_others(program), _statics(program)
    regions: list[Region] = []
    why = next((text for name, text in _FILE_WIDE.items() for n, _ in program.constructs if n == name), "")
    plain = [
        f
        for f in program.functions
        if f.here and not f.template and not has_obstacle(f.body) and not (streams and is_kesco(f.name))
    ]
    for function in sorted(plain, key=lambda f: f.name == "main"):
        # before main it is decided which loops are unrolled, with nothing known but constants
        (_walk_main if function.name == "main" else _walk_generic)(walker, function)
    walker.learned.shares = learned.shares or (program.shares_memory and _reaches_host(walker))
    if walker.uncounted or walker.learned != learned:  # known where control first comes there, and not later
        uncounted |= walker.uncounted
        return resolve(program, effects, uncounted=uncounted, kernels=kernels, learned=walker.learned, **how)
    if not streams:  # what is promised to whoever watches the serial program says
        tasks = {operation: name for operation, (name, _) in task_of(program).items()}
        mark_releases(walker.activations, Watchers.of(walker.watched, walker.volatile, walker.told, tasks))
    closed = _closed(program, plain, walker)
    generic = {f.key: walker.activations.get(f.key, {}).get(f.key) for f in plain}
    real = {"main", *(f.key for f in plain if f.key not in closed)}
    for known in walker.activations.values():  # contexts that only a closed function's own generic walk made
        for key in [k for k in known if k.partition("/")[0] not in real]:
            del known[key]
    reasons = {} if streams else not_followed(program, walker.activations, why)
    follow = {f.key for f in plain if not reasons.get(f.key)} if not streams or OWN.encode() in program.text else set()
    scratch = scratch_of(program, walker.activations, kernels, follow, streams=streams)
    for function in filter(lambda f: f.here and not (streams and is_kesco(f.name)), program.functions):
        own, contexts = generic.get(function.key), walker.activations.get(function.key, {}).values()
        region = _region(walker, function, closed, why, own)
        if not streams:
            widest = region if own is None else own.builder.finish()
            region = replace(region, not_followed=reasons[function.key], general=touched_by(widest))
            if moving := moving_calls(program, contexts, reasons):
                region = replace(region, calling=with_own(_region(walker, function, closed, why, own, moving), scratch))
        regions.append(with_own(region, scratch) if streams else region)
    if any(r.open or any(site.foreign for site in r.sites) for r in regions):
        # what unseen code left on streams of its own may also be running where a function of this file is called
        regions = [_in_each(r, lambda one: replace(one, open=one.function != "main")) for r in regions]
    regions = [_with_linked(program, walker, closed, r) if r.function == "main" else r for r in regions]

    def finished(region: Region) -> Region:
        return only_certain(without_idle_marks(region), walker.spoilt)

    done = tuple(_in_each(r, finished) for r in regions)
    if not rolling:
        return done

    def again(loops: Collection[int]) -> tuple[Region, ...]:
        how["rolling"] = False
        return resolve(program, effects, uncounted=uncounted | {*loops}, kernels=kernels, learned=learned, **how)

    return rolled(done, again)


def _reaches_host(walker: Interpreter) -> bool:
    """Whether the device may use memory that is not its own while the host goes on: what copies wait for is not."""
    drafts = (d for known in walker.activations.values() for a in known.values() for d in a.builder.drafts)
    works = (d for d in drafts if d.foreign or d.kind in _WORKS or (d.kind is SiteKind.COPY and d.held is None))
    return any(not buffer.on_device for draft in works for buffer, _, _ in draft.accesses)


def _in_each(region: Region, change: Callable[[Region], Region]) -> Region:
    """A region changed in all its forms."""
    linked, calling = (None if one is None else change(one) for one in (region.linked, region.calling))
    return replace(change(region), linked=linked, calling=calling)


def _with_linked(program: ir.Program, walker: Interpreter, closed: set[str], region: Region) -> Region:
    """The region of ``main``, with the one in which the functions that only it calls are a part of it."""
    root = next(f for f in program.functions if f.here and f.span == region.span)
    contexts = {
        key: list(known.values())
        for key, known in walker.activations.items()
        if all(one.partition("/")[0] == "main" for one in known)
    }
    members = {} if region.serial_because else members_of(program, root, closed, contexts)
    if not members:
        return region
    parts = {key: merged_contexts(f, contexts[key], tagged=False) for key, f in members.items()}
    return replace(region, linked=linked(program, root, members, {root.key: region, **parts}))


def _closed(program: ir.Program, plain: list[ir.Function], walker: Interpreter) -> set[str]:
    """Functions that are entered from calls that were all walked, and from nowhere else.

    Starts with all that could be, and opens each one that some call reaches which no walk from an open function took;
    an opened function's own walk then counts for what it calls.
    """
    calls = calls_of(program)
    calls = calls_of(program)
    closed = {f.key for f in plain} & only_called(program)
    while True:
        taken: dict[str, set[int]] = {}
        for root, callee, operation in walker.walked:
            if root not in closed:
                taken.setdefault(callee, set()).add(operation)
        still = {key for key in closed if taken.get(key) == calls[key]}
        if still == closed:
            return closed
        closed = still


def _unwalkable(program: ir.Program) -> set[str]:
    """Functions whose calls are taken as opaque: templates, virtual ones, obstacles, recursion."""
    by_key = {f.key: f for f in program.functions}
    calls = {
        f.key: {n.key for n in ir.walk(f.body) if isinstance(n, ir.Call) and n.key in by_key} for f in program.functions
    }
    found = {f.key for f in program.functions if f.template or f.virtual or has_obstacle(f.body)}
    for start in calls:
        seen: set[str] = set()
        work = list(calls[start])
        while work:
            one = work.pop()
            if one not in seen:
                seen.add(one)
                work += calls[one]
        if start in seen:
            found.add(start)
    return found


def _written_by_others(program: ir.Program) -> frozenset[str]:
    """Variables that a function which others may call mentions, or one that it calls: unseen code may change them."""
    unwalkable, calls = _unwalkable(program), calls_of(program)
    by_key = {f.key: f for f in program.functions}
    work: list[str] = []
    for function in program.functions:
        outside = not function.internal or function.address_taken or function.key in unwalkable
        outside = outside or function.mentioned > function.declared + len(calls.get(function.key, ()))
        if function.name != "main" and outside:
            work.append(function.key)
    found: set[str] = set()
    seen: set[str] = set()
    while work:
        key = work.pop()
        if key in seen or key not in by_key:
            continue
        seen.add(key)
        for node in ir.walk(by_key[key].body):
            if isinstance(node, ir.Name):
                found.add(node.variable.key)
            elif isinstance(node, ir.Call):
                work.append(node.key)
    return frozenset(found)


def _statics(program: ir.Program) -> frozenset[str]:
    """Static variables of functions: their values at entry have no name at the function's beginning."""
    declared = (n for f in program.functions for n in ir.walk(f.body) if isinstance(n, ir.Declare))
    return frozenset(d.variable.key for d in declared if d.variable.scope is ir.Scope.STATIC)


def _walk_generic(walker: Interpreter, function: ir.Function) -> None:
    state = State(Store(), frozenset())
    this: frozenset[Place] = frozenset()
    if function.method_of:
        this = frozenset((Place(Object(f"this:{function.key}", "this", ObjectKind.HEAP, entry=True)),))
        walker.escaped |= {p.object for p in this}
    starter = Activation(function, function.key, RegionBuilder(function.name, function.span), True)
    walker.stack.append(starter)  # entry values belong to the function being bound
    followed = certainly_followed(function)
    for parameter in function.parameters:
        place = Place(walker.object_of(parameter))
        if _is_reference_to_record(walker, parameter.type) or (
            parameter.key in followed and _is_reference_to_record(walker, parameter.type, ir.Shape.POINTER)
        ):
            state.store.write((place,), pointer(Place(_referred(walker, function, parameter))))
            continue
        for at, value in _entry_parts(walker, parameter.type, place, 3):
            state.store.write((at,), value)
        if parameter.type.shape is ir.Shape.INTEGER:
            walker.evaluate(state, ir.Name(parameter, parameter.span))  # gives it a name
    walker.stack.pop()
    walker.walk_function(function, state, function.key, True, this)


def _is_reference_to_record(walker: Interpreter, shape: ir.Type, kind: ir.Shape = ir.Shape.REFERENCE) -> bool:
    inner = shape.element if shape.shape is kind else None
    record = walker.program.records.get(inner.record) if inner is not None and inner.shape is ir.Shape.RECORD else None
    return record is not None and not record.standard and not record.ambiguous


def _referred(walker: Interpreter, function: ir.Function, parameter: ir.Variable) -> Object:
    """The object that a parameter refers to: it may be a global, ``*this`` or what another one refers to."""
    pointer_to = parameter.type.shape is ir.Shape.POINTER
    name = parameter.name if pointer_to else f"&{parameter.name}"
    buffer = Buffer(f"entry:{function.key}:&{parameter.key}", name, BufferKind.ENTRY)
    found = Object(
        f"this:{'*' if pointer_to else '&'}{parameter.key}", parameter.name, ObjectKind.HEAP, buffer, entry=True
    )
    walker.guarded.setdefault(buffer.name, set()).add(Place(walker.object_of(parameter)))
    walker.escaped.add(found)
    return found


def _entry_parts(walker: Interpreter, shape: ir.Type, place: Place, depth: int) -> list[tuple[Place, Value]]:
    if shape.shape is ir.Shape.POINTER:
        return [(place, walker.entry_value(place, shape.restrict))]
    if shape.shape is ir.Shape.RECORD and depth:
        record = walker.program.records.get(shape.record)
        if record is None or record.standard:
            return [(place, TOP)]
        parts: list[tuple[Place, Value]] = []
        for one in record.fields:
            parts += _entry_parts(walker, one.type, Place(place.object, (*place.path, one.name)), depth - 1)
        return parts or [(place, NOTHING)]
    return [(place, NOTHING if shape.shape is ir.Shape.INTEGER else TOP)]


def _walk_main(walker: Interpreter, function: ir.Function) -> None:
    state = State(Store(), frozenset())
    for parameter in function.parameters:
        integer = parameter.type.shape is ir.Shape.INTEGER
        state.store.write((Place(walker.object_of(parameter)),), NOTHING if integer else TOP)
    for variable, initial in walker.program.globals:
        if initial == ir.InitList(()) and only_main_fills(walker.program, variable):
            _begin_with_zeros(walker, state, variable.type, Place(walker.object_of(variable)))
    walker.walk_function(function, state, "main", False, frozenset())


def _begin_with_zeros(walker: Interpreter, state: State, kind: ir.Type, place: Place) -> None:
    """Arrays of pointers, and of structs that hold them, that the program does not initialise."""
    record = walker.program.records.get(kind.record) if kind.shape is ir.Shape.RECORD else None
    if kind.shape is ir.Shape.ARRAY and kind.element is not None:
        _begin_with_zeros(walker, state, kind.element, place.within(None))
    elif record is not None and record.plain and not record.ambiguous:
        for one in record.fields:
            _begin_with_zeros(walker, state, one.type, place.within(one.name))
    elif kind.shape is ir.Shape.POINTER and not kind.volatile:
        state.store.objects.setdefault(place.object, {})[place.path] = Value(number=0)
        state.store.plain[place.object] = -2


def _region(
    walker: Interpreter,
    function: ir.Function,
    closed: set[str],
    why: str,
    generic: Activation | None,
    moving: Collection[int] = (),
) -> Region:
    """The region of a function, in which the calls in `moving` are work that may go to any stream."""
    contexts = walker.activations.get(function.key, {})
    if function.template:
        why = why or "it is a template, whose kernels and types are only known where it is used"
    why = why or (has_obstacle(function.body) and f"it contains {has_obstacle(function.body)}")
    if function.key in closed:
        chosen = list(contexts.values())
    else:
        chosen = [a for k, a in contexts.items() if k in (function.key, "main")]
    if not chosen:
        empty = RegionBuilder(function.name, function.span).finish()
        return replace(empty, serial_because=why or "nothing in this file calls it")
    region = with_moving(merged_contexts(function, chosen), moving, contexts.values())
    if generic is not None and function.key in closed and needs_names_of_callers(function, region):
        region = with_moving(generic.builder.finish(), moving, contexts.values())
    guards, unsafe = guards_of(walker.program, steps_of(walker.guarded), function, region)
    entered = function.key not in closed and function.name != "main"
    why = why or region.serial_because or unsafe
    return replace(region, guards=guards, serial_because=why, open=entered, fresh=entered)


def merged_contexts(function: ir.Function, contexts: Sequence[Walked], tagged: bool = True) -> Region:
    """One region for all contexts; where each call ends with a join, a buffer of one is never one of another."""
    if len(contexts) == 1:
        region = contexts[0].builder.finish()
        return replace(region, serial_because=region.serial_because or _undecided(contexts))
    merged = RegionBuilder(function.name, function.span)
    for number, context in enumerate(contexts):
        numbers: dict[int, int] = {}
        region = context.builder.finish()
        for draft in context.builder.drafts:
            key = (draft.operation, draft.role.value if draft.operation >= 0 else draft.name, draft.iterations)
            known = len(merged.drafts)
            new, _ = merged.add(key, draft.name, draft.kind, draft.role, draft.span, frozenset())
            numbers[draft.number] = new.number
            new.become(draft, first=new.number == known)
            for (buffer, reason, part), mode in draft.accesses.items():
                new.touch(_tagged(buffer, number) if tagged else buffer, reason, mode, part)
        for source, targets in enumerate(region.successors):
            for target in targets:
                merged.connect(numbers[source], numbers[target])
        merged.serial_because = merged.serial_because or region.serial_because
    merged.serial_because = merged.serial_because or _undecided(contexts)
    return merged.finish()


def _undecided(contexts: Sequence[Walked]) -> str:
    """Why the function stays serial if its text has an operation that may move on some paths or calls and not on all.

    The text has it once. Within one call it may differ where a loop changes what a pointer of a copy points to.
    """
    roles: dict[int, set[Role]] = {}
    within: dict[tuple[int, int], set[Role]] = {}
    for number, context in enumerate(contexts):
        for draft in (draft for draft in context.builder.drafts if draft.operation >= 0):
            roles.setdefault(draft.operation, set()).add(draft.role)
            within.setdefault((number, draft.operation), set()).add(draft.role)
    both = {Role.MOVABLE, Role.LEGACY}
    if any(both <= found for found in within.values()):
        return "an operation is asynchronous in some iterations of a loop and not in others"
    if any(both <= found for found in roles.values()):
        return "an operation is asynchronous in some calls of it and not in others"
    return ""


def _tagged(buffer: Buffer, context: int) -> Buffer:
    if buffer.kind in (BufferKind.UNKNOWN, BufferKind.UNSEEN_HOST, BufferKind.ORDER, BufferKind.SYMBOL):
        return buffer
    return replace(buffer, key=f"{buffer.key}{CONTEXT}{context}")
