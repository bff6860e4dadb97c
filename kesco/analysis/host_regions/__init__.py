"""The regions of a file from its host's IR: `ir.program.Program`, the IR, the kernels' effects → a `Region` a function.

The IR says what happens, the parse where it stands in the text. A stage of its own beside `resolve`, which reads the
same from libclang's tree; both give the same kind of value, so that they can be compared.

1. `main` is executed, then each function of the text that others may call, with what came in by name (`entries`).
2. `watching` makes sites of what happens on the paths, `touching` says what they touch. 3. A function that only this
file calls has a region with what any call of it touches; instances of a template are calls of one text. 4. Pointers
that came in are compared when the output runs (guards).

It refuses functions with a launch that no path reaches, whose text cannot be told, and all of a program that cannot be
followed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from kesco.analysis.following import moving_calls, touched_by, with_moving
from kesco.analysis.guards import guards_of, needs_names_of_callers
from kesco.analysis.host import constructors, first, handed_on
from kesco.analysis.host.calls import Calls
from kesco.analysis.host.engine import STUB, Engine
from kesco.analysis.host.memory import State
from kesco.analysis.host.models import Models
from kesco.analysis.host.record import Refused, refused_by
from kesco.analysis.host.values import NUMBER, Value, pointer, unknown
from kesco.analysis.host.walk import run
from kesco.analysis.host_regions.buffers import Buffers
from kesco.analysis.host_regions.callees import without_hosts_own
from kesco.analysis.host_regions.counting import Counting
from kesco.analysis.host_regions.entries import MARK, Entries
from kesco.analysis.host_regions.launching import Launching
from kesco.analysis.host_regions.libraries import Libraries, settled
from kesco.analysis.host_regions.marking import Marking
from kesco.analysis.host_regions.open_orders import OpenOrders
from kesco.analysis.host_regions.pointing import Pointing
from kesco.analysis.host_regions.refusing import is_as_written, unreadable, watched
from kesco.analysis.host_regions.runtime import Runtime
from kesco.analysis.host_regions.texts import Texts
from kesco.analysis.host_regions.touching import Touching
from kesco.analysis.host_regions.watching import Watching
from kesco.analysis.linking import linked, members_of, only_called
from kesco.analysis.region import RegionBuilder, without_idle_marks
from kesco.analysis.resolve import merged_contexts
from kesco.analysis.scratch import Found, with_own
from kesco.ir import program as ir
from kesco.ir.effects import KernelEffects
from kesco.ir.flow import Region
from kesco.ir.types import Shape
from kesco.llvm.types import Type
from kesco.llvm.values import Function, Parameter, callee

_MAIN, OF_MAIN = "main", b"KescoMain"
_FETCHES = re.compile(rb"\bkesco_(?:streams|streams_if_distinct|paced)\(")


def walked(
    texts: Texts,
    counting: Counting,
    opened: OpenOrders,
    effects: Mapping[str, KernelEffects],
    streams: bool,
    looks: bool,
    sizes: tuple[int, int],
    *,
    trusts: bool = True,
) -> Walk:
    """All paths, once; twice where it turns out that code runs which may call others than `main` does."""
    engine = Engine(texts.module, Models())
    engine.weak = texts.program.weak
    if streams:  # kesco's own declarations are not seen, and call nothing
        engine.open = any(not engine.is_seen(name) for name in texts.module.names() if "esco" not in name)
    entries = Entries(engine, texts.program, sizes)
    paths = Watching(engine, texts, streams, looks, counting, Buffers(engine, texts))
    pointing = Pointing(paths)
    libraries = Libraries(pointing)
    walk = Walk(engine, texts, entries, Calls(engine), paths, libraries, trusts)
    engine.orders = opened.orders()
    engine.watcher = Touching(paths, Marking(paths), Launching(pointing, effects), Runtime(pointing, libraries))
    engine.first, engine.numbers = entries.held_at_first, entries.numbers
    walk.refused = refused_by(walk.all)
    if not walk.refused and opened.loosens(engine.orders):
        return walked(texts, counting, opened, effects, streams, looks, sizes, trusts=trusts)
    walk.refused = walk.refused or opened.why(engine.orders)
    if walk.trusted and walk.runs_others():
        return walked(texts, counting, opened, effects, streams, looks, sizes, trusts=False)
    return walk


@dataclass(slots=True)
class Walk:
    """All paths of a file, and what was found on them."""

    engine: Engine
    texts: Texts
    entries: Entries
    calls: Calls
    paths: Watching
    libraries: Libraries
    trusts: bool
    refused: str = ""
    entered: set[str] = field(default_factory=set)

    def all(self) -> None:
        """Enter wherever control may come from."""
        engine = self.engine
        engine.know_names()
        engine.show_initial()
        main = engine.module.function(_MAIN)
        if main is not None:
            self._from_main(main)
        engine.knows_globals = False
        self.has_main = main is not None
        self.trusted = self.trusts and main is not None and not engine.left and self._may_trust()
        while True:
            todo = [name for name in engine.module.defined() if name not in self.entered and self._is_root(name)]
            if not todo:
                return
            for at, name in enumerate(todo):
                engine.allow(len(todo) - at)
                self.enter(name)

    has_main: bool = False
    trusted: bool = False  # nobody but this file calls its functions, as long as `main` runs

    def _may_trust(self) -> bool:
        """Whether it is seen to that whoever else calls functions of this file gets the serial program.

        Code of other files may run before ``main`` and behind it, on other threads, or as a library is loaded.
        """
        text, names = self.texts.program.text, {*self.engine.module.names()}
        functions = [f for f in self.texts.program.functions if f.here]
        main = next((f for f in functions if f.name == _MAIN), None)
        if self.engine.open or names & {"dlopen", "dlmopen"} or main is None or not is_as_written(text, main):
            return False
        others = (f for f in functions if f.name != _MAIN)
        fetches = any(_FETCHES.search(text, f.span.start, f.span.end) for f in others)
        return not (self.paths.streams and fetches) or OF_MAIN in text

    def runs_others(self) -> bool:
        """Whether code that is not seen runs, perhaps in what the library calls back, or runs at the end."""
        engine = self.engine
        wanted = {one for name in engine.record.wanted for one in engine.named_in(name)}
        functions = (f for name in wanted if (f := engine.module.function(name)) is not None)
        own = (f for f in functions if (text := self.texts.function(f)) is not None and text.here)
        calls = (i for f in own for block in f.blocks for i in block.instructions if i.opcode in ("call", "invoke"))
        return engine.left or not all(map(callee, calls))

    def _is_root(self, name: str) -> bool:
        """Whether a function has to be entered with what came in."""
        if name == _MAIN or STUB in name or "__cuda_" in name or not self.engine.leads_to_cuda(name):
            return False
        if name in self.engine.record.wanted or self.is_open(name):
            return True
        reached = set().union(*self.engine.record.reached.values(), ())
        return name not in reached and self.engine.holds_launch(name)

    def is_open(self, name: str) -> bool:
        """Whether code that is not seen may call a function of the text, with work of its own still running."""
        return name in self.engine.record.wanted or (not self.trusted and self._is_exported(name))

    def _is_exported(self, name: str) -> bool:
        """Whether other files may call a function of the text.

        Nobody else has the text of a file with ``main``, so nobody makes instances of its templates, or calls what is
        inline in it.
        """
        head, function = self.engine.module.head(name), self.engine.module.function(name)
        if head is None or function is None or not self.engine.is_callable_from_outside(name):
            return False
        text = self.texts.function(function)
        return text is not None and not (text.here and self.has_main and "linkonce_odr" in head.words)

    def _from_main(self, main: Function) -> None:
        engine = self.engine
        state: State | None = State(engine)
        assert state is not None
        state.escaped = engine.outside()  # of which others may have the addresses, though nothing of theirs is called
        engine.record.root = _MAIN
        for name in constructors(engine):
            function = engine.module.function(name)
            if function is not None and state is not None:
                self.paths.begin(function, state, generic=False)
                state = run(engine, function, [], state, engine.context(0, first(function)), self.calls.call).state
        if state is not None:
            arguments: list[Value] = [NUMBER if p.type.kind == "int" else unknown("argv") for p in main.parameters]
            self._run(main, arguments, state, generic=False)

    def _run(self, function: Function, arguments: list[Value], state: State, *, generic: bool) -> None:
        engine = self.engine
        if not function.is_read:
            raise Refused(f"{function.name} has an instruction that is not understood")
        self.paths.begin(function, state, generic=generic)
        engine.stack.append(function.name)
        try:
            left = run(engine, function, arguments, state, engine.context(0, first(function)), self.calls.call)
            self.libraries.left((left.state, left.thrown), function.name, last=not generic)
            handed_on(left)
        finally:
            engine.stack.pop()

    def enter(self, name: str) -> None:
        """Enter a function with what came in from nobody knows where."""
        self.entered.add(name)
        function = self.engine.module.function(name)
        if function is None:
            return
        self.engine.record.root = name
        text = self.texts.function(function)
        self.entries.begin(text)
        state = State(self.engine)
        state.escaped = self.engine.variables()  # whoever ran before may have shown a function that changes them
        arguments = self._given(function, text)
        for value in arguments:
            state.escape(value)
        self._run(function, arguments, state, generic=True)

    def _given(self, function: Function, text: ir.Function | None) -> list[Value]:
        parameters = [p for p in function.parameters if p.promised("sret") is None]
        named: list[ir.Variable | None] = []
        if text is not None:
            named = [None, *text.parameters] if text.method_of else [*text.parameters]
        nothing = any(one is not None and self._may_be_nothing(one) for one in named)
        several = any(p.promised("byval") is None and p.promised("noundef") is None for p in parameters)
        if len(named) != len(parameters) or (nothing and several):
            named = []  # a record may be passed in several registers; where none is passed in none the count tells
        found: list[Value] = []
        for number, one in enumerate(function.parameters):
            if one.promised("sret") is not None or not named:
                found.append(self._any(one, f"parameter {number} of {function.name}"))
            else:
                found.append(self._named(one, named[parameters.index(one)], text))
        return found

    def _may_be_nothing(self, one: ir.Variable) -> bool:
        """Whether a parameter may be an empty record, which is not passed; in a template its type has many meanings."""
        record = self.texts.program.records.get(one.type.record)
        return one.type.shape is Shape.OTHER or (one.type.shape is Shape.RECORD and (not record or not record.fields))

    def _named(self, one: Parameter, variable: ir.Variable | None, text: ir.Function | None) -> Value:
        if one.type.kind != "ptr":
            return self._any(one, "a parameter")
        if variable is None:
            return self.entries.this(text.method_of if text is not None else "")
        if variable.type.shape is Shape.RECORD:
            by_value = one.promised("byval") is not None
            return (
                self.entries.by_value(variable.name, variable.type, variable.key) if by_value else unknown("a record")
            )
        return self.entries.given(variable.name, variable.type, variable.key)

    def _any(self, one: Parameter, what: str) -> Value:
        if one.promised("byval") is not None:
            return pointer(self.engine.resource("outside", what))
        type_: Type = one.type
        return NUMBER if type_.kind in ("int", "float") else self.engine.constants.uniform(type_, unknown(what))

    # ---- regions

    def with_calls(self, function: ir.Function, why: str, reasons: Mapping[str, str], scratch: Found) -> Region:
        """The region of a function, and the one in which calls of it are work; it is known why others do not follow."""
        contexts = self.paths.activations[function.key].values()
        region = self.region(function, why)
        widest = next((a for a in contexts if a.generic), None)
        general = touched_by(region if widest is None else widest.builder.finish())
        region = replace(region, not_followed=reasons[function.key] or region.not_followed, general=general)
        moving = moving_calls(self.texts.program, contexts, reasons, all_seen=True)
        return replace(region, calling=with_own(self.region(function, why, moving), scratch)) if moving else region

    def with_linked(self, main: ir.Function, region: Region) -> Region:
        """The region of ``main``, with the one in which the functions that only it calls are a part of it."""
        program = self.texts.program
        own = {
            key: list(known.values()) for key, known in self.paths.activations.items()
            if all(root == _MAIN and context >= 0 for root, context, _ in known)
        }  # fmt: skip
        closed = {f.key for f in program.functions if f.key in own and not self._is_open(f)} & only_called(program)
        members = {} if region.serial_because else members_of(program, main, closed, own)
        if not members:
            return region
        parts = {key: self.region(f, "", tagged=False) for key, f in members.items()}
        return replace(region, linked=linked(program, main, members, {main.key: region, **parts}))

    def _is_open(self, function: ir.Function) -> bool:
        """Whether code that is not seen may call a function of the text, or an instance of it."""
        return function.name != _MAIN and any(
            self.is_open(name) for name in self.engine.module.defined() if self._is_instance(name, function)
        )

    def region(self, function: ir.Function, why: str, moving: Collection[int] = (), *, tagged: bool = True) -> Region:
        """The region of a function of the text, in which the calls in `moving` may go to any stream."""
        known = self.paths.activations[function.key]
        instances = {key[0] for key in known}
        generic = [a for a in known.values() if a.generic]
        opened = self._is_open(function)
        chosen = generic if opened else [a for a in known.values() if not a.generic or a.root == _MAIN]
        if not chosen or not instances:
            empty = RegionBuilder(function.name, function.span).finish()
            return replace(empty, serial_because=why or "nothing in this file calls it")
        region = without_hosts_own(merged_contexts(function, chosen, tagged))
        region = with_moving(region, moving, known.values())
        guards, unsafe = guards_of(self.texts.program, self._steps(function), function, region)
        if not opened and function.name != _MAIN and needs_names_of_callers(function, region):
            unsafe = "its pointers came into a function that calls it"
        serial = next((a.serial for a in known.values() if a.serial), "") or unreadable(function)
        region = settled(region, streams=self.paths.streams)
        if not self.paths.streams:
            serial = serial or watched(self.texts.program, region)
        serial = serial or region.serial_because
        return replace(
            without_idle_marks(region), guards=guards, serial_because=why or serial or unsafe, not_followed=serial,
            open=opened, fresh=opened, trusting=self.trusted and self._exports(),
        )  # fmt: skip

    def _exports(self) -> bool:
        """Whether other files may call a function of this one that launches, or one that calls such."""
        names = (n for n in self.engine.module.defined() if n != _MAIN and self.engine.leads_to_cuda(n))
        return any(map(self._is_exported, names))

    def _is_instance(self, name: str, function: ir.Function) -> bool:
        one = self.engine.module.function(name)
        return one is not None and self.texts.function(one) is function

    def _steps(self, function: ir.Function) -> dict[str, list[frozenset[str]]]:
        """What each name of what came into a function is made of."""
        own = f"{function.key}{MARK}"
        return {name.removeprefix(own): [steps] for name, steps in self.entries.steps.items() if name.startswith(own)}
