"""In which order arguments are evaluated is open: what only tells leaves nothing open, what changes something does."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.analysis.host.models import Models
from kesco.analysis.host_regions.quiet import Quiet
from kesco.analysis.host_regions.refusing import order_of
from kesco.analysis.host_regions.texts import Texts
from kesco.llvm.canonical import canonical
from kesco.llvm.module import Module
from kesco.options import Options
from kesco.session import Session, host_ir_of
from tests.integration.compiled import compile_and_keep

pytestmark = pytest.mark.usefixtures("toolchain")

TEXT = """#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
__global__ void inc(float* a, int n) { a[threadIdx.x] += n; }
int made = 0;
struct Tensor {
  std::shared_ptr<float> data;
  float* ptr() const { return data.get(); }
  int next() const { return ++made; }
  int size() const { return made; }
};
int numbers(int a, int b) { return a - b; }
static int now() { return made; }
static int later() { return ++made; }
static int one() { return 1; }
static int filled(int* p) { return *p = 1; }
int far(), farther();
int main(int argc, char**) {
  float *x, *y;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  Tensor t;
  std::map<int, int> m;
  std::unordered_map<int, int> u;
  %s;
  inc<<<1, 32>>>(x, 1);
  inc<<<1, 32>>>(y, 2);
  cudaDeviceSynchronize();
}
"""


@pytest.mark.parametrize(
    ("written", "open_"),
    [
        ("numbers(t.ptr() != nullptr, t.ptr() == nullptr)", False),
        ("numbers(t.next(), t.next())", True),
        ("numbers(t.size(), t.next())", True),
        ("std::cout << t.next() << std::string(t.next(), 'a')", False),
        ("operator<<(std::cout << t.next(), std::string(t.next(), 'a'))", True),
        ("numbers(m[1], m[2])", False),
        ("numbers(m[1], (int)m.size())", True),
        ("numbers(u[1], u[2])", True),
        ("numbers(now(), later())", True),
        ("now() - later()", True),
        ("numbers(later(), one())", False),
        ("numbers(now(), now())", False),
        ("numbers(now(), filled(&argc))", True),
        ("numbers(now(), [] { return ++made; }())", True),
        ("numbers(now(), far())", True),
        ("numbers(far(), farther())", False),
        ("std::cout << now() << later()", False),
    ],
)
def test_what_leaves_the_order_open(tmp_path: Path, written: str, open_: bool) -> None:
    (tmp_path / "app.cu").write_text(TEXT % written)
    path, options = str(tmp_path / "app.cu"), Options()
    session = Session(path, options, lambda *_: None)
    module = Module(canonical(host_ir_of(session.toolchain, path, options), "host", sroa=True))
    quiet = Quiet(Texts(session.program, module), Models())
    assert bool(order_of(session.program, quiet)) is open_


CALLS = """#include <utility>
__global__ void inc(float* a, int n) { a[threadIdx.x] += n; }
static float *cur, *nxt;
static float* get() { return cur; }
static int change() { %s; return 1; }
int main() {
  cudaMalloc(&cur, 4096);
  cudaMalloc(&nxt, 4096);
  inc<<<1, 32>>>(nxt, 3);
  inc<<<1, 32>>>(get(), change());
  cudaDeviceSynchronize();
}
"""


@pytest.mark.parametrize("does", ["std::swap(cur, nxt)", "static int n; ++n"])
def test_what_a_call_gives_and_another_changes(tmp_path: Path, does: str) -> None:
    (tmp_path / "app.cu").write_text(CALLS % does)
    assert bool(compile_and_keep(tmp_path / "app.cu").rewritten) is ("swap" not in does)
