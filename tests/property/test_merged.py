"""Random whole programs merged by ``kesco merge``: each does what it does alone, and nothing they do is unordered.

Two files of random programs with the same names become one program, with a single host thread, and every second time
with one for each. Each is run serially and alone in a dry run, and the merged one is run in one, too: in it each must
give the device the same work on the same memory, in the same order, and `kesco check` must find no race.
`KESCO_PROGRAMS=N` merges N / 24 pairs, `KESCO_PROGRAMS_FROM=K` begins later.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from property.oracle import RUNS
from property.programs import draw, text_of
from property.runnable import DRY, INPUT, as_library, called

from kesco.check import Prepared, Run, observe, prepare, record
from kesco.check.places import Places
from kesco.llvm.names import display_name
from kesco.merging.specs import parse
from kesco.merging.together import merge
from kesco.options import Options
from kesco.verify.trace import Allocated, Copied, Launched, Range, Trace

PAIRS = max(1, int(os.environ.get("KESCO_PROGRAMS", "24")) // 24)
FIRST = int(os.environ.get("KESCO_PROGRAMS_FROM", "0")) // 24
EACH = 2  # programs of a file
UNSEEN = ("Managed", "__managed__")  # what cannot be merged

pytestmark = pytest.mark.usefixtures("toolchain")


def numbers_of(pair: int, place: int) -> Iterator[int]:
    """The seeds of the programs of one file."""
    for number in range(10_000 * (2 * pair + place + 1), 10_000 * (2 * pair + place + 2)):
        text = draw(number, "program").text()
        if not any(word in text for word in UNSEEN):
            yield number


def whole(pair: int, place: int) -> str:
    """One file: random programs, and a `main` that calls each with all inputs."""
    seeds = numbers_of(pair, place)
    programs = [draw(next(seeds), f"program{n}") for n in range(EACH)]
    calls = "\n".join(f"  all({called(one.name)});" for one in programs)
    return f"{as_library(text_of(programs))}\n{INPUT}{DRY.replace('RUNS', str(RUNS))}int main() {{\n{calls}\n}}\n"


class Reading:
    """What a run gave the device, by the file whose text gave it; addresses are those of the file's n-th memory."""

    def __init__(self, trace: Trace, places: Places, files: list[str]) -> None:
        self.memory: list[Allocated] = []
        self.numbers: dict[tuple[str, int], int] = {}
        self.found: dict[str, list[tuple[Any, ...]]] = {name: [] for name in files}
        places.load(trace)
        for event in trace.events:
            if isinstance(event, Allocated):
                self.memory = [one for one in self.memory if one.base != event.base] + [event]
            elif isinstance(event, Launched | Copied):
                names = {Path(span.path).name for span in places.stack(event.stack)} & set(files)
                assert len(names) == 1, "every operation is of one of the programs"
                (name,) = names
                self.found[name].append(self.work(name, event))

    def work(self, file: str, event: Launched | Copied) -> tuple[Any, ...]:
        if isinstance(event, Copied):
            return event.function.removesuffix("Async"), *(self.span(file, one) for one in event.ranges)
        name = display_name(event.name).partition("(")[0].rpartition("::")[2]
        words = (one[at : at + 8] for one in event.arguments or () for at in range(0, len(one), 8))
        values = tuple(self.place(file, int.from_bytes(word, "little")) for word in words)
        return name, event.grid, event.block, event.shared, values

    def span(self, file: str, one: Range) -> tuple[Any, ...]:
        return one.writes, self.place(file, one.low), one.width, one.rows

    def place(self, file: str, address: int) -> tuple[int, int] | str:
        for one in self.memory:
            if one.base <= address < one.base + one.size:
                return self.numbers.setdefault((file, one.id), len(self.numbers)), address - one.base
        return "host"


def first_numbers(work: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The same with memory numbered as this file's work comes to it."""
    seen: dict[int, int] = {}

    def renamed(one: Any) -> Any:
        if isinstance(one, tuple) and len(one) == 2 and all(type(part) is int for part in one):
            return seen.setdefault(one[0], len(seen)), one[1]
        return tuple(map(renamed, one)) if isinstance(one, tuple) else one

    return [renamed(one) for one in work]


def run_of(source: Path, files: list[str], folder: Path) -> tuple[dict[str, list[tuple[Any, ...]]], Prepared]:
    """The work of each file in a dry run."""
    folder.mkdir()
    prepared = prepare(str(source), (), Options(), folder)
    ran, trace = record(prepared, Run())
    assert trace is not None
    assert (ran.returncode, trace.ended) == (0, True), ran.said
    found = Reading(trace, Places.of(prepared.toolchain), files).found
    return {name: first_numbers(work) for name, work in found.items()}, prepared


@pytest.mark.thorough
@pytest.mark.parametrize("pair", range(FIRST, FIRST + PAIRS))
def test_merged_programs_do_what_each_does_alone(pair: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KESCO_STREAMS", "64")
    names = ["one.cu", "two.cu"]
    alone = {}
    for place, name in enumerate(names):
        (tmp_path / name).write_text(whole(pair, place))
        alone |= run_of(tmp_path / name, [name], tmp_path / f"alone{place}")[0]
    # the more urgent one is named last
    specs = parse([f"{tmp_path / name}={3 + n}" for n, name in enumerate(names)])
    merged = merge(specs, Options(), one_thread=pair % 2 == 0)
    assert any(f.rewritten for one in merged.programs for f in one.functions)
    (tmp_path / "both.cu").write_bytes(merged.text)
    together, prepared = run_of(tmp_path / "both.cu", names, tmp_path / "together")
    assert [one.message for one in observe(prepared, Run()).diagnostics] == []
    for name in names:
        assert len(together[name]) == len(alone[name]) > 0
        assert together[name] == alone[name]
