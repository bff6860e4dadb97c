"""What the Clang plugin is answered, without Clang: tests/passes/ tries both together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kesco.wrapper import plugin
from kesco.wrapper.plugin import Driver, answer, flags_for_kesco, forget_ended

DEVICE = (
    ' "/bin/clang" "-cc1" "-triple" "nvptx64-nvidia-cuda" "-fcuda-is-device" "-target-cpu" "{}" "-load" "{}" "a b.cu"'
)
SIDE = ' "/bin/clang" "-cc1" "-triple" "x86_64-pc-linux-gnu" "-target-cpu" "x86-64" "-load" "{}" "a b.cu"'


def driver(folder: Path, *lines: str) -> Driver:
    """A driver that says that it starts these commands."""
    program = folder / "clang"
    said = folder / "said"
    said.write_text("clang version 22\n" + "\n".join(lines) + "\n")
    program.write_text(f"#!/bin/sh\ncat '{said}' >&2\n")
    program.chmod(0o755)
    made = object.__new__(Driver)
    made.program, made.arguments = str(program), ["a b.cu"]
    return made


@pytest.fixture
def loaded(tmp_path: Path) -> str:
    return os.path.realpath(tmp_path / "libkesco.so")


def test_passes_in_their_order(tmp_path: Path, loaded: str) -> None:
    other = ' "/bin/clang" "-cc1" "-fcuda-is-device" "-target-cpu" "sm_90" "-load" "x" "other.cu"'
    lines = [DEVICE.format("sm_75", loaded), other, DEVICE.format("sm_80", loaded), SIDE.format("libkesco.so")]
    assert driver(tmp_path, *lines).passes("a b.cu", loaded) == ["sm_75", "sm_80", "host"]


@pytest.mark.parametrize("line", ['"-x" "cuda" "a b.cu"', '"-load" "/other/libkesco.so" "a b.cu"'])
def test_a_pass_without_the_plugin(line: str, tmp_path: Path, loaded: str) -> None:
    made = driver(tmp_path, DEVICE.format("sm_75", loaded), f' "/bin/clang" "-cc1" {line}')
    with pytest.raises(plugin._Stays, match="not loaded in every pass"):
        made.passes("a b.cu", loaded)


def test_options_that_kesco_does_not_see(tmp_path: Path, loaded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(plugin._Stays, match="does not say"):
        driver(tmp_path, "error: no").passes("a b.cu", loaded)
    with pytest.raises(plugin._Stays, match="configuration file"):
        driver(tmp_path, "Configuration file: /etc/clang.cfg", SIDE.format(loaded)).passes("a b.cu", loaded)
    monkeypatch.setenv("CCC_OVERRIDE_OPTIONS", "+-DX")
    with pytest.raises(plugin._Stays, match="CCC_OVERRIDE_OPTIONS"):
        driver(tmp_path, SIDE.format(loaded)).passes("a b.cu", loaded)


@pytest.mark.parametrize(("asking_pass", "field"), [("sm_75", "why"), ("host", "error"), ("sm_80", "error")])
def test_only_the_first_pass_may_ask(
    asking_pass: str, field: str, tmp_path: Path, loaded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = driver(tmp_path, *(DEVICE.format(arch, loaded) for arch in ("sm_75", "sm_80")))
    monkeypatch.setattr(plugin, "Driver", lambda pid: made)
    answer(1, asking_pass, "a b.cu", str(tmp_path), loaded, [])
    found = json.loads((tmp_path / "answer.json").read_text())
    assert found["version"] == 1
    assert not found["rewritten"]
    assert bool(found.get(field)), found
    assert ("K705" in found.get("error", "")) == (field == "error")


def test_flags_about_plugins_are_not_for_kesco() -> None:
    words = "-Xclang -load -Xclang x.so -Xclang -plugin-arg-kesco -Xclang streams=2 -Xclang -disable-llvm-passes"
    words += " -fplugin=libkesco.so -fplugin-arg-kesco-streams=2 -v -fsyntax-only -Rpass=.* -emit-llvm -DA=1 -I x"
    words += " --serialize-diagnostics out.dia -fpass-plugin=y.so -xc++ -O2"
    assert flags_for_kesco(words.split()) == "-Xclang -disable-llvm-passes -DA=1 -I x -O2".split()


def test_what_ended_drivers_left_goes(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    own = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    for name in (f"{ended.pid}-1-X", f"{os.getpid()}-1-X", f"{os.getpid()}-{own}-X", "other"):
        (tmp_path / name / "a").mkdir(parents=True)
        (tmp_path / name / "a" / "text").touch()
    forget_ended(str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {f"{os.getpid()}-{own}-X", "other"}
