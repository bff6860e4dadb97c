"""What is said of prefetches that were not asked for (K220): only of those that would be put in."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.diagnostics import Diagnostic, Severity
from kesco.options import Options
from kesco.pipeline import compile_file

KERNELS = """\
__global__ void up(float* x) { x[threadIdx.x] += 1; }
__global__ void set(float* x) { x[threadIdx.x] = 1; }
__global__ void add(float* x, const float* y) { x[threadIdx.x] += y[threadIdx.x]; }
static void fill(float* p, int n) { for (int i = 0; i < n; ++i) p[i] = i; }
"""
FUNCTION = """\
int {name}(int argc, char**) {{
  const int n = 1 << 20;
  float *a, *b;
  cudaMallocManaged(&a, {size}); cudaMallocManaged(&b, {size});
  {body}
  return cudaDeviceSynchronize();
}}
"""
TWO = "fill(a, n); fill(b, n); up<<<1, 32>>>(a); up<<<1, 32>>>(b);"
CHAIN = "fill(a, n); fill(b, n); up<<<1, 32>>>(a); add<<<1, 32>>>(a, b);"

pytestmark = pytest.mark.usefixtures("toolchain")


def said(tmp_path: Path, body: str, options: Options, size: str = "argc * 4096", more: str = "") -> list[Diagnostic]:
    path = tmp_path / "app.cu"
    path.write_text(KERNELS + FUNCTION.format(name="main", size=size, body=body) + more)
    return [d for d in compile_file(str(path), options).diagnostics if d.code == "K220"]


@pytest.mark.parametrize(("body", "many"), [(TWO, "2 prefetches"), ("fill(a, n); " + TWO[24:], "one prefetch")])
def test_how_many_could_be_put_in(tmp_path: Path, body: str, many: str) -> None:
    (told,) = said(tmp_path, body, Options())
    assert told.message == f"'main': {many} of managed memory could be put in"
    assert (told.severity, told.notes) == (Severity.REMARK, ())
    assert "'--prefetch'" in told.help


def test_also_where_nothing_is_worth_streams_without_them(tmp_path: Path) -> None:
    assert len(said(tmp_path, CHAIN, Options())) == 1


def test_once_for_a_file(tmp_path: Path) -> None:
    more = "".join(FUNCTION.format(name=name, size="argc * 4096", body=TWO) for name in ("second", "third"))
    (told,) = said(tmp_path, TWO, Options(), more=more)
    assert [note.message for note in told.notes] == ["and 2 in 'second'", "and 2 in 'third'"]


@pytest.mark.parametrize(
    "options",
    [
        Options(prefetch=True),
        Options(emit="graph"),
        Options(emit="auto"),
        Options(strategy="serial"),
        Options(streams=1),
    ],
)
def test_nothing_where_they_are_asked_for_or_would_not_be_put_in(tmp_path: Path, options: Options) -> None:
    assert said(tmp_path, TWO, options) == []


@pytest.mark.parametrize(
    ("body", "size"),
    [
        ("set<<<1, 32>>>(a); set<<<1, 32>>>(b);", "argc * 4096"),
        (f"\n#define KescoHost 1\n{TWO}", "argc * 4096"),
        (f"cudaMemAdvise(a, 9, cudaMemAdviseSetReadMostly, cudaMemLocation{{}}); {TWO}", "argc * 4096"),
    ],
)
def test_nothing_where_there_are_none(tmp_path: Path, body: str, size: str) -> None:
    assert said(tmp_path, body, Options(), size) == []
