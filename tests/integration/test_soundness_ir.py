"""Programs of which the reading of the host's IR once said too much; whatever reads them, no order is lost.

The first line of `soundness_ir/*.cu` says why two launches must stay in order (Ordered), or which pointers the output
has to compare before they may overlap (Compared).
"""

from __future__ import annotations

import re
from pathlib import Path

import networkx as nx
import pytest
from integration.compiled import compile_and_keep
from preferring import the_ir

from kesco.dataflow import build
from kesco.ir.flow import Region
from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.scheduling.levels import phases
from kesco.session import Session

HERE = Path(__file__).parent / "soundness_ir"
PROGRAMS = sorted(path.stem for path in HERE.glob("*.cu"))

pytestmark = pytest.mark.usefixtures("toolchain")


def unordered(region: Region, first: str, second: str) -> list[tuple[str, str]]:
    """Launches of two kernels that may overlap where a region is used."""
    if region.serial_because:
        return []
    dfg = build(region)
    closure = nx.transitive_closure(dfg.graph)
    label = {site.number: site.label.partition("#")[0] for site in region.sites}
    return [
        (region.sites[a].label, region.sites[b].label)
        for phase in phases(dfg)
        for a in phase
        for b in phase
        if a < b and {label[a], label[b]} == {first, second} and not closure.has_edge(a, b)
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_order_is_lost(name: str) -> None:
    path = HERE / f"{name}.cu"
    why = path.read_text("utf-8").splitlines()[0]
    regions = Session(str(path), Options()).of_ir()
    if stated := re.search(r"Ordered: (\w+), (\w+)$", why):
        assert [pair for one in regions for pair in unordered(one, stated[1], stated[2])] == []
        return
    stated = re.search(r"Compared: (.*)$", why)
    assert stated is not None
    (work,) = (one for one in regions if one.function == "work")
    assert work.serial_because or ", ".join(work.guards) == stated[1].replace("nothing", "")


LABELLED = """\
__global__ void write(float* p) { p[threadIdx.x] = 1; }
__global__ void both(float* p, const float* q) { p[threadIdx.x] += q[threadIdx.x]; }
int main(int n, char**) {
  float *a, *b, *c;
  cudaMalloc(&a, 256), cudaMalloc(&b, 256), cudaMalloc(&c, 256);
BODY
  return cudaDeviceSynchronize();
}
"""
LAUNCHES = "  write<<<1, 64>>>(a);\n  write<<<1, 64>>>(b);\n"


@pytest.mark.parametrize(
    "body",
    [
        "  if (n > 1) there: both<<<1, 64>>>(a, b);\n  write<<<1, 64>>>(c);\n  if (n-- > 2) goto there;",
        "  if (n > 1) there: both<<<1, 64>>>(a, b); else write<<<1, 64>>>(c);\n  if (n-- > 2) goto there;",
        "  switch (n) { if (n > 4) case 1: both<<<1, 64>>>(a, b); write<<<1, 64>>>(c); }",
        "  while (n-- > 0) there: again: both<<<1, 64>>>(a, b);\n  write<<<1, 64>>>(c);\n  if (n > 2) goto there;",
    ],
)
def test_a_label_in_a_branch_without_braces_keeps_its_statement(tmp_path: Path, body: str) -> None:
    """What is put in front of the launch belongs into the branch, behind the label."""
    program = tmp_path / "label.cu"
    program.write_text(LABELLED.replace("BODY", LAUNCHES + body))
    unproven: list[object] = []
    with the_ir():
        result = compile_file(str(program), Options(), lambda name, what: unproven.append(name))
    assert "unproven" not in unproven
    assert re.search(r": \{\s+cudaStreamWaitEvent\(.*\s+both<<<", result.text.decode())


@pytest.mark.parametrize(
    "function",
    [
        "void run(float* a, float* b, float* c) { goto on; on: L }",
        "struct Three { float *a, *b, *c; };\n"
        "void run(Three& t) { float *a = t.a, *b = t.b, *c = t.c; goto on; on: L }",
        "template <typename T> void run(T* a, T* b, T* c) { L return; }\n"
        "template void run<float>(float*, float*, float*);",
    ],
)
def test_what_the_ir_says_of_three_streams_is_proven(tmp_path: Path, function: str) -> None:
    """Kesco's own loop over its streams, its comparison of pointers, and a return behind them."""
    program = tmp_path / "run.cu"
    launches = " ".join(f"write<<<1, 64>>>({name});" for name in "abc")
    program.write_text(f"{LABELLED.splitlines()[0]}\n{function.replace('L', launches)}\n")
    with the_ir():
        outcome = compile_and_keep(program)
    assert [one.schedule.streams for one in outcome.rewritten] == [3]


HELPERS = {
    "clock": "#include <ctime>\n"
    "static long seen() { timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_nsec; }\n",
    "output": '#include <cstdio>\nstatic long seen() { return printf("so far\\n"); }\n',
    "inner": '#include <cstdio>\nstatic long say() { return puts("so far"); }\n'
    "static long seen() { return say() + 1; }\n",
    "nothing": "static long seen() { return 1; }\n",
}


@pytest.mark.parametrize("helper", list(HELPERS))
def test_where_a_helper_looks_the_host_has_waited(tmp_path: Path, helper: str) -> None:
    """A function that gives the device nothing is what its host code does, in the function that calls it."""
    program = tmp_path / "looks.cu"
    body = "  goto there;\nthere:\n  write<<<1, 64>>>(a);\n  write<<<1, 64>>>(b);\n  cudaDeviceSynchronize();\n"
    body += "  n += seen();\n  both<<<1, 64>>>(a, c);\n  write<<<1, 64>>>(b);"
    program.write_text(HELPERS[helper] + LABELLED.replace("BODY", body))
    with the_ir():
        result = compile_file(str(program), Options(force=True))
    assert any(one.rewritten for one in result.functions)
    assert ("not needed here: cudaDeviceSynchronize" in result.text.decode()) == (helper == "nothing")
