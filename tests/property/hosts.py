"""Random hosts that use more of C++ than `property.programs`: range-based loops, exceptions, buffers, lambdas.

In: a number. Out: a `Program` whose entry prints all that it computed. What the statements are `hosts.toml` says;
nothing here knows what they mean: `property.native` runs them.
"""

from __future__ import annotations

import random
import re
import tomllib
from pathlib import Path
from typing import Any

from property.kernels import MODES, kernel, other
from property.programs import Program
from property.rarities import Node

from kesco.options import Options

TOGETHER = 2  # programs in a file
_TABLE = tomllib.loads(Path(__file__).with_name("hosts.toml").read_text("utf-8"))
_HEADERS = {  # and what of each is used
    "algorithm": "std::reverse std::rotate std::for_each",
    "array": "std::array",
    "cstdint": "uintptr_t",
    "cstring": "std::memcpy",
    "deque": "std::deque",
    "functional": "std::function",
    "iostream": "std::cerr",
    "list": "std::list",
    "map": "std::map",
    "memory": "std::make_unique",
    "new": "new (",
    "optional": "std::optional",
    "stdexcept": "std::exception std::runtime_error std::out_of_range",
    "tuple": "std::tie std::make_tuple std::get<",
    "vector": "std::vector",
}
_PAIRS = ("rw", "xr", "rwx", "xxw")
HEAD = "\n".join(
    [
        "#include <cstdio>",
        "#include <utility>",
        "struct Pair { float* in; float* out; };",
        *map(kernel, MODES),
        *(other("p", modes) for modes in _PAIRS),
        "static void show(const float* p) {",
        "  unsigned sum = 0;",
        "  for (int i = 0; i < 32; ++i) sum = sum * 31 + unsigned(p[i]);",
        '  printf("%u\\n", sum);',
        "}",
    ]
)
_MARK = re.compile(r"@([VPCNKB])(?:\[((?:[^\[\],]|\[[^\[\]]*\]|,)*?)\])?(?![\w\[])|@([VPCN])|#")


def text_of(programs: list[Program]) -> str:
    """One file with several programs, each of which is entered from outside."""
    texts = [one.text() for one in programs]
    used = [name for name, uses in _HEADERS.items() if any(one in text for one in uses.split() for text in texts)]
    return "\n\n".join(["\n".join(f"#include <{one}>" for one in used), HEAD, *texts]) + "\n"


class Host(Program):
    """A program that really runs, instead of on paper."""


