"""`--force`: what can overlap is rewritten, though no gain is expected; where nothing can, nothing is touched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kesco.ir.compilation import FunctionResult
from kesco.options import Options
from kesco.pipeline import compile_file

pytestmark = pytest.mark.usefixtures("toolchain")

PROGRAM = """\
#include <cuda_runtime.h>
__global__ void up(float* y, const float* x) {{ y[threadIdx.x] = x[threadIdx.x] + 1; }}
int main(int argc, char**) {{
  float *a, *b, *c;
  cudaMalloc(&a, 1024);
  cudaMalloc(&b, 1024);
  cudaMalloc(&c, 1024);
  {0}
  return 0;
}}
"""


def main_of(tmp_path: Path, body: str, options: Options) -> FunctionResult:
    program = tmp_path / "a.cu"
    program.write_text(PROGRAM.format(body))
    result = compile_file(str(program), replace(options, launches="keep"))
    (main,) = result.functions
    assert main.rewritten == (result.text != program.read_bytes())
    return main


ALONE = "no two of its operations are independent"
NOTHING = {
    "a launch": ("up<<<1, 256>>>(b, a);", Options(force=True), ALONE),
    "a launch in a loop": ("for (int i = 0; i < argc; ++i) up<<<1, 256>>>(b, a);", Options(force=True), ALONE),
    "a chain": ("up<<<1, 256>>>(b, a); up<<<1, 256>>>(c, b); up<<<1, 256>>>(b, c);", Options(force=True), ALONE),
    "one of two": (
        "if (argc > 1) up<<<1, 256>>>(b, a); else up<<<1, 256>>>(c, a);",
        Options(force=True),
        ALONE,
    ),
    "copies that the host waits for": (
        "float h[256]; cudaMemcpy(a, h, 1024, cudaMemcpyHostToDevice); up<<<1, 256>>>(b, a);",
        Options(force=True),
        ALONE,
    ),
    "what was asked to be on one stream": (
        "up<<<1, 256>>>(b, a); up<<<1, 256>>>(c, a);",
        Options(force=True, streams=1),
        "one stream holds all of its operations",
    ),
}


@pytest.mark.parametrize("name", NOTHING)
def test_what_cannot_overlap_is_left_as_it_is(tmp_path: Path, name: str) -> None:
    body, options, why = NOTHING[name]
    assert main_of(tmp_path, body, options).left_because == why


SOMETHING = {
    "a memset beside a launch": ("up<<<1, 256>>>(b, a); cudaMemset(c, 0, 1024L * argc);", 0, 2),
    # the host issues the second one while the first one runs
    "a wait that is not needed": (
        "up<<<1, 256>>>(b, a); cudaDeviceSynchronize(); up<<<1, 256>>>(b, b); cudaDeviceSynchronize();",
        0,
        1,
    ),
}


@pytest.mark.parametrize("name", SOMETHING)
def test_what_can_is_rewritten(tmp_path: Path, name: str) -> None:
    body, asked, streams = SOMETHING[name]
    assert main_of(tmp_path, body, Options(streams=asked)).left_because
    forced = main_of(tmp_path, body, Options(streams=asked, force=True))
    assert (forced.left_because, forced.schedule.streams) == ("", streams)
