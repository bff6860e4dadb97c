"""Variants in one process, in turns: without a GPU, with programs that say how long they took, and on the dry run."""

from __future__ import annotations

import json
import math
import random
import statistics
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from kesco.bench.build import SHARED, Build, Program, read
from kesco.bench.measure import Plan, Row, Setting
from kesco.bench.measure import measure as measure_alone
from kesco.bench.paired import FIT, Turns, measure
from kesco.bench.pairs import ROUNDS, interval, ratio
from kesco.bench.results import Results
from kesco.bench.results import read as read_results
from kesco.cli import main
from kesco.errors import UsageError
from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.toolchain.dryrun import _compile
from kesco.toolchain.model import Toolchain
from kesco.toolchain.runtimes import cxx_compiler, runtime_library

ROOT = Path(__file__).resolve().parents[2] / "workloads"
SETTING = Setting("vec", "device", "small", 100, 32, 64, 1e-4)
# Says that a repetition took FACTOR times what the machine makes of it then, which is another thing every 40 of them.
# The first two of a turn are slow, and the first 500 of all. What is static is of one program: so is `calls`.
PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
extern "C" void repetition_took(double milliseconds);
extern "C" void program_computed(double result);
struct Counter { static int& calls() { static int count = 0; return count; } };
static double last;
int main(int argc, char** argv) {
  int iterations = 0;
  for (int i = 1; i + 1 < argc; ++i)
    if (!std::strcmp(argv[i], "--iters")) iterations = std::atoi(argv[i + 1]);
  if (iterations == 0) return 3;
  const double streams = std::getenv("KESCO_STREAMS") ? 10 : 1;
  for (int it = 0; it < iterations; ++it) {
    const int turn = it - 500, machine = 1 + it / 40 % 5;
    repetition_took(it < 500 || turn % 6 < 2 ? 1000 : machine * FACTOR * streams);
    ++Counter::calls();
    last = std::getenv("KESCO_STREAMS") ? 10 : 1;
  }
  if (last != streams) return 4;
  program_computed(RESULT + (Counter::calls() == iterations ? 0 : 100));
  return 0;
}
"""
TURNS = Turns(rounds=50, repeat=4, processes=2, skip=2, variants=("serial", "kesco", "kesco-1", "async"))


@pytest.fixture(scope="module")
def turns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("driver") / "turns"
    flags = ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-rdynamic"]
    subprocess.run(["g++", *flags, str(ROOT / "common/turns.cpp"), "-o", str(path), "-ldl"], check=True)
    return path


def made_up(folder: Path, turns: Path, kescos: int = 5) -> Build:
    """Three programs: kesco's takes 0.9 times as long as the serial one, the hand-written one 1.01 times."""
    programs = []
    (folder / "program.cpp").write_text(PROGRAM)
    for name, factor, result in (("serial", 1.0, 5), ("kesco", 0.9, kescos), ("async", 1.01, 5)):
        flags = [*SHARED, f"-DFACTOR={factor}", f"-DRESULT={result}"]
        command = ["g++", "-O1", "-shared", *flags, "program.cpp", "-o", f"{name}.so"]
        subprocess.run(command, cwd=folder, check=True)
        programs.append(Program("vec", "device", name, f"{name}.so", 3 if name == "kesco" else 1, 2))
    (folder / "turns").symlink_to(turns)
    made = {"cuda": "13.0", "flags": "-O2", "commit": "abc", "turns": "turns"}
    facts = [{name: getattr(one, name) for name in Program.__slots__} for one in programs]
    (folder / "build.json").write_text(json.dumps({"made": made, "programs": facts}))
    return read(folder)


def test_pairs_tell_what_a_drifting_machine_hides(tmp_path: Path, turns: Path) -> None:
    rows = {row.variant: row for row in measure(made_up(tmp_path, turns), [SETTING], TURNS)}
    assert list(rows) == ["serial", "serial-again", "kesco", "kesco-1", "async"]
    assert [(row.result, row.problem) for row in rows.values()] == [(5, "")] * 5
    assert {len(row.times) for row in rows.values()} == {100}
    assert max(rows["serial"].times) == 5 and min(rows["serial"].times) == 1
    results = Results(tuple(rows.values()), {ROUNDS: "50"})
    for variant, factor in {"serial-again": 1.0, "kesco": 0.9, "kesco-1": 9.0, "async": 1.01}.items():
        found = ratio(results, SETTING, variant)
        assert found is not None
        assert (found.low, found.median, found.high) == pytest.approx((1 / factor,) * 3, rel=1e-5)
        assert found.processes == pytest.approx((1 / factor,) * 2, rel=1e-5)
    assert {name: row.streams for name, row in rows.items()}["kesco"] == 3


def test_a_program_that_fails_and_one_that_computes_something_else(tmp_path: Path, turns: Path) -> None:
    build = made_up(tmp_path, turns, kescos=6)
    rows = {row.variant: row for row in measure(build, [SETTING], TURNS)}
    assert rows["kesco"].problem == "result 6, the serial program's is 5" and not rows["kesco"].times
    assert rows["async"].times and not rows["async"].problem
    (tmp_path / "async.so").write_bytes(b"no shared object")
    rows = {row.variant: row for row in measure(build, [SETTING], TURNS)}
    assert all("exit code 2: turns: " in row.problem and not row.times for row in rows.values())


