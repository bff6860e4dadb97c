"""What programs with CUDA graphs do as they run: made node by node, captured, launched again and again."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from kesco.ir.execution import Execution, StepKind, Waits
from kesco.options import Options
from kesco.proving import verify_files
from kesco.proving.executions import verify_alone
from kesco.verify.executions.agreement import agreement
from tests.integration.test_executions import STYLES, WORKLOADS, executed

pytestmark = pytest.mark.usefixtures("toolchain")

THOROUGH = bool(os.environ.get("KESCO_THOROUGH"))
NAMES = ("vec", "bs", "img", "ml", "dl", "m1", "m2") if THOROUGH else ("vec", "img")


def of_graph(name: str, style: str, folder: Path) -> tuple[Execution, Execution]:
    """The serial program, and the one with a graph without the repetition that warms up, which no serial one has."""
    serial, _ = executed(str(WORKLOADS / name / STYLES[style]), ("-DPREFETCH",) if style == "-DPREFETCH" else ())
    text = (WORKLOADS / name / "graph.cu").read_text()
    assert "it = -1" in text
    text = text.replace('"kernels.cuh"', f'"{WORKLOADS}/{name}/kernels.cuh"').replace(
        '"../common', f'"{WORKLOADS}/common'
    )
    path = folder / "graph.cu"
    path.write_text(text.replace("it = -1", "it = 0").replace("if (it >= 0) times", "times"))
    graph, _ = executed(str(path), (style,) if style else ())
    assert not serial.refused
    assert not graph.refused
    return serial, graph


@pytest.mark.parametrize("style", STYLES if THOROUGH else ("", "-DPINNED"))
@pytest.mark.parametrize("name", NAMES)
def test_graphs_by_hand_are_accepted_and_each_edge_is_missed(name: str, style: str, tmp_path: Path) -> None:
    serial, graph = of_graph(name, style, tmp_path)
    found = agreement(serial, graph, (None, None))
    assert found.holds, (found.unpaired, found.unordered, found.reversed)
    edges: dict[tuple[str, str], set[int]] = {}
    for step in graph.steps:
        if step.kind is StepKind.WAIT and step.name == "cudaGraphLaunch":
            edges.setdefault((step.streams[0].key, step.events[0].key), set()).add(step.number)
    needed = {pair for pair in edges if not pair[1].endswith("begin")}  # the host has waited for what is before
    assert len(needed) >= 3
    for pair in needed:
        gone = edges[pair]
        steps = tuple(
            replace(one, kind=StepKind.HOST, streams=(), events=(), waits=Waits.NO) if one.number in gone else one
            for one in graph.steps
        )
        assert not agreement(serial, replace(graph, steps=steps), (None, None)).holds, pair


KERNELS = """\
#include <cstdlib>
#include <vector>
__global__ void up(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 1;
}
__global__ void add(float* z, const float* x, const float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}
int main(int argc, char** argv) {
  int n = atoi(argv[1]), steps = atoi(argv[2]);
  std::vector<float> h(n);
  float *a, *b, *c;
  cudaMalloc(&a, n * 4);
  cudaMalloc(&b, n * 4);
  cudaMalloc(&c, n * 4);
  cudaMemcpy(a, h.data(), n * 4, cudaMemcpyHostToDevice);
"""
END = """\
  cudaMemcpy(h.data(), a, n * 4, cudaMemcpyDeviceToHost);
  return h[0] > 0;
}
"""
SERIAL = """\
  for (int i = 0; i < steps; ++i) {
    up<<<n, 256>>>(b, a, n);
    up<<<n, 256>>>(c, a, n);
    add<<<n, 256>>>(a, b, c, n);
  }
"""
HANDLES = """\
  cudaStream_t s, t;
  cudaStreamCreate(&s);
  cudaStreamCreate(&t);
  cudaEvent_t fork, join;
  cudaEventCreate(&fork);
  cudaEventCreate(&join);
  cudaGraph_t graph;
  cudaGraphExec_t exec;
"""
CAPTURED = """\
  cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
  cudaEventRecord(fork, s);
  cudaStreamWaitEvent(t, fork, 0);
  up<<<n, 256, 0, s>>>(b, a, n);
  up<<<n, 256, 0, t>>>(c, a, n);
  cudaEventRecord(join, t);
  cudaStreamWaitEvent(s, join, 0);
  add<<<n, 256, 0, s>>>(a, b, c, n);
  cudaStreamEndCapture(s, &graph);
