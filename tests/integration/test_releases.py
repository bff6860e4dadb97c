"""Work that tells the host something comes behind all that it may look at then, and keeps nothing else waiting."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kesco.ir.compilation import FunctionResult
from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.proving import verify_files

pytestmark = pytest.mark.usefixtures("toolchain")

KERNELS = """\
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sched.h>
__global__ void first(float* q) { q[threadIdx.x] += 1; }
__global__ void second(float* q) { q[threadIdx.x] += 2; }
__global__ void third(float* q) { q[threadIdx.x] += 3; }
__global__ void use(const float* q, float* r) { r[threadIdx.x] = q[threadIdx.x]; }
__global__ void tell(int* flag) { *flag += 1; }
__global__ void warn(volatile int* flag) { *flag = 1; }
"""
MEMORY = (
    "  float *p, *x, *y;\n  cudaMallocHost(&p, 256), cudaMalloc(&x, 256), cudaMalloc(&y, 256);\n"
    "  int *f, *g;\n  cudaHostAlloc(&f, 4, 0), cudaHostAlloc(&g, 4, 0), *f = *g = 0;\n"
)
WORK = "  first<<<1, 64>>>(p);\n  second<<<1, 64>>>(x);\n"
TELL = "  tell<<<1, 1>>>((int*)f);\n"
WATCH = "  while (!*(volatile int*)f) {\n  }\n"
READ = '  std::printf("%f", p[0]);\n'
END = "  return cudaDeviceSynchronize();\n"
Edges = set[tuple[str, str]]


def planned(tmp_path: Path, inner: str, before: str = "", memory: str = MEMORY) -> tuple[Edges, str, FunctionResult]:
    """The dependences of ``main`` by labels, its text, and what was planned."""
    program = tmp_path / "flag.cu"
    program.write_text(f"{KERNELS}{before}int main() {{\n{memory}{inner}{END}}}\n")
    done = compile_file(str(program), Options())
    (tmp_path / "flag_async.cu").write_bytes(done.text)
    main = next(f for f in done.functions if f.region.function == "main")
    return edges(main), done.text.decode(), main


def edges(result: FunctionResult) -> Edges:
    """Every pair of operations of which the second comes behind the first, by the data-flow graph."""
    sites = result.dfg.region.sites
    return {(sites[a].label, sites[b].label) for a, b in result.dfg.graph.edges}


def on_a_stream(text: str, kernel: str) -> bool:
    """Whether a launch of the kernel was given a stream."""
    return re.search(rf"{kernel}<<<\d+, \d+, 0, kesco->stream\[", text) is not None


# ---- what the host may look at ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "look",
    [
        WATCH,
        "  while (!*f) sched_yield();\n",
        "  while (!((std::atomic<int>*)f)->load()) {\n  }\n",
    ],
)
def test_a_flag_comes_behind_what_the_host_reads_then_and_not_behind_the_rest(tmp_path: Path, look: str) -> None:
    found, text, _ = planned(tmp_path, f"{WORK}{TELL}{look}{READ}")
    assert ("first", "tell") in found
    assert ("second", "tell") not in found
    assert all(on_a_stream(text, one) for one in ("first", "second", "tell"))


def test_a_flag_comes_behind_what_reads_memory_that_the_host_overwrites_then(tmp_path: Path) -> None:
    found, _, _ = planned(tmp_path, f"  use<<<1, 64>>>(p, x);\n  second<<<1, 64>>>(y);\n{TELL}{WATCH}  p[0] = 5;\n")
    assert {("use", "tell"), ("second", "tell")} & found == {("use", "tell")}


def test_a_flag_comes_behind_what_is_freed_then(tmp_path: Path) -> None:
    found, _, _ = planned(tmp_path, f"{WORK}{TELL}{WATCH}  cudaFreeHost(p);\n")
    assert ("first", "tell") in found


def test_a_copy_may_be_the_flag(tmp_path: Path) -> None:
    copy = "  cudaMemcpyAsync(f, y, 4, cudaMemcpyDeviceToHost);\n"
    found, text, _ = planned(tmp_path, f"{WORK}{copy}{WATCH}{READ}")
    assert ("first", "cudaMemcpy") in found
    assert ("second", "cudaMemcpy") not in found
    assert "cudaMemcpyAsync(f, y, 4, cudaMemcpyDeviceToHost, kesco->stream[" in text


def test_a_flag_in_managed_memory(tmp_path: Path) -> None:
    memory = MEMORY.replace("cudaHostAlloc(&f, 4, 0)", "cudaMallocManaged(&f, 4)")
    found, _, _ = planned(tmp_path, f"{WORK}{TELL}{WATCH}{READ}", memory=memory)
    assert {("first", "tell"), ("second", "tell")} & found == {("first", "tell")}


def test_a_later_flag_tells_of_an_earlier_one(tmp_path: Path) -> None:
    again = "  tell<<<1, 1>>>(g);\n"
    found, _, _ = planned(tmp_path, f'{TELL}{again}  while (!*(volatile int*)g) {{\n  }}\n  if (*f) std::puts("");\n')
    assert ("tell#1", "tell#2") in found


def test_what_is_looked_at_is_not_written_before_the_flag_that_comes_first(tmp_path: Path) -> None:
    """A lock of sequence numbers: odd while the data changes."""
    inner = f"{TELL}  first<<<1, 64>>>(p);\n  tell<<<1, 1>>>(f);\n  second<<<1, 64>>>(x);\n"
    look = '  int v;\n  do v = *(volatile int*)f, std::printf("%f", p[0]);\n  while (v != *(volatile int*)f);\n'
    found, _, _ = planned(tmp_path, f"{inner}{look}")
    assert {("tell#1", "first"), ("first", "tell#2")} <= found
    assert not any("second" in pair for pair in found)


def test_what_comes_later_does_not_wait_for_a_flag(tmp_path: Path) -> None:
    later = "  use<<<1, 64>>>(p, x);\n  second<<<1, 64>>>(y);\n"
    found, text, _ = planned(tmp_path, f"  first<<<1, 64>>>(p);\n{TELL}{later}{WATCH}{READ}")
    assert ("first", "tell") in found
    assert not any(pair[0] == "tell" for pair in found)
    assert "wait for tell" not in text


# ---- what others may look at ----------------------------------------------------------------------------------------

REGISTERED = MEMORY.replace("cudaHostAlloc(&f, 4, 0), ", "f = (int*)malloc(4), cudaHostRegister(f, 4, 0), ")
MAP = "  std::map<int, int*> m;\n  m[1] = f;\n"


@pytest.mark.parametrize(
    ("before", "memory", "look"),
    [
        ("", REGISTERED, WATCH),
        ("", MEMORY, "  while (!__atomic_load_n(f, __ATOMIC_ACQUIRE)) {\n  }\n"),
        ("", MEMORY, f"{MAP}  while (!*m[1]) sched_yield();\n"),
        ("", MEMORY, f"{MAP}  while (!*(volatile int*)m[1]) {{\n  }}\n"),
        ("void wait(int*);\n", MEMORY, "  wait(f);\n"),
        ("void wait();\nint* known;\n", MEMORY, "  known = f;\n  wait();\n"),
        ("void wait();\nvoid know(int**);\n", MEMORY, "  wait();\n"),
    ],
)
@pytest.mark.usefixtures("text_alone")  # the IR's reading follows the atomic and the map
def test_a_flag_that_unseen_code_may_watch_comes_behind_everything(
    tmp_path: Path, before: str, memory: str, look: str
) -> None:
    known = "  know(&f);\n" if "know(" in before else ""
    work = "  first<<<1, 64>>>(x);\n  second<<<1, 64>>>(y);\n"
    found, text, _ = planned(tmp_path, f"{known}{work}{TELL}{look}", before, memory)
    assert {("first", "tell"), ("second", "tell")} <= found
    assert on_a_stream(text, "tell")


def test_unseen_code_does_not_watch_what_it_was_not_told_of(tmp_path: Path) -> None:
    found, _, _ = planned(tmp_path, f"{WORK}{TELL}  rest();\n", "void rest();\n")
    assert not any("tell" in pair for pair in found)


def test_device_memory_that_unseen_code_is_given_once_the_flag_is_seen(tmp_path: Path) -> None:
    """It may copy it on a stream that does not wait for the others."""
    found, _, _ = planned(tmp_path, f"{WORK}{TELL}{WATCH}  copy_elsewhere(x);\n", "void copy_elsewhere(float*);\n")
    assert ("second", "tell") in found


def test_device_memory_that_is_copied_on_a_stream_of_the_programs_own_once_the_flag_is_seen(tmp_path: Path) -> None:
    fetch = """\
