"""Waits of the host that nothing needs are taken out, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest
from integration.compiled import Compiled, compile_and_keep

from kesco.options import Options

HEAD = """\
#include <chrono>
#include <cstdio>
#include <ctime>
#include <unistd.h>
void elsewhere();
__global__ void up(float* x) { x[threadIdx.x] += 1; }
__global__ void talk(float* x) { x[threadIdx.x] += 1; printf("%f", x[0]); }
__global__ void both(float* z, const float* x, const float* y) { z[threadIdx.x] = x[threadIdx.x] + y[threadIdx.x]; }
#define CHECK(call) do { if ((call) != cudaSuccess) return 1; } while (0)
static void say(int i) { printf("%d", i); }
"""
MAIN = """\
int main(int argc, char** argv) {
  float *a, *b, *c, *d;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096); cudaMalloc(&c, 4096); cudaMalloc(&d, 4096);
  clock_t now = 0;
  cudaError_t e = cudaSuccess;
  for (int i = 0; i < argc; ++i) {
    up<<<1, 32>>>(a);
    @FIRST@
    up<<<1, 32>>>(b);
    cudaDeviceSynchronize();
    both<<<1, 32>>>(c, a, b);
    up<<<1, 32>>>(d);
    up<<<1, 32>>>(c);
  }
  cudaDeviceSynchronize();
  return 0;
}
"""
SYNC = "cudaDeviceSynchronize();"


def compiled(tmp_path: Path, text: str) -> Compiled:
    path = tmp_path / "app.cu"
    path.write_text(HEAD + text)
    return compile_and_keep(path)


def taken_out(outcome: Compiled) -> list[int]:
    """The lines of the source, counted from the first of the loop, whose wait is a comment now."""
    result = outcome.result
    lines = [one.region.sites[n].span.line for one in outcome.rewritten for n in one.plan.needless]
    assert result.text.count(b"kesco: not needed here: ") == len(lines)
    start = next(n for n, line in enumerate(result.source.split(b"\n"), start=1) if b"for (" in line)
    return [line - start for line in lines]


def with_first(text: str) -> str:
    return MAIN.replace("@FIRST@", text)


def test_between_kernels_nothing_looks(tmp_path: Path) -> None:
    outcome = compiled(tmp_path, with_first(SYNC))
    assert taken_out(outcome) == [2, 4]
    text = outcome.result.text.decode()
    assert "    // kesco: not needed here: cudaDeviceSynchronize();\n" in text
    assert text.count("    cudaDeviceSynchronize();") == 0
    assert text.count("  cudaDeviceSynchronize();\n  return 0;") == 1


@pytest.mark.parametrize(
    "spelled", ["(void)cudaDeviceSynchronize();", "::cudaDeviceSynchronize( ) ;", "{ cudaDeviceSynchronize(); }"]
)
def test_ways_to_write_it(tmp_path: Path, spelled: str) -> None:
    assert taken_out(compiled(tmp_path, with_first(spelled))) == [2, 4]


OLD_NAME = "#define cudaThreadSynchronize cudaDeviceSynchronize\n"


def test_an_old_name_may_be_a_macro_for_the_new_one(tmp_path: Path) -> None:
    text = with_first("cudaThreadSynchronize();")
    assert taken_out(compiled(tmp_path, OLD_NAME + text)) == [2, 4]
    for more in ("() (clock(), cudaDeviceSynchronize())", "() cudaDeviceSynchronize(); up<<<1, 1>>>(d)"):
        other = OLD_NAME.replace(" cudaDeviceSynchronize", more)
        assert 2 not in taken_out(compiled(tmp_path, other + text))


@pytest.mark.parametrize(
    "first",
    [
        "CHECK(cudaDeviceSynchronize());",
        "e = cudaDeviceSynchronize();",
        "if (cudaDeviceSynchronize() != cudaSuccess) return 1;",
        "if (argc > 3) cudaDeviceSynchronize();",
        'cudaDeviceSynchronize(); printf("%d", i);',
        "cudaDeviceSynchronize(); say(i);",
        "cudaDeviceSynchronize(); now = clock();",
        "cudaDeviceSynchronize(); auto t = std::chrono::steady_clock::now();",
        "cudaDeviceSynchronize(); usleep(1);",
        "cudaDeviceSynchronize(); e = cudaGetLastError();",
        "cudaDeviceSynchronize(); if (clock() > 5) return 1;",
        "cudaDeviceSynchronize(); if (i > 3) return 1;",
        "cudaDeviceSynchronize(); float* f; cudaMalloc(&f, 64); cudaFree(f);",
        "elsewhere(); cudaDeviceSynchronize();",
        "cudaDeviceSynchronize(); elsewhere();",
    ],
)
def test_what_may_be_looked_at_or_checked_stays(tmp_path: Path, first: str) -> None:
    outcome = compiled(tmp_path, with_first(first))
    assert outcome.rewritten or "elsewhere(" in first, "work behind the barrier overlaps"
    assert 2 not in taken_out(outcome)


OTHERS_WATCH = (
    "ready = 1;",
    "argc += pair.flag;",
    "*++there = 2;",
    '__builtin_printf("");',
    "several[1] = i;",
    "__atomic_store_n(&argc, 3, 5);",
)


def test_what_others_may_watch_is_a_look(tmp_path: Path) -> None:
    """Another process, or a thread of another file, may wait for such an access and then expect what came before it."""
    watched = "volatile int ready, several[2]; struct { volatile int flag; } pair; volatile int* there;\n"
    more = "".join(f"    {SYNC} {one}\n    up<<<1, 32>>>(a); up<<<1, 32>>>(b);\n" for one in OTHERS_WATCH)
    outcome = compiled(tmp_path, watched + with_first(f"{more}    {SYNC} now = __builtin_readcyclecounter();"))
    assert taken_out(outcome) == [16]
    wait = next(n for n, line in enumerate(outcome.lines) if line.strip() == SYNC)
    lines = [*outcome.lines[:wait], *outcome.lines[wait + 2 :]]  # and without the stretch that begins there
    assert "ready" in lines[wait]
    assert "may not be done when the host reaches" in outcome.refuses(lines)


@pytest.mark.parametrize(
    "change",
    [
        ("up<<<1, 32>>>(b)", "talk<<<1, 32>>>(b)"),
        ("int main(", "#define cudaDeviceSynchronize() ::cudaDeviceSynchronize()\nint main("),
    ],
    ids=["device printf", "a macro"],
)
def test_where_memory_or_names_are_not_plain_all_stay(tmp_path: Path, change: tuple[str, str]) -> None:
    assert taken_out(compiled(tmp_path, with_first(SYNC).replace(*change))) == []


SHARED = ("cudaMallocManaged", "cudaMallocHost")


@pytest.mark.parametrize("allocate", SHARED)
def test_memory_of_both_sides_that_the_host_leaves_alone(tmp_path: Path, allocate: str) -> None:
    text = with_first(SYNC).replace("cudaMalloc(&b", f"{allocate}(&b")
    assert len(taken_out(compiled(tmp_path, text))) == 2


@pytest.mark.parametrize("allocate", SHARED)
@pytest.mark.parametrize(
    "touches",
    [
        "now += b[3] > 0;",
        "b[0] = 1;",
        "touch(b);",
        "[&] { ++*b; }();",
        "held.at[i % 2][1] = 5;",
        "std::swap(b[0], b[1]);",
        "std::memcpy(kept, b, 64);",
        "for (float* p = b; p < b + 4; ++p) now += *p > 1;",
        "cudaMemcpy(kept, b, 64, cudaMemcpyDefault);",
        "cudaFree(c); cudaMalloc(&c, 4096);",
    ],
)
def test_memory_of_both_sides_that_the_host_touches(tmp_path: Path, allocate: str, touches: str) -> None:
    """Here the first wait stands right before that; where the host touches other managed memory, it stays as well."""
    head = "#include <cstring>\n#include <utility>\nstatic float kept[64];\nstruct Held { float* at[2]; };\n"
    head += "__attribute__((noinline)) static void touch(float* p) { p[2] = 7; }\n"
    text = head + with_first(f"{SYNC} {touches}").replace("cudaMalloc(&b", f"{allocate}(&b")
    text = text.replace("  clock_t now", "  Held held = {{b, b}};\n  clock_t now")
    assert 2 not in taken_out(compiled(tmp_path, text))


def test_pointers_from_outside_may_be_managed_memory(tmp_path: Path) -> None:
    body = f"void step(float* a, float* b) {{ for (;;) {{ up<<<1, 1>>>(a); {SYNC} up<<<1, 1>>>(b); {SYNC} }} }}\n"
    assert taken_out(compiled(tmp_path, body + "int main() {}\n")) == []


STEP = """\
__device__ float symbol[32];
__global__ void sum(float* x) { x[threadIdx.x] += symbol[threadIdx.x]; }
float* global;
void step(int n, float* host) {
  float *a, *b, *c; static float* kept; float here[32];
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096); cudaMalloc(&c, 4096);
  if (!kept) cudaMalloc(&kept, 4096);
  for (int i = 0; i < n; ++i) {
    up<<<1, 32>>>(a);
    @FIRST@
    @THEN@
    cudaDeviceSynchronize();
    both<<<1, 32>>>(c, a, b);
    cudaDeviceSynchronize();
    cudaGetLastError();
  }
  cudaFree(a); cudaFree(b); cudaFree(c);
}
int main() {}
"""


def test_a_function_that_unseen_code_may_call_needs_no_wait_for_work_on_what_it_allocated(tmp_path: Path) -> None:
    """The caller may have work on a stream that the default stream does not wait for; its memory is another."""
    text = STEP.replace("@FIRST@", SYNC).replace("@THEN@", "up<<<1, 32>>>(b);")
    assert taken_out(compiled(tmp_path, text)) == [2, 4]
    assert taken_out(compiled(tmp_path, text.replace(f"    {SYNC}\n    up", f"    {SYNC} elsewhere();\n    up"))) == []


@pytest.mark.parametrize(
    "then",
    [
        "up<<<1, 32>>>(kept);",
        "sum<<<1, 32>>>(b);",
        "cudaMemcpy(b, host, 4096, cudaMemcpyHostToDevice);",
        "cudaMemcpy(b, here, 128, cudaMemcpyHostToDevice);",
        "host[0] = 1; up<<<1, 32>>>(b);",
    ],
)
def test_but_for_work_on_what_the_caller_may_know(tmp_path: Path, then: str) -> None:
    text = STEP.replace("@FIRST@", SYNC).replace("@THEN@", f"{then} up<<<1, 32>>>(b);")
    assert 2 not in taken_out(compiled(tmp_path, text))


def test_the_proof_sees_a_wait_that_is_missing_before_a_look(tmp_path: Path) -> None:
    for look in ('printf("%d", i);', "say(i);", "now = clock();", "e = cudaGetLastError();"):
        outcome = compiled(tmp_path, with_first(f"{SYNC}\n    {look}"))
        assert outcome.rewritten
        at = outcome.lines.index(f"    {look}")
        wait = max(n for n in range(at) if outcome.lines[n].strip() == SYNC)
        lines = [*outcome.lines[:wait], *outcome.lines[wait + 1 :]]
        assert "may not be done when the host reaches" in outcome.refuses(lines), look


def test_the_first_wait_stays_where_the_host_touches_what_the_caller_may_still_write(tmp_path: Path) -> None:
    """The function is called in a condition, so that it is no part of `main`, and by nothing that is not seen."""
    step = f"""\
