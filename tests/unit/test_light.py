"""Small copies and memsets take no stream of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.options import Options
from kesco.pipeline import compile_file

KERNELS = """\
__global__ void fill(float* x) { x[threadIdx.x] = 1; }
__global__ void sum(const float* x, float* s) { atomicAdd(s, x[threadIdx.x]); }
int main() {
  float *a, *b, *s, *t;
  cudaMalloc(&a, 4096), cudaMalloc(&b, 4096), cudaMalloc(&s, SIZE), cudaMalloc(&t, SIZE);
  fill<<<1, 32>>>(a);
  fill<<<1, 32>>>(b);
  cudaMemset(s, 0, SIZE);
  cudaMemset(t, 0, SIZE);
  sum<<<1, 32>>>(a, s);
  sum<<<1, 32>>>(b, t);
  return cudaDeviceSynchronize();
}
"""


@pytest.mark.usefixtures("toolchain")
@pytest.mark.parametrize(
    ("size", "streams", "waits"), [("4", 2, 0), ("65536", 2, 0), ("65537", 4, 2), ("(rand() % 9 + 1)", 4, 2)]
)
def test_a_small_memset_goes_where_it_is_needed(tmp_path: Path, size: str, streams: int, waits: int) -> None:
    program = tmp_path / "sums.cu"
    program.write_text("#include <cstdlib>\n" + KERNELS.replace("SIZE", size))
    (main,) = compile_file(str(program), Options()).functions
    assert (main.schedule.streams, len(main.plan.waits)) == (streams, waits)
