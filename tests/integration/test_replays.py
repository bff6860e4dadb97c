"""Graphs in the output: the proof refuses what a replay must not leave out, and the run time never loses work."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from kesco.check import Run, observe, prepare, record
from kesco.emit.prologue import Parts, prologue
from kesco.errors import VerificationError
from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.proving import verify, verify_files
from kesco.session import Session

pytestmark = pytest.mark.usefixtures("toolchain")

WORKLOADS = Path(__file__).resolve().parents[2] / "workloads"
SOURCE = """\
#include <cstdio>
struct Settings { int blocks; float scale; };
__global__ void fill(float* x, float value, long n) { if (threadIdx.x < n) x[threadIdx.x] = value; }
__global__ void add(float* x, const float* y) { x[threadIdx.x] += y[threadIdx.x]; }
int main(int argc, char** argv) {
  const Settings settings = {argc, 2.5f};
  const dim3 block(64);
  const long n = 10 * argc;
  float *part[2], *x, *y;
  int counter = 0;
  for (int i = 0; i < 2; ++i) cudaMalloc(&part[i], 4096);
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  for (int step = 0; step < argc; ++step) {
    for (int i = 0; i < 2; ++i) fill<<<settings.blocks, block>>>(part[i], settings.scale, n);
    cudaMemset(y, 0, 4096);
    add<<<1, block>>>(x, part[0]);
    add<<<1, block>>>(y, part[1]);
    add<<<1, block>>>(x, y);
  }
  cudaDeviceSynchronize();
  std::printf("%d\\n", counter);
  return 0;
}
"""
HEAD = re.compile(r"while \(kesco_replay\(kesco, 0, kesco->stream\[0\], (.*)\)\) \{")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The serial program and what becomes of it."""
    path = tmp_path_factory.mktemp("replays") / "program.cu"
    path.write_text(SOURCE)
    return path, compile_file(str(path), Options(emit="graph")).text.decode()


@pytest.fixture(scope="module")
def proof(made: tuple[Path, str]):  # type: ignore[no-untyped-def]
    """What the proof says of a text: nothing, or its messages."""
    path, _ = made
    results = {}

    def observe(name: str, value: object) -> None:
        results[name] = value

    compile_file(str(path), Options(emit="graph"), observe)
    session = Session(str(path), Options(emit="graph"))

    def check(text: str) -> list[str]:
        try:
            verify(session, results["functions"], text.encode())  # type: ignore[arg-type]
        except VerificationError as error:
            return [d.message for d in error.diagnostics]
        return []

    return check


def values(text: str) -> list[str]:
    found = HEAD.search(text)
    assert found is not None, text
    return found[1].split(", ")


def test_the_output_is_proven(made: tuple[Path, str], proof) -> None:  # type: ignore[no-untyped-def]
    _, text = made
    assert values(text) == ["settings.blocks", "block", "part", "settings.scale", "n", "y", "x"]
    assert proof(text) == []


@pytest.mark.parametrize("dropped", range(7))
def test_each_value_is_needed(made: tuple[Path, str], proof, dropped: int) -> None:  # type: ignore[no-untyped-def]
    _, text = made
    known = values(text)
    left = ", ".join(known[:dropped] + known[dropped + 1 :])
    found = proof(HEAD.sub(f"while (kesco_replay(kesco, 0, kesco->stream[0], {left})) {{", text))
    assert any(f"'{known[dropped].partition('.')[0]}' is not among the values" in message for message in found)


def test_each_record_and_wait_is_needed(made: tuple[Path, str], proof) -> None:  # type: ignore[no-untyped-def]
    _, text = made
    lines = text.splitlines(keepends=True)
    start = next(n for n, line in enumerate(lines) if HEAD.search(line))
    found = [n for n in range(start, len(lines)) if re.search(r"cudaEventRecord|cudaStreamWaitEvent", lines[n])]
    assert len(found) >= 2
    for one in found:
        assert proof("".join(lines[:one] + lines[one + 1 :])), lines[one]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("block, 0, kesco->stream[0]>>>(x, part[0])", "block>>>(x, part[0])", "on a stream that is not captured"),
        ("kesco_memset(y, 0, 4096, ", "cudaMemset(y, 0, 4096); //", "on a stream that is not captured"),
        ("      add<<<1, block", "      ++counter;\n      add<<<1, block", "lives on behind a replay"),
        ("      add<<<1, block", '      std::printf("again");\n      add<<<1, block', "would be left out"),
        ("      add<<<1, block", "      if (n > 3) break;\n      add<<<1, block", "control may leave a replay"),
        ("      add<<<1, block", "      cudaDeviceSynchronize();\n      add<<<1, block", "cannot be captured"),
        (
            "      add<<<1, block",
            "      cudaMemPrefetchAsync(x, 4096, cudaMemLocation{}, 0, kesco->stream[0]);\n      add<<<1, block",
            "cannot be captured",
        ),
        (
            "      add<<<1, block",
            "      kesco_prefetch(kesco, x, kesco->stream[0]);\n      add<<<1, block",
            "would be left out",
        ),
        ("      add<<<1, block", "      static int k = 0;\n      add<<<1, block", "not only this replay's"),
        (
            "      add<<<1, block",
            "      int& k = counter;\n      k = 7;\n      add<<<1, block",
            "not only this replay's",
        ),
        ("kesco_replay(kesco, 0,", "kesco_replay(kesco, 1,", "no number of its own"),
        ("kesco_replay(kesco, 0,", "kesco_replay(kesco, argc,", "no number of its own"),
        ("while (kesco_replay(", "if (kesco_replay(", "not the condition of a loop"),
        ("while (kesco_replay(", "while (kesco_replay_alone(", "may run before"),
        ("kesco_replay(kesco, 0, kesco->stream[0]", "kesco_replay(kesco, 0, cudaStreamLegacy", "not captured"),
        ("      add<<<1, block", "      if (*argv[0] > 3)\n      add<<<1, block", "not among those"),
    ],
)
def test_what_a_replay_must_not_do(made: tuple[Path, str], proof, old: str, new: str, said: str) -> None:  # type: ignore[no-untyped-def]
    _, text = made
    prologue_, mark, program = text.partition("// ---- kesco: end")
    assert old in program
    found = proof(prologue_ + mark + program.replace(old, new, 1))
    assert any(said in message for message in found), found


