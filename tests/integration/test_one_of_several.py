"""A call that runs one of several functions, as objects decide: each of them follows its caller's stream, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.compiled import compile_and_keep

pytestmark = pytest.mark.usefixtures("toolchain")

TEXT = """#include <memory>
__global__ void inc(float* a) { a[threadIdx.x] += 1; }
__global__ void dec(float* a) { a[threadIdx.x] -= 1; }
struct Op { virtual ~Op() {} virtual void apply(float* p) const = 0; };
struct Up : Op { void apply(float* p) const override { inc<<<1, 32>>>(p); } };
struct Down : Op { void apply(float* p) const override { dec<<<1, 32>>>(p); } };
template <typename T> struct Box {
  T* p;
  Box() { cudaMalloc(&p, 4096); }
  ~Box() { cudaFree(p); }
  T* get() { return p; }
};
int main(int argc, char**) {
  Box<float> x, y;
  std::unique_ptr<Op> op;
  if (argc > 1) op = std::make_unique<Up>(); else op = std::make_unique<Down>();
  op->apply(x.get());
  op->apply(y.get());
  cudaDeviceSynchronize();
  inc<<<1, 32>>>(x.get());
  inc<<<1, 32>>>(y.get());
  cudaDeviceSynchronize();
}
"""


def test_each_follows(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text(TEXT)
    one = compile_and_keep(tmp_path / "app.cu")
    assert one.function("main").rewritten
    calls = [line.partition(" op->")[0] for line in one.lines if "op->apply" in line]
    assert calls == ["  KescoOn(kesco->stream[0]),", "  KescoOn(kesco->stream[1]),"]


def test_where_one_does_not_the_rest_of_their_function_goes_on(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text(
        TEXT.replace("dec<<<1, 32>>>(p); }", "dec<<<1, 32>>>(p); cudaStreamSynchronize(0); }")
    )
    one = compile_and_keep(tmp_path / "app.cu")
    assert one.function("main").rewritten
    assert [line for line in one.lines if "op->apply" in line] == ["  op->apply(x.get());", "  op->apply(y.get());"]
    joined = [line for line in one.lines if "<<<1, 32, 0, kesco->stream" in line]
    assert len(joined) == 2
