"""`kesco regress` on a small program: what is told, what is an error, and what the baseline of the workloads says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kesco.bench.regress import State, compare, read
from kesco.cli import main

PROGRAM = """\
__global__ void fill(float* x) { x[threadIdx.x] = 1; }
__global__ void add(const float* x, float* y) { y[threadIdx.x] += x[threadIdx.x]; }
int main() {
  float *a, *b;
  cudaMalloc(&a, 4096), cudaMalloc(&b, 4096);
  fill<<<1, 32>>>(a);
  fill<<<1, 32>>>(b);
  add<<<1, 32>>>(a, b);
  return cudaDeviceSynchronize();
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.cu"
    path.write_text(PROGRAM)
    return path


def regress(program: Path, *options: str) -> Result:
    baseline = str(program.with_suffix(".json"))
    return CliRunner().invoke(main, ["regress", str(program), "--baseline", baseline, *options])


def test_nothing_changed(program: Path) -> None:
    done = regress(program, "--update")
    assert done.exit_code == 0, done.output
    (state,) = read(program.with_suffix(".json")).values()
    assert (state.rewritten, state.streams, state.operations, state.default, state.waits) == (1, 2, 3, {}, 1)
    assert state.model_us < state.serial_us
    assert [line.strip() for line in state.plan if " on " in line][:2] == ["fill on stream 0", "fill on stream 1"]
    done = regress(program)
    assert done.exit_code == 0
    assert "1 program, none worse" in done.output


def test_a_program_that_lost_its_concurrency_fails(program: Path) -> None:
    regress(program, "--update")
    program.write_text(PROGRAM.replace("fill<<<1, 32>>>(b);", "add<<<1, 32>>>(a, b);"))
    done = regress(program)
    assert done.exit_code == 1
    assert "K528" in done.output
    assert "1 of 1 functions no longer rewritten" in done.output
    assert "on the default stream now: add (2), fill (1)" in done.output
    assert regress(program, "--update").exit_code == 0
    assert regress(program).exit_code == 0


def test_an_operation_that_goes_to_the_default_stream_fails(program: Path) -> None:
    """Though its function is still rewritten, and needs no more waits."""
    regress(program, "--update")
    unknown = PROGRAM.replace("int main", "float* elsewhere();\nint main")
    program.write_text(unknown.replace("add<<<1, 32>>>(a, b);", "add<<<1, 32>>>(a, elsewhere());"))
    done = regress(program)
    assert done.exit_code == 1
    assert "on the default stream now: add (1)" in done.output


def test_a_difference_that_is_no_loss_is_told(program: Path) -> None:
    regress(program, "--update")
    program.write_text(PROGRAM.replace("  add<<<1, 32>>>(a, b);\n", ""))
    done = regress(program)
    assert done.exit_code == 0
    assert "K529" in done.output
    assert "operations: 3 became 2" in done.output
    assert "waits: 1 became 0" in done.output


def test_nothing_to_compare(program: Path) -> None:
    done = CliRunner().invoke(main, ["regress", "--baseline", str(program.with_suffix(".json"))])
    assert done.exit_code == 2
    assert "K104" in done.output


def test_costs_come_from_a_file(program: Path) -> None:
    costs = program.with_name("costs.toml")
    costs.write_text('["here"]\n"fill" = { microseconds = 1000.0, blocks = 1, threads = 32 }\n')
    assert regress(program, "--update", "--costs", str(costs), "--setting", "here").exit_code == 0
    (state,) = read(program.with_suffix(".json")).values()
    assert 2000 < state.serial_us < 2100
    assert 1000 < state.model_us < 1100


@pytest.mark.parametrize(
    ("text", "code"), [("", "K527"), ("[1]", "K527"), ('{"f": {"streams": 2}}', "K527"), (None, "K527")]
)
def test_a_bad_baseline_is_told(program: Path, text: str | None, code: str) -> None:
    if text is not None:
        program.with_suffix(".json").write_text(text)
    for options in ((), ("--update",)) if text is not None else ((),):
        done = regress(program, *options)
        assert done.exit_code == 2
        assert code in done.output
        assert ("move it away" in done.output) == (text is not None)
        assert text is None or program.with_suffix(".json").read_text() == text


def test_bad_costs_are_told(program: Path) -> None:
    costs = program.with_name("costs.toml")
    costs.write_text('["here"]\n"fill" = { weight = 3 }\n')
    done = regress(program, "--update", "--costs", str(costs))
    assert done.exit_code == 2
    assert "K526" in done.output


def test_diagnostics_as_json(program: Path) -> None:
    regress(program, "--update")
    done = regress(program, "--diagnostics", "json")
    assert json.loads(done.output) == []


BEFORE = State("1", 1, 2, 4, {"f": 1}, 3, 2, 1, 100.0, 150.0, ["a on stream 0", "b on stream 1"])


@pytest.mark.parametrize(
    ("after", "is_worse"),
    [
        (replace(BEFORE, waits=4), True),
        (replace(BEFORE, model_us=101.0), True),
        (replace(BEFORE, rewritten=0), True),
        (replace(BEFORE, default={"f": 2}), True),
        (replace(BEFORE, default={"g": 1}), True),
        (replace(BEFORE, moved=1), True),
        (replace(BEFORE, graphs=0), True),
        (replace(BEFORE, default={}), False),
        (replace(BEFORE, waits=2), False),
        (replace(BEFORE, model_us=90.0), False),
        (replace(BEFORE, streams=3), False),
        (replace(BEFORE, digest="2", plan=["a on stream 0", "b on stream 0"]), False),
    ],
)
def test_what_counts_as_worse(after: State, is_worse: bool) -> None:
    worse, changed = compare({"f": BEFORE}, {"f": after})
    assert (len(worse), len(changed)) == (is_worse, not is_worse)


def test_programs_that_come_and_go_are_told() -> None:
    worse, changed = compare({"f": BEFORE}, {"g": BEFORE})
    assert worse == []
    assert [d.message for d in changed] == ["f is no longer there", "g is not in the baseline"]
