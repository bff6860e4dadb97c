"""`kesco check -- COMMAND`: what `kesco-nvcc` built with ``KESCO=check``, in whichever way it is run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from kesco.check.programs import notes
from kesco.toolchain.model import Toolchain

ROOT = Path(__file__).resolve().parents[2]
KERNELS_H = "#include <cuda_runtime.h>\nvoid twice(float *out, const float *in, int n, cudaStream_t stream);\n"
KERNELS = """
#include "kernels.h"
static __global__ void kernel(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * in[i];
}
void twice(float *out, const float *in, int n, cudaStream_t stream) {
  kernel<<<(n + 255) / 256, 256, 0, stream>>>(out, in, n);
}
"""
WORK = """
#include "kernels.h"
static __global__ void kernel(int *counter) { ++*counter; }  // not the other file's
extern "C" int work(int racy) {
  const int n = 4096;
  float *a, *b, *c;
  int *counter;
  cudaMalloc(&a, n * 4);
  cudaMalloc(&b, n * 4);
  cudaMalloc(&c, n * 4);
  cudaMalloc(&counter, 4);
  cudaStream_t s, t;
  cudaEvent_t e;
  cudaStreamCreate(&s);
  cudaStreamCreate(&t);
  cudaEventCreate(&e);
  kernel<<<1, 1, 0, s>>>(counter);
  twice(b, a, n, s);
  cudaEventRecord(e, s);
  if (!racy) cudaStreamWaitEvent(t, e, 0);
  twice(c, b, n, t);  // the race
  return cudaDeviceSynchronize();
}
"""
MAIN = """
#include <cstdlib>
#include <thread>
extern "C" int work(int racy);
int main(int, char **argv) {
  int result = 0;
  std::thread([&] { result = work(std::atoi(argv[1])); }).join();
  return result;
}
"""
LOADS = "import ctypes, sys\nctypes.CDLL(sys.argv[1]).work(int(sys.argv[2]))\n"
TESTS = """
import ctypes, os
def test_work():
    assert ctypes.CDLL(os.environ["LIBRARY"]).work(int(os.environ["RACY"])) == 0
def test_more():
    assert "FAILS" not in os.environ
