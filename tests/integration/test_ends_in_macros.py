"""Statements that begin or end with a macro: what goes behind them goes behind the macro's invocation."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.options import Options
from tests.integration.compiled import compile_and_keep

pytestmark = pytest.mark.usefixtures("toolchain")

PROGRAM = """#define COUNT(what) ++what
#define SAME(what) what
#define SECOND(a, b) b, a
#define FAILED errors = 1
#define BAD(call) if ((call) != cudaSuccess)
#define BAD_STATUS(call) if (cudaError_t status = (call))
__global__ void twice(float* y, const float* x, int n) {
  for (int i = threadIdx.x; i < n; i += 32) y[i] = 2 * x[i];
}
int main() {
  const int n = 1 << 20, size = n * sizeof(float);
  int errors = 0;
  float *x, *y, *z;
  cudaMalloc(&x, size);
  cudaMalloc(&y, size);
  cudaMalloc(&z, size);
  STATEMENT
  twice<<<1, 32>>>(y, x, n);
  twice<<<1, 32>>>(z, x, n);
  cudaDeviceSynchronize();
  return errors;
}
"""
STATEMENTS = [
    "BAD(cudaMemset(x, 1, size)) ++errors;",
    "BAD(cudaMemset(x, 1, size)) COUNT(errors);",
    "BAD(cudaMemset(x, 1, size)) FAILED;",
    "BAD(cudaMemset(x, 1, size))SECOND(++errors, 3);",
    "BAD_STATUS(cudaMemset(x, 1, size)) COUNT(errors);",
    "BAD(cudaMemset(x, 1, size)) { COUNT(errors); }COUNT(errors);",
    "errors = cudaMemset(x, 1, size) + SAME(errors);",
    "int e = SAME(cudaMemset(x, 1, size));",
    "int e = cudaMemset(x, 1, size);COUNT(errors);",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_an_event_goes_behind_the_whole_statement(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "app.cu"
    path.write_text(PROGRAM.replace("STATEMENT", statement), "utf-8")
    outcome = compile_and_keep(path)
    assert outcome.result.text is not None and len(outcome.rewritten) == 1
    first, _, behind = statement.partition("}" if "}" in statement else ";")
    whole = first + ("}" if "}" in statement else ";") if behind else statement
    expected = whole.replace("cudaMemset", "cudaMemsetAsync").replace("size)", "size, kesco->stream[0])")
    assert f"  {expected}\n  cudaEventRecord(" in outcome.result.text.decode()


JUMPS = [
    "BAD(cudaMemset(x, i, size)) continue;",
    "BAD_STATUS(cudaMemset(x, i, size)) break;",
    "BAD_STATUS(cudaMemset(x, i, size)) { ++errors; continue; }",
]


@pytest.mark.parametrize("statement", JUMPS)
def test_nothing_goes_behind_a_statement_that_is_jumped_out_of(tmp_path: Path, statement: str) -> None:
    loop = f"for (int i = 0; i < errors + 3; ++i) {{\n  twice<<<1, 32>>>(y, x, n);\n  {statement}\n"
    path = tmp_path / "app.cu"
    text = PROGRAM.replace("  STATEMENT\n", loop).replace("  cudaDeviceSynchronize", "}\n  cudaDeviceSynchronize")
    path.write_text(text, "utf-8")
    outcome = compile_and_keep(path, Options(launches="keep"))
    assert len(outcome.rewritten) == 1
    assert f"  {statement}\n" in outcome.result.text.decode()
