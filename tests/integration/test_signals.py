"""Kernels that tell the host something: what the host may watch is written in the order of the text."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.options import Options
from kesco.pipeline import compile_file

pytestmark = pytest.mark.usefixtures("toolchain")

KERNELS = """\
#include <atomic>
#include <cstdlib>
#include <map>
#include <sched.h>
__global__ void work(float* q) { q[threadIdx.x] += 1; }
__global__ void tell(int* flag) { *flag = 1; }
__global__ void warn(volatile int* flag) { *flag = 1; }
"""
PINNED = "  int* f;\n  cudaHostAlloc(&f, 4, 0), *f = 0;\n"
MANAGED = "  std::atomic<int>* f;\n  cudaMallocManaged(&f, 4), *f = 0;\n"
REGISTERED = "  int* f = (int*)malloc(4);\n  cudaHostRegister(f, 4, 0), *f = 0;\n"
ATOMIC = "std::atomic<int>*"
TELL = "  tell<<<1, 1>>>((int*)f);\n"


def compiled(tmp_path: Path, before: str, inner: str, end: str = "  return cudaDeviceSynchronize();\n") -> str:
    """The output for two kernels on memory of their own, and then `inner`."""
    program = tmp_path / "flag.cu"
    begin = "int main() {\n  float *x, *y;\n  cudaMalloc(&x, 256), cudaMalloc(&y, 256);\n"
    program.write_text(f"{KERNELS}{before}{begin}{inner}{end}}}\n")
    return compile_file(str(program), Options(force=True)).text.decode()


WORK = "  work<<<1, 64>>>(x);\n  work<<<1, 64>>>(y);\n"
WAITS = "static void wait(volatile int* f) {\n  while (!*f) {\n  }\n}\n"
TELLS = "static void say(float* q, int* f) {\n  work<<<1, 64>>>(q);\n  tell<<<1, 1>>>(f);\n}\n"


@pytest.mark.parametrize(
    ("before", "memory", "look"),
    [
        ("", PINNED, "  while (!*(volatile int*)f) {\n  }\n"),
        ("", PINNED, "  while (!__atomic_load_n(f, __ATOMIC_ACQUIRE)) {\n  }\n"),
        ("", PINNED, "  while (!*f) sched_yield();\n"),
        ("", PINNED, "  while (!((std::atomic<int>*)f)->load()) {\n  }\n"),
        ("", MANAGED, "  while (!f->load()) {\n  }\n"),
        ("", REGISTERED, "  while (!*(volatile int*)f) {\n  }\n"),
        ("", PINNED, "  std::map<int, volatile int*> m;\n  m[1] = f;\n  while (!*m[1]) {\n  }\n"),
        ("", PINNED, f"  std::map<int, {ATOMIC}> m;\n  m[1] = ({ATOMIC})f;\n  while (!m[1]->load()) {{\n  }}\n"),
        ("", PINNED, "  std::map<int, int*> m;\n  m[1] = f;\n  while (!*m[1]) sched_yield();\n"),
        ("void wait(int*);\n", PINNED, "  wait(f);\n"),
        (WAITS, PINNED, "  wait(f);\n"),
    ],
)  # fmt: skip
def test_a_kernel_that_sets_what_the_host_watches_comes_behind_all_others(
    tmp_path: Path, before: str, memory: str, look: str
) -> None:
    text = compiled(tmp_path, before, f"{memory}{WORK}{TELL}{look}")
    assert "kesco->stream[1]>>>(y)" in text
    assert TELL in text


@pytest.mark.parametrize(
    "wait",
    [
        "cudaDeviceSynchronize();",
        "cudaStreamSynchronize(0);",
        "cudaEvent_t e;\n  cudaEventCreate(&e), cudaEventRecord(e);\n  cudaEventSynchronize(e);",
        "float h;\n  cudaMemcpy(&h, x, 4, cudaMemcpyDeviceToHost);",
    ],
)
def test_what_the_host_reads_behind_a_wait_is_no_signal(tmp_path: Path, wait: str) -> None:
    text = compiled(tmp_path, "", f"{PINNED}{WORK}{TELL}  {wait}\n  if (*f == 1) *f = 2;\n")
    assert "tell<<<1, 1, 0, kesco->stream[" in text


def test_a_wait_for_an_event_recorded_before_is_no_wait_for_the_signal(tmp_path: Path) -> None:
    event = "  cudaEvent_t e;\n  cudaEventCreate(&e), cudaEventRecord(e);\n"
    text = compiled(
        tmp_path, "", f"{PINNED}{event}{WORK}{TELL}  cudaEventSynchronize(e);\n  while (!*f) sched_yield();\n"
    )
    assert TELL in text


def test_a_signal_of_a_function_that_its_caller_watches(tmp_path: Path) -> None:
    text = compiled(tmp_path, TELLS, f"{PINNED}  say(x, f);\n  while (!*(volatile int*)f) {{\n  }}\n")
    assert "  tell<<<1, 1>>>(f);\n" in text


@pytest.mark.parametrize(
    ("parameter", "kernel"), [("volatile int* f", "warn"), ("volatile int* f", "tell"), ("std::atomic<int>* f", "tell")]
)
def test_a_function_is_given_what_callers_that_are_not_seen_watch(tmp_path: Path, parameter: str, kernel: str) -> None:
    launch = f"  {kernel}<<<1, 1>>>((int*)f);\n"
    before = f"void say(float* p, float* q, {parameter}) {{\n  work<<<1, 64>>>(p);\n  work<<<1, 64>>>(q);\n{launch}}}\n"
    text = compiled(tmp_path, before, WORK)
    assert launch in text
