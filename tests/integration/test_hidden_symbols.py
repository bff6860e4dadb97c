"""Symbols of internal linkage that only host code uses which the device's compilation does not see."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.options import Options
from kesco.pipeline import compile_file

pytestmark = pytest.mark.usefixtures("toolchain")

TEXT = """\
static __device__ int last;
namespace mine { static __device__ int first; }
namespace { __constant__ int mode; }
__device__ int open;
__global__ void one(int* x) { last = x[0]; }
__global__ void two(int* x) { last = x[1]; }
__global__ void three(int* x) { if (mode) x[0] = 1; open = 1; }
__global__ void four(int* x) { mine::first = x[0]; }
BEGIN
int main() {
  int *a, *b, *c, mode_of_host = 1, found;
  cudaMalloc(&a, 256); cudaMalloc(&b, 256); cudaMalloc(&c, 256);
  cudaMemcpyToSymbolAsync(mode, &mode_of_host, 4);
  cudaMemcpyToSymbolAsync(mine::first, &mode_of_host, 4);
  one<<<1, 1>>>(a);
  two<<<1, 1>>>(b);
  three<<<1, 1>>>(c);
  four<<<1, 1>>>(c + 32);
  cudaMemcpyFromSymbol(&found, last, 4);
  cudaMemcpyFromSymbol(&found, open, 4);
}
END
"""


def symbols(path: Path, begin: str, end: str) -> dict[str, set[str]]:
    """Which symbols each kernel touches, and ``?`` where it may touch anything."""
    path.write_text(TEXT.replace("BEGIN", begin).replace("END", end))
    (main,) = compile_file(str(path), Options()).functions
    kernels = [site for site in main.region.sites if site.kind.value == "kernel"]
    names = {"symbol": lambda key: key, "unknown": lambda key: "?"}
    return {
        k.label: {names[a.buffer.kind.value](a.buffer.key) for a in k.accesses if a.buffer.kind.value in names}
        for k in kernels
    }


def test_what_the_host_uses_behind_a_guard(tmp_path: Path) -> None:
    last, first, mode = "_ZL4last", "_ZN4mineL5firstE", "_ZN12_GLOBAL__N_14modeE"
    seen = {"one": {last}, "two": {last}, "three": {mode, "open"}, "four": {first}}
    assert symbols(tmp_path / "seen.cu", "", "") == seen
    hidden = symbols(tmp_path / "hidden.cu", "#ifndef __CUDA_ARCH__", "#endif")
    assert all("?" in found for found in hidden.values())  # what is stored there was read somewhere, too