def test_a_program_that_ends_early_is_told(tmp_path: Path, turns: Path) -> None:
    made_up(tmp_path, turns)
    (tmp_path / "short.cpp").write_text('extern "C" void repetition_took(double); int main() { repetition_took(1); }')
    subprocess.run(["g++", "-shared", "-fPIC", "short.cpp", "-o", "short.so"], cwd=tmp_path, check=True)
    command = [turns, "3", "2", "0", "1", "1", "./serial.so", "./short.so", "--"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "turns: ./short.so ended before its last repetition\n"


def test_programs_that_were_built_for_something_else_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="each in a process of its own"):
        list(measure(Build(tmp_path, (), {}), [SETTING], TURNS))
    with pytest.raises(UsageError, match="in one process"):
        list(measure_alone(Build(tmp_path, (), {"turns": "turns"}), [SETTING], Plan()))
    assert "sync" not in FIT and "kesco-1" in FIT


def test_the_interval_holds_the_median_nineteen_times_of_twenty() -> None:
    chance = random.Random(3)
    drawn = [interval([chance.expovariate(1) for _ in range(60)]) for _ in range(2000)]
    held = statistics.mean(low <= math.log(2) <= high for low, high in drawn)
    assert 0.94 < held < 0.985  # 60 values have no interval of exactly 95 %, but one of 96
    assert interval([3, 1, 2, 5, 4, 6]) == (1, 6)
    assert interval([1, 2, 3, 4, 5]) == (-math.inf, math.inf)


def row(variant: str, *times: float) -> Row:
    return Row(SETTING, variant, 1, times, 5.0)


def test_ratios_want_times_of_rounds() -> None:
    rows = (row("serial", 2, 4, 6, 8), row("kesco", 1, 2, 2, 2))
    found = ratio(Results(rows, {ROUNDS: "2"}), SETTING, "kesco")
    assert found is not None
    assert (found.median, found.processes) == (2.5, (2, 3.5))
    assert ratio(Results(rows, {}), SETTING, "kesco") is None
    assert ratio(Results(rows, {ROUNDS: "2"}), SETTING, "async") is None


def test_the_command_measures_writes_and_shows(tmp_path: Path, turns: Path) -> None:
    made_up(tmp_path, turns)
    output = tmp_path / "results.json"
    options = ["--built", str(tmp_path), "--sizes", "small", "--blocks", "32", "--workloads", str(ROOT)]
    how = ["--paired", "50", "--repeat", "4", "--rounds", "2", "--variants", "async"]
    done = CliRunner().invoke(main, ["bench", "vec", *options, *how, "--json", str(output)])
    assert done.exit_code == 0, done.output
    results = read_results(output)
    assert results.environment["method"] == "50 turns of 4 repetitions in each of 2 processes of all variants"
    again = CliRunner().invoke(main, ["bench", "--from", str(output)])
    assert again.output == done.output.partition("\n")[2]  # but for the line of progress
    assert any(" async " in line and " 0.990 to 0.990 " in line for line in again.output.splitlines())
    assert "1 slower, 0 faster" in again.output
    refused = CliRunner().invoke(main, ["bench", "vec", *options, "--paired", "9", "--variants", "sync"])
    assert refused.exit_code == 2 and "no variant in one process 'sync'" in refused.output


CLOCK = "std::chrono::steady_clock::now()"
WAIT = f"    for (const auto past = {CLOCK}; {CLOCK} - past < std::chrono::milliseconds(2);) {{}}\n"


def test_kescos_program_beside_the_serial_one_and_a_slower_one_on_the_dry_run(
    tmp_path: Path, turns: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runtime").mkdir()
    library = runtime_library(toolchain, tmp_path / "runtime")
    serial = ROOT / "vec/serial.cu"
    (tmp_path / "kesco.cu").write_bytes(compile_file(str(serial), Options()).text)
    slower = serial.read_text().replace("    square<<<", WAIT + "    square<<<", 1)
    (tmp_path / "async.cu").write_text(slower)
    programs = []
    for name, source in {"serial": serial, "kesco": tmp_path / "kesco.cu", "async": tmp_path / "async.cu"}.items():
        flags = ("-DTURNS", "-fPIC", "-std=c++17", f"-I{ROOT / 'vec'}")
        made = _compile(toolchain, str(source), flags, tmp_path / f"{name}.o")
        link = [*cxx_compiler(toolchain), "-shared", str(made), str(library), f"-Wl,-rpath,{library.parent}"]
        subprocess.run([*link, "-o", str(tmp_path / f"{name}.so")], check=True)
        programs.append(Program("vec", "device", name, f"{name}.so"))
    (tmp_path / "turns").symlink_to(turns)
    monkeypatch.setenv("CUDA_DRY_RUN_BLIND", "1")
    variants = ("serial", "kesco", "kesco-1", "async")
    plan = Turns(rounds=20, repeat=4, processes=1, warmup=100, variants=variants)
    rows = list(measure(Build(tmp_path, tuple(programs), {"turns": "turns"}), [SETTING], plan))
    assert [row.problem for row in rows] == [""] * 5
    results = Results(tuple(rows), {ROUNDS: "20"})
    found = {name: one for name in ("serial-again", *variants[1:]) if (one := ratio(results, SETTING, name))}
    alike = [found[name].median for name in ("serial-again", "kesco", "kesco-1")]
    assert found["async"].median < min(alike) / 2, found  # two milliseconds more, where a run takes microseconds
