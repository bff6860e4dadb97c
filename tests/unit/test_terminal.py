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
from kesco.cli.output import _line_of
from kesco.diagnostics import Diagnostic, Severity, render
from kesco.errors import UsageError
from kesco.ir.flow import Role
from kesco.pipeline import Compilation
from kesco.proving import FunctionVerdict
from kesco.source import Span


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


@pytest.mark.parametrize("flag", ["-std=c++17", "-Iinclude", "-O2", "--use_fast_math"])
@pytest.mark.parametrize("command", ["compile", "explain"])
def test_a_flag_of_the_compiler_is_told_where_it_goes(command: str, flag: str) -> None:
    done = run(command, "x.cu", flag)
    assert done.exit_code == 2
    assert f"No such option '{flag}'. If it is the compiler's, it goes behind '--': … -- {flag}" in done.output
    assert "goes behind" not in run(command, "x.cu", "--steams").output


# How to make each command fail early, so that what it says of an error can be read: words behind its name.
FAILING = {
    "compile": ["none.cu"], "verify": ["none.cu", "none.cu"], "explain": ["none.cu"],
    "graph": ["none.cu", "-o", "g.svg"], "regress": ["none.cu", "--baseline", "none.json"], "check": ["none.cu"],
    "merge": ["none.cu=1", "none.cu=2", "-o", "m.cu"],
    "profile": ["none.cu"], "trace": ["--", "/there/is/no/program"], "compare": ["none.json", "none.json"],
    "fikit show": ["none.kfikit"], "fikit simulate": ["none.kftrace"], "fikit synthesize": ["-o", "none/t.kftrace"],
    "fikit merge": ["none.kfikit", "-o", "all.kfikit"], "fikit profile": ["--", "/there/is/no/program"],
    "fikit timeline": ["none.record", "-o", "t.json"],
    "fikit top": ["--gpu", "GPU-none"], "fikit explain": ["--record", "none.record"],
}  # fmt: skip
# What needs neither: it prints a path or a unit; its --json names a file; it goes on until it is ended.
WITHOUT = {"cmake", "bench", "fikit serve", "fikit run", "fikit metrics", "fikit unit"}
# What says what it did or where it is, once it has or is there.
TELLING = {f"fikit {name}" for name in ("merge", "synthesize", "profile", "timeline", "serve", "metrics")}


def commands(group: click.Group = main, before: str = "") -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            found |= commands(command, f"{before}{name} ")
        elif not command.hidden:
            found[before + name] = command
    return found


def test_every_command_that_finds_things_out_speaks_json_and_can_be_quiet() -> None:
    flags = {name: {o for p in command.params for o in p.opts} for name, command in commands().items()}
    assert set(flags) == {*FAILING, *WITHOUT, "doctor", "fikit doctor"}
    assert {name for name, known in flags.items() if "--json" not in known} == WITHOUT - {"bench"}
    plain = {name for name in flags if not name.startswith("fikit ")}
    assert {name for name in plain if "--quiet" not in flags[name]} == {"cmake"}
    assert {name for name in flags if name.startswith("fikit ") and "--quiet" in flags[name]} == TELLING


@pytest.mark.parametrize("name", FAILING)
def test_an_error_is_json_where_json_was_asked_for(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toolchain: object
) -> None:
    monkeypatch.chdir(tmp_path)
    place = len(name.split())
    words = [*name.split(), *FAILING[name]]
    done = run(*words[:place], "--json", *words[place:])
    said = json.loads(done.stderr)
    assert done.exit_code in (2, 3, 5) and done.stdout == ""
    assert [one["severity"] for one in said] == ["error"] * len(said) and said[0]["code"].startswith("K")
    assert "\x1b" not in run(*words).output


def test_compile_speaks_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = Diagnostic("K206", Severity.REMARK, "something")
    made = Compilation("a.cu", b"", b"x", (result(region(diamond())),), (said,))
    monkeypatch.setattr("kesco.pipeline.compile_file", lambda *_: made)
    monkeypatch.chdir(tmp_path)
    done = run("compile", "a.cu", "-o", "b.cu", "--json")
    found = json.loads(done.stdout)
    assert done.exit_code == 0 and done.stderr == "" and Path("b.cu").read_bytes() == b"x"
    assert found["output"] == "b.cu" and [one["code"] for one in found["diagnostics"]] == ["K206"]
    assert found["functions"][0]["operations"] == 4 and found["functions"][0]["rewritten"] is True
    assert run("compile", "a.cu", "-o", "-", "--json").exit_code == 2
    found = json.loads(run("graph", "a.cu", "-o", "g.json", "--json").stdout)
    assert found == {"output": "g.json", "functions": [made.functions[0].region.function]}


def test_an_odd_source_line_is_shown_around_its_place_and_steers_no_terminal(tmp_path: Path) -> None:
    file = tmp_path / "a.cu"
    file.write_bytes(b"int x = \x1b[31m1;" + b" " * 4000 + b"int y;")
    for column in (9, 4012):
        shown = render(
            Diagnostic("K100", Severity.ERROR, "odd", Span(str(file), column - 1, column, 1, column)), _line_of
        )
        assert "\x1b" not in shown and max(map(len, shown.splitlines())) < 260
        line, caret = shown.splitlines()[1:3]
        assert line[caret.index("^")] == ("␛" if column == 9 else " ")


def test_what_is_no_source_file_is_refused_at_once(tmp_path: Path) -> None:
    large = tmp_path / "data.cu"
    with large.open("wb") as file:
        file.truncate(100 << 20)
    for name, words in (("/dev/zero", "/dev/zero is no regular file"), (str(large), "has 100 MiB")):
        done = run("compile", name, "-o", str(tmp_path / "o.cu"))
        assert done.exit_code in (2, 3) and "error[K102]" in done.output and words in done.output
    full = run("compare", "a", "b", "--html", "/dev/full/x.html")
    assert full.exit_code == 2


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


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_protocol_of_completion_works_in_each_shell(shell: str, tmp_path: Path) -> None:
    """The shell itself loads what `kesco` gives it; then it is asked what Tab would ask for."""
    program = tmp_path / "kesco"
    program.write_text(f"#!{sys.executable}\nfrom kesco.cli import main\nmain()\n")  # as pip makes it
    program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    asked = {"COMP_WORDS": "kesco compile --rep", "COMP_CWORD": "--rep" if shell == "fish" else "2"}
    protocol = {**environment, **asked, "_KESCO_COMPLETE": f"{shell}_complete"}
    given = subprocess.run([program], env=protocol, capture_output=True, text=True, check=True)
    assert "--report" in given.stdout
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} on this machine")
    load = {
        "bash": 'eval "$(_KESCO_COMPLETE=bash_source kesco)"; complete -p kesco',
        "zsh": 'autoload -U compinit; compinit -u -D; eval "$(_KESCO_COMPLETE=zsh_source kesco)"; echo $_comps[kesco]',
        "fish": "_KESCO_COMPLETE=fish_source kesco | source; complete -C 'kesco compile --rep'",
    }
    done = subprocess.run([shell, "-c", load[shell]], env=environment, capture_output=True, text=True, check=True)
    assert {"bash": "_kesco_completion kesco", "zsh": "_kesco_completion", "fish": "--report"}[shell] in done.stdout


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
