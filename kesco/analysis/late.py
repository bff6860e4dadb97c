"""What could tell that launches are late: ``late_calls(ir_text)``, from LLVM IR of the host.

In: IR of a text with batches, in which the names of batches are declared and have no bodies. Out: what may happen while
launches are late (`ir.batches`), each with its place. A module of its own since it shares nothing with who chose the
loops: those go by what is written; here is what runs, also where nothing is written: constructors, destructors, default
arguments, captures, conversions.

1. From each function in which a guard begins, its instructions are followed with what may be the case (`_State`): which
object lets launches be late, and whether some are. 2. A call of a function with a body is followed in the same way, and
remembered for each state in which it is entered. 3. While launches are late, nothing is allowed but arithmetic, plain
loads and stores, such launches, and functions that are known to neither wait nor look (`_QUIET`). 4. Where a function
comes back, or throws, it does so in a state, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from kesco.frontend.api_table import cuda_call
from kesco.ir.batches import CALLS, END, EVENTS, GUARD, ISSUE, OWN, STREAM, TRIP, Tells
from kesco.llvm.canonical import canonical
from kesco.llvm.module import Module
from kesco.llvm.values import UNREAD, Function, Instruction, Integer, Local, Symbol, Value, callee
from kesco.source import Span

_OURS = "_ZN12_GLOBAL__N_1"
_CONFIGURES = "__cudaPushCallConfiguration"
_STUB = re.compile(r"\d__device_stub__")
_POPS = "__cudaPopCallConfiguration"
_QUIET = re.compile(
    r"llvm\.(?!.*(?:coro|setjmp|longjmp|trap)).*"
    r"|_Z(?:nw|na)[mPR].*|malloc|calloc|realloc|free|mem(?:cpy|move|set|cmp|chr)|bcmp|str(?:n?len|n?cmp|chr)|abort"
    r"|__cxa_(?:allocate_exception|free_exception|throw|rethrow|begin_catch|end_catch|throw_bad_array_new_length)"
    r"|__gxx_personality_v0|__clang_call_terminate|_Unwind_Resume|_ZSt9terminatev|_ZSt\d+__throw_.*|__assert_fail|_?_?[eE]xit"
    r"|f?printf|f?puts|f?putc(?:har)?|fflush|perror|sn?printf|fwrite"
    r"|(?:f?abs|l?labs|sqrt|cbrt|hypot|exp2?|expm1|log(?:2|10|1p)?|pow|a?(?:sin|cos|tan)h?|atan2|floor|ceil|l?l?round"
    r"|l?l?rint|nearbyint|trunc|fmod|remainder|fmin|fmax|fma|ldexp|frexp|scalbn|copysign|tgamma|lgamma|erfc?)[fl]?"
    r"|cudaGetLastError|cudaPeekAtLastError|cudaGetErrorString|cudaGetErrorName|__cudaPopCallConfiguration"
    r"|_ZNK?St7__cxx1112basic_stringIc.*|_ZNK?St7__cxx1119basic_ostringstreamIc.*|_ZNK?St(?:13runtime|11logic|12system)_error.*"
    r"|_ZNK?St16invalid_argument.*|_ZNK?St9exception.*|_ZNKSt5ctypeIcE.*|_ZNSt8ios_base4InitC1Ev|_ZSt16__convert_from_.*"
)
"""Functions without a body here that neither wait, nor look, nor call what is not seen.

