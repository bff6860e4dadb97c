"""Random serial CUDA programs as text: straight lines, branches, loops, swaps, aliases, helpers, calls of unseen code.

A program is a tree of statements, so that it can be made smaller: a leaf is a line, a node has a head, statements and a
tail. Kernels are named after what they do to their parameters, which is how `property.replay` knows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from property.kernels import ALL, COUNT, MODES
from property.rarities import Node, Rarities, Scope

HEAD = "\n".join(
    [
        "#include <cstdlib>",
        "#include <utility>",
        "#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) exit(1); } while (0)",
        "#define QUIT(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) return 0; } while (0)",
        "#define LEAVE(call) do { if ((call) != cudaSuccess) return; } while (0)",
        "void elsewhere();",
        "void touch(float* p);",
        ALL,
    ]
)


@dataclass(frozen=True)
class Program:
    """Helpers and one function that is entered from outside."""

    name: str
    functions: tuple[Node, ...]

    def text(self) -> str:
        return "\n".join(line for one in self.functions for line in (*one.lines(), ""))


def text_of(programs: list[Program]) -> str:
    """One file with several programs."""
    parts = [HEAD, *(one.text() for one in programs)]
    if all(one.name != "main" for one in programs):
        parts.append("int main() { return 0; }")
    return "\n\n".join(parts) + "\n"


def smaller(program: Program) -> Iterator[Program]:
    """The program without one statement, or with one statement's body in its place."""
    for number, function in enumerate(program.functions):
        rest = program.functions
        if not function.kept and number + 1 < len(rest):
            yield replace(program, functions=rest[:number] + rest[number + 1 :])
        for less in _smaller_body(function):
            yield replace(program, functions=(*rest[:number], less, *rest[number + 1 :]))


def _smaller_body(node: Node) -> Iterator[Node]:
    body = node.body or ()
    for number, one in enumerate(body):
        before, after = body[:number], body[number + 1 :]
        if not one.kept:
            yield replace(node, body=before + after)
            if one.body and "switch" not in one.head:
                yield replace(node, body=before + one.body + after)
        for less in _smaller_body(one):
            yield replace(node, body=(*before, less, *after))


def in_tasks(program: Program, seed: int) -> Program:
    """The program with some statements of its last function marked as up to three tasks."""
    drawn = random.Random(seed)
    priorities = drawn.sample(range(10), 3)
    *others, last = program.functions
    body: list[Node] = []
    for node in last.body or ():
        if node.head.startswith(("k_", "for (", "if (", "{", f"{program.name}_helper")) and drawn.random() < 0.7:
            task = drawn.randrange(3)
            text = f"#pragma kesco task priority({priorities[task]}) name({program.name}_t{task})"
            body.append(Node(text, kept=True))
        body.append(node)
    return replace(program, functions=(*others, replace(last, body=tuple(body))))


_LARGE = "1048576"  # worth a prefetch


def _is_one_statement(body: tuple[Node, ...]) -> bool:
    """Whether a body needs no braces: one line with one statement, which declares nothing."""
    alone = len(body) == 1 and body[0].body is None and not body[0].head.startswith("float")
    return alone and body[0].head.count(";") < 2