static int step(float* shared) {{
  float *x, *y;
  cudaMalloc(&x, 4096); cudaMalloc(&y, 4096);
  {SYNC}
  shared[0] = 1;
  up<<<1, 32>>>(x); up<<<1, 32>>>(y);
  {SYNC}
  up<<<1, 32>>>(x); up<<<1, 32>>>(y);
  {SYNC}
  cudaFree(x); cudaFree(y);
  return 1;
}}
int main() {{
  float* s;
  cudaMallocManaged(&s, 4096);
  up<<<1, 32>>>(s);
  if (step(s)) {SYNC}
}}
"""
    path = tmp_path / "app.cu"
    path.write_text("__global__ void up(float* x) { x[threadIdx.x] += 1; }\n" + step)  # nothing is only declared
    lines = [line.strip() for line in compile_and_keep(path).lines]
    assert lines[lines.index("shared[0] = 1;") - 1] == SYNC
    assert sum(line.startswith("// kesco: not needed here: ") for line in lines) == 1


UNKNOWN_MEMORY = """\
#include <map>
__global__ void up(float* x) { x[threadIdx.x] += 1; }
static std::map<int, float*> table;
static float big[1 << 25];
static int step(int k) {
  float *x, *y;
  cudaMalloc(&x, sizeof big); cudaMalloc(&y, sizeof big);
  @FIRST@
  @THEN@
  up<<<1, 32>>>(x); up<<<1, 32>>>(y);
  cudaDeviceSynchronize();
  up<<<1, 32>>>(x); up<<<1, 32>>>(y);
  cudaDeviceSynchronize();
  cudaFree(x); cudaFree(y);
  return 1;
}
int main(int argc, char** argv) {
  cudaMallocManaged(&table[argc], 4096);
  up<<<1, 32>>>(table[argc]);
  if (step(argc)) cudaDeviceSynchronize();
}
"""
COPY = "cudaMemcpy(x, big, sizeof big, cudaMemcpyHostToDevice);"


@pytest.mark.parametrize("first", [SYNC, COPY], ids=["a wait", "a copy"])
def test_the_first_wait_stays_where_the_host_goes_through_a_pointer_that_is_not_known(
    tmp_path: Path, first: str
) -> None:
    """Behind it is the caller's managed memory, in which the caller's kernel may still be writing."""
    text = UNKNOWN_MEMORY.replace("@FIRST@", first).replace("@THEN@", "table[k][0] = 1;")
    path = tmp_path / "app.cu"
    path.write_text(text)
    outcome = compile_and_keep(path, Options(copies="move"))
    at = next(n for n, line in enumerate(outcome.lines) if "table[k][0] = 1" in line)
    assert outcome.lines[at - 1].strip() == SYNC or outcome.lines[at - 1].endswith(", true);")
    without = outcome.lines[at - 1].replace(SYNC, "").replace(", true", "")
    lines = [*outcome.lines[: at - 1], without, *outcome.lines[at:]]
    assert "what ran before the function" in outcome.refuses(lines)


def test_and_goes_where_the_host_stays_with_its_own(tmp_path: Path) -> None:
    path = tmp_path / "app.cu"
    path.write_text(UNKNOWN_MEMORY.replace("@FIRST@", SYNC).replace("@THEN@", "k += 1;"))
    text = compile_and_keep(path).result.text.decode()
    assert text.count("// kesco: not needed here: ") == 2


def test_what_the_host_touches_right_before_a_wait(tmp_path: Path) -> None:
    """The proof cannot tell it from what is touched behind a wait that is gone."""
    outcome = compiled(
        tmp_path,
        "int f(int, char** argv) {\n  float *a, *b;\n  cudaMalloc(&a, 4096);\n  cudaMalloc(&b, 4096);\n"
        "  up<<<1, 32>>>(a);\n  up<<<1, 32>>>(b);\n"
        "  if (argv[1][0] == 'y') {\n    up<<<1, 32>>>(b);\n  } else {\n    cudaDeviceSynchronize();\n"
        "    up<<<1, 32>>>(a);\n  }\n  up<<<1, 32>>>(b);\n  cudaDeviceSynchronize();\n  return 0;\n}\n",
    )
    assert b"kesco: not needed here: " not in outcome.result.text


OPEN = """\
@HEAD@
void f(@TAKES@) {
  float *a, *b;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaDeviceSynchronize();
  @BETWEEN@
  up<<<1, 32>>>(a);
  up<<<1, 32>>>(b);
  cudaDeviceSynchronize();
}
"""


@pytest.mark.parametrize(
    ("head", "takes", "between", "goes"),
    [
        ("", "float* h", ";", True),
        ("#include <cmath>", "float t, float* h", "sincosf(t, &h[0], &h[1]);", False),
        ("#include <cmath>", "double x, double* h", "x = modf(x, h);", False),
        ("#include <cstdlib>", "float* h", "free(h);", False),
        ("", "float* h", "delete[] h;", False),
        ("#include <vector>", "std::vector<float>* v", "delete v;", False),
        ("#include <vector>", "std::vector<float> v", "v.clear();", False),
        ("#include <memory>", "std::shared_ptr<float> p", "p.reset();", False),
        ("", "float* h", "meet<<<1, 32>>>(a, reinterpret_cast<volatile int*>(b));", False),  # runs alone
    ],
)
def test_the_first_wait_of_a_function_that_others_call(
    tmp_path: Path, head: str, takes: str, between: str, goes: bool
) -> None:
    """What the caller has under way may still use what the host touches, or lets go, behind it."""
    meet = (
        "__global__ void meet(float* x, volatile int* n) { x[0] += 1; atomicAdd(const_cast<int*>(n), 1); "
        "while (*n < gridDim.x) {} }"
    )
    text = OPEN.replace("@HEAD@", f"{head}\n{meet}").replace("@TAKES@", takes).replace("@BETWEEN@", between)
    outcome = compiled(tmp_path, text)
    assert (b"kesco: not needed here: " in outcome.result.text) == goes


@pytest.mark.parametrize("around", ["namespace app {\n@\n}", "struct App {\n@\n};"])
def test_not_every_main_is_the_program_s(tmp_path: Path, around: str) -> None:
    text = OPEN.replace("@HEAD@", "").replace("@TAKES@", "float* h").replace("void f(", "void main(")
    outcome = compiled(tmp_path, around.replace("@", text.replace("@BETWEEN@", "const float q = h[0]; (void)q;")))
    assert b"kesco: not needed here: " not in outcome.result.text


def test_waits_hide_nothing_that_the_ir_tells_apart(tmp_path: Path) -> None:
    """Four buffers of a loop are one to the text's reading; each launch is waited for."""
    text = """struct Fields { float *a, *b, *c, *d; };
__global__ void first(Fields f) { f.a[threadIdx.x] += 1; }
__global__ void second(Fields f) { f.b[threadIdx.x] += 1; }
int main() {
  Fields f;
  float** all[] = {&f.a, &f.b, &f.c, &f.d};
  for (auto one : all) cudaMallocManaged(one, 4096);
  for (int i = 0; i < 20; ++i) {
    first<<<1, 32>>>(f);
    cudaDeviceSynchronize();
    second<<<1, 32>>>(f);
    cudaDeviceSynchronize();
  }
  printf("%f", f.a[3]);
}
"""
    assert len(taken_out(compiled(tmp_path, text))) == 1  # behind the other one is what is printed
    met = text.replace("f.b[threadIdx.x] += 1", "f.b[threadIdx.x] += f.a[threadIdx.x]")
    assert taken_out(compiled(tmp_path, met)) == []


