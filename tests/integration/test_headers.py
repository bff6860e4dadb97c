"""Headers of the user's whose functions launch: copies of them are edited, and what comes of both is proven."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from kesco.cli import main
from kesco.frontend.clang import SourceFile
from kesco.frontend.parse import own_texts
from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.session import Session
from kesco.toolchain.compile import check_compiles, host_arguments
from kesco.toolchain.model import Toolchain
from tests.integration.compiled import compile_and_keep

STEPS = """#pragma once
#include "sizes.h"
__global__ void inc(float* a) { a[threadIdx.x] += 1; }
__global__ void add(const float* a, float* b) { b[threadIdx.x] += a[threadIdx.x]; }

static void step(float* x) {
  inc<<<1, COUNT>>>(x);
}
"""
MAIN = """#include "steps.cuh"
int main() {
  float *x, *y;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  step(x);
  step(y);
  add<<<1, COUNT>>>(x, y);
  cudaDeviceSynchronize();
  return 0;
}
"""

pytestmark = pytest.mark.usefixtures("toolchain")


class Folder:
    """A project with a header, and the command line run in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write("src/app.cu", MAIN)
        self.write("src/steps.cuh", STEPS)
        self.write("src/sizes.h", "#pragma once\n#define COUNT 32\n")

    def write(self, name: str, text: str) -> str:
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_text(text)
        return name

    def read(self, name: str) -> str:
        return (self.path / name).read_text()

    def files(self) -> dict[str, str]:
        return {str(p.relative_to(self.path)): p.read_text() for p in sorted(self.path.rglob("*")) if p.is_file()}

    def run(self, *arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(main, arguments)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.output


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


def test_a_copy_stands_beside_the_output_in_whatever_folder(folder: Folder, toolchain: Toolchain) -> None:
    before = folder.files()
    (folder.path / "out").mkdir()
    code, said = folder.run("compile", "src/app.cu", "-o", "out/fast.cu")
    assert code == 0, said
    assert "'step' launches on the stream of whoever calls; 1 header edited: fast.steps.cuh" in said
    new = {name: text for name, text in folder.files().items() if name not in before}
    assert {name: folder.read(name) for name in before} == before
    assert new.keys() == {"out/fast.cu", "out/fast.steps.cuh"}
    assert new["out/fast.steps.cuh"] == STEPS.replace("<<<1, COUNT>>>", "<<<1, COUNT, 0, kesco_current()>>>", 1)
    assert '\n#include "fast.steps.cuh"\n' in new["out/fast.cu"] and "kesco:begin" not in new["out/fast.cu"]
    for compiler in ("clang", "nvcc") if toolchain.nvcc is not None else ("clang",):
        if compiler == "nvcc":
            done = check_compiles(toolchain, "out/fast.cu", ("-Isrc",), "nvcc")
            assert done.returncode == 0, done.stderr
    code, said = folder.run("verify", "src/app.cu", "out/fast.cu", "--", "-Isrc")
    assert (code, said.count("all ordered")) == (0, 2), said


def test_the_object_names_the_copies(folder: Folder) -> None:
    code, said = folder.run("compile", "src/app.cu", "--json")
    assert code == 0
    found = json.loads(said)
    assert found["headers"] == [{"source": "src/steps.cuh", "output": "src/app_async.steps.cuh"}]
    step = next(one for one in found["functions"] if one["name"] == "step")
    assert (step["file"], step["line"], step["follows"]) == ("src/steps.cuh", 6, True)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("fast.steps.cuh", "inc<<<1, COUNT, 0, kesco_current()>>>(x)", "add<<<1, COUNT, 0, kesco_current()>>>(x, x)"),
        ("fast.steps.cuh", "inc<<<1, COUNT, 0, kesco_current()>>>", "inc<<<1, COUNT>>>"),
        ("fast.steps.cuh", "  inc<<<", "  if (x) inc<<<"),
        ("fast.cu", "cudaStreamWaitEvent(kesco->stream[", "// cudaStreamWaitEvent(kesco->stream["),
        ("fast.cu", '#include "fast.steps.cuh"', '#include "steps.cuh"'),
    ],
)
def test_a_spoilt_text_is_not_proven(folder: Folder, name: str, old: str, new: str) -> None:
    assert folder.run("compile", "src/app.cu", "-o", "src/fast.cu")[0] == 0
    assert folder.run("verify", "src/app.cu", "src/fast.cu")[0] == 0
    before, text = folder.read(f"src/{name}").partition("kesco: end")[::2] if name == "fast.cu" else ("", None)
    text = folder.read(f"src/{name}") if text is None else text
    assert old in text
    folder.write(f"src/{name}", (f"{before}kesco: end" if before else "") + text.replace(old, new, 1))
    code, said = folder.run("verify", "src/app.cu", "src/fast.cu")
    assert code == 4, said


