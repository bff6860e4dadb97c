"""The commands around the runtime: what they print for people and for programs, and the unit of systemd."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from kesco.cli import main
from kesco.fikit import metrics, unit
from kesco.ir import kfikit
from tests.fikit.yard import LIMIT, Yard

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
KESCO = (sys.executable, "-m", "kesco", "fikit")


@needs_compiler
def test_profile_says_what_it_did(yard: Yard, tmp_path: Path) -> None:
    env = dict(os.environ) | {"LD_LIBRARY_PATH": str(yard.parts), "FAKE_GPU": str(yard.folder / "gpu")}
    target, record = tmp_path / "t.kfikit", tmp_path / "t.kftrace"

    def profiled(*words: str) -> subprocess.CompletedProcess[str]:
        command = (*KESCO, "profile", "-o", str(target), *words, "--", str(yard.parts / "task"), "3", "2", "100", "0")
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=LIMIT, check=True)

    done = profiled("--json", "--trace", str(record))
    (task,) = kfikit.read(target).tasks
    told = {"output": str(target), "task": task.key, "kernels": len(task.kernels), "launches": 6, "trace": str(record)}
    assert json.loads(done.stdout) == told
    float(done.stderr)  # what the program itself prints
    done = profiled()
    assert (
        float(done.stdout) > 0
        and done.stderr == f"{target}: task {task.key}, {len(task.kernels)} kernels, 6 launches\n"
    )
    done = profiled("-q")
    assert float(done.stdout) > 0 and done.stderr == ""


@needs_compiler
@pytest.mark.parametrize("quiet", [False, True])
def test_serve_says_where(quiet: bool, tmp_path: Path, runtime: tuple[Path, Path]) -> None:
    env = dict(os.environ) | {"XDG_RUNTIME_DIR": str(tmp_path)}
    words = (*KESCO, "serve", "--gpu", "GPU-1", *(["--quiet"] if quiet else []))
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout and child.stdout.readline() == "ready\n"
        child.terminate()
        _, err = child.communicate(timeout=LIMIT)
    assert err == ("" if quiet else f"serving {tmp_path}/kesco/fikit-GPU-1.sock\n")


@pytest.mark.parametrize("quiet", [False, True])
def test_metrics_say_where(quiet: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Thread(target=str)
    ended.start()
    monkeypatch.setattr(metrics, "serve", lambda *_: ended)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    words = ["fikit", "metrics", "--gpu", "GPU-1", "--listen", "127.0.0.1:9", *(["-q"] if quiet else [])]
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, done.output) == (0, "" if quiet else "http://127.0.0.1:9/metrics\n")


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("plain", "plain"), ("", '""'), ("a b", '"a b"'), ("100%", "100%%"), ("$HOME", "$$HOME"), ('a"b', r'"a\"b"'),
        ("a\\b", r'"a\\b"'), ("a;b", '"a;b"'), ("it's", '"it\'s"'), ("a\nb", r'"a\nb"'),
    ],
)  # fmt: skip
def test_words_are_written_as_systemd_reads_them(word: str, written: str) -> None:
    assert unit.quoted(word) == written


def test_a_program_that_is_not_installed_is_begun_by_its_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda _: "/there/is/no/folder")
    assert unit.this_program() == (sys.executable, "-m", "kesco")


def test_the_unit_names_files_from_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    given = ["--profile", "my tasks.kfikit", "--record", "r", "--policy", "strict", "--cap", "3", "--user", "7:2"]
    done = CliRunner().invoke(main, ["fikit", "unit", *given, "--set", "guard_ns=2e4"])
    (line,) = (one for one in done.output.splitlines() if one.startswith("ExecStart="))
    words = shlex.split(line.removeprefix("ExecStart="))
    assert words[: -len(given) - 2] == [*unit.this_program(), "fikit", "serve"]
    given[1], given[3] = f"{tmp_path}/my tasks.kfikit", f"{tmp_path}/r"
    assert words[-len(given) - 2 :] == [*given, "--set", "guard_ns=2e4"]
    assert "on the first GPU\n" in done.output
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    assert "fikit serve --gpu 2\n" in CliRunner().invoke(main, ["fikit", "unit"]).output
    refused = CliRunner().invoke(main, ["fikit", "unit", "--set", "guard=1"])
    assert refused.exit_code == 2 and "K104" in refused.output and "ExecStart" not in refused.output


def verified(text: str, folder: Path) -> tuple[int, str]:
    """What systemd says of a unit."""
    file = folder / "kesco-fikit.service"
    file.write_text(text)
    env = dict(os.environ) | {"XDG_RUNTIME_DIR": str(folder)}
    command = ("systemd-analyze", "verify", "--user", str(file))
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=LIMIT, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    text = CliRunner().invoke(main, ["fikit", "unit", "--profile", str(tmp_path / "100% of $ my tasks.kfikit")]).output
    assert verified(text, tmp_path) == (0, "")
    code, said = verified(text.replace("Restart=always", "Restart=sometimes"), tmp_path)
    assert "sometimes" in said
    code, said = verified(text.replace(unit.this_program()[0], "/there/is/no/kesco"), tmp_path)
    assert code and "/there/is/no/kesco" in said


@needs_compiler
def test_what_the_unit_runs_serves(tmp_path: Path, runtime: tuple[Path, Path]) -> None:
    profile = tmp_path / "my tasks.kfikit"
    profile.write_text(kfikit.to_json(kfikit.Store("", "", ())))
    text = CliRunner().invoke(main, ["fikit", "unit", "--gpu", "GPU-1", "--profile", str(profile)]).output
    (line,) = (one for one in text.splitlines() if one.startswith("ExecStart="))
    env = dict(os.environ) | {"XDG_RUNTIME_DIR": str(tmp_path)}
    words = shlex.split(line.removeprefix("ExecStart="))
    with subprocess.Popen(words, env=env, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout and child.stdout.readline() == "ready\n"
        assert (tmp_path / "kesco/fikit-GPU-1.sock").is_socket()
        child.terminate()
