"""Prefetches for later launches of a loop: issued in its first trip, behind the launches that come before."""

from __future__ import annotations

import re

import pytest

from kesco.emit.prologue import END
from kesco.options import Options
from kesco.pipeline import compile_file

HEAD = """\
#include <cstdlib>
#include <vector>
#define OK(c) do { if ((c) != cudaSuccess) exit(1); } while (0)
__global__ void up(float* x) { x[threadIdx.x] += 1; }
__global__ void set(float* x) { x[threadIdx.x] = 1; }
__global__ void add(float* x, const float* y) { x[threadIdx.x] += y[threadIdx.x]; }
void unseen();
static void failed(cudaError_t e) { if (e != cudaSuccess) exit(1); }
static float slow(int n) { float s = 0; for (int i = 0; i < n; ++i) s += i; return s; }
static float fast(int n) { return 2 * n; }
static void fill(float* p, int n) { for (int i = 0; i < n; ++i) p[i] = i; }
"""
FUNCTION = """\
void f{number}(int argc, int n) {{
  float *a, *b, *c, *d;
  cudaMallocManaged(&a, argc * 4096); cudaMallocManaged(&b, argc * 4096);
  cudaMallocManaged(&c, argc * 4096); cudaMallocManaged(&d, argc * 4096);
  fill(a, n); fill(b, n);
  std::vector<float> h(n);
  int k = argc;
{body}
}}
"""
A, B, C = "up<<<1, 32>>>(a);", "up<<<1, 32>>>(b);", "add<<<1, 32>>>(d, c);"
FOR = "for (int i = 0; i < argc; ++i)"
INNER = "for (int j = 0; j < argc; ++j)"
READ_BEFORE = f"add<<<1, 32>>>(c, b);\n k += b[0];\n {FOR} {{ add<<<1, 32>>>(c, a);\n {B} }}"
READ_ONLY = (
    "int j = 1; float *e, *g; cudaMalloc(&e, 4096); cudaMalloc(&g, 4096);\n"
    f"{FOR} {{{{ add<<<1, 32>>>(e, a);\n {{}}\n add<<<1, 32>>>(g, b); }}}}"
)
"""What is managed is only read: unseen code cannot watch it."""

LATER = {
    f"{FOR} {{ {A} {B} }}": "a loop K (i == 0: b) K",
    f"for (int i = 1; i <= argc; i += 2) {{ {A} {B} }}": "a loop K (i == 1: b) K",
    f"for (unsigned i = 9; i > 0; i--) {{ {A} {B} }}": "a loop K (i == 9: b) K",
    f"for (int i = 0, j = 4; i < argc; ++i) {{ {A} {B} k += j; }}": "a loop K (i == 0: b) K",
    f"for (int i = 0; i < 4; ++i) {{ {A} {B} }}": "a loop K (i == 0: b) K",
    f"{FOR} {{\n {INNER} {{ {A} {B} }} }}": "a loop loop K (i == 0 && j == 0: b) K",
    f"{FOR} {{ {A}\n {INNER} {B}\n }}": "a loop K (i == 0: b) loop K",
    f"{FOR} {{ {A} cudaGetLastError(); {B} }}": "a loop K (i == 0: b) K",
    f"{FOR} {{ {A} OK(cudaGetLastError()); {B} }}": "a loop K (i == 0: b) K",
    f"{FOR} {{ {A} failed(cudaGetLastError()); {B} }}": "a loop K (i == 0: b) K",
    f"{FOR} {{ {A} float x = fast(n); k += x; {B} }}": "a loop K (i == 0: b) K",
    f"{FOR} {{ {A}\n if (i > k) {B}\n }}": "a loop K (i == 0: b) K",
    f"{FOR} {{ {A} if (k > i) add<<<1, 32>>>(c, b); {B} }}": "a loop K (i == 0: b) K K",
    f"{FOR} {{ {A} {C} {B} }}": "a loop K K (i == 0: b) K",
    f"{FOR} {{ {A} {B} {B} }}": "a loop K (i == 0: b) K K",
    READ_BEFORE: "K a loop K (i == 0: b) K",
    READ_ONLY.format("k += j;"): "a loop K (i == 0: b) K",
    READ_ONLY.format("unseen();"): "a loop K (i == 0: b) K",
}
"""What is issued in the first trip only is in parentheses; what keeps it from being issued even later is not there."""
AHEAD_OF = (
    "cudaDeviceSynchronize();",
    "k += slow(n);",
    "h.push_back(k);",
    "for (int j = 0; j < argc; ++j) k += j;",
    "if (k > i) continue;",
    "d[0] = 1;",
    "cudaFree(d);",
    "if (k > 9) return;",
)
"""What may take time, or not go on to the launch: the prefetch stands before it."""
BEFORE_THE_LOOP = (
    f"while (k++ < argc) {{ {A} {B} }}",
    f"int i = 0; for (; i < argc; ++i) {{ {A} {B} }}",
    f"for (int i = argc; i > 0; --i) {{ {A} {B} }}",
    f"for (int i = 0; i < argc; i += argc) {{ {A} {B} }}",
    f"for (int i = 1; i < argc; i *= 2) {{ {A} {B} }}",
    f"{FOR} {{ {A} {B} i += k; }}",
    f"{FOR} {{ {A} {B} int* p = &i; *p += k; }}",
    f"for (volatile int i = 0; i < argc; ++i) {{ {A} {B} }}",
    f"{FOR} {{ if (k > i) {A}\n {B} }}",
    f"{FOR} {{ {A} if (k > i) set<<<1, 32>>>(b); {B} }}",
    f"set<<<1, 32>>>(a); {FOR} {{ {A} {B} }}",
    f"{FOR} {{\n for (int i = 0; i < argc; ++i) {{ {A} {B} }} }}",
    f"{FOR} {{\n {INNER} {{ dim3 i(n); up<<<i, 32>>>(a); up<<<i, 32>>>(b); }} }}",
)