def test_two_replays_of_one_number(made: tuple[Path, str], proof) -> None:  # type: ignore[no-untyped-def]
    _, text = made
    loop = text[text.index("    while (kesco_replay(") : text.index("  cudaDeviceSynchronize();\n  std::printf")]
    inside = loop[: loop.rindex("  }\n")]
    assert any("no number of its own" in m for m in proof(text.replace(inside, inside + inside)))


def test_the_command_proves_the_same(made: tuple[Path, str], tmp_path: Path) -> None:
    path, text = made
    (tmp_path / "good.cu").write_text(text)
    (tmp_path / "bad.cu").write_text(text.replace("settings.scale, n, y, x))", "settings.scale, n, y))"))
    good = verify_files(str(path), str(tmp_path / "good.cu"), Options())
    assert not any(one.problems for one in good)
    bad = verify_files(str(path), str(tmp_path / "bad.cu"), Options())
    assert any("'x' is not among" in d.message for one in bad for d in one.problems)


@pytest.mark.parametrize(("name", "emit"), [("vec", "auto"), ("hits", "graph")])
def test_a_run_has_no_races(tmp_path: Path, name: str, emit: str) -> None:
    source = WORKLOADS / name / "serial.cu"
    text = compile_file(str(source), Options(emit=emit)).text
    assert b"kesco_replay" in text
    (tmp_path / "program.cu").write_bytes(text)
    dry = prepare(str(tmp_path / "program.cu"), (), Options(flags=(f"-I{source.parent}",)), tmp_path)
    report = observe(dry, Run(("--iters", "40", "--n", "64", "--no-check"), limit=60))
    assert [d.message for d in report.diagnostics] == []


# ---- which statements ------------------------------------------------------------------------------------------------


def replayed(tmp_path: Path, body: str, head: str = "") -> int:
    path = tmp_path / "one.cu"
    path.write_text(
        "#include <cstdio>\n#include <cstdlib>\n#include <vector>\n"
        "__global__ void k(float* x, int n = 1) { x[threadIdx.x] *= n; }\n"
        f"struct Pair {{ int a; int b : 3; volatile int v; int* p; }};\nstruct List {{ List* next; int a; }};\n"
        "struct Fixed { static int n; };\nint Fixed::n = 3;\nint same = 1;\nnamespace inner { int same = 2; }\n"
        f"{head}\n"
        "int main(int argc, char** argv) {\n  float *x, *y;\n  cudaMalloc(&x, 64);\n  cudaMalloc(&y, 64);\n"
        "  Pair pair = {argc, 1, 2, nullptr};\n  std::vector<int> v(argc);\n"
        f"  List* l = argc > 1 ? new List() : nullptr;\n  char variable[argc];\n  Fixed fixed;\n{body}\n"
        "  cudaDeviceSynchronize();\n  return 0;\n}\n"
    )
    result = compile_file(str(path), Options(emit="graph"))
    assert any(one.rewritten for one in result.functions), [d.message for d in result.diagnostics]
    return sum(len(one.plan.replays) for one in result.functions)


def in_loop(statements: str) -> str:
    return f"  for (int s = 0; s < argc; ++s) {{\n    {statements}\n  }}"


