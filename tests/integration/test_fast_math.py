"""With fast mathematics a kernel still does what it does for NaNs and rounding errors: nvcc keeps that."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.options import Options
from kesco.pipeline import compile_file

pytestmark = pytest.mark.usefixtures("toolchain")

TEXT = """\
__global__ void finds_nan(const float* x, int* bad) { if (x[threadIdx.x] != x[threadIdx.x]) *bad = 1; }
__global__ void finds_loss(const float* x, int* bad) { if ((x[0] + x[1]) - x[0] != x[1]) *bad = 2; }
__global__ void tells(const int* bad, float* y) { y[threadIdx.x] = *bad; }
int main() {
  float *x, *y, *z;
  int *bad, *worse;
  cudaMalloc(&x, 256); cudaMalloc(&y, 256); cudaMalloc(&z, 256); cudaMalloc(&bad, 4); cudaMalloc(&worse, 4);
  finds_nan<<<1, 64>>>(x, bad);
  finds_loss<<<1, 64>>>(x, worse);
  tells<<<1, 64>>>(bad, y);
  tells<<<1, 64>>>(worse, z);
  cudaDeviceSynchronize();
}
"""


@pytest.mark.parametrize("flags", [("-use_fast_math",), ("-Xcompiler", "-ffast-math")])
def test_what_is_done_for_numbers_that_are_none(tmp_path: Path, flags: tuple[str, ...]) -> None:
    path = tmp_path / "app.cu"
    path.write_text(TEXT)
    (main,) = compile_file(str(path), Options(flags=flags)).functions
    assert main.dfg is not None
    labels = {site.number: site.label for site in main.region.sites}
    pairs = {(labels[one.source], labels[one.target]) for one in main.dfg.dependences}
    assert pairs == {("finds_nan", "tells#1"), ("finds_loss", "tells#2")}