HOME = """\
#define OR_ELSE(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { printf("%d", e_); exit(1); } } while (0)
#include <cstdlib>
int main(int argc, char** argv) {
  float *a, *b, got = 0;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096);
  for (int i = 0; i < 100; ++i) {
    up<<<1, 32>>>(a);
    up<<<1, 32>>>(b);
    WAIT
    COPY
    printf("%f", got);
  }
  cudaFree(a);
  return 0;
}
"""


@pytest.mark.parametrize(
    ("wait", "copy", "goes"),
    [
        (SYNC, "cudaMemcpy(&got, a, 4, cudaMemcpyDeviceToHost);", True),
        (SYNC, "OR_ELSE(cudaMemcpy(&got, a, 4, cudaMemcpyDeviceToHost));", True),
        (f"OR_ELSE({SYNC[:-1]});", "OR_ELSE(cudaMemcpy(&got, a, 4, cudaMemcpyDeviceToHost));", True),
        (f"OR_ELSE({SYNC[:-1]});", "cudaMemcpy(&got, a, 4, cudaMemcpyDeviceToHost);", False),
        (SYNC, "cudaMemcpy(a, &got, 4, cudaMemcpyHostToDevice);", False),
        (SYNC, "if (i % 10 == 0) cudaMemcpy(&got, a, 4, cudaMemcpyDeviceToHost);", False),
    ],
)
def test_a_copy_to_the_host_that_stays_is_a_wait(tmp_path: Path, wait: str, copy: str, goes: bool) -> None:
    """Small ones are left where they are; an error that somebody asks about is still asked about."""
    outcome = compiled(tmp_path, HOME.replace("WAIT", wait).replace("COPY", copy))
    assert [one.serial.function for one in outcome.rewritten] == ["main"]
    assert (len(taken_out(outcome)) == 1) == goes


