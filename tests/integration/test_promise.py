"""Holds behind a part of a loop in whole programs: the text, that nothing rests on them, and what they do in a run."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from kesco.bench.recorded import dry_run
from kesco.ir import kprof
from kesco.ir.compilation import Compilation
from kesco.ir.costs import Cost, Costs, Identity, Origin, Times
from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.proving import verify_files
from kesco.report.explain import explain
from kesco.verify.trace import Recorded, Waited

pytestmark = pytest.mark.usefixtures("toolchain")

PROGRAM = """\
#include <cstdlib>
__global__ void high(float* x) { x[threadIdx.x] += 1.0f; }
__global__ void low(float* x, const float* y) { x[threadIdx.x] += y[threadIdx.x]; }
int main(int argc, char** argv) {
  const int trips = std::atoi(argv[1]);
  float *a, *b, *c;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMalloc(&c, 4096);
  for (int round = 0; round < 2; ++round) {
#pragma kesco task priority(9) name(first)
    for (int i = 0; i < trips; ++i) high<<<1, 32>>>(a);
#pragma kesco task priority(1) name(second)
    for (int i = 0; i < trips; ++i) low<<<1, 32>>>(b, c);
    cudaDeviceSynchronize();
  }
}
"""
HIGH, LOW = 12, 14
READS = PROGRAM.replace(
    "    cudaDev", "#pragma kesco task priority(1) name(second)\n    low<<<1, 32>>>(b, a);\n    cudaDev"
)


def compiled(folder: Path, text: str, options: Options | None = None) -> Compilation:
    source = folder / "app.cu"
    source.write_text(text)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    costs = [
        Cost(Identity("kernel", name, (1, 1, 1), (32, 1, 1), 0, f"app.cu:{line}"), name, Times.of([10000] * 20))
        for name, line in (("high", HIGH), ("low", LOW))
    ]
    profile = folder / "run.kprof"
    profile.write_text(kprof.to_json(Costs.of(Origin(sources=(("app.cu", digest),)), costs)))
    return compile_file(str(source), options or Options(profile=str(profile)))


def _proven(folder: Path) -> bool:
    verdicts = verify_files(str(folder / "app.cu"), str(folder / "out.cu"), Options())
    return not any(one.problems for one in verdicts)


def test_the_text_says_what_is_held_and_why(tmp_path: Path) -> None:
    result = compiled(tmp_path, PROGRAM)
    text = result.text.decode()
    assert "kesco_mark(kesco->part[0], kesco->stream[0]);  // kesco: low#1, low#2 wait for a part of these" in text
    why = "so that first takes at most 10 % longer than serially alone"
    assert (
        f"kesco_hold(kesco->part[0], 91, kesco->stream[1]);  // kesco: low#1 waits for 91 % of high#1 ({why})" in text
    )
    assert f"held until 91 % of high#1,2 on stream 0 are done: {why}" in explain(result)
    (tmp_path / "out.cu").write_bytes(result.text)
    assert _proven(tmp_path)
    plain = compiled(tmp_path, PROGRAM, Options()).text.decode()
    assert "kesco_hold" not in plain
    profile = str(tmp_path / "run.kprof")
    assert ", 24, kesco" in compiled(tmp_path, PROGRAM, Options(profile=profile, promise=80)).text.decode()
    assert "kesco_hold" not in compiled(tmp_path, PROGRAM, Options(profile=profile, zone_age=0)).text.decode()


def test_no_dependence_may_rest_on_a_hold(tmp_path: Path) -> None:
    text = compiled(tmp_path, READS).text.decode()
    wait = next(line for line in text.splitlines() if "cudaStreamWaitEvent" in line and "RAW on a" in line)
    hold = "kesco_hold(kesco->part[0], 100, kesco->stream[1]);"
    (tmp_path / "out.cu").write_text(text.replace(wait, hold))
    assert "kesco_hold(kesco->part[0], " in text
    assert not _proven(tmp_path)


@pytest.mark.parametrize(("trips", "behind"), [(1, 1), (20, 19), (100, 92), (1000, 912)])
def test_a_run_waits_for_this_part_and_no_more(tmp_path: Path, trips: int, behind: int) -> None:
    """Of at most 64 events: of 1000 executions, those behind every 16th one. Each round begins anew."""
    (tmp_path / "out.cu").write_bytes(compiled(tmp_path, PROGRAM).text)
    trace = dry_run(tmp_path / "out.cu", (), [str(trips)], tmp_path)
    records = [(n, e.event) for n, e in enumerate(trace.events) if isinstance(e, Recorded)]
    waits = [(n, e.event) for n, e in enumerate(trace.events) if isinstance(e, Waited)]
    assert len(waits) == 2  # one in each round, not for every execution
    launches = [n for n, e in enumerate(trace.events) if getattr(e, "name", "").startswith("_Z4high")]
    ends = [n for n, e in enumerate(trace.events) if type(e).__name__ == "Synchronized"]
    for number, (at, event) in enumerate(waits):
        latest = max(n for n, one in records if one == event and n < at)
        begins = ends[number - 1] if number else 0
        assert sum(begins < n < latest for n in launches) == behind
