"""The terminal: suggestions, no colours where nobody wants them, JSON, quiet, completion, the manual page."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from by_hand import Op, diamond, region, result
from click.shell_completion import BashComplete
from click.testing import CliRunner

from kesco import __version__
from kesco.bench.suite import choose
from kesco.cli import main
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError
from kesco.ir.flow import Role
from kesco.pipeline import Compilation
from kesco.proving import FunctionVerdict


def run(*words: str, **more: object) -> object:
    return CliRunner().invoke(main, list(words), **more)


def test_a_slip_of_the_pen_gets_a_suggestion() -> None:
    assert "Did you mean '--streams'?" in run("compile", "--steams", "2", "x.cu").output
    assert "'compile'" in run("complie").output
    with pytest.raises(UsageError) as problem:
        choose("workload", ["hist"], ["vec", "hits", "m1"])
    assert problem.value.diagnostics[0].help == "did you mean 'hits'? there are: vec, hits, m1"
    with pytest.raises(UsageError) as problem:
        choose("workload", ["zzz"], ["vec"])
    assert problem.value.diagnostics[0].help == "there are: vec"


def test_every_command_can_be_quiet_and_every_one_that_finds_things_out_speaks_json() -> None:
    commands = {n: c for n, c in main.commands.items() if not (c.hidden or isinstance(c, click.Group))}
    flags = {name: {o for p in command.params for o in p.opts} for name, command in commands.items()}
    assert {name for name, known in flags.items() if "--quiet" not in known} == {"cmake", "bench"}
    assert {name for name, known in flags.items() if not {"--json", "--diagnostics"} & known} == {"cmake"}


def test_doctor_speaks_json() -> None:
    done = run("doctor", "--json")
    found = json.loads(done.stdout)
    assert found["ready"] is (done.exit_code == 0)
    assert {"component", "status", "value", "how_to_get"} <= found["parts"][0].keys()
    assert run("doctor", "-q").output == ""


def test_verify_speaks_json_and_can_be_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Diagnostic("K401", Severity.ERROR, "it may run before")
    said = [FunctionVerdict("main", 26, ()), FunctionVerdict("other", 1, (), "it throws")]
    monkeypatch.setattr("kesco.proving.verify_files", lambda *_: said)
    assert json.loads(run("verify", "a.cu", "b.cu", "--json").stdout) == {
        "proven": True, "diagnostics": [],
        "functions": [{"function": "main", "pairs": 26, "unchanged": ""},
                      {"function": "other", "pairs": 1, "unchanged": "it throws"}],
    }  # fmt: skip
    assert run("verify", "a.cu", "b.cu", "-q").output == ""
    said.append(FunctionVerdict("bad", 2, (problem,)))
    broken = run("verify", "a.cu", "b.cu", "--json")
    assert broken.exit_code == 4 and json.loads(broken.stdout)["proven"] is False
    assert [one["code"] for one in json.loads(broken.stdout)["diagnostics"]] == ["K401"]


def test_explain_speaks_json(monkeypatch: pytest.MonkeyPatch) -> None:
    area = region([Op("copy", r="a", role=Role.LEGACY, note="the host may have to wait for it here"), *diamond()])
    made = Compilation("a.cu", b"", b"x", (result(area),), ())
    monkeypatch.setattr("kesco.pipeline.compile_file", lambda *_: made)
    (function,) = json.loads(run("explain", "a.cu", "--json").stdout)["functions"]
    assert len(function["operations"]) == 7 and function["lost"][0]["line"] == 11
    assert "cudaMallocHost" in function["lost"][0]["help"]


@pytest.mark.parametrize("variable", ["NO_COLOR", ""])
def test_colours_are_for_terminals_whose_owner_wants_them(variable: str, tmp_path: Path) -> None:
    script = shutil.which("script")
    if script is None:
        pytest.skip("no 'script' to stand in for a terminal")
    environment = {**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm"}
    if variable:
        environment[variable] = "1"
    command = [script, "-qec", f"{sys.executable} -m kesco compile {tmp_path}/nothing.cu", "/dev/null"]
    done = subprocess.run(command, env=environment, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    assert b"error[K102]" in done.stdout
    assert (b"\x1b[" in done.stdout) is (not variable)


def test_a_shell_can_complete_commands_and_options() -> None:
    complete = BashComplete(main, {}, "kesco", "_KESCO_COMPLETE")
    assert {one.value for one in complete.get_completions([], "com")} == {"compile", "compare"}
    assert [one.value for one in complete.get_completions(["compile"], "--rep")] == ["--report"]
    assert [one.value for one in complete.get_completions(["compile", "--emit"], "g")] == ["graph"]
    assert "_KESCO_COMPLETE=bash_complete" in complete.source()


def test_the_manual_page_is_what_the_commands_say(repository: Path, update_golden: bool) -> None:
    spec = importlib.util.spec_from_file_location("manpage", repository / "scripts/manpage.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    file = repository / "docs/kesco.1"
    if update_golden:
        file.write_text(made.page(), "utf-8")
    assert file.read_text("utf-8") == made.page()
    for name, command in main.commands.items():
        assert command.hidden or f".SS kesco {name} " in made.page()
    assert not any(line.startswith("'") for line in made.page().splitlines())
    assert isinstance(main, click.Group)


def test_the_files_of_a_release_agree(repository: Path) -> None:
    said = (repository / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {__version__}\n" in said
    assert f'version = "{__version__}"' in (repository / "pyproject.toml").read_text("utf-8")
