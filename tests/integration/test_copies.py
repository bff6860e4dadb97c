"""Copies from and to pageable memory become operations on streams, and only where nobody can tell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from integration.compiled import Compiled, compile_and_keep

from kesco.ir.flow import Held, Role
from kesco.options import Options
from kesco.proving import verify_files
from tests.preferring import the_ir
from tests.taken import one_in

WORKLOADS = Path(__file__).parents[2] / "workloads"
SEND = Options(copies="move")
pytestmark = pytest.mark.usefixtures("toolchain")

# Of each workload: copies on streams, how many of them then wait for the device, waits between streams, streams; and
# copies in the text that are read in the background, places where the host waits for that.
COUNTS = {
    "vec": (3, 1, 1, 2, 2, 0),
    "bs": (20, 1, 0, 10, 1, 1),
    "img": (5, 1, 6, 4, 4, 0),
    "ml": (8, 1, 5, 4, 2, 0),
    "hits": (10, 1, 6, 2, 8, 0),
    "dl": (8, 1, 2, 3, 3, 0),
    "m1": (14, 1, 10, 7, 2, 1),
    "m2": (21, 1, 27, 13, 2, 0),
}


def held(outcome: Compiled) -> list[tuple[Held, bool]]:
    """The copies on streams, and whether the host waits for the device behind each."""
    (result,) = outcome.rewritten
    region, gone = result.region, result.plan.needless
    moved = [s for s in region.sites if s.held is not None and s.role is Role.MOVABLE]
    waits = {(s.operation, s.iterations) for s in region.sites if s.role is Role.DEVICE_SYNC and s.number not in gone}
    return [(s.held, (s.operation, s.iterations) in waits) for s in moved if s.held]


@pytest.mark.parametrize("name", one_in(3, COUNTS))
def test_workloads_as_a_whole(name: str) -> None:
    outcome = compile_and_keep(WORKLOADS / name / "whole.cu", SEND)
    (result,) = outcome.rewritten
    copies = held(outcome)
    found = len(copies), sum(waits for _, waits in copies), len(result.plan.waits), result.schedule.streams
    sends = result.sends
    assert sends is not None
    assert (*found, len(sends.operations), len(sends.before) + len(sends.ends)) == COUNTS[name]


HEAD = """\
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
void elsewhere();
void touch(float*);
__global__ void up(float* y, const float* x) { y[threadIdx.x] = x[threadIdx.x] + 1; }
__global__ void odd(float** all) { all[0][threadIdx.x] = 1; }
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("bad"); exit(1); } } while (0)
"""
BODY = """\
int main(int argc, char** argv) {
  size_t n = argc * 4096;
  float *h = (float*)malloc(n), *g = (float*)malloc(n), *a, *b, *c, *d;
  @BEFORE@
  CHECK(cudaMalloc(&a, n)); CHECK(cudaMalloc(&b, n)); CHECK(cudaMalloc(&c, n)); CHECK(cudaMalloc(&d, n));
  CHECK(cudaMemcpy(a, h, n, cudaMemcpyHostToDevice));
  @BETWEEN@
  CHECK(cudaMemcpy(b, g, n, cudaMemcpyHostToDevice));
  up<<<argc, 64>>>(c, a);
  up<<<argc, 64>>>(d, b);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(h, c, n, cudaMemcpyDeviceToHost));
  @BEHIND@
  CHECK(cudaMemcpy(g, d, n, cudaMemcpyDeviceToHost));
  printf("%f", h[0] + g[0]);
}
"""


def compiled(
    tmp_path: Path, before: str = "", between: str = "", behind: str = "", body: str = BODY, how: str = "move"
) -> Compiled:
    path = tmp_path / "app.cu"
    text = body.replace("@BEFORE@", before).replace("@BETWEEN@", between).replace("@BEHIND@", behind)
    path.write_text(HEAD + text)
    return compile_and_keep(path, Options(copies=how))


def copies(outcome: Compiled) -> list[str]:
    """What became of each copy, in the text's order: plain, on a stream, or on a stream with a wait."""
    body = outcome.result.text.decode().partition("int main")[2]
    calls = re.findall(r"\b(kesco_copy|kesco_send|cudaMemcpy)\(([^;]*)\)\)?;", body)
    return ["plain" if name == "cudaMemcpy" else "waits" if "true)" in rest + ")" else "moved" for name, rest in calls]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, ["moved", "moved", "moved", "waits"]),
        ({"between": "h[0] = 2;"}, ["moved", "moved", "moved", "waits"]),  # which has been read
        ({"behind": "g[0] = h[0];"}, ["moved", "moved", "moved", "waits"]),  # which is complete
        ({"behind": 'printf("%f", h[0]);'}, ["moved", "moved", "waits", "waits"]),
        ({"behind": "auto now = std::chrono::steady_clock::now();"}, ["moved", "moved", "waits", "waits"]),
        ({"behind": "elsewhere();"}, ["moved", "moved", "waits", "waits"]),
        ({"between": "elsewhere();"}, ["waits", "waits", "moved", "waits"]),
        ({"between": "if (cudaGetLastError() != cudaSuccess) exit(1);"}, ["waits", "moved", "moved", "waits"]),
        ({"between": "memset(h, 0, n);"}, ["moved", "moved", "moved", "waits"]),
        ({"before": "n = 4096;"}, ["plain", "plain", "plain", "plain"]),  # which is small
        (
            {"between": "CHECK(cudaMemcpy(c, h, 8, cudaMemcpyHostToDevice));"},
            ["moved"] * 4 + ["waits"],
        ),  # behind a large one
        (
            {"before": "CHECK(cudaMalloc(&c, n)); CHECK(cudaMemcpy(c, h, 8, cudaMemcpyHostToDevice));"},
            ["plain", "moved", "moved", "moved", "waits"],
        ),
    ],
)
def test_what_becomes_of_copies(tmp_path: Path, change: dict[str, str], expected: list[str]) -> None:
    outcome = compiled(tmp_path, **change)
    assert outcome.rewritten
    assert copies(outcome) == expected
    if expected[2] == "waits":  # while the other kernel runs
        less = [line.replace(", true));", "));") if "(h, c" in line else line for line in outcome.lines]
        assert "may not be done when the host reaches" in outcome.refuses(less)


