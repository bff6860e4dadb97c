"""What all parts of the interpreter share: the module, its objects and constants, how far it may go, what was found.

`walk` runs functions, `steps` single instructions, `calls` what is called, `cuda` what the runtime does. Each of them
gets the `Engine`; none knows more of another than a function's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kesco.analysis.host.constants import Constants
from kesco.analysis.host.contents import Contents
from kesco.analysis.host.graphs import Graph, graph_of
from kesco.analysis.host.memory import State
from kesco.analysis.host.models import Models
from kesco.analysis.host.orders import Orders
from kesco.analysis.host.record import OutOfBudget, Record, Refused, Watcher, Words
from kesco.analysis.host.values import BEFORE, Object, Offset, Scalar, Value, unknown
from kesco.frontend.api_table import host_call, is_cuda_name
from kesco.llvm.module import Module
from kesco.llvm.tags import is_of_numbers
from kesco.llvm.values import Function, Instruction, Integer, Symbol, callee, symbols_in

if TYPE_CHECKING:
    from kesco.analysis.host.cuda import Launch
    from kesco.analysis.host.frames import Frame

REPLACED = frozenset(("weak", "linkonce", "interposable"))  # another file may define it instead
_OWN = frozenset(("internal", "private"))
STUB, PUSH = "__device_stub__", "__cudaPushCallConfiguration"
_OWN_POINTERS = re.compile(  # of the library: iterators of vectors, random numbers, which move no other pointers
    r"_ZNK?(?:9__gnu_cxx17__normal_iterator|St(?:8__detail8_Adaptor|\d+\w+_(?:distribution|engine)))"
)
_COPIES, _POINTER = ("llvm.memcpy", "llvm.memmove"), 8
_INSTANCES, _CONTEXTS = 64, 500  # objects of one site, and ways to one (a template of the runtime), that are told apart
_TRIPS, _LOOP = 64, 50_000  # trips of a loop that are walked one by one, and instructions in all of them
# Instructions: then a path enters no more functions; then nothing is said of the program.
_SOFT, _HARD = 1_000_000, 4_000_000
_ASIDE, _LEAST = 60_000, 20_000  # for a call that has nothing to do with CUDA, and for a path among many


class Engine:
    """See the module's docstring."""

    def __init__(self, module: Module, models: Models) -> None:
        self.module, self.models, self.layouts = module, models, module.layouts
        self.record = Record()
        self.steps = 0
        self.enough, self.bound = _SOFT, _HARD  # steps behind which no function is entered, and none done
        self.stack: list[str] = []
        self.fixed = self.recursing = 0  # how many loops around are walked to a fixed point, and how many functions
        self.knows_globals = True
        self.launch: Launch | None = None  # the one that a stub is about
        self.watcher: Watcher | None = None
        self.orders = Orders()
        self.graphs = False  # what graphs of CUDA do is followed
        self.words: Words | None = None  # how the program comes by numbers, for who wants to know
        self.whole = False  # there are no files beside this one, so nothing has run before it and nobody else calls it
        self.peels = False  # a loop's first trip is walked by itself each time, and no loop ends by a call that fails
        self.weak: frozenset[str] = frozenset()  # beside those that the module marks: another file may define them
        self.in_runtime = False  # what memory is touched is the runtime's doing, and not the program's
        self.frame: Frame | None = None  # the innermost one
        self.first: Callable[[Object, int, int], Scalar] | None = None  # what was there when a path began
        self.numbers: Container[Object] = ()  # what came in by pointers to types of numbers
        self._objects: dict[object, Object] = {}
        self._contexts: dict[tuple[int, int], int] = {}
        self._callers: dict[int, tuple[int, Instruction, str]] = {}
        self._sites: dict[tuple[str, int], set[int]] = {}
        self._graphs: dict[str, Graph] = {}
        self.constants = Constants(self.layouts, self.symbol, module.weak())
        self._initial: dict[str, Contents] = {}
        self._relevant: dict[str, bool] = {}
        self._named: dict[str, frozenset[str]] = {}
        self._mentioned: dict[str, tuple[str, ...]] = {}
        self.long: set[str] = set()  # functions that have nothing to do with CUDA, and took more steps than they may
        self._short: dict[str, bool] = {}
        self._leading: set[str] | None = None
        self._used: dict[str, frozenset[Object]] = {}
        self._outside: frozenset[Object] | None = None
        second = [v for n in module.variables() if (v := module.variable(n)) is not None and v.kind == "alias"]
        shared = (v.initial for v in second if v.initial is not None and not _OWN.intersection(v.words))
        self._renamed = frozenset(name for one in shared for name in symbols_in(one))
        self.open = any(not self.is_seen(name) for name in module.names())
        self.left = False  # whether code that is not seen ran on a path, which may call functions of this file

    # ---- the module

    def is_seen(self, name: str) -> bool:
        """Whether it is known what a function does, from its body or otherwise."""
        return self.module.has_body(name) or name.startswith("llvm.") or self.models.knows(name)

    def know_names(self) -> None:
        """Raise `Refused` if what a name stands for is decided later, or is the library's to one compiler alone."""
        for name in self.module.variables():
            one = self.module.variable(name)
            if one is not None and (one.kind == "ifunc" or (one.kind == "alias" and REPLACED.intersection(one.words))):
                raise Refused(f"what {name} is, is decided when the program is linked or loaded")
        for name in self.module.defined():
            if not name.startswith("_") and host_call(name) is not None and not self._is_inlined_library(name):
                raise Refused(f"the program has a function of its own in place of the library's {name}")

    def _is_inlined_library(self, name: str) -> bool:
        return (head := self.module.head(name)) is not None and "available_externally" in head.words

    def show_initial(self) -> None:
        """What variables that others see hold at first: they may call the functions in it."""
        todo = [n for n in self.module.variables() if self._is_shared(n) and not n.startswith("llvm.")]
        found = set(todo)
        for name in todo:
            one = self.module.variable(self.real(name))
            new = [n for n in symbols_in(one.initial) if n not in found] if one is not None and one.initial else []
            found.update(new)
            todo += new
        for name in found:
            self.shown(self.symbol(name))

    def is_callable_from_outside(self, name: str) -> bool:
        """Whether other files may call a function of this one, by its name or by a second one."""
        head = self.module.head(name)
        return head is not None and (not _OWN.intersection(head.words) or name in self._renamed)

    def real(self, name: str) -> str:
        """The function or variable behind an alias."""
        found = self.module.variable(name)
        while found is not None and found.kind in ("alias", "ifunc") and found.initial is not None:
            names = symbols_in(found.initial)
            if not names:
                break
            name = names[0]
            found = self.module.variable(name)
        return name

    def graph(self, function: Function) -> Graph:
        """A function's graph, made once."""
        if function.name not in self._graphs:
            self._graphs[function.name] = graph_of(function, self.pays)
        return self._graphs[function.name]

    def pays(self, instruction: Instruction) -> bool:
        """Whether it is worth to walk a loop around this trip by trip: it does more than count."""
        if instruction.opcode == "store":
            return instruction.operands[0].type.kind == "ptr"
        if instruction.opcode not in ("call", "invoke"):
            return False
        name = callee(instruction)
        if name.startswith(_COPIES) and isinstance(size := instruction.operands[2], Integer):
            plain = is_of_numbers(self.module, instruction) or self._is_plain(instruction.operands[1])
            return size.value >= _POINTER and not plain
        return not name or self.is_relevant(name)

    def _is_plain(self, source: object) -> bool:
        """Whether a table is copied that holds no addresses."""
        variable = self.module.variable(source.name) if isinstance(source, Symbol) else None
        if variable is None or variable.kind != "constant" or variable.initial is None:
            return False
        return not symbols_in(variable.initial)

    def is_relevant(self, name: str) -> bool:
        """Whether a function may move pointers, or have to do with CUDA."""
        if name not in self._relevant:
            self._relevant[name] = False  # where it calls itself
            function = self.module.function(name)
            if STUB in name or name.startswith(_COPIES):
                self._relevant[name] = True
            elif function is None:
                self._relevant[name] = not name.startswith("llvm.") and not self.models.is_harmless(name)
            elif not _OWN_POINTERS.match(name):
                every = (one for block in function.blocks for one in block.instructions)
                self._relevant[name] = any(self.pays(one) for one in every)
        return self._relevant[name]

    def named_in(self, name: str) -> frozenset[str]:
        """The functions and variables that a function, or one that it calls or names, mentions."""
        if name not in self._named:
            found, todo = set[str](), [self.real(name)]
            while todo:
                one = todo.pop()
                if one not in found:
                    found.add(one)
                    todo += self._mentions(one)
            self._named[name] = frozenset(found)
        return self._named[name]

    def _mentions(self, name: str) -> tuple[str, ...]:
        """What a function's body or a variable's initial value mentions, by its text: most bodies are never read."""
        if name not in self._mentioned:
            found = self.module.mentioned(name)
            self._mentioned[name] = tuple(dict.fromkeys(self.real(one) for one in found))
        return self._mentioned[name]

    def leads_to_cuda(self, name: str) -> bool:
        """Whether a function, or one that it mentions, launches something or calls CUDA."""
        if self._leading is None:
            before: dict[str, list[str]] = {}
            for one in (*self.module.defined(), *self.module.variables()):
                for other in self._mentions(one):
                    before.setdefault(other, []).append(one)
            todo = [one for one in self.module.names() if STUB in one or one.startswith("cuda") or is_cuda_name(one)]
            self._leading = set(todo)
            while todo:
                new = [one for one in before.get(todo.pop(), ()) if one not in self._leading]
                self._leading.update(new)
                todo += new
        return self.real(name) in self._leading

    def holds_launch(self, name: str) -> bool:
        """Whether there is a launch in a function itself."""
        return any(one == PUSH or one.startswith("cudaLaunchKernel") for one in self._mentions(name))

    def variables_in(self, name: str) -> frozenset[Object]:
        """The variables among what a function mentions."""
        if name not in self._used:
            every = (self.symbol(one) for one in self.named_in(name))
            self._used[name] = frozenset(one for one in every if one.kind == "global")
        return self._used[name]

    def outside(self) -> frozenset[Object]:
        """What code in other files can reach: variables that it sees, and those that functions use which it may call.

        Such functions are then wanted, too: as the first of a path of their own.
        """
        if self._outside is None:
            callable_ = [n for n in self.module.defined() if self.is_callable_from_outside(n) and n != "main"]
            names = {n for n in self.module.variables() if self._is_shared(n)}
            for name in callable_:
                names.update(self.named_in(name))
            every = (self.symbol(name) for name in names)
            self._outside = frozenset(one for one in every if one.kind == "global" and not self.is_constant(one))
        return self._outside

    def variables(self) -> frozenset[Object]:
        """All variables that can be changed."""
        every = (self.symbol(name) for name in self.module.variables())
        return frozenset(one for one in every if one.kind == "global" and not self.is_constant(one))

    def _is_shared(self, name: str) -> bool:
        variable = self.module.variable(name)
        return variable is not None and not _OWN.intersection(variable.words)

    # ---- budgets

    def allow(self, roots: int) -> None:
        """A path begins that has its share of what is left; so many others follow it."""
        self.enough = self.steps + max(_LEAST, (_SOFT * 2 - self.steps) // roots)

    def step(self, work: int = 1) -> None:
        """Count an instruction, or other work; raises `OutOfBudget`. Time itself would differ from run to run."""
        self.steps += work
        if self.steps > self.bound:
            raise OutOfBudget

    def trips_since(self, begun: int) -> int:
        """How many trips are walked one by one of a loop that was entered after so many steps."""
        return _TRIPS if self.steps < self.enough and self.steps - begun < _LOOP else 2

    @property
    def is_bounded(self) -> bool:
        """Whether what is walked has nothing to do with CUDA, and may take only so long."""
        return self.bound < _HARD

    @contextmanager
    def bounded(self) -> Iterator[None]:
        """Bound what is walked so."""
        self.bound = min(_HARD, self.steps + _ASIDE)
        try:
            yield
        finally:
            self.bound = _HARD

    def is_short(self, function: Function) -> bool:
        """Whether a function has no loop, and calls none that has a body: it is walked at once."""
        if function.name not in self._short:
            around = any(self.graph(function).inside.values())
            calls = [one for block in function.blocks for one in block.instructions if one.opcode in ("call", "invoke")]
            named = [self.real(callee(one)) for one in calls]
            self._short[function.name] = not around and not any(not n or self.module.has_body(n) for n in named)
        return self._short[function.name]

    def lose(self, what: str) -> None:
        """Remember that something could not be followed."""
        self.record.lost[what] = None

    # ---- objects

    def context(self, parent: int, instruction: Instruction, function: str = "") -> int:
        """The number of a call in a context, made by a function; 0 is before where a path begins."""
        number = self._contexts.setdefault((parent, id(instruction)), len(self._contexts) + 1)
        if function:
            self._callers[number] = (parent, instruction, function)
        return number

    def chain(self, context: int) -> Iterator[tuple[Instruction, str]]:
        """The calls that led to a context, innermost first, each with the function that made it."""
        while context in self._callers:
            context, instruction, function = self._callers[context]
            yield instruction, function

    def allocated(
        self, state: State, kind: str, name: str, instruction: Instruction, context: int, size: int = -1
    ) -> Object:
        """A new object of a site; which one, depends on how many there are and on how sure it is how many."""
        known = self._sites.setdefault((kind, id(instruction)), set())
        if context not in known and len(known) >= _CONTEXTS:
            context = 0
        known.add(context)
        if not self.fixed and context:
            for instance in range(_INSTANCES):
                one = self._object((kind, id(instruction), context, instance), kind, name, instruction, context, size)
                if one not in state.memory:
                    return self._made(one)
        every = (kind, id(instruction), context, -1)
        return self._made(self._object(every, kind, name, instruction, context, many=True))

    def _made(self, one: Object) -> Object:
        if self.watcher is not None:
            self.watcher.makes(one)
        return one

    def local(self, name: str, instruction: object, at: Instruction, context: int, size: int, many: bool) -> Object:
        """A variable on the stack: there is one in each activation, which a context stands for."""
        key = ("stack", id(instruction), context)
        return self._object(key, "stack", name, at, context, size, many=many or self.recursing > 0)

    def _object(
        self, key: object, kind: str, name: str, at: Instruction, context: int, size: int = -1, *, many: bool = False
    ) -> Object:
        if key not in self._objects:
            self._objects[key] = Object(kind, name, len(self._objects), at.place, context, many, size)
        return self._objects[key]

    def symbol(self, name: str) -> Object:
        """A function or a global variable."""
        name = self.real(name)
        if name not in self._objects:
            kind = "function" if self.module.head(name) is not None else "global"
            size = self.layouts.size(one.type) if (one := self.module.variable(name)) is not None else -1
            self._objects[name] = Object(kind, name, len(self._objects), size=size)
        return self._objects[name]

    def resource(self, kind: str, name: str) -> Object:
        """Something that there is one of, such as a symbol's memory on the device."""
        if (kind, name) not in self._objects:
            self._objects[kind, name] = Object(kind, name, len(self._objects))
        return self._objects[kind, name]

    def fresh(self, one: Object) -> Contents:
        """What an object holds that no path has touched."""
        if one.kind in ("entry", "kesco"):
            return Contents(lazy=True)
        if one.kind != "global":
            return Contents(volatile=one.kind == "outside")
        variable = self.module.variable(one.name)
        if variable is None or variable.initial is None:
            return Contents(volatile=True)
        if variable.kind != "constant":
            if not self.knows_globals:
                return Contents(volatile=self.first is None, lazy=self.first is not None)
            # who runs before main may have changed it, or called a function that does
            if not self.whole and one in self.outside():
                return Contents(rest=frozenset((BEFORE,)))
        if one.name not in self._initial:
            self._initial[one.name] = self.constants.initially(variable)
        return self._initial[one.name]

    def held_at_first(self, one: Object, at: int, size: int) -> Scalar:
        """What a lazy object held when the path began."""
        return self.first(one, at, size) if self.first is not None else unknown("what was there before")

    def touched(self, state: State, one: Object | None, where: tuple[Offset, int | None], writes: bool) -> None:
        """The host reads or writes what the device may reach."""
        if self.in_runtime:
            return
        if self.watcher is not None:
            self.watcher.touches(state, one, where, writes=writes)
        self.orders.looks(self.frame)

    def accessed(
        self, state: State, at: Object | None, where: tuple[Offset, int], value: Value, *, writes: bool
    ) -> None:
        """A value is read or written there."""
        if self.orders.parts_at is not None and (at is None or not self.is_constant(at)):
            self.orders.access(self.frame, state, at, where, value, writes=writes)

    def comes_to(self, state: State, at: Object) -> None:
        """Somebody is about to read an object."""
        if self.orders.loose and not self.is_constant(at):
            self.orders.loosen(self.frame, state, at)

    def shown(self, function: Object) -> None:
        """Code that is not followed may call a function."""
        if self.module.has_body(function.name) and STUB not in function.name:
            self.record.wanted[function.name] = None

    def is_constant(self, one: Object) -> bool:
        """Whether nothing can change an object."""
        variable = self.module.variable(one.name) if one.kind == "global" else None
        return one.kind == "function" or (variable is not None and variable.kind == "constant")
