"""``kesco compile -p``: all CUDA sources of a compilation database."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from wrapper.building import Yard

from kesco import project
from kesco.cli import main
from kesco.options import Options
from kesco.project import Outcome, Unit, compile_unit, units


def database(yard: Yard, *commands: str | list[str], name: str = "compile_commands.json") -> None:
    entries = []
    for command in commands:
        words = command.split() if isinstance(command, str) else command
        source = next(w for w in words if w.endswith((".cu", ".cpp")))
        kind = {"command": command} if isinstance(command, str) else {"arguments": command}
        entries.append({"directory": str(yard.folder), "file": source, **kind})
    yard.write(name, json.dumps(entries))


def kesco(yard: Yard, *words: str) -> Result:
    return CliRunner().invoke(main, ["compile", "-p", str(yard.folder), *words])


def test_what_changes_is_written_and_the_rest_is_told(yard: Yard) -> None:
    database(
        yard,
        "nvcc -I src -c src/app.cu -o app.o",
        ["/usr/bin/ccache", "/usr/local/cuda/bin/nvcc", "-c", "src/one.cu", "-o", "one.o"],
        "g++ -c src/plain.cpp -o plain.o",
    )
    result = kesco(yard, "-j", "2")
    assert result.exit_code == 0, result.output
    assert "2 files: 1 rewritten, 0 failed" in result.output
    assert "Traceback" not in result.output
    written = {p.name for p in (yard.folder / "src").iterdir()} - {"app.cu", "one.cu", "plain.cpp", "sizes.h"}
    assert written == {"app_async.cu"}
    other = kesco(yard, "-o", str(yard.folder / "out"))
    assert other.exit_code == 0
    assert (yard.folder / "out/app.cu").read_bytes() == (yard.folder / "src/app_async.cu").read_bytes()
    assert sorted(p.name for p in (yard.folder / "out").iterdir()) == ["app.cu"]


def test_each_source_has_a_page_and_an_index_leads_to_them(yard: Yard) -> None:
    yard.write("src/bad.cu", "int broken() { return undeclared; }\n")
    yard.write("src/more/odd # name.cu", "int nothing() { return 0; }\n")
    odd = ["nvcc", "-c", "src/more/odd # name.cu", "-o", "odd.o"]
    database(yard, "nvcc -I src -c src/app.cu -o app.o", "nvcc -c src/bad.cu -o bad.o", odd)
    pages = yard.folder / "pages"
    result = kesco(yard, "--report", str(pages))
    assert result.exit_code == 3, result.output
    assert sorted(p.relative_to(pages).as_posix() for p in pages.rglob("*.html")) == [
        "app.cu.html", "index.html", "more/odd # name.cu.html"
    ]  # fmt: skip
    index = (pages / "index.html").read_text()
    assert 'href="app.cu.html"' in index and 'href="more/odd%20%23%20name.cu.html"' in index
    assert "bad.cu.html" not in index and "bad.cu" in index and "K100" in index
    for count, word in (("3", "files"), ("1", "rewritten"), ("1", "unchanged"), ("1", "failed")):
        assert f"<dt>{word}</dt><dd>{count}</dd>" in index
    assert 'class="item node"' in (pages / "app.cu.html").read_text()
    assert kesco(yard, "--report", str(yard.folder / "page.html")).exit_code == 2
    assert not (yard.folder / "page.html").exists()


def test_the_highest_exit_code_wins_and_the_others_are_still_done(yard: Yard) -> None:
    yard.write("src/bad.cu", "int broken() { return undeclared; }\n")
    database(yard, "nvcc -c src/bad.cu -o bad.o", "nvcc -c src/app.cu -o app.o")
    result = kesco(yard)
    assert result.exit_code == 3
    assert "K100" in result.output and "1 rewritten, 1 failed" in result.output
    assert (yard.folder / "src/app_async.cu").exists()
    as_json = kesco(yard, "--diagnostics", "json")
    assert {d["code"] for d in json.loads(as_json.output)} == {"K100"}
    without = kesco(yard, "--clang", "/nowhere/clang")
    assert without.exit_code == 5


def test_what_cannot_be_written_keeps_no_other_from_being_written(yard: Yard) -> None:
    yard.write("src/other.cu", (yard.folder / "src/app.cu").read_text())
    database(yard, "nvcc -c src/app.cu -o app.o", "nvcc -c src/other.cu -o other.o")
    (yard.folder / "src/app_async.cu").mkdir()
    result = kesco(yard)
    assert result.exit_code == 3
    assert "K103" in result.output and "src/app_async.cu: Is a directory" in result.output
    assert "1 rewritten, 1 failed" in result.output
    assert (yard.folder / "src/other_async.cu").is_file()
    assert not any((yard.folder / "src/app_async.cu").iterdir())


def test_a_source_of_two_commands(yard: Yard) -> None:
    database(yard, "nvcc -c src/app.cu -o a.o", "nvcc -c src/app.cu -o b.o")
    assert "1 files: 1 rewritten" in kesco(yard).output
    (yard.folder / "src/app_async.cu").unlink()
    database(yard, "nvcc -c src/app.cu -o a.o", "nvcc -c src/app.cu -o b.o --default-stream per-thread")
    result = kesco(yard)
    assert result.exit_code == 0 and "K109" in result.output and "0 rewritten" in result.output
    assert not (yard.folder / "src/app_async.cu").exists()


@pytest.mark.parametrize(
    ("text", "said", "code"),
    [
        ("", "no compilation database", 3),
        ("{}", "names no CUDA source", 2),
        ("[]", "names no CUDA source", 2),
        ("[1]", "no compilation database", 3),
        ('[{"directory": "/", "file": "a.cu"}]', "no compilation database", 3),
        ('[{"directory": "/", "file": "a.cu", "command": "nvcc \'"}]', "no compilation database", 3),
        ('[{"directory": "/", "file": "a.cpp", "command": "g++ -c a.cpp"}]', "names no CUDA source", 2),
    ],
)
def test_a_database_that_is_none(text: str, said: str, code: int, yard: Yard) -> None:
    yard.write("compile_commands.json", text)
    result = kesco(yard)
    assert result.exit_code == code and said in result.output and "Traceback" not in result.output


def test_files_of_options_lie_where_the_command_runs(yard: Yard) -> None:
    """CMake writes the include folders of CUDA sources into such files."""
    yard.write("src/options", "-I elsewhere --default-stream=per-thread")
    database(yard, "nvcc --options-file src/options -c src/app.cu -o a.o", "nvcc -c src/one.cu @src/none -o b.o")
    (app, one) = units(yard.folder)
    assert app.flags == ("-I", "elsewhere", "--default-stream", "per-thread", "-c") and not app.unclear
    assert one.unclear == "src/none cannot be read"
    outcome = compile_unit(one, Options())
    assert (outcome.exit_code, outcome.text, outcome.diagnostics[0].code) == (3, None, "K111")


def test_no_result_takes_the_place_of_another_source(yard: Yard) -> None:
    yard.write("src/app_async.cu", "int mine;\n")
    yard.write("src/sub/app.cu", "int mine;\n")
    database(yard, "nvcc -c src/app.cu -o a.o", "nvcc -c src/app_async.cu -o b.o")
    result = kesco(yard)
    assert result.exit_code == 2 and "K104" in result.output and "a source of the project" in result.output
    database(yard, "nvcc -c src/app.cu -o a.o", "nvcc -c src/sub/app.cu -o b.o")
    assert kesco(yard, "-o", str(yard.folder / "src/sub")).exit_code == 2
    assert yard.read("src/app_async.cu") == yard.read("src/sub/app.cu") == "int mine;\n"


def _takes_long(unit: Unit, options: Options) -> Outcome:
    time.sleep(60)
    raise AssertionError


def test_an_interrupt_does_not_wait_for_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project, "compile_unit", _takes_long)
    chosen = [Unit(tmp_path / f"{number}.cu", tmp_path, ()) for number in range(8)]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background may ignore it
    began = time.monotonic()
    threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            list(project.compile_all(chosen, Options(), 2))
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - began < 30


def test_what_makes_no_sense(yard: Yard, tmp_path: Path) -> None:
    database(yard, "nvcc -c src/app.cu -o app.o")
    assert kesco(yard, "src/app.cu").exit_code == 2
    assert kesco(yard, "-o", str(yard.folder / "src/app.cu")).exit_code == 2
    assert kesco(yard, "-o", str(yard.folder / "src")).exit_code == 2
    assert CliRunner().invoke(main, ["compile"]).exit_code == 2
    assert CliRunner().invoke(main, ["compile", "-p", str(tmp_path / "nothing")]).exit_code == 3
    assert not (yard.folder / "src/app_async.cu").exists()
