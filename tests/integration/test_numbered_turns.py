"""Turns that must be in order where their number is the same: what the proof refuses, and that outputs verify."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.ir.turns import LANE
from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.proving import verify_files
from kesco.rings import lanes
from kesco.session import Session

pytestmark = pytest.mark.usefixtures("toolchain")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("turns_counted_early", "what its turns are numbered by changes before they begin"),
        ("turns_of_one_number_that_meet", "'scale#3' may run before 'scale#3' is done"),
    ],
)
def test_the_proof_refuses_numbers_that_tell_no_turns_apart(
    name: str, why: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What would be written without the question which turns meet."""
    source = repository / "tests" / "golden" / name / "input.cu"
    monkeypatch.setattr(lanes, "_are_apart", lambda *_: True)
    monkeypatch.setattr(lanes, "_changes_before", lambda *_: False)
    refused: list[str] = []
    result = compile_file(str(source), Options(), lambda what, told: refused.extend([str(told)] * (what == "unproven")))
    assert why in "".join(refused)
    assert f"{LANE}(" not in result.text.decode().rpartition("\n__global__")[2]


@pytest.mark.parametrize("name", ["lambda_calls_helper", "turns_of_calls", "turns_of_one_number"])
def test_an_output_verifies(name: str, repository: Path, tmp_path: Path) -> None:
    """With what the text alone does not say: whose calls move, and which work unseen code may have left."""
    source = repository / "tests" / "golden" / name / "input.cu"
    output = tmp_path / "output.cu"
    output.write_bytes(compile_file(str(source), Options()).text)
    assert not [one for verdict in verify_files(str(source), str(output), Options()) for one in verdict.problems]


def test_what_is_asked_again_is_walked_once_less_and_answered_alike(repository: Path) -> None:
    path = str(repository / "tests/golden/calls_that_call_themselves/input.cu")
    first, second = (Session(path, Options()) for _ in range(2))
    counted = first.of_ir()
    assert {n: trips for n, trips in first.walked[0].counting.trips.items() if trips} == {6: (0, 3), 9: (0, 2)}
    kept = first.walked[0]
    first.turning = second.turning = frozenset({6, 9})
    assert first.of_ir() == second.of_ir() != counted
    assert first.walked == [kept]
    first.turning = frozenset()
    assert first.of_ir() == counted
