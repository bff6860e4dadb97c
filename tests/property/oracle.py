"""The paper oracle: a random program and what kesco made of it, both run on paper with several inputs.

In: numbers of files, texts. Out: the programs and options that belong to a number, and complaints. The inputs are the
same for every text, and `runnable` gives a compiled program the same ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from property.programs import Program, draw, in_tasks
from property.replay import MEMORY, Machine, Parser, Run, meet

from kesco.options import BY_TASK, Options

TOGETHER = 8  # programs in a file: one is main, the others are entered from elsewhere
RUNS = 12
COUNTS = (2, 1, 3, 2, 0)  # what `argc` is, in turn


def name_of(number: int) -> str:
    return "main" if number % TOGETHER == 0 else f"program{number}"


def programs_of(file: int) -> list[Program]:
    drawn = [draw(n, name_of(n)) for n in range(file * TOGETHER, (file + 1) * TOGETHER)]
    return [in_tasks(one, file) for one in drawn] if options_of(file).strategy in BY_TASK else drawn


def options_of(file: int) -> Options:
    """Every strategy, number of streams and form of the output gets its turn."""
    return Options(
        streams=(0, 2, 3, 8, 1, 16)[file % 6],
        strategy=("kesco", "zones-fair", "critical_path", "zones", "kesco", "critical_path", "serial")[file % 7],
        zone_age=2,
        force=file % 2 == 0,
        prefetch=file % 3 < 2,
        emit=("streams", "graph", "streams", "auto", "graph")[file % 5],
        copies=("move", "keep", "move")[file % 3],
        memory=("reuse", "keep", "reuse", "reuse")[file % 4],
        fikit=file % 4 == 1,
    )


def letter(run: int, i: int, j: int) -> str:
    """What `argv[i][j]` is in a run; `runnable.DRIVER` has the same in C++."""
    mixed = (run * 7919 + i * 104729 + j * 1299709 + 12345) * 2654435761 % 2**32
    mixed = (mixed ^ mixed >> 15) * 2246822519 % 2**32
    return "y" if mixed >> 28 & 1 else "n"


def executions(parsed: Parser, name: str, runs: int = RUNS, generous: bool = False) -> Iterator[Machine]:
    """The program run with several inputs; `generous` ones by the rules of `kesco check`."""
    for run in range(runs):
        argv = lambda i, j, run=run: letter(run, i, j)  # noqa: E731
        yield Run(parsed, COUNTS[run % len(COUNTS)], argv, generous).start(name)


def differences(before: list[Machine], after: Iterator[Machine]) -> Iterator[str]:
    """What goes wrong when the emitted program takes the place of the serial one; each has its executions."""
    for run, (ours, theirs) in enumerate(zip(before, after, strict=True)):
        was_done, is_done = _done(ours), _done(theirs)
        if was_done != is_done and not _only_exchanged(ours, theirs):
            pairs = zip(was_done, is_done, strict=False)
            shorter = min(len(was_done), len(is_done))
            first = next((n for n, (a, b) in enumerate(pairs) if a != b), shorter)
            was, became = (str(one[first : first + 1]) for one in (was_done, is_done))
            yield f"run {run}: {was} became {became}"
        for a, b in theirs.unordered():
            yield f"run {run}: {theirs.operations[b]} may run before {theirs.operations[a]}"


def _only_exchanged(ours: Machine, theirs: Machine) -> bool:
    """Whether the same is done, and where two touch the same memory and one writes it, in the same order."""
    before, after = ([one for one in m.operations if not one[0].startswith(MEMORY)] for m in (ours, theirs))
    places: dict[object, list[int]] = {}
    for place, one in enumerate(after):
        places.setdefault(one, []).append(place)
    try:
        now = [places[one].pop(0) for one in before]
    except (KeyError, IndexError):
        return False
    if any(places.values()):
        return False
    pairs = ((i, j) for j in range(len(before)) for i in range(j) if now[i] > now[j])
    return not any(meet(a, b) for i, j in pairs for a in before[i][1] for b in before[j][1])


def _done(machine: Machine) -> list[tuple[str, list[object]]]:
    """What the program itself has the device do; allocations are numbered as they are used, for some are made late."""
    numbers: dict[str, str] = {}

    def named(text: str) -> str:
        return re.sub(r"\bm\d+\b", lambda one: numbers.setdefault(one[0], f"memory {len(numbers)}"), text)

    return [
        (named(what), [] if what.startswith("free ") else [(named(one[0]), *one[1:]) for one in accesses])
        for what, accesses in machine.operations
        if not what.startswith(MEMORY)
    ]


def complaints(serial: str, emitted: str, name: str, runs: int = RUNS) -> Iterator[str]:
    """The differences of two texts."""
    yield from differences(_expected(serial, name, runs), executions(_parsed(emitted), name, runs))


@lru_cache(maxsize=4)
def _parsed(text: str) -> Parser:
    """A text with all of its programs, which are asked for one after the other."""
    return Parser(text)


@lru_cache(maxsize=TOGETHER)
def _expected(serial: str, name: str, runs: int) -> list[Machine]:
    """The runs of a serial program; each of its mutants is compared with them."""
    before = list(executions(_parsed(serial), name, runs))
    assert not any(one.unordered() for one in before), "the serial program is in order"
    return before
