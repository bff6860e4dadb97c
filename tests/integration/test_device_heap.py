"""Kernels that allocate on the device share its heap: they stay in order, though clang could leave the memory out."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.options import Options
from kesco.pipeline import compile_file

pytestmark = pytest.mark.usefixtures("toolchain")

TEXT = """\
__global__ void with_malloc(float* x) {
  float* p = (float*)malloc(1 << 20);
  if (p == nullptr) return;
  p[threadIdx.x] = x[0];
  x[threadIdx.x] = p[threadIdx.x];
  free(p);
}
__global__ void with_new(float* x) {
  float* p = new float[1 << 18];
  p[threadIdx.x] = x[0];
  x[threadIdx.x] = p[threadIdx.x];
  delete[] p;
}
__global__ void up(float* x) { x[threadIdx.x] += 1; }
int main() {
  float *a, *b, *c;
  cudaMalloc(&a, 256); cudaMalloc(&b, 256); cudaMalloc(&c, 256);
  with_malloc<<<1, 64>>>(a);
  with_new<<<1, 64>>>(b);
  up<<<1, 64>>>(c);
  cudaDeviceSynchronize();
}
"""


def test_memory_of_the_heap_that_clang_could_leave_out(tmp_path: Path) -> None:
    path = tmp_path / "app.cu"
    path.write_text(TEXT)
    (main,) = compile_file(str(path), Options()).functions
    assert main.dfg is not None
    labels = {site.number: site.label for site in main.region.sites}
    pairs = [(labels[d.source], labels[d.target], d.buffer.name) for d in main.dfg.dependences]
    assert set(pairs) == {("with_malloc", "with_new", "device heap")}
