"""What random programs do now and then: structs, symbols, two-dimensional copies, methods, lambdas, temporaries.

Split from `property.programs`, which draws the ordinary statements; both share `Node`, a statement, and `Scope`, what
the statements of one function may use.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from property.kernels import COUNT, OTHERS, TABLES


@dataclass(frozen=True)
class Node:
    """A statement; `kept` ones cannot be taken away when the program is made smaller."""

    head: str
    body: tuple[Node, ...] | None = None
    tail: str = ""
    kept: bool = False

    def lines(self, indent: str = "") -> Iterator[str]:
        if self.head:
            yield indent + self.head
        for one in self.body or ():
            yield from one.lines(indent + "  ")
        if self.tail:
            yield indent + self.tail


@dataclass
class Scope:
    """What the statements of one function may use."""

    pointers: list[str]
    arrays: list[str] = field(default_factory=list)
    pairs: list[str] = field(default_factory=list)
    counters: list[tuple[str, bool]] = field(default_factory=list)  # (name, constant bounds)
    tables: list[str] = field(default_factory=list)
    callables: list[str] = field(default_factory=list)  # methods of objects and lambdas, with their arguments
    managed: bool = False
    pinned: bool = False
    has_argv: bool = True
    unseen: bool = False
    in_loop: bool = False
    returns: str = "return 0;"


class Rarities:
    """The part of a writer that draws what is rare; the other part has blocks and pointers."""

    def block(self, scope: Scope, depth: int, launches: int, least: int = 1) -> tuple[Node, ...]:
        raise NotImplementedError

    def variable(self, scope: Scope) -> str:
        raise NotImplementedError

    def pointer(self, scope: Scope, plain: bool = False) -> str:
        raise NotImplementedError

    def __init__(self, drawn: random.Random, name: str) -> None:
        self.random, self.name = drawn, name
        self.fresh = 0
        self.pickers: list[str] = []
        self.makers: list[str] = []
        self.classes: list[str] = []

    def number(self) -> int:
        self.fresh += 1
        return self.fresh

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    # ---- functions ----

    def class_with_method(self) -> list[Node]:
        """A struct of two pointers with a method that launches; one object of it is made."""
        kind = f"{self.name}_Work"
        scope = Scope(["first", "second"], has_argv=False, returns="return;")
        body = self.block(scope, 1, self.random.randint(2, 4), least=2)
        fields = (Node("float* first;", kept=True), Node("float* second;", kept=True))
        method = Node(f"void {kind}_step(int n) {{", body, "}", kept=True)
        self.classes.append(kind)
        return [Node(f"struct {kind} {{", (*fields, method), "};", kept=True)]

    def picker(self) -> list[Node]:
        """A function that returns one of its pointers, on several paths."""
        name = f"{self.name}_pick"
        early = Node(f"if (n > {self.random.randint(0, 2)}) return {self.random.choice('ab')};")
        swap = (Node("std::swap(a, b);"),) if self.chance(0.3) else ()
        work = (Node(self.rare_launch(Scope(["a", "b"], has_argv=False))),) if self.chance(0.4) else ()
        self.pickers.append(name)
        body = (*work, early, *swap, Node(f"return {self.random.choice('ab')};", kept=True))
        return [Node(f"static float* {name}(float* a, float* b, int n) {{", body, "}", kept=True)]

    def maker(self) -> list[Node]:
        """A function that allocates: each call of it gives memory of its own."""
        name = f"{self.name}_make"
        self.makers.append(name)
        body = (Node("float* p;", kept=True), Node("cudaMalloc(&p, 4096);", kept=True), Node("return p;", kept=True))
        return [Node(f"static float* {name}() {{", body, "}", kept=True)]

    def rare_declarations(self, scope: Scope, call: str) -> Iterator[Node]:
        """Objects, references, pointers to pointers, tables, pinned memory, lambdas; they go into the scope."""
        for kind in self.classes:
            yield Node(f"{kind} w{{{self.pointer(scope)}, {self.pointer(scope)}}};", kept=True)
            scope.callables.append(f"w.{kind}_step(argc)")
            scope.pointers += ["w.first", "w.second"]
        if self.chance(0.1):
            yield Node(f"float*& r = {self.random.choice(scope.pointers)};", kept=True)
            scope.pointers.append("r")
        if self.chance(0.1):
            yield Node(f"float** pp = &{self.random.choice(scope.pointers)};", kept=True)
            scope.pointers.append("(*pp)")
        if scope.arrays and self.chance(0.2):
            yield Node("float** table;", kept=True)
            yield Node(f"{call}(&table, {8 * COUNT});", kept=True)
            yield Node(f"cudaMemcpy(table, x, {8 * COUNT}, cudaMemcpyHostToDevice);", kept=True)
            scope.tables.append("table")
        if self.chance(0.2):
            yield Node("float* pinned;", kept=True)
            yield Node("cudaMallocHost(&pinned, 4096);", kept=True)
            scope.pinned = True
        if self.chance(0.1):
            inner = Scope([*scope.pointers, "p"], has_argv=False)
            body = tuple(Node(self.rare_launch(inner), kept=True) for _ in range(self.random.randint(1, 2)))
            yield Node("auto f = [&](float* p) {", body, "};", kept=True)
            scope.callables.append("f({})")

    # ---- statements ----

    def rare_launch(self, scope: Scope) -> str:
        """A kernel that is not one of the plain ones."""
        if scope.tables and self.chance(0.3):
            return f"{self.random.choice(TABLES)}<<<1, 32>>>({self.random.choice(scope.tables)});"
        prefix, listed = self.random.choice(OTHERS)
        modes = self.random.choice(listed)
        arguments = [self.pointer(scope) for _ in modes]
        if prefix == "p":
            pair = f"Pair{{{arguments[0]}, {arguments[1]}}}"
            if scope.pairs and self.chance(0.6):
                pair = self.random.choice(scope.pairs)
            arguments[:2] = [pair]
        return f"{prefix}_{modes}<<<1, 32>>>({', '.join(arguments)});"

    def rare_copy(self, scope: Scope) -> str:
        """Two-dimensional, asynchronous, to and from a symbol, to and from pinned memory."""
        one, other = self.pointer(scope), self.pointer(scope)
        flat = [
            f"cudaMemcpy2D({one}, 64, {other}, 64, 32, 8, cudaMemcpyDeviceToDevice)",
            f"cudaMemset2D({one}, 64, 0, 32, 8)",
            f"cudaMemsetAsync({one}, 0, 2048)",
            f"cudaMemcpyAsync({one}, {other}, 1024, cudaMemcpyDeviceToDevice)",
            f"cudaMemcpyToSymbol(sym, {one}, 1024, 0, cudaMemcpyDeviceToDevice)",
            f"cudaMemcpyFromSymbol({one}, sym, 1024, 0, cudaMemcpyDeviceToDevice)",
        ]
        if scope.has_argv:
            flat.append(f"cudaMemcpyToSymbol(sym, h, {self.size(scope)}, 0, cudaMemcpyHostToDevice)")
            flat.append(f"cudaMemcpyFromSymbol(h, sym, {self.size(scope)}, 0, cudaMemcpyDeviceToHost)")
        if scope.pinned and self.chance(0.5):
            flat = [
                f"cudaMemcpyAsync(pinned, {one}, 1024, cudaMemcpyDeviceToHost)",
                f"cudaMemcpyAsync({one}, pinned, 1024, cudaMemcpyHostToDevice)",
                f"cudaMemcpy(pinned, {one}, 1024, cudaMemcpyDeviceToHost)",
            ]
        return self.random.choice(flat)

    def rare_statement(self, scope: Scope) -> Node:
        """A call of a method or lambda, a pointer from a function, a copy of a struct, memory for a short time."""
        drawn = self.random.random()
        if self.makers and not scope.managed and self.chance(0.4):
            return Node(f"{self.variable(scope)} = {self.makers[0]}();")
        if scope.arrays and self.chance(0.2):
            reference = self.chance(0.4)
            inner = Scope([*scope.pointers, "each"], has_argv=False)
            body = [Node(self.rare_launch(inner)) for _ in range(self.random.randint(1, 2))]
            body += [Node(f"std::swap(each, {self.random.choice(scope.pointers)});")] * reference
            return Node(f"for (float*{'&' * reference} each : {scope.arrays[0]}) {{", tuple(body), "}")
        if scope.callables and drawn < 0.5:
            return Node(self.random.choice(scope.callables).format(self.pointer(scope)) + ";")
        if self.pickers and drawn < 0.7:
            arguments = f"{self.pointer(scope)}, {self.pointer(scope)}, argc"
            return Node(f"{self.variable(scope)} = {self.random.choice(self.pickers)}({arguments});")
        if scope.pairs and drawn < 0.85:
            copy = f"u{self.number()}"
            inner = replace(scope, pairs=[copy])
            change = Node(f"{copy}.{self.random.choice(('in', 'out'))} = {self.pointer(scope)};")
            work = Node(f"p_rw<<<1, 32>>>({copy});"), Node(self.rare_launch(inner))
            return Node("{", (Node(f"Pair {copy} = {scope.pairs[0]};", kept=True), change, *work), "}")
        t = f"t{self.number()}"
        first = Node(f"k_w<<<1, 32>>>({t});")
        second = Node(f"k_{self.random.choice(('rw', 'rx', 'xx'))}<<<1, 32>>>({t}, {self.pointer(scope)});")
        made = Node(f"float* {t};", kept=True), Node(f"cudaMalloc(&{t}, 33554432);", kept=True)  # a pool takes it
        around = Node(self.rare_launch(scope)), Node(self.rare_launch(scope))
        return Node("{", (*made, around[0], first, second, around[1], Node(f"cudaFree({t});")), "}")

    def host_access(self, scope: Scope) -> Node:
        """The host reads or writes managed or pinned memory, after a wait that the serial program has."""
        place = "pinned" if scope.pinned and (not scope.managed or self.chance(0.3)) else self.variable(scope)
        wait = "cudaDeviceSynchronize();"
        if self.chance(0.3):
            wait = f"cudaMemcpy(h, {self.pointer(scope)}, 1024, cudaMemcpyDeviceToHost);"  # which does wait
        drawn = self.random.random()
        if drawn < 0.5:
            host = Node(f"{place}[0] {self.random.choice(('=', '+='))} 1.0f;")
        elif drawn < 0.75:
            host = Node("{", (Node(f"float v{self.number()} = {place}[0];"),), "}")
        else:
            host = Node(f"if ({place}[0] > 0.5f) {{", (Node(self.rare_launch(scope)),), "}")
        return Node("", (Node(wait, kept=True), host))