@pytest.mark.parametrize(
    "before",
    [
        "float* m; cudaMallocManaged(&m, n); up<<<1, 32>>>(m, m);",  # unknown host memory might be that
        "float** t; cudaMalloc(&t, 8); odd<<<1, 32>>>(t);",  # a kernel that may reach anything
    ],
)
def test_other_work_on_the_hosts_memory_keeps_the_copies(tmp_path: Path, before: str) -> None:
    outcome = compiled(tmp_path, before, body=BODY.replace("(float*)malloc(n)", "std::vector<float>(n).data()"))
    assert all(one == "plain" for one in copies(outcome))


def test_the_proof_sees_what_a_copy_is_needed_for(tmp_path: Path) -> None:
    """On another stream a copy must be waited for, and a kernel's result before it is copied."""
    outcome = compiled(tmp_path)
    assert outcome.rewritten[0].schedule.streams == 2
    own = [n for n, line in enumerate(outcome.lines) if re.search(r"CHECK\(kesco_(?:copy|send)\(", line)]
    assert len(own) == 4
    for number in own:
        line = outcome.lines[number].replace("stream[0]", "stream[X]").replace("stream[1]", "stream[0]")
        lines = [*outcome.lines[:number], line.replace("stream[X]", "stream[1]"), *outcome.lines[number + 1 :]]
        assert "may run before" in outcome.refuses(lines)


@pytest.mark.thorough
def test_a_second_look_by_the_command(tmp_path: Path) -> None:
    outcome = compiled(tmp_path, behind='printf("%f", h[0]);')
    concurrent = tmp_path / "out.cu"
    concurrent.write_bytes(outcome.result.text)
    (verdict,) = verify_files(str(tmp_path / "app.cu"), str(concurrent), Options())
    assert not verdict.problems
    concurrent.write_bytes(outcome.result.text.replace(b", true));", b"));"))
    (verdict,) = verify_files(str(tmp_path / "app.cu"), str(concurrent), Options())
    assert any("when the host reaches" in one.message for one in verdict.problems)