`operator delete` is none: another file may have its own, for memory that kernels use.
"""
_OUTPUT = re.compile(
    r"_ZNSo(?:lsE[a-z]|9_M_insertI[a-z]E.*|3putEc|5flushEv|5writeEPKcl|lsEPFRSoS_E)"
    r"|_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_(?:PKc|c)|_ZSt(?:16__ostream_insert|4endl|5flush)I.*"
)
"""The same where what they write to is one of the library's own streams, with a buffer of the library's."""
_MANIPULATED = "_ZNSolsEPFRSoS_E"
_MANIPULATORS = re.compile(r"_ZSt(?:4endl|5flush)I.*")
_STREAMS = frozenset({"_ZSt4cout", "_ZSt4cerr", "_ZSt4clog"})
_BEGINS = f"{GUARD}.C"
_LATE = frozenset({STREAM, *CALLS.values()})
_NAMED = re.compile("kesco_batch|KescoBatch")
_JUMPS = re.compile(r"setjmp|longjmp|set_terminate|^signal$|^sigaction$|at_quick_exit", re.IGNORECASE)
_BUFFERS = re.compile(r"rdbufEP|_ZTV.*streambuf")
_DEEPEST = 100
_MOST = 4000
"""So many states of functions are followed."""


@dataclass(frozen=True, slots=True)
class _State:
    """`owner`: the object that lets launches be late, ``outer`` if a caller has it, or empty; `late`: some are."""

    owner: str = ""
    late: bool = False
    taken: bool = False  # a launch has its stream, and nothing has issued what was late since


_States = frozenset[_State]


@dataclass(slots=True)
class _Followed:
    """What is known of a function that is entered in one state: the states in which it comes back, or throws."""

    back: _States = frozenset()
    thrown: _States = frozenset()


def late_calls(ir_text: str, path: str) -> tuple[Tells, ...]:
    """What may happen while launches are late, in words."""
    return _Late(Module(canonical(ir_text, "host", sroa=True)), path).problems()


def _own(name: str) -> str:
    """What one of kesco's functions is called, by its mangled name; empty for others."""
    if not name.startswith(_OURS):
        return ""
    found = re.match(rf"{_OURS}(\d+)", name)
    if found is None:
        return ""
    end = found.end() + int(found[1])
    word = name[found.end() : end]
    member = re.match(r"(\d+)|[CD][012]", name[end:])
    if word != GUARD or member is None:
        return word
    return f"{GUARD}.{name[end + member.end() :][: int(member[1])] if member[1] else member[0][0]}"