class Writer:
    """Draws one program."""

    def __init__(self, seed: int, name: str) -> None:
        self.random, self.name, self.fresh = random.Random(seed), name, 0
        self.variables = [f"b{n}" for n in range(self.random.randint(3, 7))]
        drawn = self.random.sample(_TABLE["habit"], self.random.choice((1, 2, 2, 3)))
        few = self.random.random() < 0.04  # what keeps most of a program as it is
        self.habits = [one for one in drawn if few or not one.get("rare")] or [_TABLE["habit"][0]]
        self.ordinary = _TABLE["ordinary"] + (_TABLE["rare"] if few else [])
        self.counters: list[str] = []
        self.left = self.random.randint(4, 14)

    # ---- pieces of text ----

    def launch(self, names: list[str]) -> str:
        if self.random.random() < 0.12:
            modes = self.random.choice(_PAIRS)
            given = [self.pointer(names) for _ in modes]
            return f"p_{modes}<<<1, 32>>>({', '.join([f'Pair{{{given[0]}, {given[1]}}}', *given[2:]])});"
        modes = self.random.choice(MODES)
        return f"k_{modes}<<<1, 32>>>({', '.join(self.pointer(names) for _ in modes)});"

    def pointer(self, names: list[str]) -> str:
        if names and self.random.random() < 0.6:
            return self.random.choice(names)
        one = self.random.choice(self.variables)
        return f"{one} + {self.random.choice((16, 64))}" if self.random.random() < 0.05 else one

    def condition(self) -> str:
        at = str(self.random.randint(0, 15))
        if self.counters and self.random.random() < 0.5:
            at += f" + {self.counters[-1]}"
        return f"argv[1][{at}] == 'y'"

    def filled(self, text: str, number: int) -> str:
        """A line with its marks replaced, except blocks."""

        def one(found: re.Match[str]) -> str:
            mark, names = found[1] or found[3], found[2]
            if mark is None:
                return str(number)
            listed = [each.replace("#", str(number)) for each in names.split(",")] if names else []
            return {
                "V": lambda: self.random.choice(self.variables),
                "P": lambda: self.pointer([]),
                "C": self.condition,
                "N": lambda: self.name,
                "K": lambda: self.launch(listed),
            }[mark]()

        return _MARK.sub(one, text)

    # ---- statements ----

    def nodes(self, text: str, depth: int, kept: bool = False) -> tuple[Node, ...]:
        """A text as statements in each other, with its blocks filled."""
        self.fresh += 1
        lines, number = text.split("\n"), self.fresh
        found, rest = self._nested(lines, depth, number, kept)
        assert not rest, text
        declares = any(re.match(r"(?:auto|float|Pair|std::function|int)\b.*#", line) for line in lines)
        if len(found) > 1 and not kept and (declares or depth):
            return (Node("{", found, "}"),)
        return found

    def _nested(self, lines: list[str], depth: int, number: int, kept: bool) -> tuple[tuple[Node, ...], list[str]]:
        found: list[Node] = []
        while lines:
            line, lines = lines[0], lines[1:]
            if line.startswith("@B"):
                names = (line[3:-1] if "[" in line else "").replace("#", str(number))
                found += self.block(depth + 1, [one for one in names.split(",") if one])
            elif line.startswith("}"):
                return tuple(found), [line, *lines]
            elif line.endswith("{"):
                head = self.filled(line, number)
                counter = re.match(r"for \(int (i\d+)", head)
                self.counters += [counter[1]] if counter else []
                body, lines = self._nested(lines, depth, number, kept)
                while lines[0].endswith("{"):  # } else {
                    found.append(Node(head, body, kept=True))
                    head, (body, lines) = self.filled(lines[0], number), self._nested(lines[1:], depth, number, kept)
                del self.counters[len(self.counters) - bool(counter) :]
                tail, lines = self.filled(lines[0], number), lines[1:]
                found.append(Node(head, body, tail, kept=kept))
            else:
                found.append(Node(self.filled(line, number), kept=kept))
        return tuple(found), lines

    def block(self, depth: int, names: list[str]) -> tuple[Node, ...]:
        found: list[Node] = []
        for _ in range(self.random.randint(1, 3)):
            found += self.statement(depth, names)
        return tuple(found)

    def statement(self, depth: int, names: list[str]) -> tuple[Node, ...]:
        self.left -= 1
        drawn = self.random.random()
        if drawn < 0.45 or depth > 2 or self.left < -20:
            return (Node(self.launch(names)),)
        if drawn < 0.8:
            return self.nodes(self.random.choice(self.random.choice(self.habits)["uses"]), depth)
        return self.nodes(self.random.choice(self.ordinary), depth)

    # ---- the program ----

    def brought(self, habit: dict[str, Any]) -> tuple[Node, ...]:
        """The functions of a habit, which go together."""
        text = habit.get("functions", "").replace("@N", self.name)
        return (Node(text),) if text else ()

    def program(self) -> Program:
        functions = list(dict.fromkeys(node for one in self.habits for node in self.brought(one)))
        top = [Node(f"float {', '.join('*' + one for one in self.variables)};", kept=True)]
        for one in self.variables:
            top += [Node(f"cudaMalloc(&{one}, 4096);", kept=True), Node(f"k_w<<<1, 32>>>({one});")]
        top.append(Node("float h[32] = {};", kept=True))
        owned = self.variables.copy()
        for one in self.habits:
            top += self.nodes(one["declares"], 0, kept=True) if "declares" in one else ()
        body: list[Node] = []
        while self.left > 0:
            body += self.statement(0, [])
        shows = [
            Node(
                "",
                (Node(f"cudaMemcpy(h, {one}, 128, cudaMemcpyDeviceToHost);", kept=True), Node("show(h);", kept=True)),
            )
            for one in owned
        ]
        around = self.random.random()
        inner = (*body, *shows, Node("return 0;", kept=True))
        whole = (*top, *inner)
        if around < 0.15:
            caught = Node(
                "} catch (const std::exception& e) {", (*shows[:1], Node("return 2;", kept=True)), "}", kept=True
            )
            whole = (*top, Node("try {", inner, kept=True), caught)
        functions.append(Node(f"int {self.name}(int argc, char** argv) {{", whole, "}", kept=True))
        return Host(self.name, tuple(functions))


def draw(seed: int, name: str) -> Program:
    """A random host whose function is called `name`."""
    return Writer(seed, name).program()


def programs_of(file: int) -> list[Program]:
    """The hosts of a file: one is main, the others are entered from elsewhere."""
    return [draw(file * TOGETHER + n, f"host{file * TOGETHER + n}" if n else "main") for n in range(TOGETHER)]


def options_of(file: int) -> Options:
    """Every number of streams and form of the copies gets its turn."""
    return Options(
        streams=(0, 3, 8, 2)[file % 4],
        force=True,
        copies=("auto", "move", "keep", "move")[file % 4],
        memory=("keep", "reuse")[file % 2],
        prefetch=file % 3 == 0,
    )
