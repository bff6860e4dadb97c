"""Prefetches of managed memory: where they are put in, where not, and what the inserted function does as it runs.

The second part compiles the prologue for the host alone, with a runtime that writes down calls instead of making them.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from kesco.emit.prologue import Parts, prologue
from kesco.ir.flow import Role, SiteKind
from kesco.options import Options
from kesco.pipeline import Compilation, compile_file

KERNELS = """\
#include <utility>
struct Pair { float* a; float* b; };
float* other(float*);
__global__ void up(float* x) { x[threadIdx.x] += 1; }
__global__ void set(float* x) { x[threadIdx.x] = 1; }
__global__ void add(float* x, const float* y) { x[threadIdx.x] += y[threadIdx.x]; }
__global__ void both(const float* x, const float* y, float* z) { z[threadIdx.x] = x[threadIdx.x] + y[threadIdx.x]; }
static void fill(float* p, int n) { for (int i = 0; i < n; ++i) p[i] = i; }
int main(int argc, char**) {
  const int n = 1 << 20;
  float *a, *b, *c, *d;
  cudaMallocManaged(&a, SIZE); cudaMallocManaged(&b, SIZE); cudaMallocManaged(&c, SIZE); cudaMallocManaged(&d, SIZE);
"""
TWO = "up<<<1, 32>>>(a); up<<<1, 32>>>(b);"


ASKED_FOR = Options(prefetch=True)


def compiled(tmp_path: Path, body: str, size: str = "argc * 4096", options: Options = ASKED_FOR) -> Compilation:
    path = tmp_path / "app.cu"
    path.write_text(KERNELS.replace("SIZE", size) + f"  {body}\n  return cudaDeviceSynchronize();\n}}\n")
    return compile_file(str(path), options)


def lines(done: Compilation) -> list[str]:
    """The lines of the output behind the prologue."""
    text = done.text.decode()
    assert "// ---- kesco: end" in text, "nothing was rewritten"
    return [line.strip() for line in text[text.index("// ---- kesco: end") :].splitlines()]


def put_in(done: Compilation) -> list[str]:
    """The pointers that are prefetched, in the order of the text, and where to unless it is the device."""
    call = r"kesco_prefetch\(kesco, (.*), kesco->stream\[[^]]*\](?:, Kesco)?(.*?)\);"
    found = re.findall(call, "\n".join(lines(done)))
    return [f"{pointer} {where.lower()}".strip() for pointer, where in found]


@pytest.mark.usefixtures("toolchain")
class TestPlaces:
    @pytest.mark.parametrize(
        ("body", "pointers"),
        [
            ("fill(a, n); fill(b, n); " + TWO, ["a", "b"]),
            ("a[0] = 1; " + TWO, ["a"]),
            (f"fill(a, n); fill(b, n); {TWO} {TWO}", ["a", "b"]),
            (f"{TWO} cudaDeviceSynchronize(); a[0] = b[0]; {TWO}", ["a", "b"]),
            ("fill(a, n); set<<<1, 32>>>(a); set<<<1, 32>>>(b);", []),
            ("fill(c, n); fill(d, n); add<<<1, 32>>>(a, c); add<<<1, 32>>>(b, d);", ["c", "d"]),
            (f"if (argc > 2) fill(a, n); {TWO}", ["a"]),
            (f"fill(a, n); cudaMemPrefetchAsync(a, 4096, cudaMemLocation{{}}, 0, 0); {TWO}", []),
            (f"cudaMemAdvise(a, 4096, cudaMemAdviseSetReadMostly, cudaMemLocation{{}}); fill(a, n); {TWO}", []),
            ("fill(a, n); float* p = a; up<<<1, 32>>>(p); up<<<1, 32>>>(b);", ["p"]),
            ("Pair s{a, b}; fill(a, n); up<<<1, 32>>>(s.a); up<<<1, 32>>>(s.b);", ["s.a"]),
            ("Pair s{a, b}; Pair* p = &s; fill(a, n); up<<<1, 32>>>(p->a); up<<<1, 32>>>(p->b);", ["p->a"]),
            ("fill(a, n); up<<<1, 32>>>(a + 8); up<<<1, 32>>>(b);", []),
            ("float* v[2] = {a, b}; fill(a, n); int i = 0; up<<<1, 32>>>(v[i++]); up<<<1, 32>>>(v[1]);", []),
            ("float* p = c; fill(a, n); fill(b, n); add<<<1, 32>>>(a, p = b); up<<<1, 32>>>(d);", []),
            ("fill(a, n); up<<<1, 32>>>(b); add<<<1, 32>>>(c, a); a[0] = 1;", []),
        ],
    )
    def test_before_the_first_kernel_that_reads_what_the_host_touched(
        self, tmp_path: Path, body: str, pointers: list[str]
    ) -> None:
        assert put_in(compiled(tmp_path, body)) == pointers

    def test_what_is_not_asked_for_moves_on_demand(self, tmp_path: Path) -> None:
        body = "fill(a, n); fill(b, n); " + TWO
        assert put_in(compiled(tmp_path, body, "65537")) == ["a", "b"]
        for options in (Options(), *(Options(prefetch=True, emit=emit) for emit in ("graph", "auto"))):
            done = compiled(tmp_path, body, options=options)
            assert put_in(done) == []
            assert b"kesco_prefetch" not in done.text

    def test_nobody_waits_for_what_is_small(self, tmp_path: Path) -> None:
        body = "fill(b, n); add<<<1, 32>>>(a, b); add<<<1, 32>>>(c, b);"
        for size, streams, waits in (("65536", 2, 0), ("65537", 2, 1)):
            done = compiled(tmp_path, body, size)
            assert put_in(done) == ["b"]
            (main,) = (f for f in done.functions if f.rewritten)
            assert (main.schedule.streams, len(main.plan.waits)) == (streams, waits)

    def test_what_is_small_is_on_the_stream_of_its_kernel(self, tmp_path: Path) -> None:
        body = "fill(a, n); fill(b, n); up<<<1, 32>>>(c); up<<<1, 32>>>(a); add<<<1, 32>>>(a, b);"
        done = compiled(tmp_path, body, "4")
        assert put_in(done) == ["a", "b"]
        assert b"kesco_prefetch(kesco, b, kesco->stream[1])" in done.text
        assert b"add<<<1, 32, 0, kesco->stream[1]>>>(a, b)" in done.text

    def test_the_author_is_told(self, tmp_path: Path) -> None:
        (told,) = [d for d in compiled(tmp_path, "fill(a, n); " + TWO).diagnostics if d.code == "K209"]
        assert (told.message, len(told.notes)) == ("'main': one prefetch of managed memory put in", 1)

    def test_it_delays_nothing_and_others_wait_for_it_alone(self, tmp_path: Path) -> None:
        body = "fill(a, n); fill(b, n); up<<<1, 32>>>(a); add<<<1, 32>>>(a, b); add<<<1, 32>>>(c, b);"
        done = compiled(tmp_path, body)
        main = done.functions[-1]
        stream = {main.region.sites[n].label: s for n, s in main.schedule.stream_of}
        assert stream["prefetch#1"] == stream["up"]
        assert stream["prefetch#2"] not in (stream["up"], stream["add#2"])
        assert {main.region.sites[w.target].label for w in main.plan.waits} == {"add#1", "add#2"}
        found = lines(done)
        place = next(n for n, line in enumerate(found) if line.startswith("kesco_prefetch(kesco, b"))
        assert found[place + 1].startswith("cudaEventRecord(")

    def test_before_a_loop_in_which_nothing_changes(self, tmp_path: Path) -> None:
        done = compiled(tmp_path, f"fill(a, n);\n  for (int i = 0; i < argc; ++i) {{ {TWO} }}")
        found = lines(done)
        assert put_in(done) == ["a"]
        place = next(n for n, line in enumerate(found) if line.startswith("kesco_prefetch"))
        assert found[place + 1].startswith("for (")

    def test_before_outer_loops_and_inside_unrolled_ones(self, tmp_path: Path) -> None:
        body = """float* v[3];
  for (int i = 0; i < 3; ++i) cudaMallocManaged(&v[i], argc * 4096);
  for (int it = 0; it < argc; ++it) {
    for (int i = 0; i < 3; ++i) fill(v[i], n);
    fill(c, n);
    for (int i = 0; i < 3; ++i) add<<<1, 32>>>(v[i], c);
    cudaDeviceSynchronize();
  }"""
        done = compiled(tmp_path, body)
        assert put_in(done) == ["c", "v[i]"]
        sites = done.functions[-1].region.sites
        after = done.functions[-1].region.successors
        added = [s.number for s in sites if s.added]
        assert [sites[n].iterations == () for n in added] == [True, False, False, False]
        chain = range(added[0], next(s.number for s in sites if s.role is Role.DEVICE_SYNC))
        assert [after[n] for n in chain] == [(n + 1,) for n in chain]
        assert [s.number for s in sites] == list(range(len(sites)))

    @pytest.mark.parametrize(
        "loop",
        [
            "{ add<<<1, 32>>>(a, b); up<<<1, 32>>>(c); std::swap(a, b); }",
            "{ Pair* p = q; up<<<1, 32>>>(p->a); up<<<1, 32>>>(c); }",
            "{ up<<<1, 32>>>(q->a); up<<<1, 32>>>(c); }",
            "{ up<<<1, 32>>>(v[argc - 1]); up<<<1, 32>>>(c); }",
            "{ up<<<1, 32>>>(w[1]); up<<<1, 32>>>(c); }",
        ],
    )
    def test_not_again_and_again_in_a_loop(self, tmp_path: Path, loop: str) -> None:
        body = (
            "float* v[2] = {a, b}; Pair s{a, b}; Pair* q = argc > 1 ? &s : nullptr; float** w = argc > 2 ? v : nullptr;"
        )
        body += " fill(a, n); fill(b, n);"
        done = compiled(tmp_path, f"{body}\n  for (int i = 1; i < argc; ++i) {loop}")
        assert put_in(done) == []

    def test_a_chain_with_inputs_of_its_own_is_worth_two_streams(self, tmp_path: Path) -> None:
        body = "fill(a, n); fill(b, n); up<<<1, 32>>>(a); add<<<1, 32>>>(a, b);"
        main = compiled(tmp_path, body).functions[-1]
        assert (main.schedule.streams, len(main.plan.waits)) == (2, 1)
        assert not [s for s in main.serial.sites if s.kind is SiteKind.PREFETCH]
        assert compiled(tmp_path, body, options=Options()).functions[-1].left_because


READING = """\
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <vector>
__global__ void step(float* x, long n) { x[threadIdx.x] += n; }
__global__ void add(float* x, const float* y) { x[threadIdx.x] += y[threadIdx.x]; }
__global__ void other(float* x) { x[threadIdx.x] = 1; }
void unseen(float*);
static void fill(float* p, long n) { for (long i = 0; i < n; ++i) p[i] = i; }
static float sum(const float* p, long count) { float s = 0; for (long i = 0; i < count; ++i) s += p[i]; return s; }
static float walk(const float* p, long count) { float s = 0; while (count-- > 0) s += *p++; return s; }
static float some(const float* p, long count) { if (count > 9) return 0; return sum(p, count); }
int main(int argc, char** argv) {
  const long n = argc << 20, few = argc;
  const size_t bytes = n * sizeof(float);
  float *a, *b, s = 0;
  cudaMallocManaged(&a, SIZE); cudaMallocManaged(&b, bytes);
  float* v[2] = {a, b};
  std::vector<float> h(n);
"""
BOTH_WORK = "step<<<1, 32>>>(a, n); other<<<1, 32>>>(b); cudaDeviceSynchronize();"
BACK = "a host"


def read_back(tmp_path: Path, body: str, size: str = "bytes", options: Options = ASKED_FOR) -> Compilation:
    path = tmp_path / "app.cu"
    path.write_text(READING.replace("SIZE", size) + f"  {body}\n  return s + v[1][0] > 1;\n}}\n")
    return compile_file(str(path), options)


@pytest.mark.usefixtures("toolchain")
class TestBackToTheHost:
    @pytest.mark.parametrize(
        "reads",
        [
            "for (long i = 0; i < n; ++i) s += a[i];",
            "for (long i = 0; i < 1 << 20; i += 4) s += a[i];",
            "for (long i = 0; i < few; ++i) for (long j = 0; j < n; ++j) s += a[i * n + j];",
            "for (long i = 0; i < n; ++i) if (a[i] > s) s = a[i];",
            'for (long i = 0; i < n; ++i) printf("%f", *(a + i));',
            "s += sum(a, n);",
            "memcpy(h.data(), a, n * 4);",
            "memcpy(h.data(), &a[0], bytes);",
            "std::copy(a, a + n, h.begin());",
            "s = std::accumulate(a, a + n, 0.0f);",
            "fwrite(a, 4, n, stdout);",
            "s = a[0]; s += sum(a, n);",
            'if (argc > 2) printf("so"); s += sum(a, n);',
            "if (cudaGetLastError() != cudaSuccess) return 1; s += sum(a, n);",
            "for (long i = 0; i < n; ++i) { s += b[i]; s += a[i]; }",
        ],
    )
    def test_what_the_host_reads_by_much_comes_back_behind_its_last_kernel(self, tmp_path: Path, reads: str) -> None:
        found = read_back(tmp_path, f"{BOTH_WORK} {reads}")
        assert BACK in put_in(found)
        main = found.functions[-1]
        stream = {main.region.sites[n].label.partition("#")[0]: s for n, s in main.schedule.stream_of}
        assert stream["step"] != stream["other"]
        text = lines(found)
        place = next(n for n, line in enumerate(text) if line.startswith("kesco_prefetch(kesco, a"))
        assert text[place - 1].startswith("step<<<")

    @pytest.mark.parametrize(
        "reads",
        [
            "s = a[0];",
            "for (long i = 0; i < 100; ++i) s += a[i];",
            "for (long i = 0; i < few; ++i) s += a[i];",
            "for (long i = 0; i < n; ++i) s += a[0];",
            "for (long i = 0; i < n; i += 4096) s += a[i];",
            "for (long i = 0; i < n; ++i) s += a[i * n];",
            "for (long i = 0; i < std::min(n, 9L); ++i) s += a[i];",
            "for (long i = 0; i < n; ++i) a[i] = 1;",
            "s += walk(a, n);",
            "s += some(a, n);",
            "s += sum(a, 100);",
            "s += sum(a, few);",
            "memcpy(h.data(), a, 400);",
            "memcpy(h.data(), a, few);",
            "std::copy(a, a + 9, h.begin());",
            "if (argc > 2) s += sum(a, n);",
            "s = argc > 2 ? sum(a, n) : 0;",
            "if (argc > 2) return 0; s += sum(a, n);",
            "unseen(a); s += sum(a, n);",
            "fill(a, n); s += sum(a, n);",
            "cudaMemset(a, 0, bytes); s += sum(a, n);",
        ],
    )
    def test_nothing_comes_back_that_is_not_certainly_read_by_much(self, tmp_path: Path, reads: str) -> None:
        assert BACK not in put_in(read_back(tmp_path, f"{BOTH_WORK} {reads}"))

    def test_what_is_small_stays(self, tmp_path: Path) -> None:
        assert put_in(read_back(tmp_path, f"{BOTH_WORK} s += sum(a, n);", "65536")) == []
        assert put_in(read_back(tmp_path, f"{BOTH_WORK} s += sum(a, n);", "65540")) == [BACK]
        assert b"kesco_prefetch" not in read_back(tmp_path, f"{BOTH_WORK} s += sum(a, n);", options=Options()).text

    def test_what_the_host_reads_while_kernels_run_stays(self, tmp_path: Path) -> None:
        work = "step<<<1, 32>>>(a, n); other<<<1, 32>>>(b); s += a[1]; cudaDeviceSynchronize();"
        assert b"kesco_prefetch(" not in read_back(tmp_path, f"{work} s += sum(a, n);").text

    def test_in_a_loop_in_which_the_host_reads_it_comes_back_in_each_trip(self, tmp_path: Path) -> None:
        body = f"for (int it = 0; it < argc; ++it) {{ {BOTH_WORK} s += sum(a, n); }}"
        assert put_in(read_back(tmp_path, body)) == ["a", BACK]

    @pytest.mark.parametrize(
        ("work", "found"),
        [
            ("for (int it = 0; it < argc; ++it) { step<<<1, 32>>>(a, n); }", [BACK]),
            ("for (int it = 0; it < argc; ++it) { for (int k = 0; k < argc; ++k) step<<<1, 32>>>(a, n); }", [BACK]),
            ("for (int it = 0; it < argc; ++it) { step<<<1, 32>>>(a, n); cudaDeviceSynchronize(); }", [BACK]),
            ("for (int it = 0; it < argc; ++it) { step<<<1, 32>>>(a, n); if (it > 9) break; }", [BACK]),
            ("for (int it = 0; it < argc; ++it) { step<<<1, 32>>>(a, n); if (it > 9) return 0; }", []),
            ("for (int it = 0; it < argc; ++it) step<<<1, 32>>>(a, n);", []),
            (
                "step<<<1, 32>>>(a, n); other<<<1, 32>>>(b); float* p = a;\n"
                "  for (int it = 0; it < argc; ++it) { step<<<1, 32>>>(p, n); p = v[it % 2]; }",
                [],
            ),
            ("for (int i = 0; i < 2; ++i) { step<<<1, 32>>>(a, n); }", [BACK]),
        ],
    )
    def test_behind_a_loop_that_needs_it_again_and_again(self, tmp_path: Path, work: str, found: list[str]) -> None:
        body = f"{work}\n  other<<<1, 32>>>(b); cudaDeviceSynchronize(); s += sum(a, n);"
        done = read_back(tmp_path, body, options=Options(prefetch=True, force=True))
        assert put_in(done) == found
        if found:
            text = lines(done)
            place = next(n for n, line in enumerate(text) if "KescoHost" in line)
            assert text[place - 1].endswith("}")

    def test_macros_of_the_program_do_not_meet_the_places(self, tmp_path: Path) -> None:
        for macro in ("host", "device", "both"):
            done = read_back(tmp_path, f"\n#define {macro} 1\n  {BOTH_WORK} s += sum(a, n) + {macro};")
            assert put_in(done) == [BACK]
        assert (
            b"kesco_prefetch" not in read_back(tmp_path, f"\n#define KescoHost 1\n  {BOTH_WORK} s += sum(a, n);").text
        )

    def test_not_where_the_host_no_longer_waits(self, tmp_path: Path) -> None:
        body = f"for (int it = 0; it < argc; ++it) {{ {BOTH_WORK} }}\n  s += sum(a, n);"
        assert BACK not in put_in(read_back(tmp_path, body))

    def test_not_where_the_loop_is_only_sometimes_followed_by_the_host(self, tmp_path: Path) -> None:
        body = f"for (int it = 0; it < argc; ++it) {{ {BOTH_WORK} if (it % 9 == 0) s += sum(a, n); }}"
        assert BACK not in put_in(read_back(tmp_path, body))

    def test_each_element_of_an_unrolled_loop(self, tmp_path: Path) -> None:
        work = "for (int i = 0; i < 2; ++i) step<<<1, 32>>>(v[i], n); cudaDeviceSynchronize();"
        done = read_back(tmp_path, f"{work} for (int i = 0; i < 2; ++i) s += sum(v[i], n);")
        assert put_in(done) == ["v[i] host"]
        main = done.functions[-1]
        assert sum(site.label.startswith("prefetch to host") for site in main.region.sites) == 2
        assert BACK not in put_in(read_back(tmp_path, f"{work} s += sum(v[0], n);"))

    def test_who_waits_for_the_kernel_does_not_wait_for_the_pages(self, tmp_path: Path) -> None:
        work = "step<<<1, 32>>>(a, n);\n  add<<<1, 32>>>(b, a);\n  step<<<1, 32>>>(a, few);"
        text = lines(read_back(tmp_path, f"{work} cudaDeviceSynchronize(); s += sum(b, n);"))
        place = next(n for n, line in enumerate(text) if line.startswith("add<<<"))
        assert [line.partition("(")[0] for line in text[place + 1 : place + 4]] == [
            *("cudaEventRecord", "cudaStreamWaitEvent", "kesco_prefetch"),
        ]
        assert text[place + 4].startswith("step<<<")

    def test_the_author_is_told(self, tmp_path: Path) -> None:
        done = read_back(tmp_path, f"fill(a, n); {BOTH_WORK} s += sum(a, n);")
        (told,) = [d for d in done.diagnostics if d.code == "K209"]
        assert told.message == "'main': 2 prefetches of managed memory put in, 1 back to the host"
        assert [note.message for note in told.notes] == [
            "'a', which step reads",
            "'a', which the host reads behind step",
        ]


READ_ONLY = "for (int it = 0; it < argc; ++it) { add<<<1, 32>>>(b, a); other<<<1, 32>>>(c); cudaDeviceSynchronize(); "


@pytest.mark.usefixtures("toolchain")
class TestOnlyRead:
    @pytest.mark.parametrize(
        ("body", "found"),
        [
            (READ_ONLY + "s += sum(a, n); }", "a both"),
            (READ_ONLY + "s += sum(a, n); } cudaFree(a);", "a both"),
            (READ_ONLY + "s += sum(a, n); } fill(b, n);", "a both"),
            (READ_ONLY + "s += sum(a, n); } add<<<1, 32>>>(c, a);", "a both"),
            (READ_ONLY + "s += a[1]; }", "a"),
            (READ_ONLY + "s += sum(a, n); a[1] = 1; }", "a"),
            (READ_ONLY + "s += sum(a, n); } a[1] = 1;", "a"),
            (READ_ONLY + "s += sum(a, n); } other<<<1, 32>>>(a);", "a"),
            (READ_ONLY + "s += sum(a, n); } unseen(a);", "a"),
            (READ_ONLY + "s += sum(a, n); } unseen(b);", "a"),
            (READ_ONLY + "if (it > 2) s += sum(a, n); }", "a"),
        ],
    )
    def test_what_nobody_writes_any_more_is_kept_on_both_sides(self, tmp_path: Path, body: str, found: str) -> None:
        done = read_back(tmp_path, f"float* c; cudaMallocManaged(&c, bytes); fill(a, n);\n  {body}")
        mine = [one for one in put_in(done) if one.startswith("a")]
        assert mine[:1] == [found]
        assert "a host" not in mine or found == "a"
        text = lines(done)
        place = next(n for n, line in enumerate(text) if line.startswith("kesco_prefetch(kesco, a"))
        assert text[place + 1].startswith("for (") == (found == "a both")

    def test_other_functions_may_write_what_outlives_this_one(self, tmp_path: Path) -> None:
        for free, found in (("", "a"), ("cudaFree(a);", "a both")):
            work = (
                READING[: READING.index("int main")]
                + """
float run(int argc) {
  const long n = argc << 20;
  float *a, *b, *c, s = 0;
  cudaMallocManaged(&a, n * 4); cudaMallocManaged(&b, n * 4); cudaMallocManaged(&c, n * 4);
  fill(a, n);
  """
            )
            path = tmp_path / "app.cu"
            path.write_text(f"{work}{READ_ONLY} s += sum(a, n); }}\n  {free}\n  return s;\n}}\n")
            assert put_in(compile_file(str(path), ASKED_FOR))[0] == found


RUNTIME = """\
#include <cstdio>
#include <cstddef>
#include <cstring>
#define CUDART_VERSION VERSION
using cudaStream_t = int*;
using cudaEvent_t = int*;
enum cudaError_t { cudaSuccess, cudaErrorInvalidValue, cudaErrorOfTheProgram };
enum cudaDeviceAttr { cudaDevAttrConcurrentManagedAccess = 89 };
enum { cudaEnableDefault, cudaEventDisableTiming, cudaStreamNonBlocking, cudaCpuDeviceId = -1 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeRelaxed = 2 };
enum cudaMemLocationType { cudaMemLocationTypeDevice = 1, cudaMemLocationTypeHost };
enum cudaMemoryAdvise { cudaMemAdviseSetReadMostly = 1 };
enum cudaDriverEntryPointQueryResult { None };
struct cudaMemLocation { cudaMemLocationType type; int id; };
char pages[1 << 20];
cudaError_t last, fails;
int able, calls, back, advised;
cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
unsigned busy = 0;  // a bit for each stream
int streams, recorded, on;  // how many there are, the number of the latest event's stream, and of the latest prefetch's
int range(unsigned long long* base, std::size_t* size, unsigned long long at) {
  const auto begin = reinterpret_cast<unsigned long long>(pages);
  if (at < begin || at >= begin + sizeof pages) return 1;
  *base = begin, *size = at == begin + 1 ? 65536 : sizeof pages;
  if (at == begin + 1) ++*base;
  return 0;
}
int query(cudaStream_t s) {
  if (mode != cudaStreamCaptureModeRelaxed) return 900;
  return busy >> *s & 1 ? 600 : 0;
}
cudaError_t entry_of(const char* name, void** entry) {
  *entry = nullptr;
  if (!std::strcmp(name, "cuMemGetAddressRange")) *entry = reinterpret_cast<void*>(&range);
  if (!std::strcmp(name, "cuStreamQuery")) *entry = reinterpret_cast<void*>(&query);
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* n, void** e, unsigned, int, cudaDriverEntryPointQueryResult*) {
  return entry_of(n, e);
}
cudaError_t cudaGetDriverEntryPoint(const char* n, void** e, int) { return entry_of(n, e); }
cudaError_t cudaFree(void*) { return cudaSuccess; }
cudaError_t cudaStreamCreate(cudaStream_t* s) { *s = new int(streams++); return cudaSuccess; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, int) { return cudaStreamCreate(s); }
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* other) {
  const cudaStreamCaptureMode was = mode;
  mode = *other, *other = was;
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, int) { *e = new int; return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) { *e = *s; return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  if (*s == 0) recorded = *e;
  return cudaSuccess;
}
cudaError_t cudaPeekAtLastError() { return last; }
cudaError_t cudaGetLastError() { const cudaError_t was = last; last = cudaSuccess; return was; }
cudaError_t cudaGetDevice(int* device) { *device = 3; return cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) { *value = able; return last; }
cudaError_t moved(const void* at, std::size_t size, int device, cudaStream_t stream) {
  const bool all = at == pages ? size == sizeof pages : at == pages + 1 && size == 65536;
  calls += all && (device == 3 || device == -1) && stream != nullptr ? 1 : 100;
  back += device == -1;
  on = *stream;
  if (fails != cudaSuccess) last = fails;
  return fails;
}
cudaError_t advice(const void* at, std::size_t size, int device) {
  advised += calls == 0 && device == 3 && (at == pages ? size == sizeof pages : size == 65536) ? 1 : 100;
  if (fails != cudaSuccess) last = fails;
  return fails;
}
#if VERSION >= 13000
cudaError_t cudaMemPrefetchAsync(const void* at, std::size_t size, cudaMemLocation to, unsigned, cudaStream_t stream) {
  return moved(at, size, to.type == cudaMemLocationTypeDevice ? to.id : -1, stream);
}
cudaError_t cudaMemAdvise(const void* at, std::size_t size, cudaMemoryAdvise, cudaMemLocation to) {
  return advice(at, size, to.type == cudaMemLocationTypeDevice ? to.id : -1);
}
#else
cudaError_t cudaMemAdvise(const void* at, std::size_t size, cudaMemoryAdvise, int device) {
  return advice(at, size, device);
}
cudaError_t cudaMemPrefetchAsync(const void* at, std::size_t size, int device, cudaStream_t stream) {
  return moved(at, size, device, stream);
}
#endif
"""
DRIVER = """\
int main() {
  int local = 0;
  struct { const char* what; const void* at; cudaError_t before, fails; int able; } const cases[] = {
    {"moves", pages, cudaSuccess, cudaSuccess, 1},
    {"fails", pages, cudaSuccess, cudaErrorInvalidValue, 1},
    {"pending", pages, cudaErrorOfTheProgram, cudaSuccess, 1},
    {"unable", pages, cudaSuccess, cudaSuccess, 0},
    {"inside", pages + 2, cudaSuccess, cudaSuccess, 1},
    {"small", pages + 1, cudaSuccess, cudaSuccess, 1},
    {"unknown", &local, cudaSuccess, cudaSuccess, 1},
    {"null", nullptr, cudaSuccess, cudaSuccess, 1},
  };
  for (const auto& one : cases) {
    for (const KescoPages where : {KescoDevice, KescoHost, KescoBoth}) {
      calls = back = advised = 0, last = one.before, fails = one.fails, able = one.able;
      kesco_prefetch(&kesco_streams(), one.at, kesco_streams().stream[0], where);
      std::printf("%s %d %d %d %d\\n", one.what, calls, back, advised, static_cast<int>(last));
    }
  }
  KescoStreams& all = kesco_streams();
  able = 1, fails = last = cudaSuccess;
  for (const unsigned each : {0u, ~0u, 1u, ~(1u << 6), ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 2u}) {
    busy = each, recorded = on = -1;
    kesco_prefetch(&all, pages, all.stream[0]);
    std::printf("busy %x: on %d, waits for %d, %d\\n", each, on, recorded, static_cast<int>(last));
  }
  busy = ~0u;
  kesco_prefetch(&all, pages, all.stream[0], KescoHost);
  std::printf("back: on %d, %d streams, mode %d\\n", on, streams, static_cast<int>(mode));
  for (const std::size_t least : {std::size_t{1}, KescoStreams::large + 0, static_cast<std::size_t>(-1)}) {
    all.least = least, calls = 0;
    kesco_prefetch(&all, pages, all.stream[0]);
    kesco_prefetch(&all, pages + 1, all.stream[0]);
    std::printf("of two %d\\n", calls);
  }
}
"""


@pytest.mark.parametrize("version", [12000, 12050, 13000])
def test_what_the_inserted_function_does(tmp_path: Path, version: int) -> None:
    text = RUNTIME.replace("VERSION VERSION", f"VERSION {version}").replace("#if VERSION", f"#if {version}")
    (tmp_path / "app.cpp").write_text(text + prologue(2, 1, Parts(prefetches=True)) + DRIVER)
    subprocess.run(
        ["g++", "-std=c++17", "-Wall", "-Werror", "-pthread", "app.cpp", "-o", "app"], cwd=tmp_path, check=True
    )
    said = subprocess.run([tmp_path / "app"], capture_output=True, text=True, check=True).stdout.split("\n")
    nothing = ["unable", "inside", "unknown", "null"]
    place = said.index("busy 0: on 0, waits for -1, 0")
    assert said[place + 1 : -1] == [  # it has streams 0 and 1 of its own, and at most eight beside them
        "busy ffffffff: on 2, waits for 2, 0",
        "busy 1: on 3, waits for 3, 0",
        "busy ffffffbf: on 6, waits for 6, 0",
        *(f"busy ffffffff: on {n}, waits for {n}, 0" for n in (5, 6, 7, 8, 9, 2)),
        "busy 2: on 0, waits for -1, 0",
        "back: on 0, 10 streams, mode 0",
        *("of two 2", "of two 1", "of two 0"),
    ]
    # Calls, those to the host, advice, and the error that the program sees.
    assert (
        said[:place]
        == [
            *("moves 1 0 0 0", "moves 1 1 0 0", "moves 1 0 1 0"),
            *("fails 1 0 0 0", "fails 1 1 0 0", "fails 0 0 1 0"),  # and the program does not learn of it
            *("pending 0 0 0 2",) * 3,
            *(f"{one} 0 0 0 0" for one in nothing[:2] for _ in range(3)),
            *("small 1 0 0 0", "small 0 0 0 0", "small 1 0 1 0"),
            *(f"{one} 0 0 0 0" for one in nothing[2:] for _ in range(3)),
        ]
    )
