"""Launches do not start beside the end of a large memset or copy within the device, whose end they would crowd on."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.ir.compilation import FunctionResult
from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.scheduling.fillers import WHY, settle

PROGRAM = """\
__global__ void make(float* x) { x[blockIdx.x] = 1; }
__global__ void both(const float* x, float* y) { y[blockIdx.x] += x[blockIdx.x]; }
int main(int argc, char**) {
  float *a, *b, *c, *d;
  cudaMalloc(&a, 4096), cudaMalloc(&b, 4096), cudaMalloc(&c, 1 << 20), cudaMalloc(&d, 1 << 20);
  BODY
  return cudaDeviceSynchronize();
}
"""
LOOP = """\
  for (int trip = 0; trip < argc; ++trip) {
    cudaMemcpy(c, d, SIZE, cudaMemcpyDeviceToDevice);
    make<<<32, 64>>>(a);
    both<<<32, 64>>>(b, c);
    both<<<32, 64>>>(a, c);
  }"""
TWO = """\
  cudaMemset(c, 0, 1 << 20);
  cudaMemset(d, 0, 1 << 20);
  make<<<32, 64>>>(a);
  both<<<32, 64>>>(b, c);
  both<<<32, 64>>>(a, d);"""
OWN = """\
  cudaMemset(c, 0, 1 << 20);
  cudaMemset(d, 0, 1 << 20);
  make<<<32, 64>>>(c);
  make<<<32, 64>>>(d);"""
LATE = """\
  make<<<32, 64>>>(c);
  cudaMemset(c, 0, 1 << 20);
  make<<<32, 64>>>(a);
  both<<<32, 64>>>(a, b);"""


def _held(tmp_path: Path, body: str) -> tuple[FunctionResult, list[tuple[str, str]]]:
    """The function, and which launch waits for which operation without a dependence."""
    program = tmp_path / "fillers.cu"
    program.write_text(PROGRAM.replace("BODY", body))
    (main,) = compile_file(str(program), Options(force=True)).functions
    assert main.rewritten
    label = [site.label for site in main.region.sites]
    return main, [(label[w.source], label[w.target]) for w in main.plan.waits if w.why == WHY]


@pytest.mark.usefixtures("toolchain")
@pytest.mark.parametrize(("size", "held"), [("1 << 20", [("cudaMemcpy", "make")]), ("65536", [])])
def test_a_launch_waits_for_a_large_copy_that_is_ready_no_later(tmp_path: Path, size: str, held: object) -> None:
    assert _held(tmp_path, LOOP.replace("SIZE", size))[1] == held


@pytest.mark.usefixtures("toolchain")
def test_fillers_that_follow_each_other_are_on_one_stream_and_awaited_once(tmp_path: Path) -> None:
    main, held = _held(tmp_path, TWO)
    assert held == [("cudaMemset#2", "make")]
    stream_of = {main.region.sites[n].label: stream for n, stream in main.schedule.stream_of}
    assert stream_of["cudaMemset#1"] == stream_of["cudaMemset#2"]


@pytest.mark.usefixtures("toolchain")
def test_nothing_waits_for_a_filler_that_itself_waits_for_other_work(tmp_path: Path) -> None:
    assert _held(tmp_path, LATE)[1] == []


@pytest.mark.usefixtures("toolchain")
def test_nothing_waits_where_each_launch_has_a_filler_of_its_own(tmp_path: Path) -> None:
    main, held = _held(tmp_path, OWN)
    assert (held, main.plan.waits) == ([], ())


@pytest.mark.usefixtures("toolchain")
def test_one_of_a_run_that_is_on_the_launchs_own_stream_does_not_hide_what_it_waits_for(tmp_path: Path) -> None:
    """Both memsets wait for the end of the round before, and so does the launch, behind the second of them."""
    body = (
        "for (int trip = 0; trip < argc; ++trip) {" + TWO.replace("(b, c)", "(b, d)").replace("(a, d)", "(b, c)") + "}"
    )
    main, _ = _held(tmp_path, body)
    number = {main.region.sites[n].label: n for n in main.dfg.graph.nodes}
    stream_of = dict.fromkeys(main.dfg.graph.nodes, 1) | {number["cudaMemset#1"]: 0}
    placed, barriers = settle(main.dfg, stream_of, ())
    assert placed[number["cudaMemset#2"]] == 0
    assert [(b.source, b.target) for b in barriers] == [(number["cudaMemset#2"], number["make"])]
