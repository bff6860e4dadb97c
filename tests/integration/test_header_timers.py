"""Events that are recorded in functions of a header: the proof reads them in the output as in the input."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.compiled import compile_and_keep

pytestmark = pytest.mark.usefixtures("toolchain")

HEAD = """#include <cstdlib>
#include "timer.cuh"
#include <vector>
__global__ void square(float* y, const float* x, long n) {
  for (long i = threadIdx.x; i < n; i += 32) y[i] = x[i] * x[i];
}
"""
BUFFER = """template <class T> struct Buffer {
  T* at;
  explicit Buffer(long n) { CHECK(cudaMalloc(&at, n * sizeof(T))); }
  ~Buffer() { cudaFree(at); }
};
"""
TIMER = """#pragma once
#define CHECK(call) do { if ((call) != cudaSuccess) std::exit(1); } while (0)
struct Timer {
  cudaEvent_t begin, end;
  Timer() { CHECK(cudaEventCreate(&begin)); CHECK(cudaEventCreate(&end)); }
  ~Timer() { cudaEventDestroy(begin); cudaEventDestroy(end); }
  void start() { CHECK(cudaEventRecord(begin)); }
  float stop() {
    CHECK(cudaEventRecord(end)); CHECK(cudaEventSynchronize(end));
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    return ms;
  }
};
"""
TIMED = """void elsewhere(std::vector<float>& sums);
float work(const std::vector<float>& given, std::vector<float>& first, std::vector<float>& second) {
  Buffer<float> one(1024), two(1024), three(1024);
  float *x = one.at, *y = two.at, *z = three.at;
  CHECK(cudaMemcpy(x, given.data(), 4096, cudaMemcpyHostToDevice));
  Timer timer;
  timer.start();
  square<<<1, 32>>>(y, x, 1024);
  square<<<1, 32>>>(z, x, 1024);
  const float ms = timer.stop();
  CHECK(cudaMemcpy(first.data(), y, 4096, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(second.data(), z, 4096, cudaMemcpyDeviceToHost));
  elsewhere(first);
  return ms;
}
"""


def test_a_timer_of_a_header_is_proven_at_once(tmp_path: Path) -> None:
    """An event that is recorded in code of a header was one site in the input, and two in the output."""
    (tmp_path / "timer.cuh").write_text(TIMER, "utf-8")
    path = tmp_path / "app.cu"
    path.write_text(HEAD + BUFFER + TIMED, "utf-8")
    outcome = compile_and_keep(path)
    assert [one.serial.function for one in outcome.rewritten] == ["work"]
    assert "K221" not in [d.code for d in outcome.result.diagnostics]
