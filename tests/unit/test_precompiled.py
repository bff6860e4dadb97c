"""Precompiled headers: found again, told apart by what decides their content, never trusted more than clang does."""

from __future__ import annotations

import fcntl
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kesco.frontend.clang import SourceFile, load
from kesco.toolchain import dryrun, precompiled
from kesco.toolchain.compile import device_ir, host_arguments
from kesco.toolchain.model import Toolchain


class Machine:
    """A made-up compiler that precompiles by writing down its arguments, and counts how often it is asked to."""

    def __init__(self, folder: Path) -> None:
        self.made = 0
        self.works = True
        self.tool = folder / "clang"
        self.tool.write_text("a program")
        self.environ = {"XDG_CACHE_HOME": str(folder / "cache")}
        self.headers = folder / "cache/kesco/headers"

    def make(self, arguments: Sequence[str], empty: Path, header: Path) -> Sequence[str] | None:
        self.made += 1
        assert empty.read_bytes() == b""
        header.write_text("half of it")
        return [str(self.tool)] if self.works else None

    def find(self, *arguments: str) -> Path | None:
        return precompiled.find(self.tool, arguments, self.make, self.environ)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_it_is_made_once(machine: Machine) -> None:
    first = machine.find("-DA")
    assert first is not None
    assert first.read_text() == "half of it"
    assert machine.find("-DA") == first
    assert machine.made == 1


def test_several_at_once_make_one(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    make, begun = machine.make, threading.Barrier(4)

    def slowly(arguments: Sequence[str], empty: Path, header: Path) -> Sequence[str] | None:
        time.sleep(0.3)
        return make(arguments, empty, header)

    def find(_: int) -> Path | None:
        begun.wait()
        return machine.find("-DA")

    monkeypatch.setattr(machine, "make", slowly)
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(find, range(4)))
    assert len(found) == 1 and machine.made == 1
    assert not list(machine.headers.glob("*.lock"))


