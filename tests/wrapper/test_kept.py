"""What is kept between builds is right or not there; a build that is killed leaves no half of anything."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import time
from pathlib import Path

import pytest
from wrapper.building import CONCURRENT, SIZES, Yard

from kesco.wrapper import asking, entries, files, front
from kesco.wrapper.commandline import load_table, parse
from kesco.wrapper.running import Child
from kesco.wrapper.settings import Settings

THOROUGH = bool(os.environ.get("KESCO_THOROUGH"))
OURS = b"kesco_streams"  # also in what is only preprocessed
COMMAND = ("kesco-nvcc", "-c", "src/app.cu", "-o", "app.o", "-I", "first", "-I", "second")


@pytest.fixture
def counted(yard: Yard, tmp_path: Path, headers: Path) -> Yard:
    """A folder with a cache of its own."""
    yard.cache = shutil.copytree(headers, tmp_path / "own-cache")
    return yard


def analysed(yard: Yard, *words: str, env: dict[str, str] | None = None, quick: bool = True) -> bool:
    """Build, and say whether kesco had to find out anything: it asks nvcc with --dryrun then."""
    program, log = yard.counting(quick)
    log.write_text("")
    done = yard.run(*(words or COMMAND), env={"KESCO_NVCC": str(program), **(env or {})})
    assert (done.code, done.err) == (0, "")
    return "--dryrun" in log.read_text()


def test_what_is_known_is_not_found_out_again(counted: Yard) -> None:
    assert analysed(counted)
    assert not analysed(counted)
    first = counted.data("app.o")
    assert OURS in first
    other = ("kesco-nvcc", "src/app.cu", "-MD", "-MF", "o.d", "-c", "-o", "other.o", *COMMAND[5:])
    assert not analysed(counted, *other)  # where results go does not matter
    assert counted.data("other.o") == first


def test_a_source_with_one_launch_is_not_looked_into(counted: Yard) -> None:
    text = CONCURRENT.replace("  fill<<<64, 256>>>(y, 2.0f, n);\n", "").replace("  add<<<64, 256>>>(x, y, z, n);\n", "")
    counted.write("src/app.cu", text)
    assert not analysed(counted)
    assert kept_entries(counted.cache) == []
    assert analysed(counted, env={"KESCO_FLAGS": "--force"})  # which rewrites whatever can be


def test_files_that_decide_the_result_count(counted: Yard) -> None:
    (counted.folder / "first").mkdir()
    counted.write("src/app.cu", CONCURRENT.replace('"sizes.h"', '"more.h"'))
    counted.write("second/more.h", SIZES)
    assert analysed(counted) and not analysed(counted)
    counted.write("second/more.h", SIZES + "\n")
    assert analysed(counted) and not analysed(counted)
    counted.write("first/more.h", SIZES)  # it would be found first now
    assert analysed(counted) and not analysed(counted)
    counted.write("second/more.h", SIZES + "// nobody reads it now\n")
    assert not analysed(counted)


@pytest.mark.parametrize("known", [False, True])
def test_a_header_that_changes_before_nvcc_reads_it(counted: Yard, known: bool) -> None:
    """The text was proven with another header: it must not be compiled with this one."""
    program, _ = counted.counting(quick=True)
    header, change = counted.folder / "src" / "sizes.h", counted.folder.parent / "change"
    lines = program.read_text().splitlines()
    # where kesco's script stands in front of the host compiler, the text is about to be compiled
    lines.insert(-1, f'case "$PATH" in */kesco-*/bin:*) [ -e {change} ] && echo "// new" >> {header};; esac')
    counted.script(program.name, "\n".join(lines[1:]) + "\n")
    env = {"KESCO_NVCC": str(program)}
    if known:
        assert counted.run(*COMMAND, env=env).err == ""
        assert OURS in counted.data("app.o")
    change.touch()
    done = counted.run(*COMMAND, env=env)
    assert done.code == 0
    assert "app.cu: compiled as it is [K701]: " in done.err
    assert done.err.endswith("src/sizes.h changed while it was compiled\n")
    assert b"// new" in header.read_bytes()
    assert OURS not in counted.data("app.o")
    change.unlink()
    assert counted.run(*COMMAND, env=env).err == ""
    assert OURS in counted.data("app.o")


def test_a_header_from_the_future_has_not_changed(counted: Yard) -> None:
    os.utime(counted.folder / "src" / "sizes.h", (4e9, 4e9))
    assert analysed(counted) and not analysed(counted)
    assert OURS in counted.data("app.o")


def keys(yard: Yard, monkeypatch: pytest.MonkeyPatch, *words: str, text: str = CONCURRENT, **environ: str) -> str:
    """Under what a build keeps the answer of src/app.cu."""
    given = ["-c", "src/app.cu", "-o", "app.o", *words]
    yard.write("src/app.cu", text)
    with monkeypatch.context() as patch:
        patch.chdir(yard.folder)
        for name, value in {**yard.environment(), **environ}.items():
            patch.setenv(name, value)
        command = parse(given, load_table("nvcc", str(yard.folder / "tables")), environ)
        build = front._Build("kesco-nvcc", "nvcc", str(yard.programs / "kesco-nvcc"), given, command, Settings(environ))
        return build._known()[1]["src/app.cu"][0]


def test_words_and_variables_that_decide_the_result_count(counted: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    gcc = counted.write("other/gcc", "")
    gcc.chmod(0o755)
    different = [
        keys(counted, monkeypatch),
        keys(counted, monkeypatch, text=CONCURRENT + "\n"),
        keys(counted, monkeypatch, "-DMORE"),
        keys(counted, monkeypatch, "-arch=sm_80"),
        keys(counted, monkeypatch, "-ccbin", str(gcc)),
        keys(counted, monkeypatch, PATH=f"{gcc.parent}{os.pathsep}{os.environ['PATH']}"),
        keys(counted, monkeypatch, KESCO_FLAGS="--streams 3"),
        keys(counted, monkeypatch, CPATH=str(counted.folder)),
        keys(counted, monkeypatch, NVCC_APPEND_FLAGS="-DMORE"),
    ]
    assert len(set(different[:-1])) == len(different) - 1 and different[-1] == different[2]
    assert keys(counted, monkeypatch, "-MD", "-MF", "app.d") == different[0] == keys(counted, monkeypatch)


def kept_entries(cache: Path) -> list[Path]:
    return [p for p in (cache / "kesco" / "build").rglob("*") if p.is_file() and p.suffix != ".json"]


def test_a_damaged_entry_is_found_out_anew(counted: Yard) -> None:
    assert analysed(counted)
    (entry,) = kept_entries(counted.cache)
    whole = entry.read_bytes()
    assert entries.loads(whole) is not None
    damage = whole.replace(b"kesco->stream[1]", b"kesco->stream[0]", 1)
    assert damage != whole
    for wrong in (b"", whole[:100], whole[:-1], damage, b"\0" * 9):
        assert entries.loads(wrong) is None
    entry.write_bytes(damage)
    assert analysed(counted)
    assert entry.read_bytes() == whole


def test_a_cache_that_cannot_be_used(counted: Yard) -> None:
    counted.cache = counted.folder / "cache"
    counted.cache.write_text("a file where a folder should be")
    assert analysed(counted)
    assert OURS in counted.data("app.o")


def test_old_entries_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "KEPT", 3)
    for number in range(6):
        entries.store(str(tmp_path), f"{number}x11{number}", b"x")
        os.utime(tmp_path / f"{number}x" / f"{number}x11{number}", (number, number))
    entries.store(str(tmp_path), "zz00", b"x")
    assert {p.name for p in tmp_path.rglob("*") if p.is_file()} == {"zz00", "5x115", "4x114"}


def test_folders_that_killed_runs_left_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    old, young, works = (tmp_path / f"kesco-{n}-abc" for n in (4194305, 4194306, os.getpid()))
    for folder in (old, young, works):
        (folder / "bin").mkdir(parents=True)
        (folder / "bin/gcc").touch()
    for folder in (old, works):
        os.utime(folder, (1, 1))
    made = files.new_folder()
    assert {p.name for p in tmp_path.iterdir()} == {young.name, works.name, Path(made).name}


def test_a_header_that_another_folder_would_change(counted: Yard) -> None:
    """`lib/inner.h` means `lib2/other.h`; with quotes looked for beside the source it would mean another one."""
    counted.write("lib/inner.h", '#pragma once\n#include "other.h"\n' + SIZES)
    counted.write("lib2/other.h", "#define OTHER 1\n")
    counted.write("src/other.h", "#error wrong one\n")
    counted.write("src/app.cu", CONCURRENT.replace('"sizes.h"', '"inner.h"'))
    words = ("-c", "src/app.cu", "-o", "app.o", "-I", "lib", "-I", "lib2")
    program = str(counted.counting(quick=True)[0])
    quick = {"KESCO_NVCC": program}
    assert counted.run(program, *words).code == 0
    plain = counted.data("app.o")
    done = counted.run("kesco-nvcc", *words, env=quick)
    assert done.code == 0 and "other.h" in done.err and "K701" in done.err
    assert counted.data("app.o") == plain
    (counted.folder / "src/other.h").unlink()
    assert counted.run("kesco-nvcc", *words, env=quick).err == ""
    assert OURS in counted.data("app.o")
    counted.write("src/other.h", "#error wrong one\n")
    done = counted.run("kesco-nvcc", *words, env=quick)
    assert done.code == 0 and counted.data("app.o") == plain


def test_a_source_that_includes_itself(counted: Yard) -> None:
    first = "#ifndef ONCE\n#define ONCE\n#include NAME\n" + CONCURRENT + "#endif\n"  # clang does not take that
    last = "#ifdef ONCE\nint again;\n#else\n" + CONCURRENT + "#define ONCE\n#include NAME\n#endif\n"
    quick = {"KESCO_NVCC": str(counted.counting(quick=True)[0])}
    ways = [(last, '"app.cu"', "it includes itself"), (last, "__FILE__", "it includes itself")]
    for text, itself, said in [*ways, (first, '"app.cu"', "K100"), (first, "__FILE__", "K100")] if THOROUGH else ways:
        counted.write("src/app.cu", text.replace("NAME", itself))
        done = counted.run(*COMMAND, "-I", ".", env=quick)
        assert done.code == 0 and said in done.err and OURS not in counted.data("app.o")


def test_headers_above_the_source(counted: Yard) -> None:
    counted.write("src/app.cu", CONCURRENT.replace('"sizes.h"', '"../../yard/up.h"'))
    counted.write("up.h", SIZES)
    assert counted.run(*COMMAND, env={"KESCO_NVCC": str(counted.counting(quick=True)[0])}).err == ""
    assert OURS in counted.data("app.o") and b'where = "src/../../yard/up.h"' in counted.data("app.o")


@pytest.mark.parametrize(
    "name", ["quote' space.cu", "amp&bar| ünï.cu", "dollar$x`y.cu", "-x.cu"] if THOROUGH else ["q' amp&bar| ünï.cu"]
)
def test_names_of_every_kind(name: str, counted: Yard) -> None:
    path = f"./{name}" if name.startswith("-") else f"dir &'|x/{name}"
    counted.write(path, CONCURRENT)
    counted.write(str(Path(path).parent / "sizes.h"), SIZES)
    words = ("-c", path, "-o", "app.o")
    done = counted.run("kesco-nvcc", *words)
    if done.code:
        assert done.code == counted.run("nvcc", *words).code
    else:
        assert done.err == "" or "K701" in done.err
        assert path.encode() + b"\0" in counted.data("app.o")  # __FILE__


def test_several_at_once(counted: Yard) -> None:
    quick = {"KESCO_NVCC": str(counted.counting(quick=True)[0])}
    running = [counted.start(*COMMAND[:4], f"app{n}.o", *COMMAND[5:], env=quick) for n in range(2)]
    assert [one.wait(timeout=300) for one in running] == [0] * 2
    results = {counted.data(f"app{n}.o") for n in range(2)}
    assert len(results) == 1 and OURS in results.pop()
    assert len(kept_entries(counted.cache)) == 1
    assert counted.files() == {f"app{n}.o" for n in range(2)}


@pytest.mark.parametrize("number", [signal.SIGKILL, *([signal.SIGTERM, signal.SIGINT] if THOROUGH else [])])
def test_killed_at_any_time(number: signal.Signals, counted: Yard) -> None:
    """By itself and with all that it started; while kesco finds out, and while it knows."""
    words = (*COMMAND, "-MD", "-MF", "app.d")
    began = time.monotonic()
    assert counted.run(*words).code == 0
    whole, dependencies, took = counted.data("app.o"), counted.read("app.d"), time.monotonic() - began
    dice = random.Random(number)
    for turn in range(4 if THOROUGH else 2):
        group, known = turn in (1, 2), turn % 2 == 1
        (counted.folder / "app.o").unlink(missing_ok=True)
        (counted.folder / "app.d").unlink(missing_ok=True)
        if not known:
            for entry in kept_entries(counted.cache):
                entry.unlink()
        child = counted.start(*words)
        time.sleep(dice.uniform(0, took / 2 if known else took))
        (os.killpg if group else os.kill)(child.pid, number)
        assert child.wait(timeout=60) in (0, -number)
        counted.wait_for_all()
        if (counted.folder / "app.o").exists():
            assert counted.data("app.o") == whole
        if (counted.folder / "app.d").exists():
            assert counted.read("app.d") == dependencies
        for entry in kept_entries(counted.cache):
            if not re.search(r"\.\d+\.[0-9a-f]+$", entry.name):
                assert entries.loads(entry.read_bytes()) is not None
        if number != signal.SIGKILL:
            assert counted.files() <= {"app.o", "app.d"}
    assert counted.run(*words).code == 0
    assert (counted.data("app.o"), counted.read("app.d")) == (whole, dependencies)
    assert counted.files() == {"app.o", "app.d"}


@pytest.mark.parametrize(("load", "kept"), [(0.5, True), (1000.0, False)])
def test_being_late_on_a_crowded_machine_is_not_kept(
    load: float, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings({"KESCO_TIMEOUT": "0.1", "XDG_CACHE_HOME": str(tmp_path)})
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))
    asked = Child("/bin/sleep", ["sleep", "60"], os.environ, str(tmp_path / "asked"), apart=True)
    found = asking.finish(asked, str(tmp_path / "request"), {"a.cu": ("abcd", "")}, settings)
    assert "more than 0.1 s" in found["a.cu"]["why"]
    assert (entries.lookup(settings.cache, "abcd") is not None) == kept