static void fetch(float* to, const float* from) {
  cudaStream_t own;
  cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
  cudaMemcpyAsync(to, from, 256, cudaMemcpyDeviceToHost, own);
  cudaStreamSynchronize(own);
}
"""
    found, _, _ = planned(tmp_path, f"{WORK}  third<<<1, 64>>>(y);\n{TELL}{WATCH}  fetch(p, x);\n", fetch)
    assert ("second", "tell") in found
    assert ("third", "tell") not in found


@pytest.mark.parametrize(
    ("parameter", "kernel"), [("volatile int* f", "warn"), ("volatile int* f", "tell"), ("std::atomic<int>* f", "tell")]
)
def test_a_function_is_given_what_callers_that_are_not_seen_watch(tmp_path: Path, parameter: str, kernel: str) -> None:
    launch = f"  {kernel}<<<1, 1>>>((int*)f);\n"
    works = "  first<<<1, 64>>>(p);\n  second<<<1, 64>>>(q);\n"
    program = tmp_path / "flag.cu"
    program.write_text(f"{KERNELS}void say(float* p, float* q, {parameter}) {{\n{works}{launch}}}\n")
    (found,) = compile_file(str(program), Options()).functions
    assert {("first", kernel), ("second", kernel)} <= edges(found)


def function_edges(tmp_path: Path, text: str, name: str, force: bool = False) -> Edges:
    """The dependences of one function of a program."""
    program = tmp_path / "flag.cu"
    program.write_text(KERNELS + text)
    return edges(
        next(f for f in compile_file(str(program), Options(force=force)).functions if f.region.function == name)
    )


THREE = "  first<<<1, 64>>>(p);\n  second<<<1, 64>>>(x);\n  tell<<<1, 1>>>(f);\n"
OTHERS = {
    "a caller in the file": f"void start(float* p, float* x, int* f) {{\n{THREE}}}\n"
    f"int main() {{\n{MEMORY}  start(p, x, f);\n{WATCH}{READ}{END}}}\n",
    "a caller, behind a function that watches": f"void start(float* p, float* x, int* f) {{\n{THREE}{WATCH}}}\n"
    f"int main() {{\n{MEMORY}  start(p, x, f);\n{READ}{END}}}\n",
    "a method of the same object": f"struct Job {{\n  float *p, *x;\n  int* f;\n  void start() {{\n{THREE}}}\n"
    "  bool ready() const { return *(volatile int*)f != 0; }\n};\n"
    f"int main() {{\n{MEMORY}  Job j;\n  j.p = p, j.x = x, j.f = f, j.start();\n"
    f"  while (!j.ready()) {{\n  }}\n{READ}{END}}}\n",
    "a method that nobody calls here": "struct Job {\n  float *p, *x;\n  int* f;\n"
    "  void start();\n  bool ready() const;\n};\n"
    f"void Job::start() {{\n{THREE}}}\nbool Job::ready() const {{ return *(volatile int*)f != 0; }}\n",
    "another function, of a global": f"static int* f;\nstatic float *p, *x;\n"
    "void prepare() { cudaMallocHost(&f, 4), cudaMallocHost(&p, 256), cudaMalloc(&x, 256); }\n"
    f"void start() {{\n{THREE}}}\nbool ready() {{ return *(volatile int*)f != 0; }}\n",
    "who has the struct with the flag": "struct Shared {\n  int n;\n  volatile int flag;\n};\n"
    "__global__ void tell(Shared* s) { s->flag = 1; }\n"
    f"void start(float* p, float* x, Shared* f) {{\n{THREE}}}\n",
    "who has the volatile pointer": "struct Job {\n  float *p, *x;\n  volatile int* g;\n  void start();\n};\n"
    f"void Job::start() {{\n  int* f = const_cast<int*>(g);\n{THREE}}}\n",
    "the host by another name": "void start(float* p, float* x, const float* view) {\n  int* f;\n"
    f"  cudaMallocHost(&f, 4);\n  *f = 0;\n{THREE}{WATCH}"
    '  std::printf("%f", view[0]);\n  cudaDeviceSynchronize();\n}\n',
    "the host, which overwrites by another name": "void start(float* p, float* x, float* view) {\n  int* f;\n"
    f"  cudaMallocHost(&f, 4);\n  *f = 0;\n{THREE}{WATCH}  view[0] = 5;\n  cudaDeviceSynchronize();\n}}\n",
}


@pytest.mark.parametrize("who", OTHERS)
def test_others_look(tmp_path: Path, who: str) -> None:
    found = function_edges(tmp_path, OTHERS[who], "start", force=True)
    before = {("first", "second"), ("second", "tell")} <= found  # in a row
    assert before or ("first", "tell") in found


def test_a_memset_may_be_the_flag_of_a_caller(tmp_path: Path) -> None:
    flag = "  cudaMemsetAsync((void*)f, 1, 4);\n"
    text = f"void start(float* p, float* x, volatile int* f) {{\n{THREE.replace('  tell<<<1, 1>>>(f);', flag)}}}\n"
    assert {("first", "cudaMemset"), ("second", "cudaMemset")} <= function_edges(tmp_path, text, "start")


def test_a_flag_in_device_memory_that_is_copied_on_a_stream_which_does_not_wait(tmp_path: Path) -> None:
    poll = """\