TWO = "k<<<1, 1>>>(x, {0});\n    k<<<1, 1>>>(y, {0});"


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (in_loop(TWO.format("argc")), 1),
        (in_loop(TWO.format("pair.a")), 1),
        (in_loop(TWO.format("pair.b")), 1),
        (in_loop(TWO.format("3 * argc + 1")), 1),
        (in_loop(TWO.format("s")), 1),  # another value each time: it is compared, and runs as it stands
        (in_loop(TWO.format("pair.v")), 0),  # volatile
        (in_loop(TWO.format("*pair.p")), 0),
        (in_loop(TWO.format("v[s]")), 0),
        (in_loop(TWO.format("std::rand()")), 0),
        (in_loop("k<<<1, 1>>>(x);\n    k<<<1, 1>>>(y);"), 0),  # an argument that is not written
        (in_loop("k<<<1, 1>>>(x, 1);\n    v[0]++;\n    k<<<1, 1>>>(y, 2);"), 0),
        (in_loop('k<<<1, 1>>>(x, 1);\n    std::puts("");\n    k<<<1, 1>>>(y, 2);'), 0),
        (in_loop("const int m = argc / 2;\n    k<<<1, 1>>>(x, m);\n    k<<<1, 1>>>(y, m);"), 1),
        (in_loop("k<<<1, 1>>>(x, 1);\n    int m = 2;\n    k<<<1, 1>>>(y, m);\n    v[0] = m;"), 0),
        (in_loop("k<<<1, 1>>>(x, 1); k<<<1, 1>>>(y, 2);"), 1),
        (in_loop("cudaMemset(x, 0, 64);\n    k<<<1, 1>>>(y, 2);\n    v[0]++;\n    k<<<1, 1>>>(x, 2);"), 0),  # too few
        (TWO.format("argc"), 0),  # only once
        ("  for (int s = 0; s < argc; ++s) { k<<<1, 1>>>(x, 1); k<<<1, 1>>>(y, 1); }", 0),  # not on lines of their own
        (in_loop("for (int j = 0; j < argc; ++j) {\n    k<<<1, 1>>>(x, j);\n    k<<<1, 1>>>(y, 1);\n    }"), 1),
        (in_loop(TWO.format("sizeof(variable)")), 0),  # another one each time the array is made
        (in_loop("k<<<1, 1>>>(x, same);\n    {\n    using inner::same;\n    k<<<1, 1>>>(y, same);\n    }"), 0),
        (in_loop(TWO.format("Fixed::n")), 1),
        (in_loop(TWO.format("fixed.n")), 0),  # 'n' says nothing there
        (in_loop(TWO.format("l->a")), 1),  # values are read ahead of the statements, which follow the pointer
        (in_loop(TWO.format("l->next->a")), 1),
        (in_loop(TWO.format("argc > 2 ? l->a : 1")), 0),  # perhaps: it may point to nothing
        (in_loop(TWO.format("l && l->a")), 0),
        (in_loop("k<<<1, 1>>>(x, l->a);\n    if (argc > 2) k<<<1, 1>>>(y, l->a);"), 1),  # followed before
        (in_loop("k<<<1, 1>>>(x, l->a);\n    if (argc > 2) k<<<1, 1>>>(y, l->next->a);"), 0),
        (in_loop("for (int j = 0; j < argc; ++j) {\n    k<<<1, 1>>>(x, j);\n    k<<<1, 1>>>(y, l->a);\n    }"), 1),
        (in_loop("for (int j = 0; j < l->a; ++j) {\n    k<<<1, 1>>>(x, j);\n    k<<<1, 1>>>(y, l->a);\n    }"), 1),
    ],
)
def test_which_statements_become_a_graph(tmp_path: Path, body: str, count: int) -> None:
    assert replayed(tmp_path, body) == count


def test_what_is_compared_through_a_pointer_is_there(tmp_path: Path) -> None:
    """The proof by itself: what is read ahead of the statements must be read by them, whatever they decide."""
    serial, good, bad = (tmp_path / f"{name}.cu" for name in ("serial", "good", "bad"))
    serial.write_text(
        "struct List { List* next; int a; };\n__global__ void k(float* x, int n) { x[threadIdx.x] *= n; }\n"
        "int main(int argc, char**) {\n  List* l = argc > 1 ? new List() : nullptr;\n  float *x, *y;\n"
        "  cudaMalloc(&x, 64);\n  cudaMalloc(&y, 64);\n  for (int s = 0; s < argc; ++s) {\n"
        "    k<<<1, 1>>>(x, l->a);\n    if (argc > 2) k<<<1, 1>>>(y, l->a);\n  }\n  cudaDeviceSynchronize();\n}\n"
    )
    text = compile_file(str(serial), Options(emit="graph")).text.decode()
    assert "kesco_replay(kesco, 0, kesco->stream[0], x, l->a, argc, y)" in text
    good.write_text(text)
    bad.write_text(text.replace(">>>(x, l->a);", ">>>(x, 1);"))
    assert not any(one.problems for one in verify_files(str(serial), str(good), Options()))
    found = [d.message for one in verify_files(str(serial), str(bad), Options()) for d in one.problems]
    assert any("what is compared may not be there" in message for message in found), found


# ---- as it runs ------------------------------------------------------------------------------------------------------