def test_on_standard_output_headers_stay_as_they_are(folder: Folder) -> None:
    before = folder.files()
    done = CliRunner().invoke(main, ["compile", "src/app.cu", "-o", "-", "-q"])
    assert (done.exit_code, done.stdout, folder.files()) == (0, MAIN, before)


def test_a_file_of_the_users_is_not_written_over(folder: Folder) -> None:
    folder.write("src/app_async.steps.cuh", "// mine\n")
    before = folder.files()
    code, said = folder.run("compile", "src/app.cu")
    assert code == 2 and "error[K104]: src/app_async.steps.cuh, the name of an edited header, is another file" in said
    assert folder.files() == before


@pytest.mark.parametrize("number", [1, 2])
def test_a_full_disk_leaves_an_old_pair_as_it_was(folder: Folder, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    assert folder.run("compile", "src/app.cu")[0] == 0
    before = folder.files()
    folder.write("src/steps.cuh", STEPS.replace("inc<<<", "inc <<<"))
    made: list[str] = []
    real = tempfile.mkstemp

    def full(dir: Path, prefix: str) -> tuple[int, str]:
        if "app_async" in prefix:
            made.append(prefix)
        if len(made) == number:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(dir=dir, prefix=prefix)

    monkeypatch.setattr("kesco.cli.output.tempfile.mkstemp", full)
    code, said = folder.run("compile", "src/app.cu")
    assert code == 3 and "No space left on device" in said
    assert {**folder.files(), "src/steps.cuh": STEPS} == before


def test_headers_in_folders_of_their_own_and_files_of_one_name(folder: Folder, toolchain: Toolchain) -> None:
    (folder.path / "src/steps.cuh").rename(folder.path / "steps.cuh")
    folder.write("inc/a/steps.cuh", STEPS)
    (folder.path / "steps.cuh").unlink()
    folder.write("inc/a/sizes.h", "#pragma once\n#define COUNT 64\n")  # not the one beside the source
    folder.write("inc/b/steps.cuh", "static void both(float* x) {\n  step(x);\n  inc<<<1, 1>>>(x);\n}\n")
    text = MAIN.replace('"steps.cuh"', '<a/steps.cuh>\n#include "b/steps.cuh"').replace("step(y)", "both(y)")
    folder.write("src/app.cu", text)
    (folder.path / "out").mkdir()
    code, said = folder.run("compile", "src/app.cu", "-o", "out/fast.cu", "--", "-Iinc")
    assert code == 0 and "2 headers edited: fast.steps.cuh, fast.2.steps.cuh" in said, said
    assert '#include "../inc/a/sizes.h"' in folder.read("out/fast.steps.cuh")
    assert "64" in folder.read("inc/a/sizes.h")
    code, said = folder.run("verify", "src/app.cu", "out/fast.cu", "--", "-Iinc", "-Isrc")
    assert code == 0, said
    if toolchain.nvcc is not None:
        done = check_compiles(toolchain, "out/fast.cu", ("-Iinc", "-Isrc"), "nvcc")
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "text",
    [
        '#define ONE\n#include "steps.cuh"\n#undef ONE\n' + MAIN,  # twice, and different
        '#define STEPS "steps.cuh"\n' + MAIN.replace('"steps.cuh"', "STEPS"),
    ],
)
def test_what_comes_in_more_than_once_or_by_another_name_stays(folder: Folder, text: str) -> None:
    folder.write(
        "src/steps.cuh", f"#ifdef ONE\n{STEPS.replace('#pragma once', '')}#endif\n" if "ONE" in text else STEPS
    )
    folder.write("src/app.cu", text)
    before = folder.files()
    code, said = folder.run("compile", "src/app.cu")
    assert code == 0 and "header" not in said.splitlines()[-2], said
    assert folder.files() == {**before, "src/app_async.cu": text}


