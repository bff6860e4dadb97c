"""Files that somebody writes while kesco reads them, and files that can be read only once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kesco.errors import InputError
from kesco.options import Options
from kesco.pipeline import compile_file

pytestmark = pytest.mark.usefixtures("toolchain")

HEADER = "__device__ inline void give(float* x, float* y, int i) { y[i] = x[i]; }\n"
BACK = "__device__ inline void give(float* x, float* y, int i) { x[i] = y[i]; }\n"
SOURCE = """\
#include "give.h"
__global__ void k(float* x, float* y) { give(x, y, threadIdx.x); }
int main() {
  float *a, *b, *c;
  cudaMalloc(&a, 256), cudaMalloc(&b, 256), cudaMalloc(&c, 256);
  k<<<1, 64>>>(a, b);
  k<<<1, 64>>>(a, c);
  cudaDeviceSynchronize();
}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "give.h").write_text(HEADER)
    (tmp_path / "app.cu").write_text(SOURCE)
    return tmp_path / "app.cu"


@pytest.mark.parametrize(("name", "text"), [("give.h", BACK), ("app.cu", SOURCE.replace("(a, c)", "(b, c)"))])
def test_what_changes_between_both_sides(name: str, text: str, source: Path) -> None:
    """The kernel of one text with the launches of another is a program that nobody has."""

    def meanwhile(stage: str, _: object) -> None:
        if stage == "program":
            (source.parent / name).write_text(text)

    with pytest.raises(InputError, match=f"{name} changed while it was read"):
        compile_file(str(source), Options(), meanwhile)
    assert not any(one.rewritten for one in compile_file(str(source), Options()).functions)


def test_a_header_from_the_future_has_not_changed(source: Path) -> None:
    os.utime(source.parent / "give.h", (4e9, 4e9))
    assert compile_file(str(source), Options()).changed


@pytest.mark.parametrize("name", ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"])
def test_descriptors_are_no_sources(name: str, source: Path) -> None:
    command = [sys.executable, "-m", "kesco", "compile", name, "-o", "out.cu"]
    with source.open("rb") as file:
        done = subprocess.run(command, stdin=file, cwd=source.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "error[K102]" in done.stderr and "write the program to a file" in done.stderr
    assert not (source.parent / "out.cu").exists()