class Writer(Rarities):
    """Draws one program."""

    def __init__(self, seed: int, name: str) -> None:
        super().__init__(random.Random(seed), name)
        self.launches = self.random.randint(6, 24)
        self.helpers: list[tuple[str, int, str]] = []
        self.globals: list[str] = []

    # ---- functions ----

    def program(self) -> Program:
        if self.chance(0.3):
            self.globals = [f"{self.name}_g{n}" for n in range(2)]
        functions = [Node(f"static float* {one};", kept=True) for one in self.globals]
        functions += [self.helper() for _ in range(self.random.choice((0, 0, 1, 1, 2)))]
        functions += self.class_with_method() if self.chance(0.15) else ()
        functions += self.maker() if self.chance(0.1) else ()
        functions += self.picker() if self.chance(0.15) else ()
        managed, unseen = self.chance(0.3), self.chance(0.15)
        buffers = [f"b{n}" for n in range(self.random.randint(2, 6))]
        call = "cudaMallocManaged" if managed else "cudaMalloc"
        size = _LARGE if managed else "4096"
        top = [Node(f"float {', '.join('*' + b for b in buffers)};", kept=True)]
        top += [Node(f"{call}(&{b}, {size});", kept=True) for b in buffers]
        once = self.chance(0.5)  # the second time the function is entered it works on the same memory
        for one in self.globals:
            top.append(Node(f"{f'if ({one} == nullptr) ' if once else ''}{call}(&{one}, {size});", kept=True))
        scope = Scope([*buffers, *self.globals], managed=managed, unseen=unseen)
        top.append(Node("float h[1024];", kept=True))
        for n in range(self.random.choice((0, 0, 1, 2))):
            top.append(Node(f"float* q{n} = {self.pointer(scope)};", kept=True))
            scope.pointers.append(f"q{n}")
        if self.chance(0.4):
            scope.arrays.append("x")
            top.append(Node(f"float* x[{COUNT}];", kept=True))
            if self.chance(0.7):
                top.append(Node(f"for (int i = 0; i < {COUNT}; ++i) {call}(&x[i], {size});", kept=True))
            else:
                top += [Node(f"x[{n}] = {self.random.choice(buffers)};", kept=True) for n in range(COUNT)]
        if self.chance(0.2):
            top.append(Node(f"Pair s = {{{self.pointer(scope)}, {self.pointer(scope)}}};", kept=True))
            scope.pairs.append("s")
        top += self.rare_declarations(scope, call)
        body = (*top, *self.block(scope, 0, self.launches), *self.end(), Node("return 0;", kept=True))
        functions.append(Node(f"int {self.name}(int argc, char** argv) {{", body, "}", kept=True))
        return Program(self.name, tuple(functions))

    def end(self) -> tuple[Node, ...]:
        return (Node("cudaDeviceSynchronize();"),) if self.chance(0.6) else ()

    def helper(self) -> Node:
        """A function of pointers, an array or a struct; those that are not static may be called from elsewhere."""
        name = f"{self.name}_helper{len(self.helpers)}"
        kind = self.random.choice(("static", "static", "", "reference", "array", "pair"))
        count = self.random.randint(2, 4) if kind not in ("array", "pair") else self.random.randint(1, 2)
        scope = Scope([*(f"a{n}" for n in range(count)), *self.globals], has_argv=False, returns="return;")
        scope.arrays, scope.pairs = ["v"] * (kind == "array"), ["o"] * (kind == "pair")
        body = self.block(scope, 1, self.random.randint(2, 4), least=2)
        star = "*&" if kind == "reference" else "*"
        if kind == "reference" and self.chance(0.6):
            body = (*body, Node("std::swap(a0, a1);"))
        if self.chance(0.15):
            last = (
                Node("static float* last = nullptr;", kept=True),
                Node("if (last != nullptr) k_rx<<<1, 32>>>(last, a0);"),
            )
            body = (*last, *body, Node("last = a0;"))
        parameters = {"array": "float** v, ", "pair": "Pair& o, "}.get(kind, "")
        parameters += ", ".join(f"float{star} a{n}" for n in range(count))
        self.helpers.append((name, count, kind))
        return Node(f"{'' if not kind else 'static '}void {name}({parameters}, int n) {{", body, "}")

    # ---- statements ----

    def block(self, scope: Scope, depth: int, launches: int, least: int = 1) -> tuple[Node, ...]:
        found: list[Node] = []
        left = launches
        while left > 0 or len(found) < least:
            node, used = self.statement(scope, depth, left)
            found.append(node)
            left -= used
        return tuple(found)

    def statement(self, scope: Scope, depth: int, left: int) -> tuple[Node, int]:
        drawn = self.random.random()
        if drawn < 0.56 or left <= 0:
            both = left > 1 and self.chance(0.08)  # two on one line
            return Node(" ".join(self.operation(scope) for _ in range(1 + both))), 1 + both
        if drawn < 0.78 and depth < 3:
            return self.structure(scope, depth, left)
        if drawn < (0.86 if scope.has_argv else 0.8) and (called := self.helper_call(scope)):
            return Node(called), 2
        if drawn < 0.88 and scope.has_argv and self.chance(0.7):
            return self.rare_statement(scope), 2
        if drawn < 0.94 and len(scope.pointers) > 1:
            return self.exchange(scope), 0
        return self.rarity(scope), 0

    def operation(self, scope: Scope) -> str:
        drawn = self.random.random()
        if drawn < 0.62:
            modes = self.random.choice(MODES)
            arguments = ", ".join(self.pointer(scope) for _ in modes)
            return f"k_{modes}<<<1, 32>>>({arguments});"
        if drawn < 0.82:
            return self.rare_launch(scope)
        if drawn < 0.86:
            return f"{self.rare_copy(scope)};"
        if drawn < 0.94:
            text = f"cudaMemset({self.pointer(scope)}, 0, {self.size(scope)})"
        else:
            between = f"{self.pointer(scope)}, {self.pointer(scope)}, {self.size(scope)}"
            text = f"cudaMemcpy({between}, cudaMemcpyDeviceToDevice)"
        leaves = "QUIT" if scope.returns == "return 0;" else "LEAVE"
        macro = leaves if len(text) % 3 else "CHECK"
        return f"{macro}({text});" if self.chance(0.5) else f"{text};"

    def structure(self, scope: Scope, depth: int, left: int) -> tuple[Node, int]:
        share = self.random.randint(1, max(1, min(left, 5)))
        drawn = self.random.random()
        if drawn < 0.4:
            return self.branch(scope, depth, share), share
        if drawn < 0.5 and scope.has_argv:
            return self.switch(scope, depth, share), share
        counter = f"i{self.number()}"
        constant = drawn < 0.75
        inner = replace(scope, counters=[*scope.counters, (counter, constant)], in_loop=True)
        body = self.block(inner, depth + 1, share)
        bound = str(COUNT) if constant else "argc" if scope.has_argv else "n"
        if drawn > 0.95:
            inner = replace(scope, in_loop=False)
            body = (*self.block(inner, depth + 1, share), Node(f"++{counter};", kept=True))
            head = f"int {counter} = 0;"
            return Node(
                "{", (Node(head, kept=True), Node("do {", body, f"}} while ({counter} < {bound});")), "}"
            ), share
        head = f"for (int {counter} = 0; {counter} < {bound}; ++{counter})"
        if _is_one_statement(body) and self.chance(0.5):
            return Node(head, (replace(body[0], kept=True),)), share
        return Node(f"{head} {{", body, "}"), share

    def condition(self, scope: Scope) -> str:
        """One that nothing else in the program decides; behind a counter it may differ between iterations."""
        index = scope.counters[-1][0] if scope.counters and self.chance(0.7) else "0"
        if scope.has_argv:
            return f"argv[{self.number()}][{index}] == 'y'"
        return f"n > {self.random.randint(0, 2)}"

    def branch(self, scope: Scope, depth: int, share: int) -> Node:
        head = f"if ({self.condition(scope)})"
        then = self.block(scope, depth + 1, share)
        drawn = self.random.random()
        if drawn < 0.2 and scope.in_loop:
            then = (*then, Node(self.random.choice(("break;", "continue;"))))
        elif drawn < 0.35:
            then = (*then, Node(scope.returns))
        elif drawn < 0.6:
            other = Node("} else {", self.block(scope, depth + 1, 1), "}", kept=True)
            return Node("", (Node(f"{head} {{", then, kept=True), other))
        if _is_one_statement(then) and self.chance(0.5):
            return Node(head, (replace(then[0], kept=True),))
        return Node(f"{head} {{", then, "}")

    def switch(self, scope: Scope, depth: int, share: int) -> Node:
        inner = replace(scope, in_loop=False)
        body: list[Node] = []
        for label in self.random.sample(("case 0:", "case 1:", "case 2:", "default:"), self.random.randint(1, 3)):
            body.append(Node(label, kept=True))
            body += self.block(inner, depth + 1, 1)
            if self.chance(0.7):
                body.append(Node("break;", kept=True))
        return Node("switch (argc) {", tuple(body), "}")

    def helper_call(self, scope: Scope) -> str:
        possible = [
            one for one in self.helpers if (one[2] != "array" or scope.arrays) and (one[2] != "pair" or scope.pairs)
        ]
        if not possible:
            return ""
        name, count, kind = self.random.choice(possible)
        if kind == "reference":
            arguments = [self.variable(scope) for _ in range(count)]
        else:
            arguments = [self.pointer(scope) for _ in range(count)]
        first = {"array": scope.arrays, "pair": scope.pairs}.get(kind, [])[:1]
        return f"{name}({', '.join([*first, *arguments])}, {'argc' if scope.has_argv else 'n'});"

    def exchange(self, scope: Scope) -> Node:
        a, b = self.variable(scope), self.variable(scope)
        drawn = self.random.random()
        if drawn < 0.4:
            return Node(f"std::swap({a}, {b});")
        if drawn < 0.7:
            t = f"t{self.number()}"
            swap = (Node(f"float* {t} = {a};", kept=True), Node(f"{a} = {b};"), Node(f"{b} = {t};"))
            return Node("{", swap, "}")
        return Node(f"{a} = {self.pointer(scope)};")

    def rarity(self, scope: Scope) -> Node:
        drawn = self.random.random()
        if scope.unseen and drawn < 0.5:
            return Node("elsewhere();" if self.chance(0.5) else f"touch({self.pointer(scope)});")
        if drawn < 0.6:
            return Node("cudaDeviceSynchronize();")
        if not scope.has_argv:
            return Node("cudaGetLastError();")
        if drawn < 0.7:
            call = "cudaMallocManaged" if scope.managed else "cudaMalloc"
            return Node(f"{call}(&{self.variable(scope)}, {_LARGE if scope.managed else 4096});")
        if scope.managed or (scope.pinned and self.chance(0.5)):
            return self.host_access(scope)
        if drawn < 0.85:
            return Node(f"cudaMemcpy({self.pointer(scope)}, h, {self.length(scope)}, cudaMemcpyHostToDevice);")
        return Node(f"cudaMemcpy(h, {self.pointer(scope)}, {self.length(scope)}, cudaMemcpyDeviceToHost);")

    def length(self, scope: Scope) -> str:
        """The same for a copy from or to the host: mostly what a compiler cannot see, so that it may be large."""
        return f"1024 * (argc >= {self.random.choice((0, -1))})" if self.chance(0.6) else self.size(scope)

    def size(self, scope: Scope) -> str:
        """How many bytes a copy or memset moves; with some inputs none."""
        return "512 * (argc % 3)" if scope.has_argv and self.chance(0.25) else "1024"

    # ---- expressions ----

    def variable(self, scope: Scope) -> str:
        """Something that holds a pointer."""
        if scope.pairs and self.chance(0.3):
            return f"{self.random.choice(scope.pairs)}.{self.random.choice(('in', 'out'))}"
        if scope.arrays and self.chance(0.3):
            return f"{scope.arrays[0]}[{self.index(scope)}]"
        return self.random.choice(scope.pointers)

    def pointer(self, scope: Scope, plain: bool = False) -> str:
        one = self.variable(scope)
        if plain:
            return one
        drawn = self.random.random()
        if drawn < 0.06:
            return f"{one} + {self.random.choice((16, 64))}"
        if drawn < 0.10 and scope.has_argv:
            return f"({self.condition(scope)} ? {one} : {self.variable(scope)})"
        return one

    def index(self, scope: Scope) -> str:
        constant = [name for name, known in scope.counters if known]
        other = [name for name, known in scope.counters if not known]
        if constant and self.chance(0.7):
            i = self.random.choice(constant)
            return self.random.choice((i, i, f"{COUNT - 1} - {i}", f"({i} + 1) % {COUNT}"))
        if other and self.chance(0.3):
            return f"{self.random.choice(other)} % {COUNT}"
        return str(self.random.randrange(COUNT))


def draw(seed: int, name: str) -> Program:
    """A random program whose function is called `name`."""
    return Writer(seed, name).program()
