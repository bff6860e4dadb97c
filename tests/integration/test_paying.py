"""Functions that only compute are not walked trip by trip: ``paying(program)`` names all others."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.analysis.paying import paying
from kesco.options import Options
from kesco.session import Session

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
static void by_another(float* x) { launches(x); }
static void allocates(float** x) { for (int i = 0; i < 2; ++i) cudaMalloc(&x[i], 32); }
static void points(float** to, float* from) { for (int i = 0; i < 2; ++i) to[i] = from; }
static void points_once(float*& to, float* from) { to = from; }
static float* makes() { return new float[8]; }
static void unseen(float* x) { for (int i = 0; i < 2; ++i) elsewhere(x); }
int main() {
  float *x[2], table[8] = {}, *p;
  Sums sums{};
  fill(table, sums);
  allocates(x), points(x, x[0]), points_once(p, x[1]), by_another(x[0]), unseen(makes());
}
"""
PAY = {"launches", "by_another", "allocates", "points", "points_once", "makes", "unseen", "main"}


def test_what_pays(tmp_path: Path) -> None:
    path = tmp_path / "app.cu"
    path.write_text(PROGRAM, "utf-8")
    program = Session(str(path), Options()).program
    found = paying(program)
    names = {one.name for one in program.functions if one.here and one.key in found}
    assert names == PAY
