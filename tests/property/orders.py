"""Random programs with many copies in a row: of all sizes, with and without waits of the host, launches in between."""

from __future__ import annotations

from property.rarities import Node
from property.wholes import Whole

_SIZE = "1024 * (argc >= 0)"  # what a compiler cannot see, so that it may be large
_IN = "cudaMemcpyHostToDevice"


class Orders(Whole):
    """As `Whole`, with runs of copies between the statements; `r` is pinned, and the host never stores to it."""

    def functions(self) -> tuple[Node, ...]:
        """A function that stores through a pointer, and the program."""
        self.buffers = [f"b{n}" for n in range(self.random.randint(4, 6))]
        store, whole = super().functions()
        pinned = (Node("float* r;", kept=True), Node("cudaMallocHost(&r, 4096);", kept=True))
        return store, Node(whole.head, (*pinned, *(whole.body or ())), whole.tail, whole.kept)

    def block(self, depth: int, length: int) -> tuple[Node, ...]:
        """Some statements, and runs of copies."""
        found: list[Node] = []
        for one in super().block(depth, length):
            if one in found and one.body is None and one.head.startswith(("int", "float")):
                continue  # declared already
            found += [*self.run(), one] if self.random.random() < 0.4 else [one]
        return tuple(found)

    def run(self) -> list[Node]:
        """Copies of one kind, mostly."""
        kind = self.random.choice(("", "Async"))
        found = []
        for _ in range(self.random.randint(2, 5)):
            if self.random.random() < 0.05:
                kind = "Async" if not kind else ""
            found += self.between() if not kind and self.random.random() < 0.5 else self.one(kind)
        return found

    def between(self) -> list[Node]:
        """What people write between copies that the host waits for."""
        a, b = self.random.sample(self.buffers, 2)
        to = self.random.choice(("h", "h", "p"))
        home = f"cudaMemcpy({to}, {a}, {self.random.choice(('256', _SIZE, _SIZE))}, cudaMemcpyDeviceToHost)"
        return self.random.choice(
            (
                [Node(f"k_rw<<<1, 32>>>({a}, {b});")],
                [Node(f"k_rw<<<1, 32>>>({a}, {b});"), Node("CHECK(cudaGetLastError());")],
                [Node(f"k_x<<<1, 32>>>({a});"), Node("CHECK(cudaDeviceSynchronize());")],
                [Node(f"{home};")],
                [Node(f"CHECK({home});")],
                [Node(f"cudaMemset({a}, 0, {_SIZE});")],
                [Node("cudaDeviceSynchronize();")],
                [Node(f"const int d{self.random.randrange(10**6)} = argc + 1;")],
            )
        )

    def one(self, kind: str) -> list[Node]:
        """A copy, as people write it."""
        size = self.random.choice(("256", _SIZE, _SIZE, _SIZE))
        source = self.random.choice(("r", "h")) if not kind else "r"
        call = f"cudaMemcpy{kind}({self.random.choice(self.buffers)}, {source}, {size}, {_IN})"
        drawn = self.random.random()
        if drawn < 0.2:
            return [Node(f"CHECK({call});")]
        if drawn < 0.3:
            return [Node("// what this is"), Node(f"{call};  // and so on")]
        if drawn < 0.4:
            return [Node(f"for (int j = 0; j < 2; ++j) {call};")]
        if drawn < 0.45:
            return [Node(f"if (argc > 1) {call};")]
        return [Node(f"{call};")]
