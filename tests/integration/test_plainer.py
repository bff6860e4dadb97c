"""What becomes of a program of which the proof does not follow a plan: little gets plainer, and it is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import VerificationError
from kesco.ir.compilation import FunctionResult
from kesco.proving import verify
from kesco.session import Session
from tests.integration.compiled import Compiled, compile_and_keep

pytestmark = pytest.mark.usefixtures("toolchain")

# The launches are in a method of a class, which only the IR's reading follows.
PROGRAM = """#include <cstdio>
__global__ void square(float* a, long n) { for (long i = threadIdx.x; i < n; i += 32) a[i] = a[i] * a[i]; }
template <class T> struct Buffer {
  T* at;
  Buffer(long n) { cudaMalloc(&at, n * sizeof(T)); }
  ~Buffer() { cudaFree(at); }
};
void first(long n) {
  Buffer<float> a(n), b(n);
  square<<<1, 32>>>(a.at, n);
  square<<<1, 32>>>(b.at, n);
  cudaDeviceSynchronize();
}
void second(long n) {
  Buffer<float> a(n), b(n);
  square<<<1, 32>>>(a.at, n);
  square<<<1, 32>>>(b.at, n);
  cudaDeviceSynchronize();
}
"""
PLAIN = """__global__ void square(float* a, long n) { for (long i = threadIdx.x; i < n; i += 32) a[i] = a[i] * a[i]; }
void first(long n) {
  float *a, *b;
  cudaMalloc(&a, n * sizeof(float)), cudaMalloc(&b, n * sizeof(float));
  square<<<1, 32>>>(a, n);
  square<<<1, 32>>>(b, n);
  cudaFree(a), cudaFree(b);
}
void second(long n) {
  float *a, *b;
  cudaMalloc(&a, n * sizeof(float)), cudaMalloc(&b, n * sizeof(float));
  square<<<1, 32>>>(a, n);
  square<<<1, 32>>>(b, n);
  cudaFree(a), cudaFree(b);
}
"""


def compiled(folder: Path) -> Compiled:
    path = folder / "two.cu"
    path.write_text(PROGRAM, "utf-8")
    return compile_and_keep(path)


def doubting(monkeypatch: pytest.MonkeyPatch, *, named: bool) -> None:
    """Let the proof refuse `first` where it is rewritten, by name or only somewhere."""

    def refuses(session: Session, functions: tuple[FunctionResult, ...], text: bytes) -> None:
        for one in functions:
            if one.serial.function == "first" and one.rewritten:
                place = (("first", one.serial.span),) if named else ()
                raise VerificationError(Diagnostic("K402", Severity.ERROR, "not proven"), functions=place)
        verify(session, functions, text)

    monkeypatch.setattr("kesco.pipeline.verify", refuses)


def names(one: Compiled) -> list[str]:
    return [function.region.function for function in one.rewritten]


def said(one: Compiled) -> list[str]:
    return [d.message for d in one.result.diagnostics if d.code == "K221"]


def test_both_are_concurrent_by_the_ir_alone(tmp_path: Path) -> None:
    one = compiled(tmp_path)
    assert names(one) == ["first", "second"] and not said(one)


def test_the_function_that_is_not_proven_is_left_and_the_other_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubting(monkeypatch, named=True)
    one = compiled(tmp_path)
    assert names(one) == ["second"]
    assert said(one) == ["'first': a plainer plan is used: the proof does not follow the one that is better"]


def test_a_function_that_is_not_proven_as_the_text_says_either_stays_serial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubting(monkeypatch, named=True)
    monkeypatch.setattr(f"{__name__}.PROGRAM", PLAIN)
    one = compiled(tmp_path)
    assert names(one) == ["second"]
    (why,) = (d.message for d in one.result.diagnostics if d.code == "K202")
    assert why == "'first' stays serial: the proof does not follow it"


def test_where_it_is_not_known_which_it_is_all_are_as_the_text_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubting(monkeypatch, named=False)
    one = compiled(tmp_path)
    assert names(one) == []
    assert said(one) == ["a plainer plan is used: the proof does not follow the one that is better"]