RUNTIME = """\
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
struct Clock {  // advanced by hand
  using duration = std::chrono::microseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Clock>;
  static constexpr bool is_steady = true;
  static long ticks;
  static time_point now() { return time_point(duration(ticks)); }
};
long Clock::ticks = 0;
struct Graph { int nodes; int streams; int roots; char value; };
struct Stream { Graph* capture; };
struct Event { Graph* capture; };
using cudaStream_t = Stream*;
using cudaEvent_t = Event*;
using cudaGraph_t = Graph*;
using cudaGraphExec_t = Graph*;
enum cudaError_t { cudaSuccess, cudaErrorUnknown, cudaErrorNotReady };
enum { cudaEnableDefault, cudaEventDisableTiming, cudaStreamDefault, cudaStreamNonBlocking };
enum { cudaStreamCaptureModeRelaxed };
enum cudaDriverEntryPointQueryResult { None };
struct cudaGraphExecUpdateResultInfo { int result; };
#define CUDART_VERSION 12050
std::string fails;
cudaError_t last = cudaSuccess;
int done, captures, instantiated, updated, replayed, uploaded;
cudaError_t result(const char* name, bool bad = false) {
  return bad || fails == name ? last = cudaErrorUnknown : cudaSuccess;
}
cudaError_t cudaGetLastError() { const cudaError_t was = last; last = cudaSuccess; return was; }
cudaError_t cudaPeekAtLastError() { return last; }
ENTRY_POINTS
cudaError_t cudaGetDriverEntryPointByVersion(
    const char* name, void** entry, unsigned, int, cudaDriverEntryPointQueryResult*) {
  if (std::string(name) == "cuMemGetAddressRange") *entry = ADDRESS_RANGE;
  return cudaSuccess;
}
cudaError_t cudaFree(void*) { return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) {
  const char* wanted = std::getenv("DRIVER");
  *version = wanted != nullptr ? std::atoi(wanted) : 13000;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaStreamCreate(cudaStream_t* s) { *s = new Stream{}; return cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int* low, int* high) { *low = 0; *high = -5; return cudaSuccess; }
cudaError_t cudaStreamGetPriority(cudaStream_t, int* priority) { *priority = 0; return cudaSuccess; }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* s, int, int) { *s = new Stream{}; return result("create"); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, int) { *s = new Stream{}; return result("create"); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, int) { *e = new Event{}; return cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t* e) { *e = new Event{}; return result("timer"); }
int launched, ready;  // the streams of the latest graph, and when its time is known
char of;              // what it was captured of
float times[16];
cudaError_t cudaEventElapsedTime(float* time, cudaEvent_t, cudaEvent_t) {
  if (fails == "busy" && ++ready % 3 != 0) return last = cudaErrorNotReady;
  *time = times[launched];
  return result("elapsed");
}
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, void*, std::size_t* count) {
  *count = graph->roots;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) { e->capture = s->capture; return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  if (e->capture != nullptr && s->capture != nullptr && e->capture != s->capture) return result("", true);
  if (e->capture == nullptr && s->capture != nullptr) return result("", true);  // recorded outside
  if (e->capture != nullptr) s->capture = e->capture;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t s, int) {
  ++captures;
  if (fails == "begin") return result("begin");
  s->capture = new Graph{};
  return cudaSuccess;
}
KESCO_STREAMS_OF
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* graph) {
  *graph = s->capture;
  forget(s->capture);
  return result("end");
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, int) {
  ++instantiated;
  *made = new Graph(*graph);
  return result("instantiate");
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
  ++uploaded;
  return result("upload");
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo*) {
  ++updated;
  if (fails == "update") return result("update");
  *exec = *graph;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { delete exec; return cudaSuccess; }
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { delete graph; return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t) {
  if (fails == "replay") return result("replay");
  done += exec->nodes;
  launched = exec->streams;
  of = exec->value;
  ++replayed;
  return cudaSuccess;
}
void launch(cudaStream_t s) {
  if (fails == "launch") { result("launch"); return; }
  ++(s != nullptr && s->capture != nullptr ? s->capture->nodes : done);
}
"""
ALL_STREAMS = """\
#include <vector>
std::vector<Stream*> every;
void forget(Graph* graph) {
  for (Stream* one : every) if (one->capture == graph) one->capture = nullptr;
}
"""
DRIVER = """\
// Prints for each repetition whether a graph was launched (G) or not (-), then the calls that were made.
int main(int, char** arguments) {
  const std::string values = arguments[1];
  fails = arguments[2];
  const int slow = std::atoi(arguments[3]);
  KescoStreams* kesco = &kesco_streams();
  int expected = 0;
  for (char value : values) {
    const int before = replayed;
    const KescoStreams* outside = kesco;
    if (fails == "pending" || (fails == "later" && done > 5)) last = cudaErrorUnknown;
    while (kesco_replay(kesco, 0, kesco->stream[0], value)) {
      launch(kesco->stream[0]);
      cudaEventRecord(kesco->done[0], kesco->stream[0]);
      cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);
      launch(kesco->stream[1]);
      cudaStreamWaitEvent(kesco->stream[0], kesco->done[1], 0);  // of an earlier time
      launch(kesco->stream[0]);
      cudaEventRecord(kesco->done[1], kesco->stream[0]);
      Clock::ticks += slow;
    }
    expected += fails == "launch" ? 0 : 3;
    if (kesco != outside || done != expected) std::printf("!");
    if (fails == "launch" && cudaGetLastError() == cudaSuccess && replayed == before) std::printf("?");
    const bool own = fails == "launch" || fails == "pending" || fails == "later";
    if (!own && last != cudaSuccess) std::printf("e");  // the program's are its own
    std::printf(replayed > before ? "G" : "-");
    last = cudaSuccess;
  }
  std::printf(" %d %d %d %d\\n", captures, instantiated, updated, uploaded);
}
"""


