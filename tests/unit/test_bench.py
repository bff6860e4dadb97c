"""The benchmark without a GPU: made-up programs that print times, so that every number in the report can be checked."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from kesco.bench import results as kept
from kesco.bench.build import Build, Program, read
from kesco.bench.measure import Plan, Row, Setting, measure, settings
from kesco.bench.plots import plots
from kesco.bench.results import Results, geometric_mean, median, spread, to_json
from kesco.bench.suite import PROGRAMS, STYLES, VARIANTS, choose, load
from kesco.bench.tables import markdown, tables
from kesco.cli import main
from kesco.errors import UsageError

ROOT = Path(__file__).resolve().parents[2] / "workloads"
TIMES = {"serial": 8.0, "sync": 16.0, "kesco": 2.0, "kesco-1": 9.0, "async": 2.5, "graph": 1.0}
# Each repetition takes what the table says; the first two are slow. One line is added to a log for each process.
PROGRAM = """\
#!/bin/sh
case "$0-$CUDA_LAUNCH_BLOCKING-$KESCO_STREAMS" in
  *serial-1-) t=16.0;; *serial--) t=8.0;; *kesco--) t=2.0;; *kesco--1) t=9.0;; *kesco--3) t=4.0;;
  *async--) t=2.5;; *graph--) t=1.0;; *) echo "called as $0" >&2; exit 1;;