def test_both_sources_of_a_project_have_copies_of_their_own(folder: Folder) -> None:
    folder.write("src/more.cu", MAIN.replace("int main", "int more"))
    commands = [
        {"directory": str(folder.path), "file": name, "command": f"nvcc -c {name} -o {name}.o"}
        for name in ("src/app.cu", "src/more.cu")
    ]
    folder.write("compile_commands.json", json.dumps(commands))
    code, said = folder.run("compile", "-p", ".", "-o", "out", "-j", "1", "--json")
    assert code == 0, said
    names = {name for name in folder.files() if name.startswith("out/")}
    assert names == {"out/app.cu", "out/app_async.steps.cuh", "out/more.cu", "out/more_async.steps.cuh"}
    headers = [one["headers"] for one in json.loads(said)["files"]]
    assert [len(one) for one in headers] == [1, 1]


def test_places_are_those_of_the_files(folder: Folder) -> None:
    folder.write("src/steps.cuh", STEPS.replace("  inc<<<", "\n\n  inc<<<") + "\n" * 10)
    result = compile_file("src/app.cu", Options(headers="fast"))
    assert result.source.decode() == MAIN and all(a < b <= len(MAIN) for a, b, _ in result.kept)
    assert all(result.source[a:b] == result.text[at : at + b - a] for a, b, at in result.kept)
    for one in result.headers:
        assert all(one.before[a:b] == one.text[at : at + b - a] for a, b, at in one.kept)
    found = {r.region.function: r.region for r in result.functions}
    kernel = next(s for s in found["step"].sites if s.label == "inc")
    assert (kernel.span.path, kernel.span.line, kernel.span.column) == ("src/steps.cuh", 9, 3)
    calls = [s.span for s in found["main"].sites if s.label.startswith("step")]
    assert [(c.path, c.line, MAIN[c.start : c.end]) for c in calls] == [
        ("src/app.cu", 6, "step(x)"),
        ("src/app.cu", 7, "step(y)"),
    ]


def test_a_header_behind_the_first_declaration_is_looked_at(folder: Folder, toolchain: Toolchain) -> None:
    text = MAIN.replace('#include "steps.cuh"', '#include <stdio.h>\nint first;\n#include "steps.cuh"')
    folder.write("src/app.cu", text)
    Session("src/app.cu", Options())
    arguments = host_arguments(toolchain)
    found = own_texts(SourceFile("src/app.cu", text.encode(), arguments), arguments)
    assert "src/steps.cuh" in {os.path.relpath(one.name) for one in found}


@pytest.mark.parametrize("folder", [True, False])
def test_a_header_of_the_same_folder_is_seen_by_a_relative_name(
    folder: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it does before ``main`` to what only this file can name, too."""
    (tmp_path / "before.h").write_text(
        "struct Before { Before() { cudaMalloc(&kept[0], 256); kept[1] = kept[0]; } };\nstatic Before before;\n"
    )
    (tmp_path / "app.cu").write_text(
        "__global__ void up(float* x) { x[threadIdx.x] += 1; }\nstatic float* kept[2];\n"
        '#include "before.h"\n'
        "int main() {\n  up<<<1, 32>>>(kept[0]);\n  up<<<1, 32>>>(kept[1]);\n  cudaDeviceSynchronize();\n}\n"
    )
    monkeypatch.chdir(tmp_path)
    one = compile_and_keep(tmp_path / "app.cu" if folder else Path("app.cu"))
    assert not one.rewritten
    assert any(f.name == "Before" for f in one.session.program.functions)
