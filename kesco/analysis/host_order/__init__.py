"""What a program does with the device as it runs: its host's IR and its kernels' effects → an `Execution`.

A stage of its own beside `host_regions`: that one asks what a function of a text may do, in terms of the text; this one
what the whole program does, one activation after the other, and knows nothing of the text. So streams in arrays and
objects, helpers, templates and lambdas are nothing special.

1. The host is executed abstractly, from what runs before ``main`` on. The file is the whole program: what it calls
   without a body belongs to a library. A loop's first trip is walked by itself each time.
2. What happens on the paths becomes steps (`steps`), what a step is comes from the call (`calls`) and what it touches
   from the kernels' effects. `pointing` says which memory, stream or event a value is.
3. `questions` says on which questions a step depends, `words` how the program comes by numbers that are not known.

It refuses programs without ``main``, with host threads that have to do with the device, captured streams, several
devices, recursion around the device, and those that cannot be followed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kesco.analysis.host import constructors, first
from kesco.analysis.host.calls import Calls
from kesco.analysis.host.engine import Engine
from kesco.analysis.host.memory import State
from kesco.analysis.host.models import Models
from kesco.analysis.host.record import Refused, refused_by
from kesco.analysis.host.values import NUMBER, Value, unknown
from kesco.analysis.host.walk import run
from kesco.analysis.host_order.watching import Watching
from kesco.ir.effects import KernelEffects
from kesco.ir.execution import Execution, StepKind
from kesco.llvm.canonical import canonical
from kesco.llvm.module import Module

_MAIN = "main"
_MOST = 2500  # steps


def execution_of(
    path: str,
    ir_text: str,
    effects: Mapping[str, KernelEffects],
    deciding: Mapping[str, frozenset[int] | None] = MappingProxyType({}),
    weak: frozenset[str] = frozenset(),
) -> Execution:
    """The execution of a program; `InputError` (K110) if LLVM cannot read its IR.

    `deciding` has the arguments of each kernel that decide where it touches memory; None: all. `weak` functions may
    be another file's.
    """
    module = Module(canonical(ir_text, "host", sroa=True))
    engine = Engine(module, Models())
    engine.weak = weak
    engine.whole = not engine.open
    engine.peels = True
    watching = Watching(engine, path, effects, deciding)
    engine.graphs = True
    engine.watcher, engine.words = watching, watching.words
    refused = refused_by(lambda: _walk(engine, watching)) or watching.refused
    if len(watching.steps.drafts) > _MOST:
        refused = refused or "more happens in it than can be compared"
    return watching.told(refused)


def _walk(engine: Engine, watching: Watching) -> None:
    engine.know_names()
    main = engine.module.function(_MAIN)
    if main is None:
        raise Refused("it has no function 'main'")
    if not main.is_read:
        raise Refused("'main' has an instruction that is not understood")
    calls = Calls(engine)
    state: State | None = State(engine)
    assert state is not None
    state.escaped = engine.outside() if not engine.whole else frozenset()
    engine.record.root = _MAIN
    watching.boundary(StepKind.ENTRY, state)
    for name in constructors(engine):
        function = engine.module.function(name)
        if function is not None and state is not None:
            state = run(engine, function, [], state, engine.context(0, first(function)), calls.call).state
    if state is None:
        return
    arguments: list[Value] = [NUMBER if p.type.kind == "int" else unknown("argv") for p in main.parameters]
    engine.stack.append(_MAIN)
    try:
        left = run(engine, main, arguments, state, engine.context(0, first(main)), calls.call)
    finally:
        engine.stack.pop()
    if left.state is not None:
        watching.boundary(StepKind.EXIT, left.state)