FILLS = """\
// Prints for each size and kind of memory how it is set: by a kernel of so many blocks (k), or by a memset (m).
#include <initializer_list>
int main(int, char** arguments) {
  fails = arguments[1];
  Stream stream = {};
  Graph graph = {};
  kesco_streams();
  for (const std::size_t bytes : {0, 1, 1024, 1025, 16383, 16384}) {
    for (const int kind : {0, 1, 2, 3, 4}) {  // not captured; captured; managed memory; of another device; too much
      stream.capture = kind > 0 ? &graph : nullptr;
      type = kind == 2 ? cudaMemoryTypeManaged : cudaMemoryTypeDevice;
      owner = kind == 3;
      blocks = filled = 0;
      unsigned char* const to = kind == 4 ? memory + sizeof memory - bytes + 1 : memory + 5;
      std::memset(memory, 0, sizeof memory);
      last = cudaErrorUnknown;  // of an earlier launch, which is not this one's
      const cudaError_t error = kesco_memset(to, 263, bytes, &stream);
      if (error != cudaSuccess) std::printf("!");
      if (blocks > 0 && (memory[4] != 0 || memory[5] != 7 || memory[4 + bytes] != 7 || memory[5 + bytes] != 0))
        std::printf("?");
      if (filled != 1) std::printf("%d times", filled);
      if (blocks > 0) std::printf("k%d", blocks);
      else std::printf("m");
    }
    std::printf(" ");
  }
}
"""
FILLS_RUNTIME = """\
#include <cstddef>
#define __global__ [[maybe_unused]]
struct Index { unsigned x; } blockIdx, blockDim, threadIdx;
struct dim3 { explicit dim3(unsigned given) : x(given) {} unsigned x; };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
enum { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice, cudaMemoryTypeManaged };
struct cudaPointerAttributes { int type; int device; };
int type, owner, blocks, filled;
unsigned char memory[20000];
cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus* found) {
  *found = s->capture != nullptr ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) { *device = 0; return cudaSuccess; }
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* found, const void*) {
  *found = {type, owner};
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void*, int, std::size_t, cudaStream_t) { ++filled; return cudaSuccess; }
template <typename Kernel>
cudaError_t cudaLaunchKernel(Kernel* kernel, dim3 grid, dim3 block, void** arguments, std::size_t, cudaStream_t) {
  unsigned char* const to = *static_cast<unsigned char**>(arguments[0]);
  const auto value = *static_cast<unsigned char*>(arguments[1]);
  const auto bytes = *static_cast<unsigned*>(arguments[2]);
  blockDim.x = block.x;
  for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x)
    for (threadIdx.x = 0; threadIdx.x < block.x; ++threadIdx.x) kernel(to, value, bytes);
  blocks = grid.x;
  ++filled;
  return result("launch");
}
int address_range(unsigned long long* base, std::size_t* size, unsigned long long) {
  *base = reinterpret_cast<unsigned long long>(memory);
  *size = sizeof memory;
  return 0;
}
"""
TRIED = """\
// Prints for each repetition the way it ran: on several streams (S), on one (1), or as a graph (G, g if not launched).
int main(int, char** arguments) {
  const int took[] = {std::atoi(arguments[1]), std::atoi(arguments[2]), std::atoi(arguments[3])};
  const int grown = std::atoi(arguments[4]);
  KescoStreams* kesco = &kesco_streams();
  for (int i = 0; i < 60; ++i) {
    kesco = kesco_stretch(kesco, 0);
    const int before = replayed;
    while (kesco_replay_alone(kesco, 0, kesco->stream[0], took)) launch(kesco->stream[0]);
    Clock::ticks += i > 44 ? grown : took[kesco->way];
    kesco = kesco_stretch(kesco, -1);
    Clock::ticks += 5000;  // what need not be timed
    std::printf("%c", kesco->way == 2 && replayed == before ? 'g' : "S1G"[kesco->way]);
  }
  std::printf(" %d\\n", done);
}
"""