static int poll(const int* d) {
  static cudaStream_t own;
  if (!own) cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
  int h;
  cudaMemcpyAsync(&h, d, 4, cudaMemcpyDeviceToHost, own);
  cudaStreamSynchronize(own);
  return h;
}
"""
    work = "  third<<<1, 64>>>(y);\n  second<<<1, 64>>>(x);\n  tell<<<1, 1>>>(d);\n"
    look = '  do v = poll(d);\n  while (!v);\n  std::printf("%d", poll((int*)x));\n'
    assert planned(tmp_path, f"  int *d, v;\n  cudaMalloc(&d, 4);\n{work}{look}", poll)[0] == {("second", "tell")}


@pytest.mark.parametrize(
    ("before", "kept"),
    [
        ("#include <deque>\nstd::deque<int*> known;\nvoid wait();\n", "  known.push_back(f);\n"),
        ("std::atomic<int*> known;\nvoid wait();\n", "  known.store(f);\n"),
        (
            "__global__ void keep(int** t, int** o) { o[0] = t[0]; }\nvoid share(int**);\nvoid wait();\n",
            "  int **t, **o;\n  cudaMallocManaged(&t, 8), cudaMallocManaged(&o, 8), t[0] = f, share(o);\n"
            "  keep<<<1, 1>>>(t, o);\n  cudaDeviceSynchronize();\n",
        ),
    ],
)
def test_unseen_code_finds_the_flag_where_the_library_or_a_kernel_has_kept_it(
    tmp_path: Path, before: str, kept: str
) -> None:
    found, _, _ = planned(tmp_path, f"{kept}{WORK}{TELL}  wait();\n", before)
    assert {("first", "tell"), ("second", "tell")} <= found


def test_a_thread_of_unseen_code_is_told_once_the_flag_is_seen(tmp_path: Path) -> None:
    before = "void share(float*);\nextern std::atomic<bool> go;\n"
    found, _, _ = planned(tmp_path, f"  share(p);\n{WORK}{TELL}{WATCH}  go.store(true);\n", before)
    assert {("first", "tell"), ("second", "tell")} & found == {("first", "tell")}


@pytest.mark.parametrize("overwrites", ["p[0] = 5;", "memset(p, 0, 256);", 'scanf("%f", p);', "free(p);"])
def test_memory_of_the_host_that_is_overwritten_once_the_flag_is_seen(tmp_path: Path, overwrites: str) -> None:
    memory = MEMORY.replace("cudaMallocHost(&p, 256), ", "p = (float*)malloc(256), cudaHostRegister(p, 256, 0), ")
    found, _, _ = planned(
        tmp_path, f"  use<<<1, 64>>>(p, x);\n  second<<<1, 64>>>(y);\n{TELL}{WATCH}  {overwrites}\n", memory=memory
    )
    assert {("use", "tell"), ("second", "tell")} & found == {("use", "tell")}


def test_who_frees_memory_of_the_device_waits(tmp_path: Path) -> None:
    found, _, _ = planned(tmp_path, f"{WORK}{TELL}{WATCH}{READ}  cudaFree(x);\n")
    assert {("first", "tell"), ("second", "tell")} & found == {("first", "tell")}


# ---- waits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wait",
    [
        "cudaDeviceSynchronize();",
        "cudaStreamSynchronize(0);",
        "cudaEvent_t e;\n  cudaEventCreate(&e), cudaEventRecord(e);\n  cudaEventSynchronize(e);",
        "float h;\n  cudaMemcpy(&h, x, 4, cudaMemcpyDeviceToHost);",
    ],
)
def test_what_the_host_reads_behind_a_wait_is_no_flag(tmp_path: Path, wait: str) -> None:
    found, _, _ = planned(tmp_path, f"{WORK}{TELL}  {wait}\n  if (*f == 1) *f = 2;\n{READ}")
    assert not any("tell" in pair for pair in found)


def test_a_wait_for_an_event_recorded_before_is_no_wait_for_the_flag(tmp_path: Path) -> None:
    event = "  cudaEvent_t e;\n  cudaEventCreate(&e), cudaEventRecord(e);\n"
    look = "  cudaEventSynchronize(e);\n  while (!*f) sched_yield();\n"
    found, _, _ = planned(tmp_path, f"{event}{WORK}{TELL}{look}{READ}")
    assert ("first", "tell") in found


def test_a_flag_of_a_function_that_its_caller_watches(tmp_path: Path) -> None:
    says = "static void say(float* p, float* x, int* f) {\n  second<<<1, 64>>>(x);\n  first<<<1, 64>>>(p);\n"
    program = tmp_path / "flag.cu"
    inner = f"{MEMORY}  say(p, x, f);\n{WATCH}{READ}"
    program.write_text(f"{KERNELS}{says}{TELL}}}\nint main() {{\n{inner}{END}}}\n")
    results = compile_file(str(program), Options(force=True)).functions
    found = set().union(*map(edges, results))
    assert {("first", "tell"), ("second", "tell")} & found == {("first", "tell")}


# ---- the proof -------------------------------------------------------------------------------------------------------


def test_the_proof_misses_a_wait_of_a_flag(tmp_path: Path) -> None:
    memory = MEMORY + "  float* q;\n  cudaMallocHost(&q, 256);\n"
    inner = f"  use<<<1, 64>>>(p, x);\n  use<<<1, 64>>>(q, y);\n{TELL}{WATCH}  p[0] = q[0] = 5;\n"
    found, text, _ = planned(tmp_path, inner, memory=memory)
    assert found == {("use#1", "tell"), ("use#2", "tell")}
    serial, output = str(tmp_path / "flag.cu"), tmp_path / "flag_async.cu"
    assert not [p for one in verify_files(serial, str(output), Options()) for p in one.problems]
    lines = text.splitlines(keepends=True)
    (wait,) = (n for n, line in enumerate(lines) if "(release on " in line)
    output.write_text("".join(lines[:wait] + lines[wait + 1 :]))
    (problem,) = (p for one in verify_files(serial, str(output), Options()) for p in one.problems)
    assert problem.code == "K401"
    assert "'tell' may run before 'use#1' is done" in problem.message


# ---- tasks -----------------------------------------------------------------------------------------------------------


def two_tasks(marked: bool, behind: str) -> str:
    """Two tasks, each with a result and a flag; what the host does once it has seen the second's."""
    first, second = (f"#pragma kesco task priority({n}) name({t})\n" if marked else "" for n, t in ((5, "a"), (1, "b")))
    return (
        f"{first}  {{\n  first<<<1, 64>>>(p);\n  tell<<<1, 1>>>(f);\n  }}\n"
        f"{second}  {{\n  second<<<1, 64>>>(x);\n  tell<<<1, 1>>>(g);\n  }}\n"
        f"  while (!*(volatile int*)g) {{\n  }}\n{behind}"
    )