def test_who_waits_too_long_makes_its_own(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    known = machine.find("-DA")
    assert known is not None
    precompiled.discard(known)
    monkeypatch.setattr(precompiled, "PATIENCE", 0.1)
    with known.with_suffix(".lock").open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert machine.find("-DA") == known
    assert machine.made == 2


def test_what_decides_the_content_tells_files_apart(machine: Machine, tmp_path: Path) -> None:
    found = [machine.find("-DA"), machine.find("-DB")]
    machine.environ["CPATH"] = "/opt/include"
    found.append(machine.find("-DA"))
    machine.tool.write_text("another version")
    found.append(machine.find("-DA"))
    found.append(machine.find("-isystem", "/opt/other"))
    assert None not in found
    assert len(set(found)) == len(found)


HEADER = """\
#include <math.h>
# include_next "crt/host.h"
#if __has_include(<tbb/tbb.h>)
"""


def test_the_users_folders_share_one_unless_they_could_hide_a_header(machine: Machine, tmp_path: Path) -> None:
    machine.tool.write_text(HEADER)
    shared = machine.find("-DA")
    for name in ("mine.h", "host.h", "tbb.h", "math.hpp", "mathh"):
        folder = tmp_path / f"with-{name}"
        folder.mkdir()
        (folder / name).touch()
        assert machine.find("-DA", f"-I{folder}") == machine.find("-DA", "-I", str(folder)) == shared
    assert machine.made == 1
    for number, name in enumerate(("math.h", "crt", "tbb")):
        hiding = tmp_path / f"with-{name}"
        hiding.mkdir()
        assert machine.find("-DA", f"-I{hiding}") == shared
        (hiding / name).mkdir()
        assert machine.find("-DA", f"-I{hiding}") not in (None, shared)
        assert machine.made == number + 2


@pytest.mark.parametrize("what", ["#include NAME\n", None])
def test_where_it_is_not_known_what_is_asked_for_folders_share_nothing(
    machine: Machine, tmp_path: Path, what: str | None
) -> None:
    machine.tool.write_text(HEADER + (what or ""))
    shared = machine.find("-DA")
    assert shared is not None
    if what is None:
        shared.with_suffix(".names").unlink()
    (tmp_path / "mine").mkdir()
    assert machine.find("-DA", f"-I{tmp_path}/mine") != shared


def test_a_relative_folder_is_another_one_elsewhere(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.tool.write_text(HEADER)
    (tmp_path / "inc/math.h").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    here = machine.find("-Iinc")
    monkeypatch.chdir("/")
    assert machine.find("-Iinc") != here


@pytest.mark.parametrize("flag", ["-include", "-includemine.h", "--include=mine.h", "-imacros", "-Xclang"])
def test_forced_includes_of_the_users_own_stay_out_of_it(machine: Machine, flag: str) -> None:
    assert machine.find("-DA", flag, "x") is None
    assert machine.made == 0


def test_one_that_could_not_be_made_leaves_nothing(machine: Machine) -> None:
    machine.works = False
    assert machine.find("-DA") is None
    assert [file.name for file in machine.headers.iterdir()] == ["empty.cu"]


def test_a_cache_that_cannot_be_written_is_no_error(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("not a folder")
    assert machine.find("-DA") is None


def test_without_room_nothing_is_made(toolchain: Toolchain, tmp_path: Path) -> None:
    """Where it cannot write all of a file, libclang ends the process; the limit is met as a full disk is."""
    (tmp_path / "a.cu").write_text("int main() { return 0; }\n")
    root = Path(precompiled.__file__).parents[2]
    command = [sys.executable, "-m", "kesco", "compile", "a.cu", "-o", "b.cu"]
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(root)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
    )  # fmt: skip
    assert (done.returncode, (tmp_path / "b.cu").exists()) == (0, True), done.stderr
    assert "FATAL" not in done.stderr
    kept = {one.name for one in (tmp_path / "cache/kesco").rglob("*") if one.is_file()}
    assert kept - {"toolchain.json"} == {"empty.cu"}  # that is written where compilers had to be asked


def test_the_ones_used_last_are_kept(machine: Machine) -> None:
    files = [machine.find(f"-D{number}") for number in range(precompiled.KEPT + 4)]
    assert len(list(machine.headers.glob("*.pch"))) == len(files)  # another process may be about to start from any
    for age, file in enumerate(files):
        assert file is not None
        os.utime(file, (age + 1, age + 1))
    assert machine.find("-D0") == files[0]
    machine.find("-DA")
    gone = [number for number, file in enumerate(files) if file is not None and not file.exists()]
    assert gone == [1, 2, 3, 4, 5]


PROGRAM = "#include <vector>\n__global__ void k(float* x) { *x = sqrtf(*x); }\nint main() { k<<<1, 1>>>(nullptr); }\n"


@pytest.fixture
def headers(toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache's folder, with both sides of a program compiled once."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compile_both(toolchain, tmp_path)
    return tmp_path / "kesco/headers"


def compile_both(toolchain: Toolchain, folder: Path, text: str = PROGRAM, *flags: str) -> tuple[str, list[str]]:
    path = folder / "program.cu"
    path.write_text(text)
    load(str(toolchain.libclang))
    source = SourceFile(str(path), text.encode(), host_arguments(toolchain, flags))
    return device_ir(toolchain, path, flags), [cursor.spelling for cursor in source.top_level()]


def test_both_sides_are_kept_and_used_again(toolchain: Toolchain, tmp_path: Path, headers: Path) -> None:
    before = {file: file.stat().st_ino for file in headers.glob("*.pch")}
    assert len(before) == 2
    with_them = compile_both(toolchain, tmp_path)
    assert {file: file.stat().st_ino for file in headers.glob("*.pch")} == before
    assert with_them[1] == ["k", "main"]
    for name in ("program.h", "math.hpp"):
        (tmp_path / "mine").mkdir(exist_ok=True)
        (tmp_path / "mine" / name).write_text("#define MINE 1\n")
    mine = PROGRAM + '#include "program.h"\nint mine = MINE;\n'
    assert compile_both(toolchain, tmp_path, mine, f"-I{tmp_path}/mine")[1] == ["k", "main", "mine"]
    assert {file: file.stat().st_ino for file in headers.glob("*.pch")} == before
    for file in before:
        file.unlink()
    headers.chmod(0o500)
    assert compile_both(toolchain, tmp_path) == with_them


@pytest.mark.parametrize("content", [b"", b"not a precompiled header", None])
def test_a_damaged_one_costs_time_and_nothing_else(
    toolchain: Toolchain, tmp_path: Path, headers: Path, content: bytes | None
) -> None:
    expected = compile_both(toolchain, tmp_path)
    for file in headers.glob("*.pch"):
        file.write_bytes(file.read_bytes()[:4_000_000] if content is None else content)
    assert compile_both(toolchain, tmp_path) == expected
    assert list(headers.glob("*.pch")) == []


def test_the_dry_runs_host_side_is_compiled_from_one_too(toolchain: Toolchain, tmp_path: Path, headers: Path) -> None:
    before = {*headers.glob("*.pch")}
    (tmp_path / "build").mkdir()
    dryrun._compile(toolchain, str(tmp_path / "program.cu"), (), tmp_path / "build/program.o")
    assert len({*headers.glob("*.pch")} - before) == 1


def test_an_error_in_the_users_text_leaves_them_be(toolchain: Toolchain, tmp_path: Path, headers: Path) -> None:
    before = sorted(headers.glob("*.pch"))
    with pytest.raises(Exception, match="nonsense"):
        compile_both(toolchain, tmp_path, PROGRAM + "nonsense here;\n")
    assert sorted(headers.glob("*.pch")) == before


def test_one_that_goes_while_it_is_in_use_costs_time_and_nothing_else(
    toolchain: Toolchain, tmp_path: Path, headers: Path
) -> None:
    source = SourceFile(str(tmp_path / "program.cu"), PROGRAM.encode(), host_arguments(toolchain, []))
    for file in headers.glob("*.pch"):
        file.unlink()
    source.reparse(PROGRAM.replace("int main", "int other;\nint main").encode())
    assert [cursor.spelling for cursor in source.top_level()] == ["k", "other", "main"]
