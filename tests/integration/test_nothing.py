"""Work that turns out to be none is no action on the default stream: what is behind it must not wait through it."""

from __future__ import annotations

from pathlib import Path

import pytest
from integration.compiled import compile_and_keep

TEXT = """\
__global__ void set(float* x) { x[threadIdx.x] = 1; }
__global__ void both(float* z, const float* x, const float* y) { z[threadIdx.x] = x[threadIdx.x] + y[threadIdx.x]; }
int main(int argc, char**) {
  float *a, *b, *c, *d, h[32] = {};
  cudaMalloc(&a, 128), cudaMalloc(&b, 128), cudaMalloc(&c, 128), cudaMalloc(&d, 128);
  set<<<1, 32>>>(a);
  set<<<1, 32>>>(b);
  cudaMemcpy(d, h, SIZE, cudaMemcpyHostToDevice);
  both<<<1, 32>>>(c, a, b);
  set<<<1, 32>>>(d);
  cudaDeviceSynchronize();
}
"""


@pytest.mark.parametrize(("size", "waits"), [("128", 0), ("argc - 1", 1), ("0", 1)])
def test_what_is_behind_it_waits_for_what_is_before_it(tmp_path: Path, size: str, waits: int) -> None:
    path = tmp_path / "app.cu"
    path.write_text(TEXT.replace("SIZE", size))
    outcome = compile_and_keep(path)
    assert outcome.rewritten
    lines = [n for n, line in enumerate(outcome.lines) if "cudaStreamWaitEvent(kesco->stream" in line]
    assert len(lines) == waits
    for one in lines:
        assert "'both' may run before" in outcome.refuses([x for n, x in enumerate(outcome.lines) if n != one])


IN_A_MACRO = """\
#define LAUNCH(blocks) set<<<blocks, 32>>>(d), set<<<blocks, 32>>>(d)
""" + TEXT.replace("cudaMemcpy(d, h, SIZE, cudaMemcpyHostToDevice)", "LAUNCH(SIZE)")


@pytest.mark.parametrize(("blocks", "waits"), [("2", 0), ("dim3(1, 2)", 0), ("argc - 1", 1), ("dim3(1, argc)", 1)])
def test_a_launch_of_no_blocks_is_none(tmp_path: Path, blocks: str, waits: int) -> None:
    """It fails. The text of a macro that launches twice is left alone, so that these stay on the default stream."""
    path = tmp_path / "app.cu"
    path.write_text(IN_A_MACRO.replace("SIZE", blocks))
    outcome = compile_and_keep(path)
    assert outcome.rewritten
    lines = [n for n, line in enumerate(outcome.lines) if "cudaStreamWaitEvent(kesco->stream" in line]
    assert len(lines) == waits
    for one in lines:
        assert "'both' may run before" in outcome.refuses([x for n, x in enumerate(outcome.lines) if n != one])