esac
echo "$(basename "$0")-$CUDA_LAUNCH_BLOCKING-$KESCO_STREAMS $*" >> "$(dirname "$0")/log"
while [ "$1" != --iters ]; do shift; done
printf 'times_ms 99 98'
i=2; while [ $i -lt "$2" ]; do printf ' %s' $t; i=$((i + 1)); done
printf '\\ntime_ms 1\\nresult %s\\n' RESULT
"""


def made_up(folder: Path, results: dict[str, str] | None = None) -> Build:
    """A build of one workload in one style."""
    programs = []
    for program in PROGRAMS:
        path = folder / f"vec-device-{program}"
        path.write_text(PROGRAM.replace("RESULT", (results or {}).get(program, "5.0")))
        path.chmod(0o755)
        programs.append(Program("vec", "device", program, path.name, 3 if program == "kesco" else 1, 2))
    build = {"made": {"cuda": "13.0", "flags": "-O2", "commit": "abc"}, "programs": [vars_of(p) for p in programs]}
    (folder / "build.json").write_text(json.dumps(build))
    return read(folder)


def vars_of(program: Program) -> dict[str, object]:
    return {name: getattr(program, name) for name in Program.__slots__}


SETTING = Setting("vec", "device", "small", 100, 32, 64, 1e-4)


def test_medians_of_what_was_printed_without_the_warm_up(tmp_path: Path) -> None:
    rows = list(measure(made_up(tmp_path), [SETTING], Plan(repeat=6, rounds=3, streams=(3,))))
    assert {row.variant: median(row) for row in rows} == TIMES | {"kesco-3": 4.0}
    assert {len(row.times) for row in rows} == {6}
    assert {row.variant: row.streams for row in rows}["kesco"] == 3


def test_the_variants_take_turns(tmp_path: Path) -> None:
    list(measure(made_up(tmp_path), [SETTING], Plan(repeat=6, rounds=3, variants=("serial", "kesco"))))
    log = (tmp_path / "log").read_text().splitlines()
    assert [line.split("-")[2] for line in log] == ["serial", "kesco"] * 3
    assert log[0].endswith("--n 100 --block 32 --grid 64 --iters 4 --no-check")


def test_short_repetitions_are_many(tmp_path: Path) -> None:
    build = made_up(tmp_path)
    for program in PROGRAMS:
        path = tmp_path / f"vec-device-{program}"
        path.write_text(path.read_text().replace("t=8.0", "t=0.5"))
    plan = Plan(repeat=6, rounds=3, variants=("kesco", "serial"), short_repeat=20)
    rows = {row.variant: row for row in measure(build, [SETTING], plan)}
    assert {name: len(row.times) for name, row in rows.items()} == {"serial": 60, "kesco": 60}
    log = (tmp_path / "log").read_text().splitlines()
    assert [line.rpartition("--iters ")[2].split()[0] for line in log] == ["4"] + ["22"] * 6


@pytest.mark.parametrize(("result", "wrong"), [("5.0004", False), ("5.01", True), ("nan", True)])
def test_another_result_than_the_serial_programs_has_no_times(tmp_path: Path, result: str, wrong: bool) -> None:
    rows = list(measure(made_up(tmp_path, {"kesco": result}), [SETTING], Plan()))
    found = {row.variant: row for row in rows}
    assert bool(found["kesco"].problem) == wrong
    assert bool(found["kesco"].times) == (not wrong)
    assert found["async"].times


def test_what_could_not_be_compared_has_no_times(tmp_path: Path) -> None:
    build = made_up(tmp_path)
    rows = list(measure(build, [SETTING], Plan(variants=("kesco", "async"))))
    assert [(row.times, "no result to compare" in row.problem) for row in rows] == [((), True)] * 2
    (tmp_path / "vec-device-serial").write_text("#!/bin/sh\nexit 1\n")
    assert all(row.problem and not row.times for row in measure(build, [SETTING], Plan()))


def test_a_program_that_fails_says_why_and_the_others_go_on(tmp_path: Path) -> None:
    build = made_up(tmp_path)
    (tmp_path / "vec-device-graph").write_text("#!/bin/sh\necho 'no memory' >&2; exit 7\n")
    rows = {row.variant: row for row in measure(build, [SETTING], Plan())}
    assert rows["graph"].problem == "exit code 7: no memory"
    assert rows["kesco"].times
    (tmp_path / "vec-device-graph").write_text("#!/bin/sh\nsleep 9\n")
    rows = {row.variant: row for row in measure(build, [SETTING], Plan(variants=("serial", "graph"), timeout=0.2))}
    assert "0.2 seconds" in rows["graph"].problem


def test_nothing_is_begun_after_the_time_limit(tmp_path: Path) -> None:
    assert list(measure(made_up(tmp_path), [SETTING], Plan(), until=time.monotonic() - 1)) == []


def test_every_combination_and_sizes_by_number() -> None:
    workloads = load(ROOT, ["vec", "img"])
    found = settings(workloads, ["device"], ["small", "77"], [32, 64])
    assert len(found) == 8
    assert {(s.workload, s.n) for s in found} == {("vec", 10000), ("img", 100), ("vec", 77), ("img", 77)}


def test_every_workload_states_its_sizes() -> None:
    for workload in load(ROOT):
        assert list(workload.sizes) == ["small", "1gb", "5gb", "10gb"]
        for style in STYLES.values():
            assert workload.source(style, "kesco") == workload.source(style, "serial")


def test_unknown_names_are_told() -> None:
    with pytest.raises(UsageError, match="no workload 'vex'"):
        load(ROOT, ["vex"])
    with pytest.raises(UsageError, match="cannot read"):
        load(ROOT / "nowhere")
    assert choose("variant", ["graph", "serial", "graph"], VARIANTS) == ["graph", "serial"]


def row(variant: str, *times: float, block: int = 32, size: str = "small") -> Row:
    return Row(replace(SETTING, block=block, size=size), variant, 1, times, 5.0)


SOME = Results(
    (
        row("serial", 8, 8, 8), row("kesco", 2, 2, 2), row("async", 4, 4, 4),
        row("serial", 8, block=64), row("kesco", 4, block=64), row("async", 2, block=64),
        row("serial", 8, size="1gb"), row("kesco", 8, size="1gb"),
    ),
    {"gpu": "made up"},
)  # fmt: skip


def test_ratios_and_means() -> None:
    small = [s for s in SOME.settings() if s.size == "small"]
    assert SOME.speedup(small[0], "kesco") == 4
    assert SOME.speedup(small[0], "kesco", over="async") == 2
    assert SOME.mean_speedup(small, "kesco") == pytest.approx(8**0.5)
    assert SOME.mean_speedup(small, "kesco", over="async") == pytest.approx(1)
    assert SOME.speedup(small[0], "graph") is None
    assert geometric_mean([]) is None
    assert spread(row("serial", 1, 2, 3, 4, 5)) == pytest.approx(1.0)
    assert spread(row("serial", 1, 2)) == 0


def test_json_gives_back_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(to_json(SOME))
    assert kept.read(path) == SOME
    path.write_text(to_json(SOME).replace('"version": 1', '"version": 0'))
    with pytest.raises(UsageError, match="version 0"):
        kept.read(path)


def test_the_tables_show_ratios() -> None:
    (table,) = tables(SOME)
    assert [column.header for column in table.columns][5:] == ["kesco", "async", "kesco / async"]
    assert list(table.columns[5].cells)[:3] == ["4.00", "2.00", "1.00"]
    assert "| vec | small | 8 | 2.83 | 2.83 | 1.00 |" in markdown(SOME, "device")


def test_plots_are_drawn_where_there_is_something_to_draw() -> None:
    pytest.importorskip("matplotlib")
    drawn = dict(plots(SOME))
    assert list(drawn) == ["schemes-device-small", "schemes-device-1gb", "sizes-device"]
    assert all(text.startswith("<?xml") for text in drawn.values())
    counts = [replace(row("kesco", 8 / n), variant=f"kesco-{n}", streams=n) for n in (2, 3)]
    more = dict(plots(Results((*SOME.rows, *counts), {})))
    assert "streams-device" in more
    assert dict(plots(SOME)) == drawn


def test_the_command_measures_writes_and_shows(tmp_path: Path) -> None:
    made_up(tmp_path)
    output = tmp_path / "results.json"
    options = ["--built", str(tmp_path), "--sizes", "small", "--blocks", "32", "--workloads", str(ROOT)]
    done = CliRunner().invoke(main, ["bench", "vec", *options, "--json", str(output)])
    assert done.exit_code == 0, done.output
    assert "geometric mean" in done.output
    results = kept.read(output)
    assert {r.variant: median(r) for r in results.rows} == TIMES
    assert results.environment["commit"] == "abc"
    again = CliRunner().invoke(main, ["bench", "--from", str(output)])
    assert again.exit_code == 0
    assert "geometric mean" in again.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sizes", "huge"], "K520"),
        (["--blocks", "0"], "K520"),
        (["--styles", "paper"], "K520"),
        (["--workloads", "/nonexistent"], "K521"),
        (["--built", "/nonexistent"], "K523"),
        (["--from", "/nonexistent"], "K524"),
    ],
)
def test_bad_options_are_told_in_one_message(options: list[str], message: str) -> None:
    done = CliRunner().invoke(main, ["bench", "--workloads", str(ROOT), *options])
    assert done.exit_code == 2
    assert message in done.output
    assert "Traceback" not in done.output


def test_a_failed_program_is_exit_code_3(tmp_path: Path) -> None:
    made_up(tmp_path, {"async": "6.0"})
    options = ["--built", str(tmp_path), "--sizes", "small", "--blocks", "32", "--workloads", str(ROOT)]
    done = CliRunner().invoke(main, ["bench", "vec", *options])
    assert done.exit_code == 3
    assert "vec device small 32 async: result 6, the serial program's is 5" in done.output