"""
LAUNCHED = """\
  cudaGraphInstantiate(&exec, graph, 0);
  for (int i = 0; i < steps; ++i) cudaGraphLaunch(exec, s);
  cudaStreamSynchronize(s);
"""
NODES = """\
  cudaGraphCreate(&graph, 0);
  cudaKernelNodeParams params = {};
  params.gridDim = dim3(n);
  params.blockDim = dim3(256);
  cudaGraphNode_t first[2], last;
  params.func = (void*)up;
  void* to_b[] = {&b, &a, &n};
  params.kernelParams = to_b;
  cudaGraphAddKernelNode(&first[0], graph, nullptr, 0, &params);
  void* to_c[] = {&c, &a, &n};
  params.kernelParams = to_c;
  cudaGraphAddKernelNode(&first[1], graph, nullptr, 0, &params);
  params.func = (void*)add;
  void* to_a[] = {&a, &b, &c, &n};
  params.kernelParams = to_a;
  cudaGraphAddKernelNode(&last, graph, first, 2, &params);
"""


def told(tmp_path: Path, made: str, launched: str = LAUNCHED) -> tuple[str, ...]:
    """What speaks against a program with a graph, beside the serial one."""
    serial, graph = tmp_path / "serial.cu", tmp_path / "graph.cu"
    serial.write_text(KERNELS + SERIAL + END)
    graph.write_text(KERNELS + HANDLES + made + launched + END)
    verdicts = verify_files(str(serial), str(graph), Options())
    notes = [note.message for one in verdicts for each in one.problems for note in each.notes]
    return (*(each.message for one in verdicts for each in one.problems), *notes)


@pytest.mark.parametrize("made", [CAPTURED, NODES])
def test_a_graph_is_the_loop_that_it_stands_for(made: str, tmp_path: Path) -> None:
    assert told(tmp_path, made) == ()
    alone = verify_alone(str(tmp_path / "graph.cu"), Options())
    assert (alone.races, alone.unknown) == (0, 0)


WRONG = {
    "a join is missing": (CAPTURED, "  cudaStreamWaitEvent(s, join, 0);\n", "", "'add' may begin before 'up' is done"),
    "an edge is missing": (NODES, "graph, first, 2,", "graph, first, 1,", "'add' may begin before 'up' is done"),
    "an edge is not known": (NODES, "graph, first, 2,", "graph, first, argc,", "'add' may begin before 'up' is done"),
    "another buffer": (NODES, "to_b[] = {&b, &a,", "to_b[] = {&b, &c,", "has no counterpart"),
    "another number": (NODES, "to_c[] = {&c, &a, &n}", "to_c[] = {&c, &a, &steps}", "has no counterpart"),
    "another grid": (NODES, "dim3(n)", "dim3(n, 2)", "has no counterpart"),
    "a kernel that is changed later": (
        NODES, "  cudaGraphAddKernelNode(&last", "  n = steps;\n  cudaGraphAddKernelNode(&last", "has no counterpart",
    ),
    "a stream outside of the capture": (
        CAPTURED, "  cudaStreamWaitEvent(t, fork, 0);\n", "", "what 'up' does while a stream is captured",
    ),
    "a node that comes too late": (
        NODES + LAUNCHED, "  void* to_a", "  cudaGraphInstantiate(&exec, graph, 0);\n  void* to_a", "no counterpart",
    ),
    "an edge on a question": (
        NODES, "graph, first, 2, &params);\n",
        "graph, first, 1, &params);\n  if (argc > 3) cudaGraphAddDependencies(graph, &first[1], &last, nullptr, 1);\n",
        "it depends on a question, or on a loop, whether nodes come after others",
    ),
    "instantiated on a question": (
        NODES + LAUNCHED, "  void* to_a", "  if (argc > 3) cudaGraphInstantiate(&exec, graph, 0);\n  void* to_a",
        "it depends on a question what a graph is made of",
    ),
    "a wait on a question": (
        CAPTURED, "  cudaStreamWaitEvent(s, join, 0);\n", "  if (argc > 3) cudaStreamWaitEvent(s, join, 0);\n",
        "on a question while a stream is captured",
    ),
    "only sometimes": (
        CAPTURED, "  up<<<n, 256, 0, t>>>", "  if (argc > 3) up<<<n, 256, 0, t>>>", "on a question while",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_wrong_graphs_are_refused(what: str, tmp_path: Path) -> None:
    made, old, new, why = WRONG[what]
    assert old in made
    launched = LAUNCHED
    if LAUNCHED in made:
        made, launched = made.replace(LAUNCHED, ""), LAUNCHED.replace("  cudaGraphInstantiate(&exec, graph, 0);\n", "")
    assert any(why in one for one in told(tmp_path, made.replace(old, new), launched))


@pytest.mark.parametrize(
    ("launched", "why"),
    [
        (LAUNCHED.replace("i < steps", "i < n"), "its loop is left on other questions"),
        (LAUNCHED.replace("exec, s);\n", "exec, t);\n"), "may not be done"),
        (LAUNCHED.replace("  for", "  cudaGraphKernelNodeSetParams(last, &params);\n  for"), "SetParams"),
        (LAUNCHED.replace("  for", "  cudaGraphAddEmptyNode(&last, graph, &last, 1);\n  for"), ""),
    ],
)
def test_launches_are_compared_as_well(launched: str, why: str, tmp_path: Path) -> None:
    if why == "may not be done":  # another stream, for which nobody waits: a stream that blocks is waited for
        launched = launched.replace("  cudaGraphInst", "  cudaStreamCreateWithFlags(&t, 1);\n  cudaGraphInst")
        why = "may begin before 'add' is done"
    found = told(tmp_path, NODES, launched)
    assert any(why in one for one in found) if why else found == ()


# ---- what decides about steps

BRANCHES = """\
#include <cstdlib>
__global__ void up(float* y, const float* x) { y[threadIdx.x] = x[threadIdx.x] + 1; }
int main(int argc, char** argv) {
  float *a, *b, *c;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  cudaMalloc(&c, 256);
  int n = atoi(argv[1]);
  cudaStream_t s[1];
  cudaStreamCreate(s);
  if (n > 3) up<<<1, 64, 0, s[0]>>>(b, a); else up<<<1, 64, 0, s[0]>>>(c, a);
  up<<<1, 64, 0, s[0]>>>(a, b);
  cudaDeviceSynchronize();
}
"""


def test_the_branches_of_a_question_do_not_change_places(tmp_path: Path) -> None:
    serial, other = tmp_path / "serial.cu", tmp_path / "other.cu"
    serial.write_text(BRANCHES.replace("s[0]", "s").replace("s[1]", "s").replace("Create(s)", "Create(&s)"))
    other.write_text(BRANCHES)
    assert not any(one.problems for one in verify_files(str(serial), str(other), Options()))
    other.write_text(BRANCHES.replace("n > 3", "n <= 3"))
    assert any(one.problems for one in verify_files(str(serial), str(other), Options()))
    other.write_text(BRANCHES.replace("(b, a); else", "(c, a); else").replace("(c, a);\n", "(b, a);\n"))
    assert any(one.problems for one in verify_files(str(serial), str(other), Options()))


def test_the_cases_of_a_switch_do_not_change_places(tmp_path: Path) -> None:
    serial, other = tmp_path / "serial.cu", tmp_path / "other.cu"
    cases = "switch (n) { case 1: up<<<1, 64, 0, s[0]>>>(b, a); break; case 2: up<<<1, 64, 0, s[0]>>>(c, a); }"
    text = BRANCHES.replace(BRANCHES[BRANCHES.index("  if (n > 3)") : BRANCHES.index("  up<<<1, 64, 0, s[0]>>>(a, b)")],
                            f"  {cases}\n")  # fmt: skip
    serial.write_text(text.replace("s[0]", "s").replace("s[1]", "s").replace("Create(s)", "Create(&s)"))
    other.write_text(text)
    assert not any(one.problems for one in verify_files(str(serial), str(other), Options()))
    other.write_text(text.replace("case 1", "case 3").replace("case 2", "case 1").replace("case 3", "case 2"))
    assert any(one.problems for one in verify_files(str(serial), str(other), Options()))


AGAIN = """\
#include <cstdlib>
__global__ void up(float* y, const float* x, int n) { if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x] + 1; }
bool asked;
struct Sizes { int n, steps; double scale; };
Sizes parse(char** argv) { return {atoi(argv[1]), atoi(argv[2]), 1}; }
int main(int argc, char** argv) {
  const Sizes sizes = parse(argv);
  float *a, *b;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  cudaStream_t s, t;
  cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);
  cudaEvent_t there, back;
  cudaEventCreate(&there);
  cudaEventCreate(&back);
  for (int i = 0; i < sizes.steps; ++i) {
    up<<<1, 64, 0, s>>>(b, a, sizes.n);
    cudaEventRecord(there, s);
    cudaStreamWaitEvent(t, there, 0);
    up<<<1, 64, 0, t>>>(a, b, sizes.n);
    const bool again = i + 1 < sizes.steps;
    if (again) cudaEventRecord(back, t);
    if (again) cudaStreamWaitEvent(s, back, 0);
  }
  cudaDeviceSynchronize();
}
"""
TOLD_APART = {
    "one step more": ("const bool again = i + 1 <", "const bool again = i + 2 <"),
    "another number": ("i + 1 < sizes.steps", "i + 1 < sizes.n"),
    "the other way about": ("if (again) cudaStreamWaitEvent", "if (!again) cudaStreamWaitEvent"),
    "a variable in between": (
        "    if (again) cudaEventRecord(back, t);\n    if (again)",
        "    asked = again;\n    if (asked) cudaEventRecord(back, t);\n    asked = rand() % 2;\n    if (asked)",
    ),
    "asked anew": (
        "    if (again) cudaEventRecord(back, t);\n    if (again)",
        "    if (rand() % 2) cudaEventRecord(back, t);\n    if (rand() % 2)",
    ),
}


def test_a_question_has_one_answer_in_a_trip(tmp_path: Path) -> None:
    """The last trip needs no event for a next one; another question is another one."""
    path = tmp_path / "again.cu"
    path.write_text(AGAIN)
    found = verify_alone(str(path), Options())
    assert (found.races, found.unknown) == (0, 0)


@pytest.mark.parametrize("what", TOLD_APART)
def test_another_question_may_have_another_answer(what: str, tmp_path: Path) -> None:
    old, new = TOLD_APART[what]
    assert old in AGAIN
    path = tmp_path / "again.cu"
    path.write_text(AGAIN.replace(old, new))
    found = verify_alone(str(path), Options())
    assert found.races + found.unknown > 0


SWAPPED = {
    "rand()": "rand()",
    "counted(7)": "counted(7)",
    "cycles()": "cycles()",
    "n > 3 ? n : argc": "n > 3 ? argc : n",
    "(int)v.size()": "(v.push_back(1), (int)v.size())",
}
NUMBERS = """\
#include <cstdlib>
#include <vector>
__global__ void up(float* y, const float* x, int n) { y[threadIdx.x] = x[threadIdx.x] + n; }
int calls;
int counted(int n) { return atoi(getenv("N")) + n * ++calls; }
int cycles() { return __builtin_readcyclecounter(); }
int main(int argc, char** argv) {
  float *a, *b;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  int n = atoi(argv[1]);
  std::vector<int> v(n);
  cudaStream_t s[1];
  cudaStreamCreate(s);
  int p = FIRST, q = SECOND;
  up<<<1, 64, 0, s[0]>>>(b, a, p);
  up<<<1, 64, 0, s[0]>>>(a, b, q);
  cudaDeviceSynchronize();
}
"""


@pytest.mark.parametrize("made", SWAPPED)
def test_two_numbers_do_not_change_places(made: str, tmp_path: Path) -> None:
    serial, other = tmp_path / "serial.cu", tmp_path / "other.cu"
    text = NUMBERS.replace("FIRST", made).replace("SECOND", SWAPPED[made])
    serial.write_text(text)
    other.write_text(text.replace("a, p)", "a, r)").replace("b, q)", "b, p)").replace("a, r)", "a, q)"))
    assert any(one.problems for one in verify_files(str(serial), str(other), Options()))
    if made.endswith(("()", "(7)")) and "size" not in made:
        other.write_text(text.replace("int p", "int r = 0, p"))
        assert not any(one.problems for one in verify_files(str(serial), str(other), Options()))