def test_a_chain_of_kernels_stays_serial(tmp_path: Path) -> None:
    """Nothing overlaps there but the copies themselves; but one result may be copied while the next is computed."""
    chain = BODY.replace("up<<<argc, 64>>>(d, b);", "up<<<argc, 64>>>(d, c);").replace("(b, g, n", "(c, g, n")
    assert compiled(tmp_path, body=chain).rewritten
    assert not compiled(tmp_path, body=chain.replace("(h, c, n", "(h, d, n")).rewritten


@pytest.mark.parametrize(
    ("before", "how", "moves"),
    [
        ("", "auto", True),  # whose size is not known
        ("", "keep", False),
        ("n = 31u << 20;", "auto", True),  # 124 MiB in all, but one runs beside a kernel
        ("n = 31u << 20;", "move", True),
        ("n = 32u << 20;", "auto", True),
        ("n = 1u << 20; for (int i = 0; i < argc; ++i)", "auto", True),  # nobody knows how often
        ("n = 1u << 20; cudaMallocHost(&h, n);", "auto", True),  # pinned already
    ],
)
def test_by_default_copies_move_where_that_may_pay(tmp_path: Path, before: str, how: str, moves: bool) -> None:
    looped = "for" in before
    body = BODY.replace("CHECK(cudaMalloc(&a", "{ CHECK(cudaMalloc(&a").replace("  printf(", "  }\n  printf(")
    outcome = compiled(tmp_path, before=before, how=how, body=body if looped else BODY)
    assert outcome.rewritten
    assert ("plain" not in copies(outcome)) is moves


def test_by_default_copies_move_where_one_runs_beside_a_kernel(tmp_path: Path) -> None:
    chain = BODY.replace("up<<<argc, 64>>>(d, b);", "up<<<argc, 64>>>(d, c);").replace("(b, g, n", "(c, g, n")
    assert compiled(tmp_path, body=chain, how="auto").rewritten  # a result goes home beside the second kernel
    assert not compiled(tmp_path, body=chain.replace("(h, c, n", "(h, d, n"), how="auto").rewritten


def test_helpers_and_loops(tmp_path: Path) -> None:
    """Another function, a loop of unknown trips, and a result that is copied back in every round."""
    body = """\
void run(const std::vector<float>& in, std::vector<float>& out, std::vector<float>& more, int rounds) {
  size_t n = in.size() * 4;
  float *a, *b, *c;
  CHECK(cudaMalloc(&a, n)); CHECK(cudaMalloc(&b, n)); CHECK(cudaMalloc(&c, n));
  for (int i = 0; i < rounds; ++i) {
    CHECK(cudaMemcpy(a, in.data(), n, cudaMemcpyHostToDevice));
    up<<<4, 64>>>(b, a);
    up<<<4, 64>>>(c, a);
    CHECK(cudaMemcpy(out.data(), b, n, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(more.data(), c, n, cudaMemcpyDeviceToHost));
  }
  cudaFree(a); cudaFree(b); cudaFree(c);
}
int main(int argc, char**) { std::vector<float> x(argc), y(argc), z(argc); run(x, y, z, argc); return y[0] + z[0] > 1; }
"""
    outcome = compiled(tmp_path, body=body)
    (result,) = outcome.rewritten
    assert result.region.function == "run"
    assert held(outcome) == [(Held.SOURCE, False), (Held.LATER, False), (Held.LATER, False)]


FROM_OUTSIDE = """
void f(float* h, float* p, int n, int m) {
  float *a, *b, *c;
  cudaMalloc(&a, n); cudaMalloc(&b, n); cudaMalloc(&c, n);
  for (int i = 0; i < m; ++i) {
    @WORK@
    up<<<32, 64>>>(c, c);
    up<<<32, 64>>>(a, b);
    cudaMemcpy(h, a, n, cudaMemcpyDeviceToHost);
    up<<<32, 64>>>(b, b);
  }
}
__device__ float symbol[64];
__global__ void set() { symbol[threadIdx.x] = 1; }
"""


