"""Programs with copies, run on paper before and after; what the host need not wait for must be safe on every path."""

from __future__ import annotations

import pytest
from integration.compiled import Compiled, compile_and_keep
from property.mutations import owners
from property.oracle import TOGETHER, complaints
from property.programs import Program, text_of
from property.wholes import Whole

from kesco.options import Options
from tests.taken import THOROUGH

FILES = range(2 if THOROUGH else 1)
MOVED = (6, 6)  # runs of copies whose order is better changed
MARKS = ("kesco_sent();  // kesco: ", "kesco_fetched();  // kesco: ")
pytestmark = pytest.mark.usefixtures("toolchain")


def names(file: int) -> list[str]:
    return [f"whole{n}" for n in range(file * TOGETHER, (file + 1) * TOGETHER)]


@pytest.fixture(scope="module", params=FILES)
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Compiled]:
    path = tmp_path_factory.mktemp("wholes") / "file.cu"
    programs = [Program(name, Whole(int(name[5:]), name).functions()) for name in names(request.param)]
    path.write_text(text_of(programs))
    options = Options(copies="move", streams=(0, 3)[request.param % 2], force=True, launches="keep")
    return request.param, compile_and_keep(path, options)


def found(file: int, outcome: Compiled, lines: list[str], only: str = "") -> dict[str, list[str]]:
    """What the oracle has against each program, or against `only` the one that differs from the output."""
    serial, text = outcome.result.source.decode(), "\n".join(lines)
    asked = [only] if only else names(file)
    return {name: those for name in asked if (those := list(complaints(serial, text, name)))}


def test_nothing_is_read_too_late(compiled: tuple[int, Compiled]) -> None:
    file, outcome = compiled
    assert found(file, outcome, outcome.lines) == {}
    text = "\n".join(outcome.lines)
    assert text.count("kesco_send(") > 8
    assert text.count("kesco_fetch(") > 4
    assert all(text.count(mark) > 2 for mark in MARKS)


def test_copies_change_places(compiled: tuple[int, Compiled]) -> None:
    file, outcome = compiled
    changes = [change for one in outcome.rewritten for change in one.reordered]
    assert len(changes) == MOVED[file]
    assert sum(one.moved for one in changes) >= len(changes)


@pytest.mark.thorough
def test_what_the_oracle_refuses_the_proof_refuses(compiled: tuple[int, Compiled]) -> None:
    """Without one wait, or with it a statement later: where the proof still accepts it, nothing goes wrong."""
    file, outcome = compiled
    waits = [n for n, line in enumerate(outcome.lines) if any(mark in line for mark in MARKS)]
    assert found(file, outcome, [line for n, line in enumerate(outcome.lines) if n not in waits])
    wrong = refused = 0
    owner = owners(outcome.lines)
    for number in waits[:: 1 + len(waits) // 9]:
        lines = outcome.lines
        late = [*lines[:number], lines[number + 1], lines[number], *lines[number + 2 :]]
        for mutant in ([*lines[:number], *lines[number + 1 :]], late):
            if mutant is late and (
                "{" in lines[number + 1] or "}" in lines[number + 1] or "return" in lines[number + 1]
            ):
                continue
            against = found(file, outcome, mutant, owner[number])
            said = outcome.refuses(mutant)
            wrong, refused = wrong + bool(against), refused + bool(said)
            assert said or not against, f"accepted: line {number + 1}"
    assert 0 < wrong <= refused