NARROWER = """\
// Prints from how many streams the graphs were captured that were launched, how often each, and all captures.
#include <set>
int main(int, char** arguments) {
  fails = arguments[1];
  const int roots = std::atoi(arguments[2]);
  for (int i = 1; i <= 10; ++i) times[i] = std::atof(arguments[i + 2]);
  KescoStreams* kesco = &kesco_streams();
  int expected = 0, since = 0, was = 0;
  for (int step = 0; step < 150; ++step) {
    const int before = replayed;
    char value = step < 60 || step % 2 == 0 ? 'a' : 'b';  // also of graphs that take turns
    if (fails == "others" && step >= 45 && step < 50) value = 'c' + step - 45;  // a graph is given to other values
    if (fails == "others" && step >= 100) value = 'f';
    while (kesco_replay_alone(kesco, 0, kesco->stream[0], value)) {
      std::set<cudaStream_t> streams;
      for (cudaStream_t stream : kesco->stream) {
        launch(stream);
        streams.insert(stream);
      }
      if (Graph* graph = kesco->stream[0]->capture) {
        graph->value = value;
        graph->streams = streams.size();
        graph->roots = roots;
      }
    }
    if (done != (expected += 10) || (replayed > before && of != value) || last != cudaSuccess) std::printf("!");
    if (was != launched && since > 0) std::printf("%dx%d ", was, since);
    since = was == launched ? since + 1 : 1;
    was = launched;
  }
  std::printf("%dx%d %d\\n", was, since, captures);
}
"""


def built(
    folder: Path, stretches: int, driver: str, streams: int = 3, fills: bool = False, ranks: tuple[int, ...] = ()
) -> Path:
    """The prologue on a runtime that only counts."""
    text = prologue(streams, 2, Parts(stretches=stretches, replays=1, fills=fills, ranks=ranks))
    text = (FILLS_RUNTIME if fills else "") + text
    text = text.replace("std::chrono::steady_clock", "Clock")
    range_ = "int address_range(unsigned long long*, std::size_t*, unsigned long long);" if fills else ""
    runtime = RUNTIME.replace("ENTRY_POINTS", range_)
    runtime = runtime.replace("ADDRESS_RANGE", "reinterpret_cast<void*>(address_range)" if fills else "nullptr")
    runtime = runtime.replace("KESCO_STREAMS_OF", ALL_STREAMS).replace(
        "*s = new Stream{};", "*s = new Stream{}; note(*s);"
    )
    runtime = runtime.replace("struct Event", "void note(Stream*);\nstruct Event", 1)
    (folder / "replays.cpp").write_text(runtime + "void note(Stream* one) { every.push_back(one); }\n" + text + driver)
    subprocess.run(
        ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-pthread", "replays.cpp", "-o", "replays"],
        cwd=folder,
        check=True,
    )
    return folder / "replays"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("replays"), 0, DRIVER)


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("tried"), 1, TRIED)


@pytest.fixture(scope="module")
def narrower(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("narrower"), 0, NARROWER, streams=10)


# Times on one to ten streams, in microseconds.
SHORT = (50.3, 28.6, 24.5, 19.9, 18.4, 17.3, 16.5, 15.6, 16.4, 17.6)
SHORTER = (23.4, 15.4, 13.0, 11.9, 12.3, 11.6, 11.9, 12.4, 13.0, 13.8)
TINY = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)
LONG = (100.0, 50.0, 34.0, 25.0, 20.0, 20.0, 20.0, 20.0, 20.0, 10.0)


