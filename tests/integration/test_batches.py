"""Launches that are given to the device many at a time: which may be late, what the proof refuses, and how it runs."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from kesco.batching import batches
from kesco.check import Run, check
from kesco.emit.batches import MARK, same_text, without_batches
from kesco.emit.prologue import batches_text
from kesco.frontend.clang import SourceFile, load
from kesco.frontend.parse import parse
from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.proving import verify_files
from kesco.session import Session
from kesco.toolchain.compile import host_arguments
from kesco.toolchain.model import Toolchain

pytestmark = pytest.mark.usefixtures("toolchain")

HEAD = """\
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>
#define CHECK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { fprintf(stderr, "%d\\n", e); exit(1); } } while (0)
#define BOTH(x) k<<<1, 1>>>(x, 0); cudaDeviceSynchronize()
__global__ void k(float* x, int i) { *x += i; }
inline void check(cudaError_t e, const char* what) { if (e != cudaSuccess) throw std::runtime_error(what); }
inline bool failed(cudaError_t e) { if (e == cudaSuccess) return false; fprintf(stderr, "no\\n"); return true; }
void unseen();
struct Guard { ~Guard() { unseen(); } };
struct Field {
  float *a, *b;
  void step(int i) { k<<<1, 1>>>(a, i); k<<<1, 1>>>(b, i); std::swap(a, b); }
  virtual void other(int i) { k<<<1, 1>>>(a, i); }
  float read() { float h; cudaMemcpy(&h, a, 4, cudaMemcpyDeviceToHost); return h; }
};
struct Other : Field { void other(int) override { cudaDeviceSynchronize(); } };
template <typename T> void each(T* x, int i) { k<<<1, 1>>>(x, i); k<<<1, 1>>>(x, i + 1); }
template <typename T> struct Held { T* x; void step(int i) { each(x, i); k<<<1, 1>>>(x, i); } };
template <typename T> void looks(T* x, int i) { k<<<1, 1>>>(x, i); cudaDeviceSynchronize(); }
static void waits() { cudaDeviceSynchronize(); }
static void often(float* x, int n) { for (int i = 0; i < n; ++i) k<<<1, 1>>>(x, i); }
static int twice(int i) { return 2 * i; }
std::atomic<int> shared;
volatile int flag;
int plain;
"""


def planned(tmp_path: Path, toolchain: Toolchain, loop: str) -> tuple[int, int, int]:
    """How many loops of `run` are batched, their launches, and in front of how many statements these are issued."""
    path = tmp_path / "program.cu"
    path.write_text(
        f"{HEAD}void run(float* x, float* y, int n, Field& f, Field* g, std::vector<float*>& v, cudaStream_t s) {{\n"
        f"  float* h = (float*)malloc(4);\n  {loop}\n  free(h);\n}}\n"
    )
    load(str(toolchain.libclang))
    arguments = host_arguments(toolchain, ())
    found = batches(parse(SourceFile(str(path), path.read_bytes(), arguments), arguments))
    loops = [one for one in found.loops if one.function == "run"]
    return len(loops), len({n for one in loops for n in one.launches}), len(found.issues)


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ("for (int i = 0; i < n; ++i) k<<<1, 1>>>(x, i);", (1, 1, 0)),
        ("for (int i = 0; i < n; ++i) { k<<<1, 1>>>(x, i); k<<<n, 1, 4>>>(y, i); std::swap(x, y); }", (1, 2, 0)),
        ("while (n-- > 0) { k<<<1, 1, 0, 0>>>(x, n); CHECK(cudaGetLastError()); }", (1, 1, 0)),
        ("do { k<<<1, 1>>>(x, n); check(cudaPeekAtLastError(), \"k\"); } while (++n < 1000);", (1, 1, 0)),
        ("for (int i = 0; i < n; ++i) { k<<<1, 1>>>(x, i); if (failed(cudaGetLastError())) return; }", (1, 1, 0)),
        ("for (int i = 0; i < n; ++i) { f.step(i); printf(\"%d\\n\", i); }", (1, 2, 0)),
        ("for (auto p : v) for (int i = 0; i < n; ++i) k<<<1, 1>>>(p, twice(i));", (1, 1, 0)),
        ("while (n-- > 0) { cudaMemset(x, 0, 4); k<<<1, 1>>>(x, n); CHECK(cudaMemset(y, 0, 4)); }", (1, 1, 0)),
        ("while (n-- > 0) { k<<<1, 1>>>(x, n); cudaMemcpy(y, x, 4, cudaMemcpyDeviceToDevice); }", (1, 1, 0)),
        ("for (int i = 0; i < n; ++i) { k<<<1, 1>>>(x, i); if (i % 99 == 0) { h[0] += f.read(); } }", (1, 1, 1)),
        ("for (int i = 0; i < n; ++i) { k<<<1, 1>>>(x, i); if (i % 99 == 0) waits(); }", (1, 1, 1)),
        ("for (int j = 0; j < n; ++j) { for (int i = 0; i < n; ++i) f.step(i); waits(); }", (1, 2, 1)),
        ("while (n-- > 0) { int m = 0; for (int j = 0; j < n; ++j) m += j; k<<<1, 1>>>(x, m); }", (1, 1, 0)),
        ("Held<float> held{x}; for (int i = 0; i < n; ++i) { each(x, i); held.step(i); }", (1, 3, 0)),
        ("for (int i = 0; i < n; ++i) looks(x, i);", (0, 0, 0)),
        # few launches, or what looks at each trip
        ("for (int i = 0; i < 3; ++i) k<<<1, 1>>>(x, i);", (0, 0, 0)),
        ("for (int i = 0; i < n; ++i) { k<<<1, 1>>>(x, i); cudaDeviceSynchronize(); }", (0, 0, 0)),
        ("for (int i = 0; i < n; ++i) { k<<<1, 1>>>(x, i); cudaMemcpy(h, x, 4, cudaMemcpyDeviceToHost); }", (0, 0, 0)),
        ("for (int i = 0; i < n; ++i) { k<<<1, 1>>>(x, i); unseen(); }", (0, 0, 0)),
        ("for (int i = 0; i < n; ++i) { k<<<1, 1>>>(x, i); ++shared; }", (0, 0, 0)),
        ("for (int i = 0; i < n; ++i) { k<<<1, 1>>>(x, i); while (flag == i) {} }", (0, 0, 0)),
        ("for (int i = 0; i < n; ++i) { k<<<1, 1>>>(x, i); while (*h == i) {} }", (0, 0, 0)),
        ("for (int i = 0; i < n; ++i) { k<<<1, 1>>>(x, i); while (plain == i) {} }", (0, 0, 0)),
        ("for (int i = 0; i < n; ++i) { k<<<1, 1>>>(x, i); Guard guard; }", (0, 0, 0)),
        ("for (int i = 0; i < n; ++i) { g->other(i); }", (0, 0, 0)),
        ("for (int i = 0; i < n; ++i) { k<<<1, 1>>>(x, i); k<<<1, 1, 0, s>>>(y, i); }", (0, 0, 0)),
        ("for (int i = 0; (waits(), i < n); ++i) k<<<1, 1>>>(x, i);", (0, 0, 0)),
        ("for (int i = 0; i < n; waits(), ++i) k<<<1, 1>>>(x, i);", (0, 0, 0)),
        ("for (int i = 0; i < n; ++i) { BOTH(x); }", (0, 0, 0)),
        ("for (int i = 0; i < n; ++i) { try { k<<<1, 1>>>(x, i); } catch (...) { waits(); } }", (0, 0, 0)),
        ("for (int i = 0; i < n; ++i) { if (i == 7) goto end; k<<<1, 1>>>(x, i); }\n  end:", (0, 0, 0)),
        ("for (int i = 0; i < n; ++i) { k<<<1, 1>>>(x, i); if (*h > 1) { unseen(); exit(0); } waits(); }", (0, 0, 0)),
        ("std::future<int> later; for (int i = 0; i < n; ++i) { k<<<1, 1>>>(x, i); n += later.get(); }", (0, 0, 0)),
        ("std::mutex m; for (int i = 0; i < n; ++i) { k<<<1, 1>>>(x, i); m.lock(); m.unlock(); }", (0, 0, 0)),
        ("std::function<void()> act; for (int i = 0; i < n; ++i) { k<<<1, 1>>>(x, i); act(); }", (0, 0, 0)),
        ("Guard one, two; for (int i = 0; i < n; ++i) { k<<<1, 1>>>(x, i); std::swap(one, two); }", (0, 0, 0)),
        ("auto t = std::chrono::steady_clock::now(); for (int i = 0; i < n; ++i) { k<<<1, 1>>>(x, i);"
         " t = std::chrono::steady_clock::now(); }", (0, 0, 0)),
        ("for (int i = 0; i < n; ++i) {\n#pragma omp critical\n  k<<<1, 1>>>(x, i); }", (0, 0, 0)),
    ],
)  # fmt: skip
def test_which_launches_may_be_late(
    loop: str, expected: tuple[int, int, int], toolchain: Toolchain, tmp_path: Path
) -> None:
    """Loops that are batched, launches in them, and statements in front of which they are issued."""
    found = planned(tmp_path, toolchain, loop)
    assert found == expected if expected[0] else found[0] == 0


SOURCE = """\
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>
__global__ void k(float* x, int i) { x[threadIdx.x] += i; }
static float look(const float* x) {
  float h;
  cudaMemcpy(&h, x, sizeof h, cudaMemcpyDeviceToHost);
  return h;
}
extern void (*act)();
struct Field {
  float* data;
  float first = look(data);
};
static void two(float* x, float* y, int i) {
  k<<<1, 32>>>(x, i);
  cudaMemset(y, 0, 128);
  k<<<1, 32>>>(y, i);
}
int main(int argc, char** argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 1000;
  float *x, *y, sum = 0;
  cudaMalloc(&x, 128);
  cudaMalloc(&y, 128);
  cudaMemset(x, 0, 128);
  for (int i = 0; i < n; ++i) {
    two(x, y, i);
    if (i % 50 == 49)
      sum += look(y);
    cudaMemcpy(x, y, 128, cudaMemcpyDeviceToDevice);
    std::swap(x, y);
  }
  for (int i = 0; i < n; ++i) k<<<1, 32>>>(x, i);
  printf("%g %g\\n", sum, look(x));
  cudaFree(x);
  cudaFree(y);
}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The serial program and what becomes of it."""
    path = tmp_path_factory.mktemp("batches") / "program.cu"
    path.write_text(SOURCE)
    return path, compile_file(str(path), Options()).text.decode()


@pytest.fixture(scope="module")
def session(made: tuple[Path, str]) -> Session:
    """What reads texts for the serial program."""
    return Session(str(made[0]), Options())


def test_the_output_is_what_was_meant(made: tuple[Path, str]) -> None:
    """The text behind the section, and that it becomes the input again."""
    path, text = made
    own = text[text.index("// ---- kesco: batches end") :]
    assert own.count("kesco_batch_flush();") == 1, "in front of look(y), which gets braces"
    assert re.search(r"if \(i % 50 == 49\)\s*\{\s*kesco_batch_flush\(\);[^\n]*\s*sum \+= look\(y\);\s*\}", own)
    assert own.count("<<<1, 32, 0, kesco_batch()>>>") == 3
    assert "kesco_batch_memset(y, 0, 128);" in own
    assert "kesco_batch_copy(x, y, 128, cudaMemcpyDeviceToDevice);" in own
    assert own.count("kesco_batch_trip();") == 1
    assert (own.count("KescoBatch kesco_batch_"), own.count(".end();")) == (2, 2)
    assert len(without_batches(text.encode())) == len(text.encode())
    assert same_text(text.encode(), path.read_bytes())


def test_nothing_is_batched_where_it_is_not_wanted(made: tuple[Path, str]) -> None:
    """``--launches keep``, and with what changes launches in other ways."""
    path, _ = made
    for options in (Options(launches="keep"), Options(emit="graph"), Options(fikit=True), Options(prefetch=True)):
        assert MARK.encode() not in compile_file(str(path), options).text


def test_the_command_proves_the_same(made: tuple[Path, str], tmp_path: Path) -> None:
    """``kesco verify`` accepts the output, and not one without what issues the launches."""
    path, text = made
    output = tmp_path / "output.cu"
    output.write_text(text)
    assert not [p for verdict in verify_files(str(path), str(output), Options()) for p in verdict.problems]
    output.write_text(re.sub(r"kesco_batch_flush\(\);  // kesco: in front[^\n]*", "", text))
    found = [p.message for verdict in verify_files(str(path), str(output), Options()) for p in verdict.problems]
    assert found == ["launches may be late, and 'cudaMemcpy' could tell"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (r"kesco_batch_flush\(\);  // kesco: in front[^\n]*", "", "'cudaMemcpy' could tell"),
        (r"  kesco_batch_1\.end\(\);\n", "", "'cudaMemcpy' could tell"),
        (r"kesco_batch_1\(1\)", "kesco_batch_1(2)", ""),
        (r"(kesco_batch_1\.end\(\);\n)", r"\1  k<<<1, 32, 0, kesco_batch()>>>(x, 1);\n", "SERIAL"),
        (r"kesco_batch_trip\(\);", "kesco_batch_trip();  // kesco: on \\\\\n", ""),
        (r"std::swap\(x, y\);", "std::swap(x, y); cudaDeviceSynchronize();", "'cudaDeviceSynchronize' could tell"),
        (r"    two\(x, y, i\);", "    look(x);\n    two(x, y, i);", "'cudaMemcpy' could tell"),
        (r"(static void two.*\n)", r"\1  look(x);\n", "'cudaMemcpy' could tell"),
        (r"kesco_batch_trip\(\);", "auto late = kesco_batch; late();", ""),
        (r"std::swap\(x, y\);", "Field f{x}; (void)f;", "'cudaMemcpy' could tell"),
        (r"std::swap\(x, y\);", "while (*(volatile int*)x == 1) {}", "a volatile or atomic access could tell"),
        (r"std::swap\(x, y\);", "auto f = [h = look(x)] { return h; };", "'cudaMemcpy' could tell"),
        (r"std::swap\(x, y\);", "act(); y[0] = look(x);", "'cudaMemcpy' could tell"),
        (r"std::swap\(x, y\);", "std::vector<int> one(4);", "'_ZdlPv"),
        (r"std::swap\(x, y\);", "static float first = look(x);", "'cudaMemcpy' could tell"),
        (r"for \(int i = 0; i < n; \+\+i\) \{", "for (int i = 0; look(x) < n; ++i) {", "'cudaMemcpy' could tell"),
        (r"for \(int i = 0; i < n; \+\+i\) k", "for (int i = 0; i < n; i += look(x) > 0) k", "'cudaMemcpy' could tell"),
        (r"two\(x, y, i\);", "two(x, y, i); volatile int v = i; (void)v;", "volatile"),
    ],
)
def test_what_the_proof_refuses(made: tuple[Path, str], session: Session, old: str, new: str, said: str) -> None:
    """Texts that are not what the planner writes."""
    text = made[1]
    start = text.index("// ---- kesco: batches end")
    forged = text[:start] + re.sub(old, new, text[start:], count=1)
    assert forged != text
    if said == "SERIAL":  # behind the loop a launch is one that the serial program does not have
        assert not same_text(forged.encode(), made[0].read_bytes())
        return
    if not said:  # what is not written as it should be is no batch at all, and the names are not declared
        assert without_batches(forged.encode()) == forged.encode()
        return
    problems = [one.what for one in session.late_problems(forged.encode())]
    assert any(re.search(said, what) for what in problems), problems


INDIRECT = """\
#include <cstdlib>
__global__ void k(int* p) {{ ++*p; }}
int* gp;
{static}void step() {{ k<<<1, 1>>>(gp); k<<<1, 1>>>(gp); }}
int peek() {{ int h; cudaMemcpy(&h, gp, 4, cudaMemcpyDeviceToHost); return h; }}
void unseen();
int main(int argc, char** argv) {{
  int sum = 0;
  cudaMalloc(&gp, 4);
  for (int i = 0; i < argc; ++i) {{
    for (int j = 0; j < argc; ++j) step();
    if (i % 10 == 0) {{
      sum += peek();
      unseen();
      sum += peek();
    }}
  }}
  return sum;
}}
"""


@pytest.mark.parametrize(("static", "batches"), [("static ", True), ("", False)])
def test_code_that_is_not_seen_may_launch(static: str, batches: bool, tmp_path: Path) -> None:
    """It may call what leaves launches late, so behind it there may be some."""
    path = tmp_path / "program.cu"
    path.write_text(INDIRECT.format(static=static))
    assert (MARK.encode() in compile_file(str(path), Options()).text) == batches


def test_functions_of_headers_stay(tmp_path: Path) -> None:
    """Another file may have the same function without batches, and the linker takes one of them."""
    (tmp_path / "step.h").write_text(
        "__global__ void k(float* x) { ++*x; }\ninline void step(float* x) { k<<<1, 1>>>(x); k<<<1, 1>>>(x); }\n"
    )
    path = tmp_path / "program.cu"
    path.write_text('#include "step.h"\nvoid run(float* x, int n) { for (int i = 0; i < n; ++i) step(x); }\n')
    result = compile_file(str(path), Options(headers="output"))
    assert not result.batches and not result.headers


def test_a_changed_section_is_code_like_any_other(made: tuple[Path, str]) -> None:
    """The proof compares the section byte by byte; macros that would change it are put away."""
    text = made[1].replace("capturing ? stream : nullptr", "stream")
    assert without_batches(text.encode()) == text.encode()
    assert MARK in batches_text(1, (), ("count",), streams=False)
    assert "#undef count" in batches_text(1, (), ("count",), streams=False)


def test_pairs_of_braces_are_told_apart() -> None:
    """Only a pair around something that had none may be more."""
    assert same_text(b"if (a) { b(); }", b"if (a) b();")
    assert same_text(b"for (;;) { if (a) { b(); } }", b"for (;;) { if (a) b(); }")
    assert not same_text(b"if (a) { b(); }", b"if (a) c();")
    assert not same_text(b"{ if (a) { b(); c(); }", b"if (a) b(); c();")
    assert not same_text(b"if (a) b(); }", b"if (a) b();")


@pytest.mark.parametrize("when", ["now", "off"])
def test_a_run_makes_the_same_launches(
    made: tuple[Path, str], when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a runtime that needs no GPU: as many operations as the serial program, none without order."""
    monkeypatch.setenv("KESCO_BATCHES", when)
    counts = []
    for name, text in (("serial", SOURCE), ("batched", made[1])):
        path = tmp_path / f"{name}.cu"
        path.write_text(text)
        report = check(str(path), Run(arguments=("300",)), Options())
        assert not report.diagnostics
        counts.append(report.operations)
    assert counts[0] == counts[1]


