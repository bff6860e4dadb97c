"""Random loops over managed memory, run on paper before and after: prefetches in the first trip change nothing.

`KESCO_PROGRAMS=N` draws N of them instead of the default, `KESCO_PROGRAMS_FROM=K` starts at another one.
"""

from __future__ import annotations

import os
import random

import pytest
from integration.compiled import Compiled, compile_and_keep
from property.oracle import TOGETHER, complaints
from property.programs import Program, text_of
from property.rarities import Node

from kesco.options import Options

WANTED = int(os.environ.get("KESCO_PROGRAMS", "16"))
FIRST = int(os.environ.get("KESCO_PROGRAMS_FROM", "0"))
FILES = range(FIRST // TOGETHER, FIRST // TOGETHER + -(-WANTED // TOGETHER))
BUFFERS = ("b0", "b1", "b2", "b3")
pytestmark = pytest.mark.usefixtures("toolchain")


class Trips:
    """Draws one program: the host writes, and a loop launches, waits, and touches the memory now and then."""

    def __init__(self, seed: int) -> None:
        self.random, self.name = random.Random(f"trips {seed}"), f"trips{seed}"
        self.loops = 0

    def program(self) -> Program:
        top = [Node(f"float {', '.join('*' + b for b in BUFFERS)};")]
        top += [Node(f"cudaMallocManaged(&{b}, 1048576);") for b in BUFFERS]
        top += [Node(f"{b}[0] = 1.0f;") for b in BUFFERS if self.random.random() < 0.8]
        before = []
        if self.random.random() < 0.6:  # the host reads what a kernel reads at that time
            a, b = self.random.sample(BUFFERS, 2)
            before = [Node(f"k_rw<<<1, 32>>>({a}, {b});"), Node(f"float v = {a}[0];")]
        body = (*top, *before, self.loop(), self.loop(), Node("cudaDeviceSynchronize();"), Node("return 0;"))
        return Program(self.name, (Node(f"int {self.name}(int argc, char** argv) {{", body, "}", kept=True),))

    def loop(self, depth: int = 0) -> Node:
        counter = f"i{self.loops}"
        self.loops += 1
        inside: list[Node] = []
        for _ in range(self.random.randint(2, 5)):
            drawn = self.random.random()
            if drawn < 0.7:
                inside.append(Node(self.launch()))
            elif drawn < 0.76:
                inside += [Node("cudaDeviceSynchronize();"), Node(f"{self.random.choice(BUFFERS)}[0] += 1.0f;")]
            elif drawn < 0.82:
                inside.append(Node("cudaDeviceSynchronize();"))
            elif drawn < 0.9:
                leave = self.random.choice(("continue;", "break;", self.launch()))
                inside.append(Node(f"if ({counter} > argc - 2) {{", (Node(leave),), "}"))
            elif depth == 0:
                inside.append(self.loop(1))
        return Node(f"for (int {counter} = 0; {counter} < argc; ++{counter}) {{", tuple(inside), "}")

    def launch(self) -> str:
        a, b = self.random.sample(BUFFERS, 2)
        return self.random.choice((f"k_x<<<1, 32>>>({a});", f"k_rw<<<1, 32>>>({a}, {b});", f"k_w<<<1, 32>>>({a});"))


@pytest.fixture(scope="module", params=FILES)
def compiled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[Program], Compiled]:
    file = int(request.param)
    programs = [Trips(n).program() for n in range(file * TOGETHER, (file + 1) * TOGETHER)]
    path = tmp_path_factory.mktemp("trips") / "file.cu"
    path.write_text(text_of(programs))
    return programs, compile_and_keep(path, Options(prefetch=True, force=True, streams=(0, 3, 2)[file % 3]))


def test_prefetches_in_the_first_trip_change_nothing(compiled: tuple[list[Program], Compiled]) -> None:
    programs, outcome = compiled
    serial, text = outcome.result.source.decode(), outcome.result.text.decode()
    assert {p.name: found for p in programs if (found := list(complaints(serial, text, p.name)))} == {}
    assert "// kesco: once" in text


def test_all_of_what_is_done_once_may_be_left_out(compiled: tuple[list[Program], Compiled]) -> None:
    """No order rests on it: neither for the proof nor on paper."""
    programs, outcome = compiled
    serial = outcome.result.source.decode()
    less: list[str] = []
    for line in outcome.lines:
        less.append(f"if (false) {line}" if "// kesco: once" in line else line)
    assert less != outcome.lines
    assert outcome.refuses(less) == ""
    for program in programs:
        assert list(complaints(serial, "\n".join(less), program.name)) == []
