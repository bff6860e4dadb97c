"""Calls that only ask or mark something are no barriers; a wait of the host stays before what would show it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.ir.flow import Role
from kesco.options import Options
from kesco.pipeline import FunctionResult, compile_file

NVTX = """#pragma once
#pragma GCC system_header
#define nvtxRangePush nvtxRangePushA
extern "C" {
int nvtxRangePushA(const char* message);
int nvtxRangePop(void);
typedef struct nvtxEventAttributes_v2 { unsigned short version; const char* ascii; } nvtxEventAttributes_t;
void nvtxMarkEx(const nvtxEventAttributes_t* attributes);
}
namespace nvtx3 {
inline namespace v1 {
struct global;
template <class D = global>
struct scoped_range_in {
  explicit scoped_range_in(const char* message) { nvtxRangePushA(message); }
  ~scoped_range_in() { nvtxRangePop(); }
};
using scoped_range = scoped_range_in<>;
}  // namespace v1
}  // namespace nvtx3
"""
HEAD = """__global__ void k(float* q) { q[0] += 1; }
int main() {
  float *x, *y, *h, *d, time;
  int number;
  nvtxEventAttributes_t mark = {2, "mark"};
  cudaEvent_t begin, end;
  cudaMalloc(&x, 256), cudaMalloc(&y, 256), cudaMallocHost(&h, 256);
  cudaEventCreate(&begin), cudaEventCreate(&end);
"""

pytestmark = pytest.mark.usefixtures("toolchain")


def compiled(folder: Path, body: str) -> FunctionResult:
    header = folder / "cuda" / "include" / "nvtx.h"
    header.parent.mkdir(parents=True)
    (header.parent / "cuda_runtime_api.h").touch()  # which makes it a toolkit's
    header.write_text(NVTX)
    program = folder / "program.cu"
    program.write_text(f'#include "{header}"\n{HEAD}{body}  cudaDeviceSynchronize();\n  return 0;\n}}\n')
    (main,) = compile_file(str(program), Options(force=True)).functions
    return main


@pytest.mark.parametrize(
    "asked",
    [
        'nvtxRangePush("work");',
        "nvtxRangePop();",
        "nvtxMarkEx(&mark);",
        'nvtx3::scoped_range range{"work"};',
        "cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 16);",
        "cudaOccupancyMaxActiveBlocksPerMultiprocessor(&number, k, 32, 0);",
        "cudaHostGetDevicePointer(&d, h, 0);",
        "cudaEventElapsedTime(&time, begin, end);",
    ],
)
def test_what_only_asks_or_marks_is_no_barrier(tmp_path: Path, asked: str) -> None:
    main = compiled(tmp_path, f"  {{\n    k<<<1, 1>>>(x);\n    {asked}\n    k<<<1, 1>>>(y);\n  }}\n")
    sites = main.region.sites
    assert [s for s in sites if s.role is Role.JOIN] == []
    assert len({main.schedule.as_dict()[s.number] for s in sites if s.role is Role.MOVABLE}) == 2


@pytest.mark.parametrize(
    ("shows", "kept"),
    [
        ("nvtxRangePop();", True),
        ("cudaEventElapsedTime(&time, begin, end);", True),
        ("cudaHostGetFlags((unsigned*)&number, x);", False),
        ("cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 16);", False),
    ],
)
def test_a_wait_stays_before_what_shows_how_far_the_host_is(tmp_path: Path, shows: str, kept: bool) -> None:
    body = f"  k<<<1, 1>>>(x);\n  cudaDeviceSynchronize();\n  {shows}\n  k<<<1, 1>>>(y);\n"
    assert _waits(tmp_path, body) == 1 + kept


def test_an_assigned_dim3_is_no_barrier_and_is_followed(tmp_path: Path) -> None:
    main = compiled(tmp_path, "  k<<<1, 1>>>(x);\n  dim3 grid, other(2);\n  grid = other;\n  k<<<grid, 1>>>(y);\n")
    sites = main.region.sites
    assert [s for s in sites if s.role is Role.JOIN] == []
    assert len({main.schedule.as_dict()[s.number] for s in sites if s.role is Role.MOVABLE}) == 2


def test_a_wait_stays_before_the_end_of_a_range(tmp_path: Path) -> None:
    body = '  {\n    nvtx3::scoped_range range{"work"};\n    k<<<1, 1>>>(x);\n    cudaDeviceSynchronize();\n  }\n'
    assert _waits(tmp_path, f"{body}  k<<<1, 1>>>(y);\n") == 2


def test_a_second_name_of_pinned_memory_is_that_memory(tmp_path: Path) -> None:
    body = "  cudaHostGetDevicePointer(&d, h, 0);\n  k<<<1, 1>>>(d);\n  k<<<1, 1>>>(x);\n  k<<<1, 1>>>(h);\n"
    main = compiled(tmp_path, body)
    touched = [{a.buffer.name for a in s.accesses} for s in main.region.sites if s.role is Role.MOVABLE]
    assert touched == [{"h"}, {"x"}, {"h"}]


@pytest.mark.parametrize("memory", ["x", "&number", "elsewhere()"])
def test_a_second_name_of_other_memory_is_not_followed(tmp_path: Path, memory: str) -> None:
    main = compiled(
        tmp_path, f"  float* elsewhere();\n  cudaHostGetDevicePointer(&d, {memory}, 0);\n  k<<<1, 1>>>(d);\n"
    )
    assert any(s.foreign for s in main.region.sites if s.label.startswith("cudaHostGetDevicePointer"))


def _waits(folder: Path, body: str) -> int:
    main = compiled(folder, body)
    gone = main.plan.needless
    return sum(s.role is Role.DEVICE_SYNC and s.number not in gone for s in main.region.sites)
