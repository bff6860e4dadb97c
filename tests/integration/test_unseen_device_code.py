"""Device code that is not seen may print, and what kernels print keeps its order."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.options import Options
from kesco.pipeline import compile_file

pytestmark = pytest.mark.usefixtures("toolchain")

TEXT = """\
#include <cstdio>
__global__ void hello(int n) { printf("hello %d\\n", n); }
__global__ void elsewhere(int n);
__device__ void say(int n);
__device__ void tell(int n) { printf("tell %d\\n", n); }
__device__ void (*told[2])(int) = {tell, tell};
__global__ void by_call(int n) { say(n); }
__global__ void by_pointer(int n) { told[n & 1](n); }
__global__ void by_assembly() { asm volatile("call.uni say_nothing;"); }
__global__ void silent() {}
int main() {
  hello<<<1, 1>>>(1);
  BETWEEN;
  hello<<<1, 1>>>(2);
  cudaDeviceSynchronize();
}
"""


@pytest.mark.parametrize(
    ("between", "ordered"),
    [("elsewhere<<<1, 1>>>(2)", True), ("by_call<<<1, 1>>>(2)", True), ("by_pointer<<<1, 1>>>(2)", True),
     ("by_assembly<<<1, 1>>>()", True), ("silent<<<1, 1>>>()", False)],
)  # fmt: skip
def test_what_may_print_keeps_its_place(tmp_path: Path, between: str, ordered: bool) -> None:
    path = tmp_path / "app.cu"
    path.write_text(TEXT.replace("BETWEEN", between))
    (main,) = compile_file(str(path), Options(flags=("-rdc=true",), force=True)).functions
    assert main.dfg is not None
    labels = {site.number: site.label for site in main.region.sites}
    pairs = {(labels[one.source], labels[one.target]) for one in main.dfg.dependences}
    name = between.partition("<")[0]
    assert {("hello#1", name), (name, "hello#2")} <= pairs if ordered else all(name not in pair for pair in pairs)