pytestmark = pytest.mark.usefixtures("toolchain")


@pytest.fixture(scope="module")
def emitted(tmp_path_factory: pytest.TempPathFactory, toolchain: object) -> dict[str, list[str]]:
    """The lines of the functions, by the loops that they consist of; compiled as one file."""
    between = [f"{FOR} {{ {A}\n {one}\n {B} }}" for one in AHEAD_OF]
    loops = [*LATER, *between, *BEFORE_THE_LOOP]
    path = tmp_path_factory.mktemp("first_trip") / "app.cu"
    path.write_text(HEAD + "".join(FUNCTION.format(number=n, body=f"  {body}") for n, body in enumerate(loops)))
    done = compile_file(str(path), Options(prefetch=True, force=True))
    text = done.text.decode()
    parts = re.split(r"(?m)^void f\d+\(.*$", text[text.index(END) :])[1:]
    return {loop: [line.strip() for line in part.splitlines()] for loop, part in zip(loops, parts, strict=True)}


def shape(lines: list[str]) -> str:
    """Loops, launches and prefetches in the order of the text; those of a first trip with its condition."""
    words: list[str] = []
    for line in (one for one in lines if " = 0; s < " not in one):
        if first := re.match(r"if \((.*)\) \{  // kesco: once", line):
            words.append(f"({first[1]}:")
        elif prefetch := re.match(r"kesco_prefetch\(kesco, (\w+),", line):
            words.append(prefetch[1])
        elif line == "}" and words and any(w.startswith("(") for w in words) and not words[-1].endswith((")", "K")):
            words[-1] += ")"
        elif re.match(r"(for|while) \(int (?!kesco)|while|for \((unsigned|volatile|;)", line):
            words.append("loop")
        words += ["K"] * line.count("<<<")
    return " ".join(words)


@pytest.mark.parametrize("loop", LATER)
def test_behind_the_launches_that_come_before(emitted: dict[str, list[str]], loop: str) -> None:
    assert shape(emitted[loop]) == LATER[loop], emitted[loop]


def test_no_order_rests_on_what_is_done_in_the_first_trip_only(emitted: dict[str, list[str]]) -> None:
    found = emitted[READ_BEFORE]
    event = next(m[1] for line in found if (m := re.match(r"cudaEventRecord\((\S+), .*// kesco: .*up wait", line)))
    once = found.index("if (i == 0) {  // kesco: once, behind the launches that come first")
    end = found.index("}", once)
    waits = [n for n, line in enumerate(found) if line.startswith("cudaStreamWaitEvent(") and f" {event}, 0)" in line]
    assert found.index("add<<<1, 32, 0, kesco->stream[0]>>>(c, b);") < once < end < waits[-1]


@pytest.mark.parametrize("between", AHEAD_OF)
def test_ahead_of_what_may_take_time_or_leave_the_trip(emitted: dict[str, list[str]], between: str) -> None:
    found = emitted[f"{FOR} {{ {A}\n {between}\n {B} }}"]
    place = next(n for n, line in enumerate(found) if line.startswith("if (i == 0) {"))
    launch = max(n for n, line in enumerate(found[:place]) if "<<<" in line)
    assert all(line.startswith("cudaEvent") for line in found[launch + 1 : place])
    assert found[place + 1].startswith("kesco_prefetch(kesco, b,")
    assert any(between[:10] in line for line in found[place + 2 :])


@pytest.mark.parametrize("loop", BEFORE_THE_LOOP)
def test_before_the_loop_where_the_first_trip_cannot_be_told_or_nothing_is_gained(
    emitted: dict[str, list[str]], loop: str
) -> None:
    assert re.match(r"(a|K) b loop .*K", shape(emitted[loop]))
    assert "// kesco: once" not in "\n".join(emitted[loop])


def test_ahead_of_code_that_is_not_seen(emitted: dict[str, list[str]]) -> None:
    found = emitted[READ_ONLY.format("unseen();")]
    once = next(n for n, line in enumerate(found) if line.startswith("if (i == 0) {"))
    assert once < found.index("unseen();")
