"""Loops over chunks whose trips are not known, run on paper before and after: nothing that is carried is missing."""

from __future__ import annotations

import os

import pytest
from integration.compiled import Compiled, compile_and_keep
from property.chunks import Chunks
from property.oracle import TOGETHER, complaints
from property.programs import Program, text_of

from kesco.options import Options

FILES = range(40 if os.environ.get("KESCO_THOROUGH") else 1)
pytestmark = pytest.mark.usefixtures("toolchain")


def names(file: int) -> list[str]:
    return [f"chunks{n}" for n in range(file * TOGETHER, (file + 1) * TOGETHER)]


@pytest.fixture(scope="module", params=FILES)
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Compiled]:
    path = tmp_path_factory.mktemp("chunks") / "file.cu"
    programs = [Program(name, Chunks(int(name[6:]), name).functions()) for name in names(request.param)]
    path.write_text(text_of(programs))
    options = Options(
        streams=(0, 3, 8)[request.param % 3],
        force=True,
        turns=False,  # which the oracle does not read
        launches="keep",
        emit=("streams", "streams", "graph", "streams", "auto")[request.param % 5],
    )
    return request.param, compile_and_keep(path, options)


def found(file: int, outcome: Compiled, lines: list[str]) -> dict[str, list[str]]:
    """What the oracle has against each program, if anything."""
    serial, text = outcome.result.source.decode(), "\n".join(lines)
    return {name: those for name in names(file) if (those := list(complaints(serial, text, name)))}


def test_what_a_loop_does_not_carry_is_not_needed(compiled: tuple[int, Compiled]) -> None:
    file, outcome = compiled
    assert found(file, outcome, outcome.lines) == {}
    assert len(outcome.rewritten) >= 2


@pytest.mark.thorough
def test_what_the_oracle_refuses_the_proof_refuses(compiled: tuple[int, Compiled]) -> None:
    """Without one wait or record: where the proof still accepts it, nothing goes wrong."""
    file, outcome = compiled
    orders = [n for n, line in enumerate(outcome.lines) if "// kesco: wait for" in line or "waits for this" in line]
    assert found(file, outcome, [line for n, line in enumerate(outcome.lines) if n not in orders])
    wrong = refused = 0
    for number in orders[:: 1 + len(orders) // 6]:
        mutant = [line if n != number else "{}" for n, line in enumerate(outcome.lines)]
        against = found(file, outcome, mutant)
        said = outcome.refuses(mutant)
        wrong, refused = wrong + bool(against), refused + bool(said)
        assert said or not against, f"accepted: line {number + 1}"
    assert 0 < wrong <= refused
