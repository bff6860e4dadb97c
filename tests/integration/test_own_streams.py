"""Streams of the library that run code of the program's: a buffer, a facet, a registered function change a pointer."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from preferring import the_ir

from tests.integration.compiled import compile_and_keep
from tests.integration.test_soundness_ir import unordered

pytestmark = pytest.mark.usefixtures("toolchain")

TEXT = """#include <iostream>
#include <locale>
#include <streambuf>
#include <utility>
__global__ void add(int* p, int v) { p[threadIdx.x] += v; }
__global__ void mul(int* p, int v) { p[threadIdx.x] *= v; }
static int *x, *y;
%s
int main(int argc, char**) {
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  %s
  add<<<1, 32>>>(x, 3);
  %s;
  mul<<<1, 32>>>(y, 7);
  add<<<1, 32>>>(x, 4);
  cudaDeviceSynchronize();
}
"""
BUFFER = "struct Own : std::streambuf { int overflow(int c) override { std::swap(x, y); return c; } };"
FACET = "struct Own : std::numpunct<char> { char do_decimal_point() const override { std::swap(x, y); return ','; } };"
CALLBACK = "static void own(std::ios_base::event, std::ios_base&, int) { std::swap(x, y); }"
KINDS = {
    "a buffer": (BUFFER, "Own buffer; std::ostream out(&buffer);", "out << 'a'"),
    "the buffer of what there is": (BUFFER, "Own buffer; std::cout.rdbuf(&buffer);", "std::cout << argc"),
    "a facet": (FACET, "std::cout.imbue(std::locale(std::cout.getloc(), new Own));", "std::cout << 1.5"),
    "a function": (CALLBACK, "std::cout.register_callback(own, 0);", "std::cout.imbue(std::locale())"),
    "nothing": ("", "std::ostream out(std::cout.rdbuf());", "out << 'a'"),
}


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("ir", [False, True], ids=["either", "the IR"])
def test_what_is_written_may_change_a_pointer(tmp_path: Path, kind: str, ir: bool) -> None:
    (tmp_path / "app.cu").write_text(TEXT % KINDS[kind])
    with the_ir() if ir else nullcontext():
        one = compile_and_keep(tmp_path / "app.cu")
    found = [pair for each in one.result.functions for pair in unordered(each.region, "add", "mul")]
    assert bool(found) is (kind == "nothing")
