"""`scripts/figures.py` without a GPU: made-up programs print times, and only what is stale is measured again."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kesco.bench import regress, results
from kesco.bench.build import Program
from kesco.bench.measure import Row, Setting
from kesco.bench.regress import State
from kesco.bench.results import Results

ROOT = Path(__file__).resolve().parents[2]
OLD = {"vec/device/kesco": "1: 7 operations", "img/device/kesco": "2: 9 operations"}
TODAY = {"vec/device/kesco": "1", "img/device/kesco": "3"}
PROGRAM = """\
#!/bin/sh
while [ "$1" != --iters ]; do shift; done
printf 'times_ms'
i=0; while [ $i -lt "$2" ]; do printf ' 7.0'; i=$((i + 1)); done
printf '\\ntime_ms 7\\nresult 5\\n'
"""


def setting(workload: str) -> Setting:
    return Setting(workload, "device", "1gb", 100, 32, 64, 0.0)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with one file of results, a baseline, and programs for it."""
    (tmp_path / "docs/bench").mkdir(parents=True)
    (tmp_path / "workloads").mkdir()
    for path in (ROOT / "workloads").iterdir():
        if path.name != "baseline.json":
            (tmp_path / "workloads" / path.name).symlink_to(path)
    states = {name: State(one, 1, 2, 7, {}, 1, 0, 0, 1.0, 2.0, []) for name, one in TODAY.items()}
    (tmp_path / "workloads/baseline.json").write_text(regress.to_json(states))
    rows = tuple(Row(setting(w), v, 0, (9.0, 9.0), 5.0) for w in ("vec", "img") for v in ("serial", "kesco"))
    kept = Results(rows, {"gpu": "a GPU", "commit": "old", "method": "as it was"}, OLD)
    (tmp_path / "docs/bench/some.json").write_text(results.to_json(kept))
    folder = tmp_path / "built/some"
    folder.mkdir(parents=True)
    programs = []
    for workload in ("vec", "img"):
        for program in ("serial", "kesco"):
            path = folder / f"{workload}-{program}"
            path.write_text(PROGRAM)
            path.chmod(0o755)
            plan = {"plan": f"{TODAY[f'{workload}/device/kesco']}: 8 operations"} if program == "kesco" else {}
            one = Program(workload, "device", program, path.name, **plan)
            programs.append({name: getattr(one, name) for name in Program.__slots__})
    made = {"cuda": "13.0", "flags": "-O2", "commit": "new"}
    (folder / "build.json").write_text(json.dumps({"made": made, "programs": programs}))
    return tmp_path


@pytest.fixture
def script(tree: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(ROOT / "scripts"), *sys.path])
    spec = importlib.util.spec_from_file_location("figures_script", ROOT / "scripts/figures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tree)
    monkeypatch.setattr(module, "gpu", lambda: "a GPU")
    return module


def run(script: ModuleType, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["figures.py", *arguments])
    return int(script.main())


def test_what_is_stale_is_told(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(script, monkeypatch) == 1
    assert capsys.readouterr().out == "some: img/device/kesco: measured with 2, and today it is 3\n"


def test_only_that_is_measured_again(script: ModuleType, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(script, monkeypatch, "--built", str(tree / "built"), "--repeat", "4") == 0
    found = results.read(tree / "docs/bench/some.json")
    assert [row.times for row in found.rows] == [(9.0, 9.0)] * 2 + [(7.0,) * 4] * 2
    assert found.plans == {"vec/device/kesco": "1: 7 operations", "img/device/kesco": "3: 8 operations"}
    assert found.environment["commit"] == "old; measured again: new"
    assert found.environment["method"] == "as it was"
    assert run(script, monkeypatch) == 0


def test_one_file_is_of_one_card(script: ModuleType, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "gpu", lambda: "another GPU")
    before = (tree / "docs/bench/some.json").read_bytes()
    assert run(script, monkeypatch, "--built", str(tree / "built")) == 3
    assert (tree / "docs/bench/some.json").read_bytes() == before
    assert run(script, monkeypatch, "--built", str(tree / "built"), "--all", "--repeat", "2") == 0
    found = results.read(tree / "docs/bench/some.json")
    assert {row.times for row in found.rows} == {(7.0, 7.0)}
    assert (found.environment["gpu"], found.environment["commit"]) == ("another GPU", "new")


def test_what_is_not_done_in_time_is_not_written(
    script: ModuleType, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (tree / "docs/bench/some.json").read_bytes()
    assert run(script, monkeypatch, "--built", str(tree / "built"), "--time-limit", "0") == 3
    assert (tree / "docs/bench/some.json").read_bytes() == before