"""


@dataclass(frozen=True)
class Done:
    code: int
    said: str
    found: dict[str, object]

    @property
    def lines(self) -> set[tuple[str, int]]:
        """The places of the races."""
        diagnostics = self.found["diagnostics"]
        assert isinstance(diagnostics, list)
        return {(Path(d["file"]).name, d["line"]) for d in diagnostics if d["code"] == "K601"}


def environment(more: Mapping[str, str]) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("KESCO")}
    return {**kept, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", **more}


def check(folder: Path, *words: str, **more: str) -> Done:
    done = subprocess.run(
        [sys.executable, "-m", "kesco", "check", "--json", *words], cwd=folder, env=environment(more),
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return Done(done.returncode, done.stderr, json.loads(done.stdout) if done.stdout else {})


def nvcc(folder: Path, *words: str, **more: str) -> str:
    begin = "import sys; from kesco.wrapper.front import nvcc; sys.argv[0] = 'kesco-nvcc'; nvcc()"
    done = subprocess.run(
        [sys.executable, "-c", begin, *words], cwd=folder, env=environment({"KESCO": "check", **more}),
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def built(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if toolchain.nvcc is None:
        pytest.skip("no nvcc")
    folder = tmp_path_factory.mktemp("built")
    (folder / "src").mkdir()
    texts = {"kernels.h": KERNELS_H, "kernels.cu": KERNELS, "work.cu": WORK, "main.cpp": MAIN}
    for name, text in texts.items():
        (folder / "src" / name).write_text(text.lstrip("\n"))
    (folder / "loads.py").write_text(LOADS)
    for name in ("kernels", "work"):
        nvcc(folder, "-O3", "-Xcompiler", "-fPIC", "-c", f"src/{name}.cu", "-o", f"{name}.o")
    nvcc(folder, "src/main.cpp", "kernels.o", "work.o", "-o", "app")
    nvcc(folder, "-shared", "kernels.o", "work.o", "-o", "libwork.so")
    return folder


RACE = {("kernels.cu", 7)}


def test_a_program_of_many_files(built: Path) -> None:
    done = check(built, "--", "./app", "1")
    assert (done.code, done.lines) == (1, RACE)
    assert any("src/work.cu" in n["file"] for n in done.found["diagnostics"][0]["notes"] if "called" in n["message"])  # type: ignore[index]
    clean = check(built, "--", "./app", "0")
    assert (clean.code, clean.found["diagnostics"], clean.found["kernels"]) == (0, [], 3)


def test_places_are_found_from_elsewhere(built: Path, tmp_path: Path) -> None:
    done = check(tmp_path, "--", str(built / "app"), "1")
    (one,) = done.found["diagnostics"]  # type: ignore[misc]
    assert Path(one["file"]) == built / "src" / "kernels.cu"


def test_python_that_loads_a_library(built: Path) -> None:
    words = ("--", sys.executable, "loads.py", "./libwork.so")
    assert check(built, *words, "1").lines == RACE
    assert check(built, *words, "0").found["diagnostics"] == []


def test_each_process_by_itself(built: Path) -> None:
    """As ranks of MPI are: what one orders says nothing of another."""
    done = check(built, "--", "sh", "-c", "./app 0 & ./app 1 & ./app 1; wait")
    assert done.lines == RACE
    assert (done.found["races"], done.found["kernels"]) == (1, 9)


def test_pytest(built: Path) -> None:
    folder = built / "tests"
    folder.mkdir()
    (folder / "conftest.py").write_text('pytest_plugins = ["kesco.check.plugin"]\n')
    (folder / "test_work.py").write_text(TESTS)

    def status(**more: str) -> int:
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--kesco-check"]
        given = environment({"LIBRARY": str(built / "libwork.so"), "RACY": "0", **more})
        return subprocess.run(words, cwd=folder, env=given, capture_output=True, check=False, timeout=300).returncode

    assert [status(), status(RACY="1"), status(FAILS="1")] == [0, 1, 1]


def test_what_a_program_says_is_shown_if_wanted(built: Path) -> None:
    command = [sys.executable, "-m", "kesco", "check", "-q", "--show", "--", "sh", "-c", "./app 0 && echo done"]
    done = subprocess.run(command, cwd=built, env=environment({}), capture_output=True, text=True, check=True)
    assert done.stdout == "done\n"


def test_kernels_of_which_nothing_is_known_may_touch_everything(built: Path) -> None:
    """A program that was built without ``KESCO=check``, with the shared runtime."""
    nvcc(built, "-cudart", "shared", "src/main.cpp", "src/kernels.cu", "src/work.cu", "-o", "plain", KESCO="off")
    assert list(notes(built / "plain")) == []
    done = check(built, "--", "./plain", "1")
    assert done.code == 0
    assert {d["code"] for d in done.found["diagnostics"]} == {"K602"}  # type: ignore[attr-defined]


def test_a_runtime_inside_of_the_program_is_said(built: Path) -> None:
    nvcc(built, "-cudart", "static", "src/main.cpp", "src/kernels.cu", "src/work.cu", "-o", "static", KESCO="off")
    done = check(built, "--", "./static", "0")
    (one,) = [d for d in done.found["diagnostics"] if d["code"] == "K617"]  # type: ignore[attr-defined]
    assert "KESCO=check" in one["help"]


def test_a_source_that_clang_does_not_take_is_compiled_all_the_same(built: Path) -> None:
    text = "#ifdef __clang__\n#error no\n#endif\n" + WORK
    (built / "src" / "odd.cu").write_text(text)
    said = nvcc(built, "-c", "src/odd.cu", "-o", "odd.o")
    assert said.startswith("kesco-nvcc: src/odd.cu: its kernels count as touching everything [K706]: ")


def test_what_is_no_program_is_one_message(tmp_path: Path) -> None:
    done = check(tmp_path, "--", "./nowhere")
    assert (done.code, "K102" in done.said) == (3, True)