@pytest.mark.parametrize("work", ["up<<<32, 64>>>(p, p);", "set<<<1, 64>>>();"])
def test_what_two_pointers_from_outside_reach_may_be_the_same(tmp_path: Path, work: str) -> None:
    """Managed memory is host and device memory; the proof knows by itself that somebody must compare the pointers."""
    head, _, symbol = FROM_OUTSIDE.partition("__device__")
    outcome = compiled(tmp_path, body=f"__device__{symbol}" + head.replace("@WORK@", work))
    assert outcome.rewritten
    assert copies(outcome) == []
    assert "  cudaMemcpy(h, a, n, cudaMemcpyDeviceToHost);" in outcome.result.text.decode()
    alone = compiled(tmp_path, body=head.replace("@WORK@", ""))
    assert "kesco_copy(h, a, n," in "".join(alone.lines[-20:])


def test_the_proof_wants_pointers_compared(tmp_path: Path) -> None:
    text = "void f(float* a, float* b) {\n  up<<<1, 32>>>(a, a);\n  up<<<1, 32>>>(b, b);\n}\n"
    outcome = compiled(tmp_path, body=text)
    assert not outcome.refuses(outcome.lines)
    guard = next(n for n, line in enumerate(outcome.lines) if "kesco_paced(0, kesco_at" in line)
    without = "  KescoStreams* kesco = kesco_paced(0);"
    assert "check of its pointers" in outcome.refuses([*outcome.lines[:guard], without, *outcome.lines[guard + 1 :]])


@pytest.mark.parametrize("source", ["&v[unseen()]", "h + unseen()"])
def test_a_copy_beside_unseen_code_stays(tmp_path: Path, source: str) -> None:
    """What it must wait for, work of that code on streams of its own, cannot be waited for within the statement."""
    text = f"""struct P {{ float x, y; }};
void load(std::vector<P>&);
int unseen();
int main(int argc, char**) {{
  size_t n = argc * 4096;
  std::vector<P> v; load(v);
  float *h = (float*)malloc(n), *g = (float*)malloc(n), *a, *b;
  cudaMalloc(&a, n); cudaMalloc(&b, n);
  cudaMemcpy(a, {source}, n, cudaMemcpyHostToDevice);
  cudaMemcpy(b, h, n, cudaMemcpyHostToDevice);
  up<<<argc, 64>>>(a, a);
  up<<<argc, 64>>>(b, b);
  cudaMemcpy(g, a, n, cudaMemcpyDeviceToHost);
}}
"""
    outcome = compiled(tmp_path, body=text)
    assert outcome.rewritten
    assert f"  cudaMemcpy(a, {source}, n, cudaMemcpyHostToDevice);" in outcome.lines
    assert "kesco_copy(b, h, n," in outcome.result.text.decode()


def test_a_loop_with_two_copies_that_may_be_of_nothing(tmp_path: Path) -> None:
    """What a trip leaves for the next one is in another phase, whichever barriers may turn out to be none."""
    text = """void f(float* h, int n, int m) {
  float *a, *b;
  cudaMalloc(&a, n); cudaMalloc(&b, n);
  for (int i = 0; i < m; ++i) {
    cudaMemcpy(b, h, n, cudaMemcpyHostToDevice);
    up<<<32, 64>>>(a, a); up<<<32, 64>>>(b, b);
    cudaMemcpy(h, b, n, cudaMemcpyDeviceToHost);
    up<<<32, 64>>>(a, a); up<<<32, 64>>>(b, b);
  }
}
"""
    path = tmp_path / "plain.cu"
    path.write_text(HEAD + text)
    assert compile_and_keep(path).rewritten
    assert compiled(tmp_path, body=text).rewritten


