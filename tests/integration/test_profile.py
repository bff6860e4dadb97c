"""`kesco profile` with the dry run's runtime where a GPU's would be: events there show what a model says."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from integration.replaced import Runtime

from kesco.check import Prepared, Run, prepare
from kesco.errors import InputError, ToolchainError
from kesco.ir import kprof
from kesco.ir.costs import Cost, Costs
from kesco.options import Options
from kesco.profiling import UNQUEUED, measure

HERE = Path(__file__).resolve().parent / "profile"
ROOT = HERE.parent.parent.parent
STEPS = HERE / "steps.cu"
MODEL = "_Z5firstPfi 120.5\n_Z6secondIfEvPKT_PS0_i 40\n_ZL5thirdPf 7\n_Z5thirdPf 7\ncudaMemcpy 15\ncudaMemsetAsync 3\n"


@pytest.fixture(scope="module")
def steps(runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return prepare(str(STEPS), (), Options(), tmp_path_factory.mktemp("steps"), gpu=True)


def environment(runtime: Runtime, folder: Path) -> dict[str, str]:
    (folder / "model").write_text(MODEL)
    return {**runtime.environment(), "CUDA_DRY_RUN_MODEL": str(folder / "model")}


@pytest.fixture(scope="module")
def profiled(steps: Prepared, runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Costs:
    costs, said = measure(steps, Run(), environment(runtime, tmp_path_factory.mktemp("model")))
    assert [one.code for one in said] == ["K620"]  # the launch that the runtime refused
    return costs


def named(costs: Costs, name: str) -> list[Cost]:
    return [one for one in costs.costs if one.display == name]


def line(cost: Cost) -> int:
    file, _, number = cost.identity.at.rpartition(":")
    assert Path(file).name == "steps.cu"
    return int(number)


@pytest.mark.thorough
def test_the_times_are_those_of_the_model(profiled: Costs) -> None:
    (first,) = named(profiled, "first")
    assert first.time is not None
    assert first.time.count == 5
    assert first.time.median == pytest.approx(120_500, rel=1e-3)
    assert (first.identity.grid, first.identity.block, first.identity.shared) == ((4, 1, 1), (64, 1, 1), 128)
    assert line(first) == 28
    assert first.registers == 32  # what the dry run says of every kernel


@pytest.mark.thorough
def test_shapes_of_one_launch_are_apart(profiled: Costs) -> None:
    found = {one.identity.grid[0]: one for one in named(profiled, "second")}
    assert {grid: one.time.count for grid, one in found.items() if one.time} == {1: 3, 2: 2}
    assert all(line(one) in (29, 30) for one in found.values())


def test_what_is_captured_is_not_measured(profiled: Costs) -> None:
    (third,) = named(profiled, "third")
    assert third.time is not None
    assert (line(third), third.time.count, round(third.time.median)) == (32, 1, 7000)
    assert third.identity.name == "_ZL5thirdPf"  # as clang mangles it


def test_copies_and_memsets(profiled: Costs) -> None:
    (copy,), (memset,) = named(profiled, "cudaMemcpy"), named(profiled, "cudaMemsetAsync")
    assert copy.time is not None
    assert memset.time is not None
    assert (copy.identity.kind, line(copy), copy.bytes, round(copy.time.median)) == ("copy", 26, 4096, 15_000)
    assert (memset.identity.kind, line(memset), memset.bytes, round(memset.time.median)) == ("memset", 33, 4096, 3000)


def test_where_it_comes_from(profiled: Costs) -> None:
    origin = profiled.origin
    assert origin.sources == ((str(STEPS), hashlib.sha256(STEPS.read_bytes()).hexdigest()),)
    assert origin.method == UNQUEUED  # no driver, so that nothing can hold the device up
    assert dict(origin.limits)["threads_per_sm"] == 2048
    assert origin.cuda


def test_the_program_is_not_disturbed(steps: Prepared, runtime: Runtime, tmp_path: Path) -> None:
    plain = {**environment(runtime, tmp_path), "LD_LIBRARY_PATH": f"{runtime.folder}:{steps.folder}"}
    timed = {**plain, "LD_PRELOAD": "libkesco_recorder.so", "CUDA_RECORDER_PRELOAD": "", "CUDA_RECORDER_TIMES": "1",
             "CUDA_RECORDER_RECORD": str(tmp_path / "record")}  # fmt: skip
    said = [
        subprocess.run([steps.folder / "program"], env=one, capture_output=True, text=True, check=True, timeout=60)
        for one in (plain, timed)
    ]
    assert said[0].stdout == said[1].stdout == "refused cudaSuccess\n"
    assert re.findall(r"^D (\d+)", (tmp_path / "record").read_bytes().rstrip(b"\0").decode(), re.MULTILINE)


def test_without_the_variable_nothing_is_measured(
    steps: Prepared,
    runtime: Runtime,
    tmp_path: Path,
) -> None:
    plain = {**environment(runtime, tmp_path), "LD_LIBRARY_PATH": f"{runtime.folder}:{steps.folder}"}
    silent = {**plain, "LD_PRELOAD": "libkesco_recorder.so", "CUDA_RECORDER_RECORD": str(tmp_path / "record")}
    subprocess.run([steps.folder / "program"], env=silent, capture_output=True, check=True, timeout=60)
    assert not re.search(rb"^[DG] ", (tmp_path / "record").read_bytes(), re.MULTILINE)


def test_a_run_that_measures_nothing(steps: Prepared, runtime: Runtime, tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        measure(steps, Run(("nothing",)), environment(runtime, tmp_path))
    assert [one.code for one in raised.value.diagnostics] == ["K617", "K534"]


def test_it_is_written_whole_and_merges(runtime: Runtime, tmp_path: Path) -> None:
    target = tmp_path / "run.kprof"
    command = [sys.executable, "-m", "kesco", "profile", str(STEPS), "-o", str(target)]
    where = {**environment(runtime, tmp_path), "PYTHONPATH": str(ROOT)}

    def run(*more: str) -> tuple[int, str]:
        done = subprocess.run([*command, *more], env=where, capture_output=True, text=True, timeout=300, check=False)
        return done.returncode, done.stderr

    assert run()[0] == 0
    once = kprof.read(target)
    assert run("--merge")[0] == 0
    twice = kprof.read(target)
    assert [one.identity for one in twice.costs] == [one.identity for one in once.costs]
    assert [one.time.count for one in twice.costs if one.time] == [2 * one.time.count for one in once.costs if one.time]
    other = json.loads(target.read_text())
    other["origin"]["sources"] = {str(STEPS): "another"}
    target.write_text(json.dumps(other))
    before = target.read_bytes()
    code, said = run("--merge")
    assert (code, target.read_bytes()) == (2, before)
    assert "[K533]" in said
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


def test_a_machine_without_a_gpu_says_so(tmp_path: Path) -> None:
    target = tmp_path / "run.kprof"
    done = subprocess.run(
        [sys.executable, "-m", "kesco", "profile", str(ROOT / "workloads/vec/serial.cu"), "-o", str(target)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "-1"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 5
    assert "there is no GPU" in done.stderr or "K622" in done.stderr
    assert "without --gpu" not in done.stderr
    assert not target.exists()


def test_without_nvcc_it_says_so(steps: Prepared, tmp_path: Path) -> None:
    from dataclasses import replace

    from kesco.toolchain import recorder

    with pytest.raises(ToolchainError, match="no nvcc"):
        recorder.build(replace(steps.toolchain, nvcc=None), [str(STEPS)], (), tmp_path)
