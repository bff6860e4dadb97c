"""Random programs that copy inputs in, compute, and copy results out, while the host stores to memory now and then.

Apart from `property.programs` because in those nearly every copy is looked at; here the memory is the device's own, and
the copies may be read in the background, and those to pinned memory be waited for later. `h` is the host's memory of
most copies, `p` is pinned.
"""

from __future__ import annotations

import random

from property.rarities import Node

_SIZE = "1024 * (argc >= 0)"  # what a compiler cannot see, so that it may be large
_ROWS = "16 * (argc >= 0)"
_IN, _OUT = "cudaMemcpyHostToDevice", "cudaMemcpyDeviceToHost"


class Whole:
    """Draws the functions of one program."""

    def __init__(self, seed: int, name: str) -> None:
        self.random, self.name = random.Random(f"whole {seed}"), name
        self.buffers = [f"b{n}" for n in range(self.random.randint(2, 4))]

    def functions(self) -> tuple[Node, ...]:
        """A function that stores through a pointer, and the program."""
        top = [Node(f"float {', '.join('*' + b for b in self.buffers)};", kept=True), Node("float* p;", kept=True)]
        top += [Node(f"cudaMalloc(&{b}, 4096);", kept=True) for b in self.buffers]
        top += [Node(t, kept=True) for t in ("cudaMallocHost(&p, 4096);", "float h[1024];", "cudaDeviceSynchronize();")]
        first = [self.copy_in() for _ in range(self.random.randint(1, 3))]
        body = (*top, *first, *self.block(2, self.random.randint(5, 10)), Node("cudaDeviceSynchronize();"))
        store = Node(f"static void {self.name}_helper0(float* at) {{", (Node("at[1] = 1.0f;"),), "}", kept=True)
        whole = Node(
            f"int {self.name}(int argc, char** argv) {{", (*body, Node("return 0;", kept=True)), "}", kept=True
        )
        return store, whole

    def block(self, depth: int, length: int) -> tuple[Node, ...]:
        """Some statements."""
        return tuple(self.statement(depth) for _ in range(length))

    def statement(self, depth: int) -> Node:
        """Mostly launches."""
        drawn = self.random.random()
        if drawn < 0.45 or (drawn > 0.8 and depth == 0):
            a, b = self.random.sample(self.buffers, 2)
            odd = (f"gr_rx<<<1, 32>>>({a}, {b});", f"gx_x<<<1, 32>>>({a});")
            if self.random.random() < 0.15:
                return Node(self.random.choice(odd))
            return Node(self.random.choice((f"k_x<<<1, 32>>>({a});", f"k_rw<<<1, 32>>>({a}, {b});")))
        if drawn < 0.55:
            return self.copy_in()
        if drawn < 0.65:
            to = self.random.choice(("h", "p", "p", "p", "p + 512", "p + 512"))
            odd = (
                "cudaMemcpyFromSymbol(h, sym, 1024);",
                f"cudaMemcpy2D(h, 64, {self.buffers[0]}, 64, 64, {_ROWS}, {_OUT});",
            )
            if self.random.random() < 0.25:
                return Node(self.random.choice(odd))
            return Node(f"cudaMemcpy({to}, {self.random.choice(self.buffers)}, {_SIZE}, {_OUT});")
        if drawn < 0.75:
            return Node(
                self.random.choice(
                    (
                        "p[0] = 1.0f;",
                        f"{self.name}_helper0(p);",
                        "p[2] += 2.0f;",
                        f"float r{self.random.randrange(10**6)} = p[1];",
                    )
                )
            )
        if drawn < 0.8:
            return Node(self.random.choice(("cudaDeviceSynchronize();", "int k = argc + 1;", "float* q = p;")))
        inside = self.block(depth - 1, self.random.randint(1, 4))
        if drawn < 0.9:
            word = f"argv[{self.random.randint(0, 9)}][0] == 'y'"
            return Node(f"if ({word}) {{", (*inside, *self.leave()), "}")
        bound = self.random.choice(("argc", "3"))
        return Node(f"for (int i = 0; i < {bound}; ++i) {{", inside, "}")

    def leave(self) -> tuple[Node, ...]:
        """Now and then a branch leaves the program."""
        return (Node("cudaDeviceSynchronize();"), Node("return 0;")) if self.random.random() < 0.2 else ()

    def copy_in(self) -> Node:
        """From the host."""
        if self.random.random() < 0.2:
            return Node(f"cudaMemcpy2D({self.random.choice(self.buffers)}, 64, h, 64, 64, {_ROWS}, {_IN});")
        if self.random.random() < 0.15:
            return Node("cudaMemcpyToSymbol(sym, h, 1024);")
        return Node(f"cudaMemcpy({self.random.choice(self.buffers)}, h, {_SIZE}, {_IN});")
