"""What is seen of a daemon: its record, Perfetto, metrics, traces of real runs; and what doctor makes of machines."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from kesco.cli import main
from kesco.errors import ToolchainError
from kesco.fikit import events, examine, metrics, samples, serving, telling, trace
from kesco.fikit.policy import Held, Reason
from tests.fikit.yard import LIMIT, Yard

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
RECORD = """kesco-fikit-events 1
T 1000 0 9 11 high
T 2000 1 1 12 low one
K 1 00000000000000aa scale
P 3000 0 00000000000000bb
W 4000 1 1 00000000000000aa
D 9000 0 1
G 10000 1 1 2 1 500 700
B 10500 1 1
W 11000 1 2 00000000000000ab
A 51000 1 2
D 60000 1 2
L 70000 1
T 80000 1 2 13 other
G 9
"""


def test_a_record_is_read(tmp_path: Path) -> None:
    (tmp_path / "record").write_text(RECORD)
    found = events.read(tmp_path / "record")
    high, low = "high (pid 11, priority 9)", "low one (pid 12, priority 1)"
    assert found.tasks == (high, "other (pid 13, priority 2)", low)
    assert found.holds == (
        events.Hold(low, "scale", 4000, 10000, Held.BUSY, Reason.FILL, 500, 700),
        events.Hold(low, f"{0xAB:016x}", 11000, 51000, Held.NOT_HELD, None, 0, 0),
    )
    assert found.busy == (events.Busy(high, 3000, 9000, 1), events.Busy(low, 10500, 60000, 2))
    said = telling.longest_holds(found, 1)
    assert said.startswith("0.040 ms  low one") and "by its own deadline" in said
    assert "a task of higher priority has work on the GPU" in telling.longest_holds(found, 2)
    ended = CliRunner().invoke(
        main, ["fikit", "explain", "--record", str(tmp_path / "record"), "--longest", "1", "--json"]
    )
    (longest,) = json.loads(ended.output)
    assert (longest["task"], longest["held"], longest["reason"]) == (low, "NOT_HELD", None)
    drawn = json.loads(events.to_perfetto(found))["traceEvents"]
    (held,) = [one for one in drawn if one["name"] == "scale"]
    assert (held["ts"], held["dur"], held["args"]["let go"]) == (1.0, 6.0, "fill")


@pytest.mark.parametrize("text", ["", "something else\n", "kesco-fikit-events 1\nP x\nP 1 0 aa\n"])
def test_what_is_no_record_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "record").write_text(text)
    ended = CliRunner().invoke(main, ["fikit", "explain", "--record", str(tmp_path / "record")])
    assert ended.exit_code == 2 and "K545" in ended.output


@needs_compiler
def test_a_daemon_records_and_counts(yard: Yard, tmp_path: Path) -> None:
    record = tmp_path / "record"
    daemon = yard.daemon("--policy", "0", "--deadline-ns", "0", "--record", str(record))
    high, low = yard.held()
    pytest.importorskip("prometheus_client")
    said = metrics.text(lambda: serving.status(yard.socket))
    assert "kesco_fikit_up 1.0" in said and "kesco_fikit_fill_ratio 0.0" in said
    assert any(line.startswith("kesco_fikit_launched_total{") and 'priority="9"' in line for line in said.splitlines())
    assert any(line.startswith("kesco_fikit_waiting{") and line.endswith(" 1.0") for line in said.splitlines())
    high.terminate()
    yard.ends(low)
    daemon.terminate()
    daemon.wait(LIMIT)
    found = events.read(record)
    assert len(found.tasks) == 2 and len(found.holds) >= 1 and found.busy
    assert found.holds[0].kernel == "_Z4workPf" and found.holds[0].reason is Reason.HOLDER
    target = tmp_path / "t.json"
    words = ["fikit", "timeline", str(record), "-o", str(target)]
    drawn = CliRunner().invoke(main, words)
    assert drawn.exit_code == 0 and drawn.stderr == f"{target}: 2 tasks, {len(found.holds)} holds\n"
    assert "_Z4workPf" in target.read_text()
    told = json.loads(CliRunner().invoke(main, [*words, "--json"]).output)
    assert told == {"output": str(target), "tasks": list(found.tasks), "holds": len(found.holds)}
    assert CliRunner().invoke(main, [*words, "--quiet"]).output == ""


def test_without_a_daemon_the_metrics_say_so() -> None:
    pytest.importorskip("prometheus_client")

    def ask() -> dict[str, object]:
        return serving.status(Path("/nonexistent"))

    assert metrics.text(ask).splitlines()[-1] == "kesco_fikit_up 0.0"
    with pytest.raises(ToolchainError):
        ask()


@needs_compiler
def test_a_real_run_is_recorded_and_replayed(yard: Yard, tmp_path: Path) -> None:
    yard.ends(yard.task(0, "30", "4", "300", "2000", MEASURE=str(yard.folder / "samples")))
    files = list(yard.folder.glob("samples*"))
    found = samples.traced("task", "key", 9, files)
    (task,) = found.tasks
    assert len(task.steps) == 120 and task.priority == 9
    assert [step.waits for step in task.steps] == [False, False, False, True] * 30
    firsts = sorted(step.gap_ns for step in task.steps[4::4])
    assert 1_900_000 < firsts[len(firsts) // 10] < 4_000_000  # the host's rest, where nothing delays it
    inner = sorted(step.gap_ns for step in task.steps if step not in task.steps[::4])
    assert inner[len(inner) // 2] < 100_000
    both = trace.together([found, found])
    assert [one.name for one in both.tasks] == ["task", "task 2"]
    (tmp_path / "one.kftrace").write_text(trace.to_json(found))
    ended = CliRunner().invoke(
        main, ["fikit", "simulate", *[str(tmp_path / "one.kftrace")] * 2, "--policy", "quantile", "--json"]
    )
    assert ended.exit_code == 0, ended.output
    assert json.loads(ended.output)["policies"]["quantile"]["gaps"] >= 29


def test_what_doctor_makes_of_gpus() -> None:
    said = """0, GPU-1, NVIDIA H200, 580.1, Disabled, Default
1, GPU-2, NVIDIA H200, 580.1, Enabled, Exclusive_Process
2, GPU-3, NVIDIA H200, 580.1, [N/A], Prohibited
"""
    found = examine.of_gpus(said)
    assert [one.level for one in found] == ["ok", "ok", "note", "note", "ok", "problem", "note"]
    assert found[-1].found == "3 GPUs" and "MIG" in found[2].found
    assert examine.of_gpus("nothing")[0].level == "problem"


def test_doctor_is_a_command(tmp_path: Path) -> None:
    ended = CliRunner(env={"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(tmp_path)}).invoke(
        main, ["fikit", "doctor", "--json"]
    )
    parts = {one["part"]: one for one in json.loads(ended.output)}
    assert parts["daemon"]["level"] == "note" and parts["socket"]["found"].startswith(str(tmp_path))