@pytest.mark.parametrize(
    ("fails", "roots", "times", "wanted"),
    [
        ("", 10, SHORT, "10x42 8x12 7x13 8x83 5"),
        ("", 10, SHORTER, "10x42 8x12 7x13 6x13 5x13 6x57 8"),
        ("", 10, LONG, "10x42 8x5 10x103 3"),  # half as long again: not tried nine times
        ("", 3, LONG, "10x42 2x5 10x103 3"),
        ("", 3, TINY, "10x42 2x108 3"),  # never on one: the host would see nothing of it
        ("", 2, SHORT, "10x150 2"),
        ("plain", 10, SHORT, "10x150 2"),
        ("busy", 10, SHORT, "10x60 8x32 7x31 8x27 5"),  # the host does not wait
        ("others", 10, LONG, "10x42 8x12 10x96 7"),
        ("timer", 10, SHORT, "10x150 2"),
        ("elapsed", 10, SHORT, "10x150 2"),
    ],
)
def test_a_graph_has_as_many_branches_as_make_it_fast(
    narrower: Path, fails: str, roots: int, times: tuple[float, ...], wanted: str
) -> None:
    arguments = [fails or "-", str(roots), *map(str, times)]
    environment = {"KESCO_GRAPHS": "plain"} if fails == "plain" else {}
    found = subprocess.run([narrower, *arguments], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == wanted


def test_streams_of_several_priorities_stay_apart(tmp_path: Path) -> None:
    program = built(tmp_path, 0, NARROWER, streams=10, ranks=(0,) + (1,) * 9)
    found = subprocess.run([program, "-", "10", *map(str, SHORT)], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "10x150 2"


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, "mmmmm mk1mmm mk4mmm mk5mmm mk64mmm mmmmm"),  # only what is captured, small, and on this device
        ({"KESCO_GRAPHS": "plain"}, "mmmmm mmmmm mmmmm mmmmm mmmmm mmmmm"),
        ({"DRIVER": "12020"}, "mmmmm mmmmm mmmmm mmmmm mmmmm mmmmm"),  # no kernel is loaded during a capture
    ],
)
def test_a_small_memset_in_a_graph_is_a_kernel(tmp_path: Path, environment: dict[str, str], wanted: str) -> None:
    program = built(tmp_path, 0, FILLS, fills=True)
    done = subprocess.run([program, "-"], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == wanted


TURN = "SSSSS11111GGGGG"


@pytest.mark.parametrize(
    ("took", "environment", "wanted"),
    [
        ((20, 15, 10, 10), {}, TURN * 3 + "G" * 15),  # three turns of each way, and graphs are the fastest
        ((20, 10, 15, 10), {}, TURN * 3 + "1" * 15),
        ((10, 12, 14, 10), {}, TURN * 3 + "S" * 15),
        ((1000, 990, 985, 985), {}, TURN * 3 + "1" * 15),  # graphs gain less than a fiftieth
        ((20, 40, 10, 10), {}, "SSSSS1111GGGGG" + "SSSSSGGGGG" * 2 + "G" * 26),  # one stream is hopeless
        ((10, 11, 40, 10), {}, "SSSSS11111GGGG" + "SSSSS11111" * 2 + "S" * 26),  # graphs are hopeless
        ((5000, 1, 1, 1), {}, "S" * 60),  # more than two milliseconds: never tried
        ((20, 15, 10, 900), {}, TURN * 3 + "GGG" + "SSSSS11111GG"),  # the work has grown: tried again
        ((20, 15, 10, 10), {"KESCO_STREAMS": "3"}, "S" * 60),
    ],
)
def test_the_fastest_of_three_ways_stays(
    tried: Path, took: tuple[int, ...], environment: dict[str, str], wanted: str
) -> None:
    found = subprocess.run([tried, *map(str, took)], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.split() == [wanted, "60"]


@pytest.mark.parametrize(
    ("values", "fails", "slow", "environment", "wanted"),
    [
        ("aaaaaa", "", 10, {}, "GGGGGG 1 1 0 1"),  # captured, launched, and launched again
        ("abababab", "", 10, {}, "G-GGGGGG 2 2 0 2"),  # buffers that take turns: b when a was launched again
        ("aaaabbbbcccc", "", 10, {}, "GGGGGGGGGGGG 3 3 0 3"),
        ("aabbccddeeff", "", 10, {}, "GGGGGGGGGGGG 6 4 2 4"),  # four graphs; then those unused for longest are updated
        ("aabbccddee", "update", 10, {}, "GGGGGGGGGG 5 5 1 5"),  # an update that is refused
        ("abcdefgh", "", 10, {}, "G------- 1 1 0 1"),  # never the same: nothing more is captured
        ("aaaaaa", "", 10, {"DRIVER": "12020"}, "-GGGGG 1 1 0 1"),  # no kernel is loaded during a capture
        ("abababab", "", 10, {"DRIVER": "12020"}, "--GGGGGG 2 2 0 2"),
        ("abcdefgh", "", 10, {"DRIVER": "12020"}, "-------- 0 0 0 0"),
        ("aaaa", "begin", 10, {}, "---- 1 0 0 0"),
        ("aaaa", "create", 10, {}, "---- 0 0 0 0"),
        ("aaaa", "end", 10, {}, "---- 2 0 0 0"),  # once more, when the kernels have run
        ("aaaa", "upload", 10, {}, "GGGG 1 1 0 1"),  # which only makes launches faster
        ("aaaa", "instantiate", 10, {}, "---- 2 2 0 0"),
        ("aaaa", "replay", 10, {}, "---- 2 1 1 1"),
        ("aaaa", "launch", 10, {}, "---- 2 0 0 0"),  # the program sees the error each time
        ("aaaa", "pending", 10, {}, "---- 0 0 0 0"),  # an error of earlier work is left for the program
        ("aaaa", "later", 10, {}, "GG-- 1 1 0 1"),  # also where the graph is there: the statements may ask for it
        ("aaaaaa", "", 6000, {}, "------ 1 0 0 0"),  # takes long to issue
        ("aaaa", "", 10, {"KESCO_STREAMS": "1"}, "---- 0 0 0 0"),
        ("aaaa", "", 10, {"KESCO_STREAMS": "2"}, "---- 0 0 0 0"),
    ],
)
def test_no_work_is_lost_or_done_twice(
    running: Path, values: str, fails: str, slow: int, environment: dict[str, str], wanted: str
) -> None:
    arguments = [values, fails or "-", str(slow)]
    done = subprocess.run([running, *arguments], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == wanted


MEMSETS = """\
    cudaMemset(x, 0, 64);
    k<<<1, 1>>>(x, 1);
    cudaMemsetAsync(y, 0, 64);
    cudaMemset2D(y, 8, 0, 4, 2);
    k<<<1, 1>>>(y, 1);"""


def test_memsets_in_a_graph_may_be_kernels(tmp_path: Path) -> None:
    path = tmp_path / "one.cu"
    path.write_text(
        "#include <cstdlib>\n__global__ void k(float* x, int n) { x[threadIdx.x] *= n; }\n"
        "int main(int argc, char**) {\n  float *x, *y;\n  cudaMalloc(&x, 64);\n  cudaMalloc(&y, 64);\n"
        f"{in_loop(MEMSETS)}\n  cudaMemset(x, 0, 64);\n  cudaDeviceSynchronize();\n}}\n"
    )
    text = compile_file(str(path), Options(emit="graph")).text.decode()
    program = text.partition("// ---- kesco: end")[2]
    assert re.findall(r"(\w*[mM]emset\w*)\(", program) == [
        "kesco_memset", "kesco_memset", "cudaMemset2DAsync", "cudaMemsetAsync",
    ]  # fmt: skip
    (tmp_path / "graph.cu").write_text(text)
    assert not any(one.problems for one in verify_files(str(path), str(tmp_path / "graph.cu"), Options()))
    moved = re.sub(r"kesco_memset\(x, 0, 64, kesco->stream\[\d\]\)", "kesco_memset(x, 0, 64, kesco->stream[1])", text)
    assert moved != text
    (tmp_path / "graph.cu").write_text(moved)
    assert any(one.problems for one in verify_files(str(path), str(tmp_path / "graph.cu"), Options()))
    for other in (
        "template <class T> {} kesco_memset(T*, int, size_t, cudaStream_t)",
        "{} kesco_memset(float*, int, long)",
    ):
        own = other.format("cudaError_t") + " { return cudaSuccess; }\nint main("  # which the call might mean
        (tmp_path / "graph.cu").write_text(text.replace("int main(", own))
        found = [
            d.message for one in verify_files(str(path), str(tmp_path / "graph.cu"), Options()) for d in one.problems
        ]
        assert any("a name of kesco's own" in message for message in found)
    assert b"kesco_memset" not in compile_file(str(path), Options()).text


@pytest.mark.parametrize(
    ("macro", "call"),
    [
        ("cudaMemsetAsync(p, v, n, s) cudaMemsetAsync(p, v, (n) * sizeof(float), s)", "cudaMemsetAsync(y, 0, 16, "),
        ("cudaMemset(p, v, n) cudaMemset(p, v, (n) * sizeof(float))", "cudaMemset(y, 0, 16);"),
        ("cudaMemset(p, v, n) if (cudaMemset(p, v, n) != cudaSuccess) std::exit(1)", "cudaMemset(y, 0, 16);"),
    ],
)
def test_what_is_a_macro_keeps_its_name(tmp_path: Path, macro: str, call: str) -> None:
    """With another name the call would not go through the macro any more."""
    path = tmp_path / "one.cu"
    statement = "cudaMemsetAsync(y, 0, 16, 0);" if "Async" in call else call
    path.write_text(
        f"#include <cstdlib>\n__global__ void k(float* x, int n) {{ x[threadIdx.x] *= n; }}\n#define {macro}\n"
        "int main(int argc, char**) {\n  float *x, *y;\n  cudaMalloc(&x, 64);\n  cudaMalloc(&y, 64);\n"
        f"  for (int s = 0; s < argc; ++s) {{\n    k<<<1, 1>>>(x, argc);\n    {statement}\n    k<<<1, 1>>>(y, argc);\n"
        "    k<<<1, 1>>>(x, 2);\n  }\n  cudaDeviceSynchronize();\n}\n"
    )
    for emit in ("graph", "streams"):
        text = compile_file(str(path), Options(emit=emit, force=True)).text.decode()
        program = text.partition("// ---- kesco: end")[2] or text
        assert call in program.replace(macro, ""), program


def test_a_check_sees_graphs_as_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "asks.cu"
    path.write_text(
        '#include <cstdlib>\n#include <cstring>\nint main() {\n  const char* graphs = std::getenv("KESCO_GRAPHS");\n'
        '  return graphs != nullptr && std::strcmp(graphs, "plain") == 0 ? 3 : 4;\n}\n'
    )
    ran, _ = record(prepare(str(path), (), Options(), tmp_path), Run((), limit=60))
    assert ran.returncode == 3


def test_streams_have_no_graphs(tmp_path: Path) -> None:
    path = tmp_path / "one.cu"
    path.write_text(SOURCE)
    text = compile_file(str(path), Options(launches="keep")).text
    assert b"kesco_replay" not in text
    assert b"Graph" not in text