# ---- as it runs ------------------------------------------------------------------------------------------------------

RUNTIME = """\
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>
struct Graph { std::vector<int> nodes; };
struct Stream { Graph* capture = nullptr; bool broken = false; };
using cudaStream_t = Stream*;
using cudaGraph_t = Graph*;
using cudaGraphExec_t = Graph*;
using cudaGraphNode_t = int*;
struct cudaGraphEdgeData;
enum cudaError_t { cudaSuccess, cudaErrorUnknown, cudaErrorLaunch };
enum { cudaEnableDefault, cudaStreamNonBlocking, cudaStreamCaptureModeRelaxed };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive, Invalid };
enum cudaDriverEntryPointQueryResult { None };
struct cudaGraphExecUpdateResultInfo { int result; };
#define CUDART_VERSION 13000
std::string fails;
int until = 1 << 30, calls;  // the calls of that name that do not fail
thread_local cudaError_t last = cudaSuccess;
std::vector<int> done;  // what the device has been given
int graphs, instantiated, updated, context = 1;
cudaError_t result(const char* name) {
  return fails == name && ++calls > until ? last = cudaErrorUnknown : cudaSuccess;
}
cudaError_t cudaGetLastError() { const cudaError_t was = last; last = cudaSuccess; return was; }
cudaError_t cudaPeekAtLastError() { return last; }
int query(void*, unsigned long long* id) { *id = context; return 0; }
cudaError_t cudaGetDriverEntryPointByVersion(
    const char*, void** entry, unsigned, int, cudaDriverEntryPointQueryResult*) {
  *entry = reinterpret_cast<void*>(query);
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  const char* wanted = std::getenv("DRIVER");
  *version = wanted != nullptr ? std::atoi(wanted) : 13000;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, int) { *s = new Stream; return result("create"); }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamBeginCapture(cudaStream_t s, int) {
  if (result("begin") != cudaSuccess) return last;
  s->capture = new Graph;
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(
    cudaStream_t s, cudaStreamCaptureStatus* status, unsigned long long*, cudaGraph_t* graph, const cudaGraphNode_t**,
    const cudaGraphEdgeData**, std::size_t*) {
  if (s->broken || result("info") != cudaSuccess) return last = cudaErrorUnknown;
  *status = cudaStreamCaptureStatusActive;
  *graph = s->capture;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus* status) {
  *status = s->broken ? Invalid : s->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* graph) {
  const bool broken = s->broken;
  *graph = s->capture;
  s->capture = nullptr;
  s->broken = false;
  if (!broken) return cudaSuccess;
  delete *graph;
  *graph = nullptr;
  return last = cudaErrorUnknown;
}
cudaError_t cudaGraphClone(cudaGraph_t* to, cudaGraph_t from) { *to = new Graph(*from); return result("clone"); }
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, void*, std::size_t* count) {
  *count = graph->nodes.size();
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, int) {
  ++instantiated;
  *made = new Graph(*graph);
  return result("instantiate");
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo*) {
  ++updated;
  if (exec->nodes.size() != graph->nodes.size() || result("update") != cudaSuccess) return last = cudaErrorUnknown;
  *exec = *graph;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t) {
  if (result("launch") != cudaSuccess) return last;
  ++graphs;
  done.insert(done.end(), exec->nodes.begin(), exec->nodes.end());
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { delete exec; return cudaSuccess; }
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { delete graph; return cudaSuccess; }
struct dim3 { unsigned x; };
enum cudaGraphNodeType {
  cudaGraphNodeTypeEmpty, cudaGraphNodeTypeKernel, cudaGraphNodeTypeMemset, cudaGraphNodeTypeMemcpy
};
struct cudaKernelNodeParams { void* func; dim3 gridDim, blockDim; void** kernelParams; unsigned sharedMemBytes; };
struct cudaMemsetParams { void* dst; std::size_t pitch; unsigned value, elementSize; std::size_t width, height; };
struct cudaMemcpy3DParms { int none; };
cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t, cudaMemsetParams*) { return cudaErrorUnknown; }
cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t, cudaMemcpy3DParms*) { return cudaErrorUnknown; }
cudaError_t cudaMemset2DAsync(void*, std::size_t, int, std::size_t, std::size_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms*, cudaStream_t) { return cudaSuccess; }
Graph* walked;
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* node, std::size_t* count) {
  walked = graph;
  *node = graph->nodes.data();
  *count = graph->nodes.empty() ? 0 : 1;
  return cudaSuccess;
}
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* next, void*, std::size_t* count) {
  *next = node + 1;
  *count = *next < walked->nodes.data() + walked->nodes.size();
  return cudaSuccess;
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t, cudaGraphNodeType* type) {
  *type = cudaGraphNodeTypeKernel;
  return cudaSuccess;
}
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* what) {
  what->func = node;
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(void* node, dim3, dim3, void**, std::size_t, cudaStream_t) {
  done.push_back(*static_cast<int*>(node));
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) { delete s; return cudaSuccess; }
void launch(cudaStream_t s, int number) {  // less than 0: one that fails
  if (s != nullptr && s->broken) { last = cudaErrorLaunch; return; }
  if (number < 0 && s != nullptr) s->broken = true;
  if (number < 0) { last = cudaErrorLaunch; return; }
  (s != nullptr ? s->capture->nodes : done).push_back(number);
}
"""
DRIVER = """\
// Trips of two launches; prints whether all has been done in order where it is looked at, and what was called.
std::vector<int> expected;
struct Ends {
  ~Ends() {
    if (fails == "exit") std::printf("%s at the end\\n", done == expected ? "good" : "LOST");
  }
};
int main(int, char** arguments) {
  const int trips = std::atoi(arguments[1]), every = std::atoi(arguments[2]), bad = std::atoi(arguments[3]);
  const bool asks = arguments[4][0] == 'a';
  fails = arguments[5];
  until = std::atoi(arguments[6]);
  static Ends ends;
  bool good = true;
  int errors = 0;
  for (int round = 0; round < 3; ++round) {
    KescoBatch kesco_batch_0(0);
    for (int i = 0; i < trips; ++i) {
      kesco_batch_trip();
      for (int number : {2 * i, bad > 0 && i % bad == bad - 1 ? -1 : 2 * i + 1}) {
        launch(kesco_batch(), number);
        if (number >= 0) expected.push_back(number);
        if (asks && cudaGetLastError() != cudaSuccess) ++errors;
      }
      if (every > 0 && i % every == every - 1) {
        kesco_batch_flush();
        good = good && done == expected;
      }
      if (fails == "context" && i == until) ++context;
      if (fails == "exit" && i == until) std::exit(0);
      if (fails == "waits" && i == until)  // for the launches so far, in trips that launch nothing
        for (int wait = 0; wait < 1000 && done != expected; ++wait) kesco_batch_trip();
      if (fails == "waits" && i == until) good = good && done == expected;
    }
    kesco_batch_0.end();
    good = good && done == expected;
  }
  std::printf("%s errors %d left %d graphs %s made %d\\n", good ? "good" : "LOST", errors, last,
              graphs > 0 ? "some" : "none", instantiated);
}
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Path:
    """A program with batches on a runtime of its own, in which a launch that fails ends a capture."""
    folder = tmp_path_factory.mktemp("running")
    (folder / "cuda_runtime.h").write_text("")
    source, program = folder / "program.cpp", folder / "program"
    section = batches_text(2, (), (), streams=False)
    source.write_text(f"{RUNTIME}{section}{DRIVER}")
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", f"-I{folder}", "-pthread"]
    subprocess.run(["g++", *flags, str(source), "-o", str(program)], check=True)
    return program


def run(program: Path, *arguments: object, **environment: str) -> str:
    env = os.environ | {"KESCO_BATCHES": "now"} | environment
    done = subprocess.run([program, *map(str, arguments)], env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("trips", [0, 1, 3, 31, 32, 33, 200])
@pytest.mark.parametrize("every", [0, 1, 7, 40])
def test_no_launch_is_lost(running: Path, trips: int, every: int) -> None:
    """Whenever somebody looks, all has been given to the device, in order."""
    assert run(running, trips, every, 0, "-", "-", 0).startswith("good errors 0 left 0")


@pytest.mark.parametrize("asks", ["a", "-"])
@pytest.mark.parametrize("bad", [1, 2, 5, 40])
def test_a_launch_that_fails_fails_alone(running: Path, bad: int, asks: str) -> None:
    """What was captured before it is launched, what comes behind it is, and each error is told once."""
    found = run(running, 100, 0, bad, asks, "-", 0)
    assert found.startswith(f"good errors {3 * (100 // bad)} left 0" if asks == "a" else "good errors 0 left")
    assert asks == "a" or " left 0" not in found


@pytest.mark.parametrize("call", ["begin", "info", "create", "update", "context", "instantiate", "launch"])
@pytest.mark.parametrize("until", [0, 1, 3])
def test_where_cuda_refuses_the_launches_are_made_as_they_stand(running: Path, call: str, until: int) -> None:
    """Nothing is lost, and no error of kesco's own is left for the program to find."""
    assert run(running, 200, 20, 0, "-", call, until).startswith("good errors 0 left 0")


