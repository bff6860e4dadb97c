"""Functions that launch from headers, in builds: the header's edited text stands in its place, and leaves no trace."""

from __future__ import annotations

import re

import pytest
from wrapper.building import Yard

from kesco.frontend.standard import is_standard_path

MAIN = """\
#include <cstdio>
#include "parts/steps.cuh"

int main() {
  float *a, *b;
  cudaMalloc(&a, SIZE * sizeof(float));
  cudaMalloc(&b, SIZE * sizeof(float));
  step(a);
  step(b);
  std::printf("%s:%d\\n", __FILE__, __LINE__);
  cudaDeviceSynchronize();
  return 0;
}
"""
STEPS = """\
#pragma once
#include "sizes.h"
#include "kernels.cuh"

static void step(float* x) {
  std::printf("%s:%d\\n", __FILE__, __LINE__);
  fill<<<64, 256>>>(x, 1.0f, SIZE);
  int nothing;
  std::printf("%s:%d %s\\n", __FILE__, __LINE__, where_is_fill);
  twice(x);
}
"""
KERNELS = """\
#pragma once
static const char* where_is_fill = __FILE__;
__global__ void fill(float* out, float value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = value;
}
static void twice(float* x) {
  fill<<<64, 256>>>(x, 2.0f, SIZE);
}
"""


@pytest.fixture
def with_header(yard: Yard) -> Yard:
    yard.write("src/app.cu", MAIN)
    yard.write("src/parts/steps.cuh", STEPS)
    yard.write("src/parts/kernels.cuh", KERNELS)
    yard.write("src/parts/sizes.h", "#define SIZE 65536\n")
    return yard


def headers(yard: Yard, name: str) -> set[str]:
    return {one for one in yard.read(name).replace("\\\n", "").split() if not is_standard_path(one)}


@pytest.mark.thorough
def test_nvcc_reads_the_edited_header_in_its_place(with_header: Yard) -> None:
    yard = with_header
    words = ("-g", "-lineinfo", "-c", "src/app.cu", "-MD")
    plain = yard.run("nvcc", *words, "-o", "plain.o", "-MF", "plain.d", "-MT", "app.o")
    assert plain.code == 0
    for _ in "unknown", "known":
        ours = yard.run("kesco-nvcc", *words, "-o", "app.o", "-MF", "app.d")
        assert (ours.code, ours.out) == (0, "")
        warned = [re.sub(r"^.*/", "", line) for line in ours.err.splitlines() if "warning" in line]
        assert warned == [re.sub(r"^.*/", "", line) for line in plain.err.splitlines() if "warning" in line]
        assert b"cudaStreamCreate" in yard.data("app.o")
        assert headers(yard, "app.d") == headers(yard, "plain.d")
        for trace in (rb"kesco-\d+-", rb"/source\b", rb"kesco\.\w+\.cuh"):
            assert not re.search(trace, yard.data("app.o")), trace
    assert yard.run("nvcc", "app.o", "-o", "app").code == yard.run("nvcc", "plain.o", "-o", "plain").code == 0
    assert yard.run("./app").out == yard.run("./plain").out != ""
    assert yard.read("src/parts/steps.cuh") == STEPS


def test_a_header_that_changed_is_read_again(with_header: Yard) -> None:
    yard = with_header
    words = ("kesco-nvcc", "-c", "src/app.cu", "-o", "app.o")
    assert yard.run(*words).code == 0
    assert b"cudaStreamCreate" in yard.data("app.o")
    yard.write(
        "src/parts/kernels.cuh", KERNELS.replace("twice(float* x) {", "twice(float* x) { cudaDeviceSynchronize();")
    )
    assert yard.run(*words).code == 0
    assert b"cudaStreamCreate" not in yard.data("app.o")
