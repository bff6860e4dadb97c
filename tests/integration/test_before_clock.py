"""Where streams are fetched: before a clock that measures the work, unless the device may change in between."""

from __future__ import annotations

import pytest

from tests.integration.compiled import Compiled, compile_and_keep

pytestmark = pytest.mark.usefixtures("toolchain")

HEAD = """#include <chrono>
#include <cstdio>
#include <sys/time.h>
__global__ void add(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] += 1; }
void elsewhere();
static double seconds() {
  timeval now;
  gettimeofday(&now, nullptr);
  return now.tv_sec + now.tv_usec * 1e-6;
}
struct Timer {
  virtual double now() { return seconds(); }
};
struct Other : Timer {
  double now() override { cudaSetDevice(1); return 0; }
};
struct Back {
  int device = 1;
  ~Back() { cudaSetDevice(device); }
};
static double then_back() {
  Back back;
  return seconds();
}
static void choose(int which) { cudaSetDevice(which); }
static void check(cudaError_t code) { if (code != cudaSuccess) fprintf(stderr, "%s", cudaGetErrorString(code)); }
"""
FUNCTION = """void f_@NAME@(int n, int which, cudaEvent_t start) {
  float *a, *b;
  cudaMalloc(&a, n * 4);
  cudaMalloc(&b, n * 4);
  @BEFORE@
  add<<<n / 256, 256>>>(a, n);
  add<<<n / 256, 256>>>(b, n);
  cudaDeviceSynchronize();
  cudaFree(a);
  cudaFree(b);
}
"""
CLOCK = "auto t = std::chrono::steady_clock::now();"
# What stands before the work, and in front of which part of it the streams are fetched; "add" is the work itself.
CASES = {
    "nothing": ("", "add<<<"),
    "clock": (CLOCK, "auto t"),
    "event": ("check(cudaEventRecord(start));", "check(cuda"),
    "own_timer": ("double t = seconds();", "double t"),
    "waits_and_output": (f'{CLOCK}\n  cudaDeviceSynchronize();\n  printf("go\\n");', "auto t"),
    "two_clocks": (f"double s = seconds();\n  {CLOCK}", "double s"),
    "clock_behind_another_statement": (f"int k = 2; {CLOCK}", "add<<<"),
    "device": (f"{CLOCK}\n  cudaSetDevice(which);", "add<<<"),
    "device_by_a_function": (f"{CLOCK}\n  choose(which);", "add<<<"),
    "device_by_another_class": ("Other other; Timer& timer = other;\n  double t = timer.now();", "add<<<"),
    "device_where_an_object_goes": ("double t = then_back();", "add<<<"),
    "how_much_memory_is_left": (f"{CLOCK}\n  size_t left, all;\n  cudaMemGetInfo(&left, &all);", "add<<<"),
    "device_before": (f"cudaSetDevice(which);\n  {CLOCK}", "auto t"),
    "reset": (f"{CLOCK}\n  cudaDeviceReset();\n  cudaMalloc(&a, n * 4);\n  cudaMalloc(&b, n * 4);", "add<<<"),
    "unseen": (f"{CLOCK}\n  elsewhere();", "add<<<"),
}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory, toolchain: object) -> Compiled:
    path = tmp_path_factory.mktemp("clocks") / "app.cu"
    texts = [FUNCTION.replace("@NAME@", name).replace("@BEFORE@", case[0]) for name, case in CASES.items()]
    path.write_text(HEAD + "".join(texts))
    return compile_and_keep(path)


@pytest.mark.parametrize("name", CASES)
def test_where_the_streams_are_fetched(outcome: Compiled, name: str) -> None:
    text = "\n".join(outcome.lines)
    body = text[text.index(f"void f_{name}(") :].partition("\n}\n")[0].splitlines()
    at = next(n for n, line in enumerate(body) if line.strip().startswith("KescoStreams* kesco = "))
    behind = next(line.strip() for line in body[at + 1 :] if "kesco->tail" not in line)
    assert behind.startswith(CASES[name][1])