def test_what_was_captured_beside_a_failing_launch_and_cannot_be_copied_is_an_error(running: Path) -> None:
    """There is no memory: the program finds an error, as where a launch fails."""
    found = run(running, 200, 0, 50, "-", "clone", 0)
    assert found.startswith("LOST") and " left 0" not in found


@pytest.mark.parametrize(("environment", "graphs"), [({}, "some"), ({"KESCO_BATCHES": "off"}, "none"),
                                                     ({"DRIVER": "12020"}, "none")])  # fmt: skip
def test_when_launches_are_batched(running: Path, environment: dict[str, str], graphs: str) -> None:
    """Not where nobody wants it, nor where a kernel that was never launched cannot be captured."""
    assert f"graphs {graphs}" in run(running, 200, 0, 0, "-", "-", 0, **environment)


@pytest.mark.parametrize("until", [0, 5, 40, 100])
def test_what_is_late_is_made_before_the_process_ends(running: Path, until: int) -> None:
    """A static object that is gone then finds all of it done."""
    assert run(running, 200, 0, 0, "-", "exit", until) == "good at the end"


@pytest.mark.parametrize("until", [0, 5, 40, 100])
def test_a_host_that_waits_in_trips_gets_what_it_waits_for(running: Path, until: int) -> None:
    """Plain memory that a kernel writes, and a loop that launches no more than so many ahead."""
    assert run(running, 200, 0, 0, "-", "waits", until).startswith("good")


def test_graphs_are_used_again(running: Path) -> None:
    """One for each number of launches: full ones, and what is left at the end."""
    assert run(running, 200, 0, 0, "-", "-", 0).endswith("made 2")
    assert run(running, 200, 0, 0, "-", "-", 0, KESCO_BATCHES="now").startswith("good")
