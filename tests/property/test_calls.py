"""Random programs in which calls are operations: run on paper, as they are written and with calls on other streams."""

from __future__ import annotations

import random
import re

import pytest
from integration.compiled import Compiled, compile_and_keep
from property.oracle import complaints, programs_of
from property.programs import text_of

from kesco.options import Options
from tests.taken import one_in

FILES = one_in(3, (5, 6, 7))  # with calls that move

pytestmark = pytest.mark.usefixtures("toolchain")


@pytest.fixture(scope="module", params=FILES)
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Compiled]:
    path = tmp_path_factory.mktemp("calls") / f"file{request.param}.cu"
    path.write_text(text_of(programs_of(request.param)))
    return request.param, compile_and_keep(path, Options(launches="keep"))


def wrong(file: int, serial: str, emitted: str) -> list[object]:
    return [one for program in programs_of(file) for one in complaints(serial, emitted, program.name)]


@pytest.mark.thorough
def test_programs_whose_calls_move_do_what_the_serial_ones_do(compiled: tuple[int, Compiled]) -> None:
    file, outcome = compiled
    emitted = outcome.result.text.decode()
    assert "KescoOn(kesco->stream" in emitted
    assert wrong(file, outcome.result.source.decode(), emitted) == []


def test_what_the_proof_accepts_of_other_streams_is_right(compiled: tuple[int, Compiled]) -> None:
    file, outcome = compiled
    drawn, lines = random.Random(file), outcome.lines
    for number in [n for n, line in enumerate(lines) if "KescoOn(kesco->stream" in line][:4]:
        other = re.sub(r"stream\[\d+\]", f"stream[{drawn.randrange(4)}]", lines[number], count=1)
        spoilt = [*lines[:number], other, *lines[number + 1 :]]
        if not outcome.refuses(spoilt):
            assert wrong(file, outcome.result.source.decode(), "\n".join(spoilt)) == []


def test_the_oracle_sees_calls_without_waits(compiled: tuple[int, Compiled]) -> None:
    file, outcome = compiled
    alone = [re.sub(r"^(.*KescoOn\(kesco->stream\[)\d+", r"\g<1>7", line) for line in outcome.lines]
    less = [line for line in alone if "// kesco: wait for" not in line]
    assert wrong(file, outcome.result.source.decode(), "\n".join(less))