FOUND = """\
#include <map>
int main(int argc, char** argv) {
  float *p, *b;
  MAKES(&p, 4096); cudaMalloc(&b, 4096);
  std::map<int, float*> m;
  m[3] = p;
  up<<<1, 32>>>(b);
  up<<<1, 32>>>(p);
  cudaDeviceSynchronize();
  float k = AGAIN[5];
  up<<<1, 32>>>(b);
  up<<<1, 32>>>(p);
  cudaDeviceSynchronize();
  return k > 3;
}
"""


@pytest.mark.parametrize("makes", ["cudaMallocManaged", "cudaMallocHost"])
@pytest.mark.parametrize("pointer", ["m.at(3)", "m[argc]", "p"])
def test_the_host_may_find_what_the_device_reaches_where_nothing_is_known(
    tmp_path: Path, pointer: str, makes: str
) -> None:
    outcome = compiled(tmp_path, FOUND.replace("AGAIN", pointer).replace("MAKES", makes))
    assert b"not needed here" not in outcome.result.text


@pytest.mark.parametrize("makes", ["cudaMallocManaged", "cudaMallocHost"])
def test_memory_that_a_header_allocates_is_shared_too(tmp_path: Path, makes: str) -> None:
    (tmp_path / "make.h").write_text(f"template <class T> void make(T** found, int size) {{ {makes}(found, size); }}\n")
    text = FOUND.replace("AGAIN", "m.at(3)").replace("MAKES", "make").replace("<map>", '<map>\n#include "make.h"')
    assert b"not needed here" not in compiled(tmp_path, text).result.text
