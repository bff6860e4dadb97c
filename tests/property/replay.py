"""Run a small CUDA program on paper: which device operations it issues, and which of them come before which.

A parser and an interpreter for the C that `property.programs` writes and for what kesco adds to it, and a model of
CUDA's ordering rules. Nothing of kesco is used: the emitted text is executed as it stands, expressions over loop
counters, guards of branches, braces and all, so that a mistake in kesco's own reading of its output cannot hide here.

The rules, on the careful side unless said otherwise: work on a stream comes after earlier work on it and after earlier
actions on the legacy stream; work on the legacy stream comes after all earlier work on any stream; an event covers what
was queued on its stream, a wait for it on the legacy stream brings that and the streams of unseen code, nothing else;
the host waits only in `cudaDeviceSynchronize`, in `cudaFree` and in copies to the host. `kesco check` believes more, as
was seen on a GPU: a `generous` machine has its rules, and such a run never goes to one stream by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_TOKEN = re.compile(
    r"\s*(?:(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<hash>#(?:[^\n\\]|\\\n)*)"
    r"|(?P<number>\d+(?:\.\d+)?f?)|(?:::)?(?P<name>[A-Za-z_]\w*(?:::\w+)*)|(?P<char>'.'|\"[^\"]*\")"
    r"|(?P<sign><<<|>>>|->|\+\+|--|[=!<>+\-*/%]=|&&|\|\||[-+*/%<>=!?:;,.&(){}\[\]]))",
    re.DOTALL,
)
_HOOKS = re.compile(
    r"// ---- kesco: launch hooks of this file.*?// ---- kesco: launch hooks end\n"
    r"|kesco_(?:before|after)\([^;]*\);  // kesco: launch hook",
    re.DOTALL,
)
_TYPES = {"int", "float", "void", "const", "static", "KescoStreams", "KescoLeave", "char", "auto"}
_NAMES = {f"cudaMemcpy{kind}" for kind in ("DeviceToDevice", "HostToDevice", "DeviceToHost", "Default")}
_WAITS = ("cudaMemcpyDeviceToHost", "cudaMemcpyDefault")  # of plain copies the host waits for these
THREADS = 32  # of each launch; each thread touches one float behind each pointer
_SIZED = ("cudaMemcpy", "cudaMemset", "cudaMemcpyToSymbol", "cudaMemcpyFromSymbol")  # bytes, third argument
LEGACY, FOREIGN = "legacy", "foreign"
MEMORY = "memory: "  # an operation that is not the program's own: it only takes memory or gives it back
_LEFT_OUT = {"cudaMemcpyToSymbol": "cudaMemcpyHostToDevice", "cudaMemcpyFromSymbol": "cudaMemcpyDeviceToHost"}
_OWN = {  # which arguments are the source, what is 0 where nothing is copied, and the kind; the stream follows
    "kesco_copy_2d": (2, 5, 6),
    "kesco_copy_to_symbol": (1, 2, 4),
    "kesco_copy_from_symbol": (1, 2, 4),
}
_COPIES = {  # which arguments are the source, the kind and, if it is there, the stream
    "cudaMemcpy": (1, 3, 4),
    "cudaMemcpy2D": (2, 6, 7),
    "cudaMemcpyToSymbol": (1, 4, 5),
    "cudaMemcpyFromSymbol": (1, 4, 5),
}


Access = tuple[str, str] | tuple[str, str, int, int]  # buffer, mode and, where not all of it is touched, which bytes


def meet(a: Access, b: Access) -> bool:
    """Whether two accesses touch a byte in common that one of them writes."""
    if a[0] != b[0] or a[1] + b[1] == "rr":
        return False
    return len(a) == 2 or len(b) == 2 or (a[2] < b[3] and b[2] < a[3])


def _set(name: str, values: list[Any]) -> Access:
    """What a memset writes."""
    whole = name != "cudaMemset" or not isinstance(values[2], int)
    return (values[0].buffer, "w") if whole else _part(values[0], "w", values[2])


def _part(pointer: Pointer, mode: str, size: int) -> Access:
    """An access of so many bytes; pointers count floats."""
    return pointer.buffer, mode, 4 * pointer.offset, 4 * pointer.offset + size


# ---- the ordering rules ---------------------------------------------------------------------------------------------


@dataclass
class Machine:
    """The device: every operation so far, and the mask of operations that each comes behind."""

    operations: list[tuple[str, tuple[Access, ...]]] = field(default_factory=list)
    behind: list[int] = field(default_factory=list)
    queued: dict[str, int] = field(default_factory=dict)  # stream → what its next operation comes behind
    events: dict[str, int] = field(default_factory=dict)
    host: int = 0
    generous: bool = False
    gone: set[str] = field(default_factory=set)  # memory that was given back

    def issue(self, stream: str, what: str, *accesses: Access) -> int:
        """An operation on a stream; accesses are (buffer, mode)."""
        before = self.host | self.queued.get(LEGACY, 0) | self.queued.get(stream, 0)
        if stream == LEGACY:
            for mask in self.queued.values():
                before |= mask
        number = self._note(before, what, accesses)
        self.queued[stream] = before | 1 << number
        return number

    def on_host(self, what: str, *accesses: Access) -> None:
        """The host itself touches memory."""
        self.host |= 1 << self._note(self.host, what, accesses)

    def _note(self, before: int, what: str, accesses: tuple[Access, ...]) -> int:
        assert self.gone.isdisjoint(one[0] for one in accesses), f"{what} uses memory that was given back"
        self.operations.append((what, accesses))
        self.behind.append(before)
        return len(self.behind) - 1

    def record(self, event: str, stream: str) -> None:
        """The event covers what is queued on the stream."""
        self.events[event] = self.queued.get(stream, 0)

    def wait(self, stream: str, event: str) -> None:
        """What is queued on the stream from now on comes behind what the event covers; unrecorded ones do nothing."""
        if event in self.events:
            self.queued[stream] = self.queued.get(stream, 0) | self.events[event]
            if stream == LEGACY:
                for other in list(self.queued) if self.generous else [FOREIGN]:
                    self.queued[LEGACY] |= self.queued.get(other, 0)

    def synchronize(self) -> None:
        """The host waits for everything."""
        self.host = (1 << len(self.behind)) - 1

    def unordered(self) -> list[tuple[int, int]]:
        """Pairs that touch the same memory, one of them writing, with nothing to order them."""
        found = []
        for later, (_, theirs) in enumerate(self.operations):
            for earlier in range(later):
                if not self.behind[later] >> earlier & 1:
                    ours = self.operations[earlier][1]
                    if any(meet(a, b) for a in ours for b in theirs):
                        found.append((earlier, later))
        return found


# ---- values ---------------------------------------------------------------------------------------------------------


@dataclass
class Cell:
    """A place that holds a value."""

    value: Any = None


@dataclass(frozen=True)
class Pointer:
    """Into which allocation, and how far."""

    buffer: str
    offset: int = 0


@dataclass
class Struct:
    """An object: its type, which has the methods, and its fields."""

    kind: str
    fields: dict[str, Cell]

    def copy(self) -> Struct:
        return Struct(self.kind, {name: Cell(one.value) for name, one in self.fields.items()})


@dataclass(frozen=True)
class Lambda:
    """A function with what is visible where it is written."""

    parameters: list[tuple[str, bool]]
    body: tuple
    frame: dict[str, Cell]


@dataclass
class Streams:
    """What ``kesco_streams()`` gives; collapsed, all streams are the first one, and there are no events but tails.

    What the check of pointers collapsed is `fixed`: it stays so.
    """

    collapsed: bool = False
    fixed: bool = False

    def stream(self, number: int) -> str:
        return f"stream {0 if self.collapsed else number}"

    def done(self, number: int) -> str | None:
        return None if self.collapsed else f"done {number}"


class Leave(Exception):
    """A break, continue or return on its way."""

    def __init__(self, how: str, value: Any = None) -> None:
        self.how, self.value = how, value


# ---- the parser -----------------------------------------------------------------------------------------------------


def tokens(text: str) -> list[str]:
    start, end = text.find("// ---- kesco: streams and events"), text.find("// ---- kesco: end")
    if start >= 0:
        text = text[:start] + text[text.index("\n", end) :]
    text = _HOOKS.sub("", text)  # they only tell a runtime what is launched
    found, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None, f"what is this: {text[at : at + 60]!r}"
        at = match.end()
        if match.lastgroup not in ("comment", "hash"):
            found.append(match[match.lastgroup or 0])
    return found


class Parser:
    """Recursive descent; nodes are tuples that begin with their kind."""

    def __init__(self, text: str) -> None:
        self.tokens, self.at = [*tokens(text), ""], 0
        self.functions: dict[str, tuple] = {}
        self.structs: dict[str, list[str]] = {}  # type → fields; methods are functions called "type::name"
        self.types = set(_TYPES)
        self.globals: list[tuple] = []
        self.symbols: list[str] = []
        while self.peek():
            self._top()

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[self.at + ahead]

    def next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def take(self, wanted: str) -> None:
        assert self.next() == wanted, f"{wanted} expected: {' '.join(self.tokens[self.at - 8 : self.at + 4])}"

    def given(self, wanted: str) -> bool:
        if self.peek() == wanted:
            self.at += 1
            return True
        return False

    def _skip_braces(self) -> None:
        depth = 0
        while True:
            depth += {"{": 1, "}": -1}.get(sign := self.next(), 0)
            if sign == "}" and depth == 0:
                return

    def _top(self) -> None:
        if self.peek() in ("__global__", "__device__"):
            while self.peek() not in ("{", ";", "["):
                name = self.next()
            if self.peek() == "{":
                self._skip_braces()
                return
            self.symbols.append(name)
            while self.next() != ";":
                pass
            return
        if self.given("struct"):
            self._struct()
            return
        start = self.at
        while self.peek() in self.types or self.peek() in "*&":
            self.next()
        name = self.next()
        if self.peek() != "(":
            self.at = start
            self.globals.append(self.statement())
            return
        parameters = self._parameters()
        if not self.given(";"):
            self.functions[name] = (parameters, self.statement())

    def _parameters(self) -> list[tuple[str, bool]]:
        self.take("(")
        parameters = []
        while not self.given(")"):
            reference = False
            while self.peek() in self.types or self.peek() in "*&":
                reference |= self.next() == "&"
            if self.peek() not in ",)":
                parameters.append((self.next(), reference))
            self.given(",")
        return parameters

    def _struct(self) -> None:
        kind = self.next()
        self.types.add(kind)
        fields = self.structs[kind] = []
        self.take("{")
        while not self.given("}"):
            while self.peek() in self.types or self.peek() in "*&":
                self.next()
            name = self.next()
            if self.peek() == "(":
                self.functions[f"{kind}::{name}"] = (self._parameters(), self.statement())
            else:
                fields.append(name)
                self.take(";")
        self.take(";")

    def statement(self) -> tuple:
        word = self.peek()
        if self.given("{"):
            body = []
            while not self.given("}"):
                body.append(self.statement())
            return ("block", body)
        if word in ("if", "while", "switch"):
            self.next()
            self.take("(")
            condition = self.expression()
            self.take(")")
            then = self.statement()
            if word != "if":
                return (word, condition, then)
            return ("if", condition, then, self.statement() if self.given("else") else ("block", []))
        if self.given("do"):
            body = self.statement()
            self.take("while")
            condition = self.expression()
            self.take(";")
            return ("do", body, condition)
        if self.given("for"):
            self.take("(")
            if (each := self._range()) is not None:
                return each
            first = self.statement()
            condition = self.expression()
            self.take(";")
            step = self.expression()
            self.take(")")
            return ("for", first, condition, step, self.statement())
        if self.given("case"):
            value = self.expression()
            self.take(":")
            return ("case", value)
        if self.given("default"):
            self.take(":")
            return ("case", None)
        if word in ("break", "continue", "return"):
            self.next()
            value = self.expression() if self.peek() != ";" else None
            self.take(";")
            return ("leave", word, value)
        if word in self.types:
            return self._declaration()
        one = ("block", []) if word == ";" else ("evaluate", self._in_turn())
        self.take(";")
        return one

    def _range(self) -> tuple | None:
        """The rest of a range-based ``for``, if it is one."""
        start, reference = self.at, False
        while self.peek() in self.types or self.peek() in "*&":
            reference |= self.next() == "&"
        name = self.next()
        if not self.given(":"):
            self.at = start
            return None
        array = self.expression()
        self.take(")")
        return ("range", name, reference, array, self.statement())

    def _declaration(self) -> tuple:
        static = self.peek() == "static"
        while self.peek() in self.types:
            kind = self.next()
        declared = []
        while True:
            reference = False
            while self.peek() in "*&" or self.peek() in self.types:
                reference |= self.next() == "&"
            name, count, initial = self.next(), None, None
            if self.given("["):
                count = ("value", 0) if self.peek() == "]" else self.expression()
                self.take("]")
            if self.given("="):
                initial = self._braced() if self.peek() == "{" else self.expression()
            elif self.peek() == "{":
                initial = self._braced()
            declared.append((name, count, initial, reference))
            if not self.given(","):
                break
        self.take(";")
        return ("declare", kind, declared, static)

    def _braced(self) -> tuple:
        self.take("{")
        items = []
        while not self.given("}"):
            items.append(self.expression())
            self.given(",")
        return ("list", items)

    def _in_turn(self) -> tuple:
        """Expressions with commas between them, of which the last one is the value."""
        one = self.expression()
        while self.given(","):
            one = ("turn", one, self.expression())
        return one

    def expression(self, level: int = 0) -> tuple:
        if level == 0:
            left = self.expression(1)
            if self.peek() in ("=", "+=", "-=", "*="):
                sign = self.next()
                return ("assign", sign, left, self.expression(0))
            if self.given("?"):
                then = self.expression(0)
                self.take(":")
                return ("select", left, then, self.expression(0))
            return left
        levels = ("||",), ("&&",), ("==", "!="), ("<", ">", "<=", ">="), ("+", "-"), ("*", "/", "%")
        if level > len(levels):
            return self._unary()
        left = self.expression(level + 1)
        while self.peek() in levels[level - 1]:
            left = ("binary", self.next(), left, self.expression(level + 1))
        return left

    def _unary(self) -> tuple:
        if self.peek() in ("-", "!", "&", "*", "++", "--"):
            return ("unary", self.next(), self._unary())
        one = self._primary()
        while True:
            if self.given("["):
                one = ("index", one, self.expression())
                self.take("]")
            elif self.peek() in (".", "->"):
                self.next()
                one = ("member", one, self.next())
            elif self.peek() in ("++", "--"):
                one = ("post", self.next(), one)
            elif self.peek() == "(":
                one = ("call", one, self._arguments())
            elif self.given("<<<"):
                configuration = [self.expression()]
                while self.given(","):
                    configuration.append(self.expression())
                self.take(">>>")
                one = ("launch", one[1], configuration, self._arguments())
            else:
                return one

    def _arguments(self) -> list[tuple]:
        self.take("(")
        items: list[tuple] = []
        while not self.given(")"):
            items.append(self.expression())
            self.given(",")
        return items

    def _primary(self) -> tuple:
        word = self.next()
        if word == "[":
            self.take("&")
            self.take("]")
            return ("lambda", self._parameters(), self.statement())
        if word in self.structs and self.peek() == "{":
            return ("object", word, self._braced())
        if word == "(" and self.peek() in self.types:
            while self.next() != ")":
                pass
            return self._unary()
        if word == "(":
            inner = self._in_turn()
            self.take(")")
            return inner
        if word[0].isdigit():
            return ("value", float(word.rstrip("f")) if "." in word or word.endswith("f") else int(word))
        return ("value", word[1]) if word[0] in "'\"" else ("name", word)


# ---- the interpreter ------------------------------------------------------------------------------------------------


class Run:
    """One execution of one function of a program, with given arguments."""

    def __init__(self, program: Parser, argc: int, argv: Callable[[int, int], str], generous: bool = False) -> None:
        self.functions, self.structs = program.functions, program.structs
        self.argc, self.argv = argc, argv
        self.machine = Machine(generous=generous)
        self.managed: set[str] = set()
        self.statics: dict[int, dict[str, Cell]] = {}
        self.allocated = 0
        self.given_back: set[str] = set()
        self.escaped: dict[str, None] = {}
        self.steps = self.stretches = self.replays = self.looked = self.entered = 0
        self.over = False  # main has returned because a call failed
        self.replaying: tuple[bool, int, dict[str, int], dict[str, int]] | None = None
        self.graphs: dict[tuple, list] = {}  # place and values → what was captured
        self.plain = hash((argc, 5)) % 4  # copies that stay where they are, since pinned memory does not pay yet
        self.depth = 0  # of calls
        self.sending = 0  # in which depth the last source was sent that may still be read, which nothing may write
        self.current: str | None = None  # the stream that a call was given
        self.fetching: list[tuple[int, str]] = []  # copies to the host that may not be complete, and where they write
        self.tables: dict[str, list[Any]] = {}  # allocation → the pointers that were copied into it
        self.frame: dict[str, Cell] = {name: Cell(Pointer(name)) for name in program.symbols}
        for one in program.globals:
            self.execute(one)
        self.globals = self.frame

    def start(self, name: str) -> Machine:
        """What the function does when it is entered twice in a row."""
        for _ in range(2):
            if not (self.over and name == "main"):
                self.call(name, [Cell(self.argc), Cell("argv")])
        self.machine.synchronize()
        return self.machine

    def call(self, name: str, arguments: list[Cell], visible: dict[str, Cell] | None = None) -> Any:
        parameters, body = self.functions[name]
        self.depth += 1
        result = self._enter(parameters, body, arguments, visible or {})
        if self.sending >= self.depth:  # what a caller has under way is not of this function's objects
            self._changes(f"{name} is left")
        self._looks(f"{name} is left")
        self.depth -= 1
        return result

    def _changes(self, what: str) -> None:
        """The host may write or free any of its memory."""
        if self.sending:
            self.machine.on_host(f"{what} while a source is read")
            self.sending = 0
        self._looks(what)

    def _looks(self, what: str) -> None:
        """The host may read any of its memory."""
        if self.fetching:
            self.machine.on_host(f"{what} while a copy writes")
            self._fetched()

    def _fetched(self, *sides: Any) -> None:
        """Copies to the host are complete; with `sides`, only if one of those writes there."""
        used = {one.buffer for one in sides if isinstance(one, Pointer)}
        if not sides or any(buffer in used for _, buffer in self.fetching):
            for number, _ in self.fetching:
                self.machine.host |= self.machine.behind[number] | 1 << number
            self.fetching = []

    def _enter(self, parameters: list, body: tuple, arguments: list[Cell], visible: dict[str, Cell]) -> Any:
        outer, self.frame = self.frame, dict(visible)
        for (parameter, reference), cell in zip(parameters, arguments, strict=False):
            self.frame[parameter] = cell if reference else Cell(cell.value)
        self.entered += 1
        try:
            self.execute(body)
        except Leave as leave:
            assert leave.how == "return"
            return leave.value
        finally:
            self.frame = outer
            self.entered -= 1
        return None

    def execute(self, node: tuple) -> None:
        self.steps += 1
        assert self.steps < 20_000, "it does not end"
        kind = node[0]
        if kind in ("block", "for", "range"):
            visible = self.frame
            self.frame = dict(visible)  # names declared inside end with it
            try:
                if kind != "block":
                    self.loop(node)
                else:
                    for one in node[1]:
                        self.execute(one)
            finally:
                gone, self.frame = self.frame, visible
                self._destroy([cell.value for name, cell in gone.items() if visible.get(name) is not cell])
        elif kind in ("evaluate", "declare"):
            current = self.current
            self.value(node[1]) if kind == "evaluate" else self.declare(node)
            self.current = current  # what a call is given ends with the expression
        elif kind == "if":
            self.execute(node[2] if self.value(node[1]) else node[3])
        elif kind == "switch":
            self.switch(self.value(node[1]), node[2][1])
        elif kind == "leave":
            raise Leave(node[1], self.value(node[2]) if node[2] is not None and node[2][0] != "value" else None)
        elif kind != "case":
            self.loop(node)

    def _destroy(self, values: list[Any]) -> None:
        """What the ends of these do."""
        if any(isinstance(one, Struct) and one.kind == "KescoLeave" and one.fields["early"].value for one in values):
            self.machine.synchronize()

    def _fails(self) -> bool:
        """Whether the next call that a macro looks at is one that fails: now and then, the same in both programs."""
        self.looked += 1
        return all(self.argv(90 + n, self.looked) == "y" for n in range(3))

    def loop(self, node: tuple) -> None:
        kind = node[0]
        if kind == "range":
            for cell in self.value(node[3]):
                self.frame[node[1]] = cell if node[2] else Cell(cell.value)
                if self._trip(node[4]):
                    return
            return
        condition, body = (node[2], node[4]) if kind == "for" else (node[2], node[1]) if kind == "do" else node[1:3]
        if kind == "for":
            self.execute(node[1])
        first = kind == "do"
        while first or self.value(condition):
            first = False
            if self._trip(body):
                break
            if kind == "for":
                self.value(node[3])

    def _trip(self, body: tuple) -> bool:
        """One trip of a loop; whether it was the last."""
        try:
            self.execute(body)
        except Leave as leave:
            if leave.how == "return":
                raise
            return leave.how == "break"
        return False

    def switch(self, value: Any, body: list[tuple]) -> None:
        labels = [(n, one[1]) for n, one in enumerate(body) if one[0] == "case"]
        matching = [n for n, label in labels if label is not None and self.value(label) == value]
        matching += [n for n, label in labels if label is None]
        try:
            for one in body[matching[0] :] if matching else ():
                self.execute(one)
        except Leave as leave:
            if leave.how != "break":
                raise

    def declare(self, node: tuple) -> None:
        _, kind, declared, static = node
        if static and id(node) in self.statics:
            self.frame |= self.statics[id(node)]
            return
        for name, count, initial, reference in declared:
            if count is not None:
                items = [self.value(one) for one in initial[1]] if initial else []
                items += [None] * (self.value(count) - len(items))
                self.frame[name] = Cell([Cell(one) for one in items])
            elif kind == "KescoLeave":
                self.frame[name] = Cell(Struct(kind, {"early": Cell(True)}))
            elif reference:
                self.frame[name] = self.place(initial)
            elif kind in self.structs and initial and initial[0] == "list":
                self.frame[name] = Cell(self._object(kind, initial))
            else:
                value = self.value(initial) if initial else None
                self.frame[name] = Cell(value.copy() if isinstance(value, Struct) else value)
        if static:
            self.statics[id(node)] = {name: self.frame[name] for name, *_ in declared}

    def _object(self, kind: str, initial: tuple) -> Struct:
        values = [Cell(self.value(one)) for one in initial[1]]
        return Struct(kind, dict(zip(self.structs[kind], values, strict=True)))

    def _lambda(self, parameters: list, body: tuple) -> Lambda:
        return Lambda(parameters, body, self.frame)

    # ---- expressions ----

    def place(self, node: tuple) -> Cell:
        """Where a value is kept."""
        kind = node[0]
        if kind == "name":
            return self.frame[node[1]] if node[1] in self.frame else self.globals[node[1]]
        if kind == "index":
            base = self.value(node[1])
            return base[self.value(node[2])]
        if kind == "member":
            return self.value(node[1]).fields[node[2]]
        if kind == "unary" and node[1] == "*":
            return self.value(node[2])
        raise AssertionError(f"not a place: {node}")

    def value(self, node: tuple) -> Any:
        return getattr(self, f"_{node[0]}")(*node[1:])

    def _value(self, value: Any) -> Any:
        return value

    def _name(self, name: str) -> Any:
        if name == "cudaStreamLegacy" or name in _NAMES:
            return LEGACY if name == "cudaStreamLegacy" else name
        if name in ("true", "false"):
            return name == "true"
        return None if name == "nullptr" else self.place(("name", name)).value

    def _index(self, base: tuple, index: tuple) -> Any:
        known = self.value(base)
        number = self.value(index)
        if known == "argv":
            return ("argv", number)
        if isinstance(known, tuple):
            return self.argv(known[1], number) if known[0] == "argv" else known[1](number)
        if isinstance(known, Pointer):
            self._looks("the host reads memory")
            self.machine.on_host(f"host reads {known.buffer}", (known.buffer, "r"))
            return 0.0
        return known[number].value

    def _member(self, base: tuple, name: str) -> Any:
        known = self.value(base)
        if isinstance(known, Streams):
            tail = lambda number: f"tail {number}"  # noqa: E731
            return ("handle", {"stream": known.stream, "done": known.done, "tail": tail}[name])
        return known.fields[name].value

    def _unary(self, sign: str, operand: tuple) -> Any:
        if sign == "&":
            return self.value(operand) if operand[0] == "call" else self.place(operand)
        if sign in ("++", "--"):
            cell = self.place(operand)
            cell.value += 1 if sign == "++" else -1
            return cell.value
        value = self.value(operand)
        return {"-": lambda: -value, "!": lambda: not value, "*": lambda: value.value}[sign]()

    def _post(self, sign: str, operand: tuple) -> Any:
        cell = self.place(operand)
        cell.value += 1 if sign == "++" else -1
        return cell.value + (-1 if sign == "++" else 1)

    def _binary(self, sign: str, left: tuple, right: tuple) -> Any:
        a = self.value(left)
        if sign in ("&&", "||"):
            return bool(a) and bool(self.value(right)) if sign == "&&" else bool(a) or bool(self.value(right))
        b = self.value(right)
        if isinstance(a, Pointer) and isinstance(b, int):
            return Pointer(a.buffer, a.offset + (b if sign == "+" else -b))
        operations: dict[str, Callable[[], Any]] = {
            "+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: a // b, "%": lambda: a % b,
            "<": lambda: a < b, ">": lambda: a > b, "<=": lambda: a <= b, ">=": lambda: a >= b,
            "==": lambda: a == b, "!=": lambda: a != b,
        }  # fmt: skip
        return operations[sign]()

    def _turn(self, first: tuple, then: tuple) -> Any:
        self.value(first)
        return self.value(then)

    def _select(self, condition: tuple, then: tuple, other: tuple) -> Any:
        return self.value(then if self.value(condition) else other)

    def _assign(self, sign: str, target: tuple, value: tuple) -> None:
        given = self.value(value)
        if target[0] == "index" and isinstance(memory := self.value(target[1]), Pointer):
            mode = "w" if sign == "=" else "rw"
            self._changes("the host writes memory")
            self.machine.on_host(f"host writes {memory.buffer}", (memory.buffer, mode))
            return
        cell = self.place(target)
        cell.value = given if sign == "=" else cell.value + given if sign == "+=" else cell.value - given

    def _launch(self, name: str, configuration: list[tuple], arguments: list[tuple]) -> None:
        """The name of a kernel ends in the modes of its parameters: r reads, w writes, x does both."""
        stream = self.value(configuration[3]) if len(configuration) > 3 else LEGACY
        values: list[Pointer] = []
        for one in (self.value(one) for one in arguments):
            values += [cell.value for cell in one.fields.values()] if isinstance(one, Struct) else [one]
        named = {"r": "r", "w": "w", "x": "rw"}
        prefix, _, modes = name.rpartition("_")
        if prefix == "t":  # a table of pointers
            accesses = [(values[0].buffer, "r"), *((p.buffer, named[modes]) for p in self.tables[values[0].buffer])]
        else:
            accesses = [_part(p, named[mode], 4 * THREADS) for p, mode in zip(values, modes, strict=True)]
        if prefix[0] == "g":  # and a device symbol
            accesses.append(("sym", named[prefix[1]]))
        shown = ", ".join(f"{p.buffer}+{p.offset}" for p in values)
        self.machine.issue(stream or LEGACY, f"{name}({shown})", *accesses)

    def _call(self, callee: tuple, arguments: list[tuple]) -> Any:
        if callee[0] == "member":
            base = self.value(callee[1])
            visible = base.fields | {"this": Cell(base)}
            return self.call(f"{base.kind}::{callee[2]}", [Cell(self.value(one)) for one in arguments], visible)
        name = callee[1]
        if name in self.functions:
            parameters = self.functions[name][0]
            pairs = zip(arguments, parameters, strict=True)
            return self.call(name, [self.place(a) if by else Cell(self.value(a)) for a, (_, by) in pairs])
        if name in self.frame and isinstance(made := self.frame[name].value, Lambda):
            return self._enter(made.parameters, made.body, [Cell(self.value(a)) for a in arguments], made.frame)
        if name == "std::swap":
            a, b = map(self.place, arguments)
            a.value, b.value = b.value, a.value
            return None
        values = [self.value(one) for one in arguments]
        if name in ("kesco_streams", "kesco_streams_if_distinct", "kesco_paced"):
            number, given = (values[0], values[1:]) if name == "kesco_paced" else (None, values)
            buffers = [p.buffer for p in given if p is not None]
            distinct = len(buffers) == len(set(buffers))
            streams = Streams(collapsed=not distinct, fixed=not distinct)
            return streams if number is None else self._stretch(streams, number, False)
        if name == "kesco_stretch":
            return self._stretch(*values)
        if name == "kesco_pace":
            return self._pace(*values)
        if name == "KescoOn":
            (self.current,) = values
            return None
        if name == "kesco_current":
            return self.current
        if name == "kesco_prefetch":
            return None  # it orders nothing and changes nothing
        if name == "kesco_copy":
            return self._kesco_copy(*values)
        if name in _OWN:  # all that there is, or nothing
            source, size, kind = (values[n] for n in _OWN[name])
            return self._kesco_copy(values[0], source, size and "all", kind, *values[_OWN[name][2] + 1 :])
        if name == "kesco_send":
            self._kesco_copy(*values)
            self.sending = self.depth if values[2] != 0 else self.sending
            return 0
        if name == "kesco_fetch":
            return self._kesco_fetch(*values)
        if name == "kesco_fetched":
            self.sending = 0
            return self._fetched() or 0
        if name == "kesco_sent":
            self.sending = 0
            return None
        if name in ("kesco_malloc", "kesco_free", "kesco_freed"):
            return self._memory(name, self.place(arguments[0]) if name == "kesco_free" else values[0], values)
        if name in ("kesco_replay", "kesco_replay_alone"):
            return self._replay(name, *values)
        name = "cudaMemsetAsync" if name == "kesco_memset" else name  # what it does is the same
        return self._api(name.replace("Async", ""), values, "Async" in name)

    def _stretch(self, streams: Streams, begins: int, ends: bool = True) -> Streams:
        """One stream or several: any answer must be right, so it is drawn."""
        if streams.fixed or self.machine.generous:
            return streams
        self.stretches += 1
        collapsed = hash((self.argc, begins, self.stretches)) % 3 == 0
        if ends and collapsed != streams.collapsed:
            self.machine.synchronize()
        return Streams(collapsed=collapsed)

    def _pace(self, streams: Streams, number: int) -> Streams:
        """The same, and where a turn begins with others all work comes before what is on the default stream."""
        found = self._stretch(streams, number, False)
        if found.collapsed != streams.collapsed:
            for n in range(64):
                self.machine.record("pace", f"stream {n}")
                self.machine.wait(LEGACY, "pace")
        return found

    def _replay(self, name: str, streams: Streams, place: int, stream: str, *values: Any) -> bool:
        """Whether the statements run now: as they stand, or as a graph; both must be right, so it is drawn which.

        A graph that has been captured with the same values must do what the statements do now.
        """
        device, alone = self.machine, name == "kesco_replay_alone"
        mine = [f"stream {n}" for n in range(64)]
        if self.replaying is None:
            self.replays += 1
            graph = not (device.generous or streams.collapsed) and hash((self.argc, place, self.replays)) % 3 > 0
            front = device.queued.get(stream, 0) | device.queued.get(LEGACY, 0) | device.host
            self.replaying = graph, len(device.operations), dict(device.queued), dict(device.events)
            for one in mine if graph or not alone else ():  # otherwise they go on from what they know
                device.queued[one] = front if graph else device.queued.get(one, 0) | front
            if graph:
                device.events = dict.fromkeys((f"done {n}" for n in range(999)), front)
            return True
        graph, first, queued, events = self.replaying
        self.replaying = None
        together = 0
        for one in mine:
            together |= device.queued.get(one, 0)
        if graph:
            device.queued, device.events = queued, events
            key = place, streams.collapsed, repr(values)
            if self.graphs.setdefault(key, device.operations[first:]) != device.operations[first:]:
                device.issue(stream, "something else than what was captured")
        if graph or not alone:
            device.queued[stream] = device.queued.get(stream, 0) | together
        return False

    def _copy(self, asynchronous: bool, target: Any, source: Any, kind: str, rest: list[Any], size: int | None) -> None:
        device = self.machine
        accesses = [
            (p.buffer, m) if size is None else _part(p, m, size)
            for p, m in zip((target, source), "wr", strict=True)
            if isinstance(p, Pointer)
        ]
        if isinstance(target, Pointer):
            self.tables.pop(target.buffer, None)
            if isinstance(source, list) and len(source) < 8:
                self.tables[target.buffer] = [one.value for one in source]
        shown = ["host" if isinstance(p, list) else p for p in (target, source)]
        number = device.issue((rest[0] if rest else None) or LEGACY, f"copy({shown[0]}, {shown[1]})", *accesses)
        if kind in _WAITS and not asynchronous:
            device.host |= device.behind[number] | 1 << number
        elif device.generous and not asynchronous and isinstance(source, list):  # from pageable memory
            device.host |= device.behind[number]

    def _kesco_copy(self, target: Any, source: Any, size: int, kind: str, stream: str, *rest: bool) -> int:
        """The host waits for what it copies to itself, and then for all if it is told to."""
        self._fetched(target, source)
        self.sending = 0 if kind in _WAITS else self.sending
        if size and self.plain > 0 and not self.machine.generous:  # what the program has copied so far is little
            self.plain -= 1
            stream = LEGACY
        if size:
            self._copy(kind not in _WAITS, target, source, kind, [stream], size if isinstance(size, int) else None)
        if rest and rest[0]:
            self.machine.synchronize()
        return 0

    def _kesco_fetch(self, target: Any, source: Any, size: int, kind: str, stream: str, *rest: bool) -> int:
        """The host waits for none but the copies that write there, unless it is told to wait for all."""
        self._fetched(target)
        if size:
            self._copy(True, target, source, kind, [stream], size if isinstance(size, int) else None)
            self.fetching.append((len(self.machine.operations) - 1, getattr(target, "buffer", "")))
        if rest and rest[0]:
            self.machine.synchronize()
        return 0

    def _memory(self, name: str, target: Any, values: list[Any]) -> None:
        """Memory that comes and goes on a stream; `kesco_freed` is the host's part of ``cudaFree``, and no more."""
        device = self.machine
        if name == "kesco_freed":
            device.synchronize()
            device.on_host(f"free {target.buffer}")
            assert target.buffer in self.given_back, f"{target.buffer} is never given back"
            return
        if name == "kesco_malloc":
            target.value = Pointer(f"m{self.allocated}")
            self.allocated += 1
        else:
            assert target.value.buffer not in self.given_back, f"{target.value.buffer} is given back twice"
            self.given_back |= {target.value.buffer}
        device.issue(values[-1] or LEGACY, f"{MEMORY}{name}({target.value.buffer})", (target.value.buffer, "w"))
        device.gone |= self.given_back

    def _api(self, name: str, values: list[Any], asynchronous: bool = False) -> Any:
        device = self.machine
        if name in _LEFT_OUT and len(values) == 3:
            values += [0, _LEFT_OUT[name]]
        if name == "CHECK":
            return values[0]
        if name in ("QUIT", "LEAVE"):
            if self._fails():
                self.over = self.over or self.entered == 1
                raise Leave("return", 0)
            return 0
        if name in ("cudaMalloc", "cudaMallocManaged", "cudaMallocHost"):
            values[0].value = Pointer(f"m{self.allocated}")
            self.managed |= {f"m{self.allocated}"} if name != "cudaMalloc" else set()
            self.allocated += 1
        elif name == "cudaFree":
            device.synchronize()
            device.on_host(f"free {values[0].buffer}", (values[0].buffer, "w"))
        elif name in _SIZED and values[2] == 0:
            pass  # nothing is moved, ordered or waited for
        elif name in ("cudaMemset", "cudaMemset2D"):
            fixed = 3 if name == "cudaMemset" else 5
            stream = values[fixed] if len(values) > fixed else LEGACY
            number = device.issue(stream or LEGACY, f"memset({values[0]})", _set(name, values))
            if device.generous and not asynchronous and values[0].buffer in self.managed:
                device.host |= device.behind[number] | 1 << number
        elif name in _COPIES:
            size = values[2] if name == "cudaMemcpy" and isinstance(values[2], int) else None
            if values[_COPIES[name][1]] in _WAITS:
                self._changes("a copy to the host")
            self._looks("a copy from the host")
            self._copy(
                asynchronous, values[0], *(values[n] for n in _COPIES[name][:2]), values[_COPIES[name][2] :], size
            )
        elif name == "cudaDeviceSynchronize":
            device.synchronize()
        elif name == "cudaEventRecord":
            if values[0] is not None:
                device.record(values[0], values[1])
        elif name == "cudaStreamWaitEvent":
            if values[1] is not None:
                device.wait(values[0], values[1])
        elif name in ("elsewhere", "touch"):
            self._changes("unseen code")
            self.escaped |= dict.fromkeys(p.buffer for p in values)
            everything = tuple((buffer, "rw") for buffer in self.escaped)
            device.issue(LEGACY, f"{name} on the default stream", *everything)
            device.issue(FOREIGN, f"{name} on its own stream", *everything)
        elif name != "cudaGetLastError":
            raise AssertionError(f"unknown call: {name}")
        return 0