@pytest.mark.parametrize(
    "work",
    [
        "cudaMemcpy(m, h, n, cudaMemcpyHostToDevice);",  # waits until it has read what it copies
        "cudaMemcpy(m, b, n, cudaMemcpyDeviceToDevice);",  # does not wait at all
        "cudaMemcpy(b, m, n, cudaMemcpyDeviceToDevice);",
    ],
)
def test_the_copy_behind_one_to_managed_memory_waits_for_it(tmp_path: Path, work: str) -> None:
    """The host goes on to that memory behind a copy on a stream, which must wait as it did where it stood."""
    text = f"""int main() {{
  const size_t n = 1 << 24;
  static float h[1 << 22];
  float *a, *b, *m;
  cudaMalloc(&a, n); cudaMalloc(&b, n); cudaMallocManaged(&m, n);
  up<<<32, 64>>>(a, a); up<<<32, 64>>>(b, b);
  {work}
  cudaMemcpy(a, h, n, cudaMemcpyHostToDevice);
  m[3] = 1;
  up<<<32, 64>>>(a, a); up<<<32, 64>>>(b, b);
  cudaDeviceSynchronize();
}}
"""
    outcome = compiled(tmp_path, body=text)
    line = next(one for one in outcome.lines if "kesco_copy(a, h, n, cudaMemcpyHostToDevice" in one)
    assert line.endswith(", true);")
    assert "may not be done when the host reaches" in outcome.refuses(
        [one.replace(", true);", ");") if one == line else one for one in outcome.lines]
    )


@pytest.mark.parametrize(("to", "streams"), [("s.counts[1]", 2), ("s.counts[2]", 1), ("s.counts[n]", 1)])
def test_a_copy_into_an_array_of_numbers_leaves_the_pointers_behind_it_unless_it_may_run_over(
    tmp_path: Path, to: str, streams: int
) -> None:
    program = tmp_path / "program.cu"
    program.write_text(
        "__global__ void k(float* x) { x[threadIdx.x] += 1; }\n"
        "struct S { int counts[2][4]; float* p[2]; };\n"
        "int main(int n, char**) {\n  S s{};\n  int* d;\n"
        "  cudaMalloc(&s.p[0], 128), cudaMalloc(&s.p[1], 128), cudaMalloc(&d, 64);\n"
        f"  cudaMemcpy({to}, d, 16, cudaMemcpyDeviceToHost);\n"
        "  k<<<1, 32>>>(s.p[0]);\n  k<<<1, 32>>>(s.p[1]);\n  return cudaDeviceSynchronize();\n}\n"
    )
    done = compile_and_keep(program, Options(force=True))
    text = done.result.text.decode()
    assert ("kesco->stream[1]>>>(s.p[1])" in text) is (streams == 2)


SYMBOLS = """\
#include <cstdio>
__constant__ float alpha;
__device__ int count;
__global__ void scale(float* a) { a[threadIdx.x] *= alpha; }
__global__ void other(float* a) { a[threadIdx.x] += 1; }
__global__ void tally(const float* a) { if (a[threadIdx.x] > 1) atomicAdd(&count, 1); }
int main() {
  float *a, *b;
  cudaMalloc(&a, 4096), cudaMalloc(&b, 4096);
  for (int t = 0; t < 200; t++) {
    float f = 1.0f / (t + 1);
    int zero = 0, got;
    other<<<1, 64>>>(b);
    cudaMemcpyToSymbol(alpha, &f, sizeof f);
    scale<<<1, 64>>>(a);
    cudaMemcpyToSymbol(count, &zero, sizeof zero);
    tally<<<1, 64>>>(a);
    cudaMemcpyFromSymbol(&got, count, sizeof got);
    printf("%d", got);
  }
  cudaFree(a), cudaFree(b);
}
"""


def test_symbols_that_are_one_number(tmp_path: Path) -> None:
    """They are passed to the prologue's copies as places, though their values are known to nobody."""
    path = tmp_path / "app.cu"
    path.write_text(SYMBOLS)
    outcome = compile_and_keep(path)
    assert [one.schedule.streams for one in outcome.rewritten] == [2]
    assert outcome.result.text.count(b"kesco_copy_to_symbol(alpha, &f, sizeof f, 0, cudaMemcpyHostToDevice, ") == 1
    assert outcome.result.text.count(b"kesco_copy_to_symbol(count, &zero") == 1
    assert b", true);" not in outcome.result.text.partition(b"int main")[2]  # the copy home waits for all