class _Late:
    """Follows one module."""

    def __init__(self, module: Module, path: str) -> None:
        self.module, self.path = module, path
        self._known: dict[tuple[str, _State], _Followed] = {}
        self._found: dict[tuple[int, str], set[int]] = {}
        self._numbers: tuple[int, ...] = ()  # of the guards in the function that all began in
        self._changed = False
        self._buffered = False  # whether no stream has a buffer of the program's
        self._called_back = True  # whether code that is not seen may leave launches late
        self._depth = 0
        self._walked: set[tuple[str, _State]] = set()
        self._of: dict[str, dict[str, Instruction]] = {}

    def problems(self) -> tuple[Tells, ...]:
        """From each function with a guard, until nothing more is found."""
        guarded = {name: numbers for name in self.module.defined() if (numbers := self._guards(name))}
        every = tuple(sorted({n for numbers in guarded.values() for n in numbers}))
        top = Span(self.path, 0, 1, 1, 1)
        named = [name for name in self.module.names() if _NAMED.search(name)]
        if not guarded or any(self.module.has_body(n) or not _own(n).startswith((STREAM, GUARD)) for n in named):
            return (Tells(top, "the names of batches stand for something else"),)
        if any(_JUMPS.search(name) for name in self.module.names()):
            return (Tells(top, "control may jump out of a function, or what ends the process be caught", every),)
        self._buffered = not any(map(_BUFFERS.search, (*self.module.names(), *self.module.variables())))
        launching = self._launching()
        self._called_back = any(self._leaves_late(name) for name in self.module.defined() if name in launching)
        self._found.clear()
        for name, self._numbers in guarded.items():
            self._known.clear()
            self._settled(name, _State())
            if len(self._known) > _MOST:
                return (Tells(top, "too much is called while launches may be late", every),)
        return tuple(
            Tells(self._span(number), f"launches may be late, and {what} could tell", tuple(sorted(guards)))
            for (number, what), guards in self._found.items()
        )

    def _launching(self) -> frozenset[str]:
        """The functions that make launches late, or call or name one that does."""
        found = {n for n in self.module.defined() if any(_own(m) in _LATE for m in self.module.mentioned(n))}
        while more := {
            n for n in self.module.defined() if n not in found and not found.isdisjoint(self.module.mentioned(n))
        }:
            found |= more
        return frozenset(found)

    def _leaves_late(self, name: str) -> bool:
        """Whether code that is not seen may call a function, and leave launches late by that."""
        if name == "main":
            return False
        head, address = self.module.head(name), re.compile(rf'@"?{re.escape(name)}"?(?!\()')
        alone = head is not None and not {"internal", "linkonce_odr"}.isdisjoint(head.words)
        others = (line for one in self.module.defined() for line in self.module.body(one))
        if alone and not any(address.search(line) for line in others) and name not in self._held():
            return False
        return any(one.late for one in self._settled(name, _State("outer")).back)

    def _settled(self, name: str, entered: _State) -> _Followed:
        """What is known of a function when no round finds more."""
        self._changed = True
        while self._changed and len(self._known) <= _MOST:
            self._changed = False
            self._walked.clear()
            self._follow(name, entered)
        return self._known[name, entered]

    def _held(self) -> frozenset[str]:
        """The functions whose addresses are in variables, such as tables of virtual functions."""
        return frozenset(one for variable in self.module.variables() for one in self.module.mentioned(variable))

    def _guards(self, name: str) -> tuple[int, ...]:
        """The numbers of the guards that a function makes."""
        if not any(_own(one) == _BEGINS for one in self.module.mentioned(name)):
            return ()
        function = self.module.function(name)
        assert function is not None
        made = (i.operands[1] for b in function.blocks for i in b.instructions if _own(callee(i)) == _BEGINS)
        return tuple(one.value if isinstance(one, Integer) else 0 for one in made)

    def _span(self, number: int) -> Span:
        place = self.module.place(number) if number >= 0 else None
        return Span(place.file or self.path, 0, 1, place.line, place.column) if place else Span(self.path, 0, 1, 1, 1)

    def _tell(self, one: Instruction, what: str) -> None:
        self._found.setdefault((one.place, what), set()).update(self._numbers)

    # ---- functions

    def _follow(self, name: str, entered: _State) -> _Followed:
        """What is known of a function, looked at again once in each round."""
        key = name, entered
        known = self._known.setdefault(key, _Followed())
        if key in self._walked:
            return known
        if self._depth > _DEEPEST:
            self._found.setdefault((-1, "what is called so deep"), set()).update(self._numbers)
            return known
        self._walked.add(key)
        self._depth += 1
        function = self.module.function(name)
        assert function is not None
        back, thrown = self._body(function, entered)
        self._depth -= 1
        if not (back <= known.back and thrown <= known.thrown):
            self._changed = True
            known.back, known.thrown = known.back | back, known.thrown | thrown
        return known

    def _body(self, function: Function, entered: _State) -> tuple[_States, _States]:
        """The states in which a function comes back and throws."""
        blocks = {block.name: block for block in function.blocks}
        self._of[function.name] = {
            i.result.name: i for b in function.blocks for i in b.instructions if i.result is not None
        }
        start = replace(entered, owner="outer" if entered.owner else "")
        at: dict[str, set[_State]] = {function.blocks[0].name: {start}}
        work, back, thrown = [(function.blocks[0].name, start)], set[_State](), set[_State]()
        while work:
            name, state = work.pop()
            states = frozenset({state})
            for one in blocks[name].instructions:
                after, unwound = self._step(function, one, states)
                if one.opcode == "invoke":
                    self._go(one.targets[:1], after, at, work)
                    self._go(one.targets[1:], unwound, at, work)
                elif one.opcode == "ret":
                    back |= states
                elif one.opcode == "resume":
                    thrown |= states
                elif one.opcode != "phi" and one.targets:
                    self._go(one.targets, states, at, work)
                if one.opcode == "call":  # where a guard would have to go, a call that may throw is an invoke
                    thrown |= {s for s in unwound if s.owner in ("", "outer")}
                states = after
        ends = function.blocks[-1].instructions[-1]
        if any(one.owner not in ("", "outer") for one in back | thrown):
            self._tell(ends, "what comes behind its function")
        return frozenset(back), frozenset(thrown)

    @staticmethod
    def _go(
        targets: tuple[str, ...], states: _States, at: dict[str, set[_State]], work: list[tuple[str, _State]]
    ) -> None:
        for target in targets:
            for state in states - at.setdefault(target, set()):
                at[target].add(state)
                work.append((target, state))

    # ---- instructions

    def _step(self, function: Function, one: Instruction, states: _States) -> tuple[_States, _States]:
        """The states behind an instruction: where it comes back, and where it throws."""
        late = any(s.late for s in states)
        if one.opcode in ("call", "invoke"):
            return self._call(function, one, states)
        if late and (
            "volatile" in one.words or "atomic" in one.words or one.opcode in ("atomicrmw", "cmpxchg", "fence")
        ):
            self._tell(one, "a volatile or atomic access")
        elif late and UNREAD in one.words:
            self._tell(one, f"'{one.opcode}'")
        return states, frozenset()

    def _call(self, function: Function, one: Instruction, states: _States) -> tuple[_States, _States]:
        name = callee(one)
        own = _own(name)
        if own.startswith((STREAM, GUARD)):
            return self._ours(function, one, own, states)
        late, here = any(s.late for s in states), self._is_here(name)
        if here and _STUB.search(name) and _POPS in self.module.mentioned(name):
            if any(s.owner and not s.taken for s in states):
                self._tell(one, "what stands between a launch and its stream")
            states = frozenset(replace(s, taken=False) for s in states)
            return states, states
        if not here and (own in OWN or own in EVENTS or own.startswith("KescoLeave")):
            return states, states
        if name == _CONFIGURES:
            if self._is_stream(function, one.operands[-2]):
                return states, states
            if late:
                self._tell(one, "a launch that is not late")
            states = frozenset(replace(s, taken=True) for s in states)
            return states, states
        if here:
            return self._follow_all(name, states)
        if name == "__cxa_throw" and isinstance(end := one.operands[2], Symbol) and not _QUIET.fullmatch(end.name):
            if not self._is_here(end.name):  # what is thrown ends where it is caught
                self._tell(one, f"'{end.name}'")
            else:
                self._follow_all(end.name, frozenset(replace(s, late=bool(s.owner)) for s in states))
        if _QUIET.fullmatch(name) or (_OUTPUT.fullmatch(name) and self._is_written(function, one)):
            return states, states
        if late:
            self._tell(one, f"'{name}'" if name else "a call of what is not known")
        if self._called_back and not own and cuda_call(name, None) is None:
            states |= {replace(s, late=bool(s.owner)) for s in states}
        return states, states

    def _is_here(self, name: str) -> bool:
        """Whether what runs when a function is called is its body here."""
        head = self.module.head(name) if name and self.module.has_body(name) else None
        return head is not None and {"weak", "linkonce", "available_externally"}.isdisjoint(head.words)

    def _follow_all(self, name: str, states: _States) -> tuple[_States, _States]:
        back, thrown = set[_State](), set[_State]()
        for state in states:
            known = self._follow(name, replace(state, owner="outer" if state.owner else ""))
            for found, behind in ((known.back, back), (known.thrown, thrown)):
                behind |= {replace(one, owner=state.owner, late=one.late and bool(state.owner)) for one in found}
        return frozenset(back), frozenset(thrown)

    def _ours(self, function: Function, one: Instruction, own: str, states: _States) -> tuple[_States, _States]:
        """What the names of batches do: the streams and calls that make launches late, and what issues these."""
        if own in _LATE:
            found = frozenset(_State(s.owner, bool(s.owner), own == STREAM) for s in states)
        elif own == ISSUE:
            found = frozenset(_State(s.owner) for s in states)
        elif own == TRIP:
            found = frozenset(_State(s.owner, s.late) for s in states)
        elif own == _BEGINS:
            made = self._of[function.name].get(_named(one.operands[0]))
            if made is None or made.opcode != "alloca":
                self._tell(one, "what comes behind its function")
            return frozenset(s if s.owner else _State(_named(one.operands[0])) for s in states), states
        elif own in (f"{GUARD}.D", f"{GUARD}.{END}"):
            mine = _named(one.operands[0])
            found = frozenset(_State("" if s.owner == mine else s.owner) for s in states)
        else:
            self._tell(one, f"'{own}'")
            found = states
        return found, found

    # ---- values

    def _is_stream(self, function: Function, value: Value) -> bool:
        """Whether a launch's stream is what `STREAM` gave."""
        made = self._of[function.name].get(value.name) if isinstance(value, Local) else None
        return made is not None and made.opcode in ("call", "invoke") and _own(callee(made)) == STREAM

    def _is_written(self, function: Function, one: Instruction) -> bool:
        """Whether output runs no code but the library's."""
        known = callee(one) != _MANIPULATED or (
            isinstance(one.operands[1], Symbol) and _MANIPULATORS.fullmatch(one.operands[1].name) is not None
        )
        return known and self._buffered and self._is_output(function, one.operands[0])

    def _is_output(self, function: Function, value: Value) -> bool:
        """Whether a stream of the library is one of those that are there from the beginning, or in a string."""
        for _ in range(64):
            if isinstance(value, Symbol):
                return value.name in _STREAMS
            made = self._of[function.name].get(value.name) if isinstance(value, Local) else None
            if made is None:
                return False
            if (
                made.opcode in ("call", "invoke") and _OUTPUT.fullmatch(callee(made))
            ) or made.opcode == "getelementptr":
                value = made.operands[0]
            else:
                return made.opcode == "alloca" and made.about is not None and "basic_ostringstream" in str(made.about)
        return False


def _named(value: Value) -> str:
    return value.name if isinstance(value, (Local, Symbol)) else "?"
