"""Loops that only compute are not walked trip by trip: ``paying(program)`` numbers all others."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.analysis.host.engine import Engine
from kesco.analysis.host.models import Models
from kesco.analysis.paying import paying
from kesco.ir.program import Loop, walk
from kesco.llvm.canonical import canonical
from kesco.llvm.module import Module
from kesco.options import Options
from kesco.session import Session, host_ir_of, toolchain_for

pytestmark = pytest.mark.usefixtures("toolchain")

PROGRAM = """#include <cmath>
#include <vector>
struct Sums { float first, second; };
__global__ void square(float* y, const float* x) { y[threadIdx.x] = x[threadIdx.x] * x[threadIdx.x]; }
void elsewhere(float* values);
static float norm(const float* x) { float s = 0; for (int i = 0; i < 8; ++i) s += std::sqrt(x[i]); return s; }
static void fill(float (&table)[8], Sums& sums) {
  for (int i = 0; i < 8; ++i) table[i] = norm(table), sums.second += table[i];
}
static void launches(float* x) { for (int i = 0; i < 2; ++i) square<<<1, 8>>>(x, x + 8); }
static void by_another(float* x) { for (int i = 0; i < 2; ++i) launches(x); }
static void allocates(float** x) { for (int i = 0; i < 2; ++i) cudaMalloc(&x[i], 32); }
static void points(float** to, float* from) { for (int i = 0; i < 2; ++i) to[i] = from; }
static void makes(float** x) { for (int i = 0; i < 2; ++i) x[i] = new float[8]; }
static void unseen(float* x) { for (int i = 0; i < 2; ++i) elsewhere(x); }
static void sums_up(std::vector<double>& all, float* x) {
  square<<<1, 8>>>(x, x + 8);
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) all[i] += norm(x) * j;
}
static int counts(float* x) {
  int n = 0;
  for (int i = 0; i < 8; ++i) n += i;
  square<<<1, 8>>>(x, x + n);
  return n;
}
static int counts_on(float* x) {
  int levels;
  for (levels = 0; (1 << levels) < 8; ++levels) x[levels] = 0;
  square<<<1, 8>>>(x, x + levels);
  return levels;
}
static int counts_only() { int n = 0; for (int i = 0; i < 8; ++i) n += i; return n; }
int main() {
  float *x[2], *y[2], table[8] = {};
  Sums sums{};
  std::vector<double> all(8);
  fill(table, sums);
  allocates(x), points(x, x[0]), by_another(x[0]), makes(y), unseen(y[0]), sums_up(all, x[0]);
  counts(x[0]), counts_on(x[0]);
  return counts_only();
}
"""
PAY = {"launches", "by_another", "allocates", "points", "makes", "unseen", "counts", "counts_on"}


def test_what_pays(tmp_path: Path) -> None:
    path = tmp_path / "app.cu"
    path.write_text(PROGRAM, "utf-8")
    program = Session(str(path), Options()).program
    found = paying(program)
    own = [one for one in program.functions if one.here]
    loops = {n.number: f.name for f in own for n in walk(f.body) if isinstance(n, Loop)}
    assert {name for number, name in loops.items() if number in found} == PAY


COPIES = """#include <cstring>
struct Vector { double x, y, z; };
struct Named { double x; float* p; };
static Vector sum(Vector a, Vector b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
Vector adds(const Vector* v, int n) { Vector s = {0, 0, 0}; for (int i = 0; i < n; ++i) s = sum(s, v[i]); return s; }
double weighs(int n) {
  double s = 0;
  for (int i = 0; i < n; ++i) { const double by[5] = {1, 2, 3, 4, 5}; s += by[i % 5]; }
  return s;
}
void moves(Named* to, const Named* from, int n) { for (int i = 0; i < n; ++i) to[i] = from[i]; }
void moves_bytes(char* to, const char* from, int n) { for (int i = 0; i < n; ++i) memcpy(to + 8 * i, from, 8); }
double looks_up(int n, double* a, double* b) {
  double s = 0;
  for (int i = 0; i < n; ++i) { double* const of[5] = {a, b, a, b, a}; s += *of[i % 5]; }
  return s;
}
double first = 1, second = 2;
double looks_up_fixed(int n) {
  double s = 0;
  for (int i = 0; i < n; ++i) { double* const of[5] = {&first, &second, &first, &second, &first}; s += *of[i % 5]; }
  return s;
}
__global__ void nothing() {}
int main() { nothing<<<1, 1>>>(); }
"""


@pytest.mark.parametrize(
    ("name", "pays"),
    [("adds", False), ("weighs", False), ("moves", True), ("moves_bytes", True), ("looks_up", True),
     ("looks_up_fixed", True)],
)  # fmt: skip
def test_copies_of_numbers_do_not_pay_on_the_host_either(tmp_path: Path, name: str, pays: bool) -> None:
    path = tmp_path / "app.cu"
    path.write_text(COPIES, "utf-8")
    text = host_ir_of(toolchain_for(Options()), str(path), Options())
    engine = Engine(Module(canonical(text, "host", sroa=True)), Models())
    (found,) = (one for one in engine.module.defined() if one.startswith(f"_Z{len(name)}{name}"))
    function = engine.module.function(found)
    assert function is not None
    assert bool(engine.graph(function).paying) == pays