DEFAULTS = """\
#include <cstdio>
#include <cstdlib>
#include <vector>
#define CHECK(call) check((call), __FILE__, __LINE__)
static int level() { static int n = 0; return ++n; }
static void elsewhere(int n = level()) { printf("%d", n); }
static void check(cudaError_t e, const char* file, int line, bool much = true) {
  if (e != cudaSuccess) { fprintf(stderr, "%s %d %d", file, line, much); exit(1); }
}
__global__ void up(float* y, const float* x) { y[threadIdx.x] += x[threadIdx.x]; }
template <class T> struct Tower { T *x, *y; };
static void forward(Tower<float>& one, const std::vector<float>& in) {
  CHECK(cudaMemcpy(one.x, in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice));
  up<<<4096, 256>>>(one.y, one.x);
}
int main(int argc, char** argv) {
  Tower<float> a, b;
  cudaMalloc(&a.x, 4 << 20), cudaMalloc(&a.y, 4 << 20), cudaMalloc(&b.x, 4 << 20), cudaMalloc(&b.y, 4 << 20);
  std::vector<float> in(1 << 20), more(1 << 20);
  for (int t = 0; t < argc * 10; t++) {
    for (float& one : in) one = t;
    forward(a, in);
    forward(b, more);
    CHECK(cudaMemcpy(in.data(), a.y, in.size() * sizeof(float), cudaMemcpyDeviceToHost));
  }
  cudaDeviceSynchronize();
  elsewhere();
}
"""


def test_default_arguments_of_the_prologues_copies_are_constants(tmp_path: Path) -> None:
    path = tmp_path / "app.cu"
    path.write_text(DEFAULTS)
    with the_ir():
        assert [one.schedule.streams for one in compile_and_keep(path).rewritten] == [2]


DECIDES = """#include <cstdio>
#include <vector>
__global__ void count(const float* x, int* found, int n) {
  for (int i = threadIdx.x; i < n; i += 32) if (x[i] > 0) atomicAdd(found, 1);
}
__global__ void scale(float* x, int n) { for (int i = threadIdx.x; i < n; i += 32) x[i] *= 2; }
struct Data {
  float* at;
  explicit Data(int n) { cudaMalloc(&at, n * 4); }
  ~Data() { cudaFree(at); }
};
int main() {
  const int n = 1 << 24;
  std::vector<float> host(n, 1.f), other(n, 2.f);
  std::vector<int> found(1);
  Data x(n), y(n);
  int* d;
  cudaMalloc(&d, 4);
  cudaMemcpy(x.at, host.data(), n * 4, cudaMemcpyHostToDevice);
  cudaMemset(d, 0, 4);
  count<<<1, 32>>>(x.at, d, n);
  cudaMemcpy(y.at, other.data(), n * 4, cudaMemcpyHostToDevice);
  scale<<<1, 32>>>(y.at, n);
  cudaMemcpy(found.data(), d, 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(host.data(), x.at, n * 4, cudaMemcpyDeviceToHost);
  if (found[0] > 0) scale<<<1, 32>>>(x.at, n);
  if (host[7] > 0) scale<<<1, 32>>>(y.at, n);
  cudaMemcpy(host.data(), x.at, n * 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(other.data(), y.at, n * 4, cudaMemcpyDeviceToHost);
  printf("%f %f\\n", host[1], other[1]);
}
"""


def test_what_a_moved_copy_brings_home_may_decide(tmp_path: Path) -> None:
    """In the output, too, nobody knows what is there then: not the zeros that a vector began with."""
    (tmp_path / "app.cu").write_text(DECIDES, "utf-8")
    outcome = compile_and_keep(tmp_path / "app.cu", Options(copies="move"))
    assert {d.code for d in outcome.result.diagnostics}.isdisjoint({"K221"})
    assert outcome.result.text.count(b"kesco_fetch(") + outcome.result.text.count(b"kesco_copy(") > 3
