"""Whole random programs: compiled, proven, and then run on paper, serial text against emitted text.

Several programs share a file, since most of the time goes into headers. `KESCO_PROGRAMS=N` draws N of them instead of
the default, `KESCO_PROGRAMS_FROM=K` starts at another one; a failing file is cut down to the program at fault by hand:
``python tests/property/test_programs.py NUMBER`` prints it.
"""

from __future__ import annotations

import os
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.compiled import Compiled, compile_and_keep
from property.programs import Program, draw, text_of
from property.replay import Machine, Parser, Run

from kesco.options import Options

TOGETHER = 8  # programs in a file: one is main, the others are entered from elsewhere
WANTED = int(os.environ.get("KESCO_PROGRAMS", "40"))
FIRST = int(os.environ.get("KESCO_PROGRAMS_FROM", "0"))
RUNS = 12
FILES = range(FIRST // TOGETHER, FIRST // TOGETHER + -(-WANTED // TOGETHER))

pytestmark = pytest.mark.usefixtures("toolchain")


def name_of(number: int) -> str:
    return "main" if number % TOGETHER == 0 else f"program{number}"


def programs_of(file: int) -> list[Program]:
    return [draw(n, name_of(n)) for n in range(file * TOGETHER, (file + 1) * TOGETHER)]


def options_of(file: int) -> Options:
    """Every strategy and number of streams gets its turn."""
    return Options(
        streams=(0, 2, 3, 8, 1, 16)[file % 6], strategy="serial" if file % 7 == 6 else "kesco", force=file % 2 == 0
    )


def executions(text: str, name: str, runs: int = RUNS) -> Iterator[Machine]:
    """The program run with several inputs; the same ones for every text."""
    parsed = Parser(text)
    for seed in range(runs):
        drawn = random.Random(seed)
        conditions: dict[tuple[int, int], str] = {}
        yield Run(
            parsed,
            (2, 1, 3, 2, 0)[seed % 5],
            lambda i, j, drawn=drawn, known=conditions: known.setdefault((i, j), drawn.choice("yn")),
        ).start(name)


def complaints(serial: str, emitted: str, name: str, runs: int = RUNS) -> Iterator[str]:
    """What goes wrong when the emitted program takes the place of the serial one."""
    for run, (before, after) in enumerate(
        zip(executions(serial, name, runs), executions(emitted, name, runs), strict=True)
    ):
        assert not before.unordered(), "the serial program is in order"
        if before.operations != after.operations:
            first = next(n for n, (a, b) in enumerate(zip(before.operations, after.operations, strict=False)) if a != b)
            yield f"run {run}: {before.operations[first]} became {after.operations[first]}"
        for a, b in after.unordered():
            yield f"run {run}: {after.operations[b]} may run before {after.operations[a]}"


@pytest.fixture(scope="module", params=FILES)
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Compiled]:
    path = tmp_path_factory.mktemp("programs") / f"file{request.param}.cu"
    path.write_text(text_of(programs_of(request.param)))
    return request.param, compile_and_keep(path, options_of(request.param))


def test_emitted_programs_do_what_the_serial_ones_do(compiled: tuple[int, Compiled]) -> None:
    file, outcome = compiled
    serial, emitted = outcome.result.source.decode(), outcome.result.text.decode()
    for program in programs_of(file):
        found = list(complaints(serial, emitted, program.name))
        assert found == [], f"{program.name} of file {file}"


def test_enough_of_them_are_rewritten(compiled: tuple[int, Compiled]) -> None:
    file, outcome = compiled
    options = options_of(file)
    if options.strategy == "kesco" and options.streams != 1:
        assert len(outcome.rewritten) >= 3


def test_the_proof_never_accepts_what_goes_wrong(compiled: tuple[int, Compiled]) -> None:
    """Without some of its waits, joins and fences: what the proof still accepts must still be right."""
    file, outcome = compiled
    serial, lines = outcome.result.source.decode(), outcome.lines
    drawn = random.Random(file)
    orders = [n for n, line in enumerate(lines) if re.search(r"cuda(StreamWaitEvent|EventRecord)\(.*// kesco: ", line)]
    for number in drawn.sample(orders, min(2, len(orders))):
        less = [
            *lines[:number],
            lines[number].replace("cuda", "if (0) cuda", 1).partition("//")[0],
            *lines[number + 1 :],
        ]
        if outcome.refuses(less):
            continue
        for program in programs_of(file):
            found = list(complaints(serial, "\n".join(less), program.name))
            assert found == [], f"accepted without {lines[number].strip()}"


def test_the_oracle_sees_missing_waits(compiled: tuple[int, Compiled]) -> None:
    """An oracle that never fails is none: without all waits between streams, somebody goes wrong."""
    file, outcome = compiled
    less = [line for line in outcome.lines if "// kesco: wait for" not in line]
    if len(outcome.lines) - len(less) > 4:
        serial = outcome.result.source.decode()
        assert any(complaints(serial, "\n".join(less), program.name) for program in programs_of(file))


if __name__ == "__main__":
    chosen = draw(int(sys.argv[1]), name_of(int(sys.argv[1])))
    Path("program.cu").write_text(text_of([chosen])) if "-w" in sys.argv else sys.stdout.write(text_of([chosen]))