@pytest.mark.parametrize("marked", [False, True])
def test_the_second_tasks_flag_tells_of_the_first_ones_result_if_the_host_reads_that(
    tmp_path: Path, marked: bool
) -> None:
    found, text, _ = planned(tmp_path, two_tasks(marked, READ))
    assert ("first", "tell#2") in found
    assert ("tell#1", "tell#2") not in found
    assert on_a_stream(text, "tell")


@pytest.mark.parametrize("marked", [False, True])
def test_the_second_tasks_flag_tells_of_a_plain_read_of_what_the_first_ones_writes(
    tmp_path: Path, marked: bool
) -> None:
    found, _, _ = planned(tmp_path, two_tasks(marked, '  if (*f) std::puts("");\n'))
    assert ("tell#1", "tell#2") in found


def test_a_result_that_is_read_as_volatile_is_no_flag(tmp_path: Path) -> None:
    found, _, _ = planned(tmp_path, two_tasks(True, '  std::printf("%f", ((volatile float*)p)[0]);\n'))
    assert ("first", "tell#2") in found


@pytest.mark.parametrize("marked", [False, True])
def test_marked_tasks_may_end_in_any_order_and_others_may_not(tmp_path: Path, marked: bool) -> None:
    found, text, _ = planned(tmp_path, two_tasks(marked, f"{WATCH}  cudaDeviceSynchronize();\n{READ}"))
    assert (("tell#1", "tell#2") in found) is not marked
    assert ("first", "tell#2") not in found
    assert on_a_stream(text, "tell")
