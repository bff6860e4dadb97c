"""Random programs that work through their memory chunk by chunk, in loops whose trips no compiler knows.

Apart from `property.programs` because there a loop's counter picks allocations; here it picks bytes. Most chunks are
apart from those of all other trips, some overlap with their neighbours by a little, some come back to the same bytes,
and some loops change what they count by. `a`, `b` and `c` are memory of the device, `h` and `g` of the host, pinned.
"""

from __future__ import annotations

import random

from property.rarities import Node

_DEVICE, _HOST = ("a", "b", "c"), ("h", "g")


class Chunks:
    """Draws one program. Everything counts floats; a launch touches 32 behind each pointer."""

    def __init__(self, seed: int, name: str) -> None:
        self.random, self.name, self.made = random.Random(f"chunks {seed}"), name, 0

    def functions(self) -> tuple[Node, ...]:
        """The program."""
        top = [f"float {', '.join('*' + b for b in (*_DEVICE, *_HOST))};"]
        top += [f"cudaMalloc(&{b}, 16384);" for b in _DEVICE] + [f"cudaMallocHost(&{b}, 16384);" for b in _HOST]
        top += [f"int n = argc * {self.random.choice((3, 4))};", "int m = argc + 30;"]
        body = [Node(text, kept=True) for text in top]
        for _ in range(self.random.randint(1, 3)):
            body.append(self.around())
            if self.random.random() < 0.4:
                body.append(Node(self.random.choice(("cudaDeviceSynchronize();", self.whole(), self.work("32")))))
        body += [Node("cudaDeviceSynchronize();"), Node("return 0;", kept=True)]
        return (Node(f"int {self.name}(int argc, char** argv) {{", tuple(body), "}", kept=True),)

    def around(self) -> Node:
        """A loop over chunks, maybe in another loop."""
        drawn = self.random.random()
        if drawn < 0.6:
            return self.loop("0")
        outer = f"r{self.number()}"
        offset = self.random.choice(("0", f"{outer} * 32", f"{outer} * 512", f"{outer}"))
        wait = (Node("cudaDeviceSynchronize();"),) if self.random.random() < 0.6 else ()
        inside = (self.loop(offset), *wait)
        if self.random.random() < 0.3:
            inside = (*inside, Node(self.work(offset)))
        return Node(f"for (int {outer} = 0; {outer} < argc; ++{outer}) {{", inside, "}")

    def number(self) -> int:
        self.made += 1
        return self.made

    def loop(self, offset: str) -> Node:
        """One loop; its body's pointers are moved on by `offset`."""
        c = f"i{self.number()}"
        stride = self.random.choice((32, 32, 32, 40, 64, 31, 16, "m", "m"))
        start, at = (
            "0",
            self.random.choice((f"{c} * {stride}",) * 6 + (f"({c} % 2) * {stride}", f"({c} / 2) * {stride}")),
        )
        head = f"for (int {c} = {start}; {c} < n; ++{c}) {{"
        before: tuple[Node, ...] = ()
        after: tuple[Node, ...] = ()
        drawn = self.random.random()
        if drawn < 0.15:
            head, at = f"for (int {c} = 0; {c} < n * {stride}; {c} += {stride}) {{", c
        elif drawn < 0.25:
            head = f"for (int {c} = n - 1; {c} >= 0; --{c}) {{"
        elif drawn < 0.35:
            before, after = (Node(f"int {c} = 0;", kept=True),), (Node(f"{c} += 1;", kept=True),)
            head = f"while ({c} < n) {{"
        elif drawn < 0.4:
            after = (Node(f"if (argv[{c}][1] == 'y') {c} += 1;"),)
        elif drawn < 0.45:
            after = (Node("if (argv[1][2] == 'y') m = 8;"),)
        place = at if offset == "0" else f"{offset} + {at}"
        body: list[Node] = []
        if self.random.random() < 0.4:
            o = f"o{self.number()}"
            body.append(Node(f"int {o} = {place};", kept=True))
            place = o
        length = str(stride)
        if self.random.random() < 0.3:
            length = f"l{self.number()}"
            body.append(Node(f"int {length} = {stride} < n * 8 - {c} ? {stride} : n * 8 - {c};", kept=True))
        count = self.random.randint(2, 4)
        body += [Node(self.step(place, length)) for _ in range(count)]
        if self.random.random() < 0.25:
            rounds = f"j{self.number()}"
            inner = tuple(Node(self.work(place)) for _ in range(self.random.randint(1, 2)))
            body.append(Node(f"for (int {rounds} = 0; {rounds} < argc; ++{rounds}) {{", inner, "}"))
        if self.random.random() < 0.2:
            leave = self.random.choice(("break;", "return 1;") + (("continue;",) if not after else ()))
            body.insert(self.random.randint(1, len(body)), Node(f"if (argv[2][{c}] == 'y') {leave}"))
        loop = Node(head, (*body, *after), "}")
        return Node("{", (*before, loop), "}", kept=True) if before else loop

    def step(self, place: str, length: str) -> str:
        """A copy of a chunk in or out, or a launch on it."""
        drawn = self.random.random()
        size = f"4 * {length}" if self.random.random() < 0.85 else f"4 * {length} + 4"
        device, host = self.random.choice(_DEVICE), self.random.choice(_HOST)
        if drawn < 0.3:
            return f"cudaMemcpyAsync({device} + {place}, {host} + {place}, {size}, cudaMemcpyHostToDevice);"
        if drawn < 0.6:
            return f"cudaMemcpyAsync({host} + {place}, {device} + {place}, {size}, cudaMemcpyDeviceToHost);"
        return self.work(place)

    def work(self, place: str) -> str:
        """A launch; now and then on the chunk behind, or on the first one."""
        kernel = self.random.choice(("k_x", "k_rw", "k_rw", "k_rx"))
        drawn = self.random.random()
        other = place if drawn < 0.8 else f"{place} + 32" if drawn < 0.9 else "0"
        one, two = self.random.sample(_DEVICE, 2)
        return f"{kernel}<<<1, 32>>>({', '.join([f'{one} + {other}', f'{two} + {place}'][: len(kernel) - 2])});"

    def whole(self) -> str:
        """Something that touches all of a buffer."""
        return f"cudaMemsetAsync({self.random.choice(_DEVICE)}, 0, 16384);"
