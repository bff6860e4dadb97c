"""``--memory reuse``: which allocations move, that the proof checks their lives, and what is left alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kesco.options import Options
from kesco.proving import verify_files
from kesco.toolchain.model import Toolchain
from tests.integration.compiled import Compiled, compile_and_keep, read_host_side

pytestmark = pytest.mark.usefixtures("toolchain")

HEAD = """#include <cstdio>
#include <cstdlib>
#include <vector>
#define CHECK(e) do { cudaError_t r = (e); if (r != cudaSuccess) { puts(cudaGetErrorString(r)); exit(1); } } while (0)
__global__ void square(const float* a, float* b, long n) {
  for (long i = threadIdx.x; i < n; i += 32) b[i] = a[i] * a[i];
}
__global__ void add(const float* a, const float* b, float* c, long n) {
  for (long i = threadIdx.x; i < n; i += 32) c[i] = a[i] + b[i];
}
void other(float*);
void unseen();
"""
NAMES = "abcde"
USES = """  CHECK(cudaMemcpy(a, h.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(b, h.data(), bytes, cudaMemcpyHostToDevice));
  square<<<1, 32>>>(a, c, n);
  square<<<1, 32>>>(b, d, n);
  add<<<1, 32>>>(c, d, e, n);
  CHECK(cudaMemcpy(h.data(), e, bytes, cudaMemcpyDeviceToHost));
"""
MADE = "".join(f"  CHECK(cudaMalloc(&{x}, bytes));\n" for x in NAMES)
FREED = "".join(f"  CHECK(cudaFree({x}));\n" for x in NAMES)


def program(body: str = MADE + USES + FREED, before: str = "", size: str = "n * sizeof(float)") -> str:
    return (
        f"{HEAD}{before}int main(int argc, char** argv) {{\n  const long n = argc * 1000;\n"
        f"  const size_t bytes = {size};\n"
        f'  std::vector<float> h(n, 2);\n  float *a, *b, *c, *d, *e;\n{body}  printf("%f\\n", h[0]);\n  return 0;\n}}\n'
    )


def compiled(folder: Path, text: str) -> Compiled:
    source = folder / "input.cu"
    source.write_text(text)
    return compile_and_keep(source, Options(memory="reuse", force=True))  # also what nobody can use again


def moved(one: Compiled) -> str:
    """The names of the allocations that were moved."""
    return "".join(m.pointer for f in one.result.functions for m in f.moved)


def body(one: Compiled) -> list[str]:
    return one.lines[next(n for n, line in enumerate(one.lines) if "kesco: end" in line) + 1 :]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compiled(tmp_path_factory.mktemp("plain"), program())


def test_allocations_are_late_and_frees_are_early(plain: Compiled, toolchain: Toolchain, tmp_path: Path) -> None:
    assert moved(plain) == NAMES
    lines = [line.strip() for line in body(plain)]
    assert sum(line.startswith("CHECK(kesco_malloc(") for line in lines) == 5
    assert sum(line.startswith("kesco_free(") for line in lines) == 5
    assert sum(line.startswith("CHECK(kesco_freed(") for line in lines) == 5
    assert not any(line.startswith(("CHECK(cudaMalloc(", "CHECK(cudaFree(")) for line in lines)

    def at(start: str) -> int:
        return next(n for n, line in enumerate(lines) if line.startswith(start))

    assert at("square<<<1, 32, 0, kesco->stream[0]>>>(a, c") < at("kesco_free(a") < at("CHECK(kesco_malloc(&e")
    output = tmp_path / "output.cu"
    output.write_bytes(plain.result.text)
    finished = read_host_side(toolchain, output)
    assert finished.returncode == 0, finished.stderr


def test_the_peak_is_told(plain: Compiled, tmp_path: Path) -> None:
    (told,) = (d for d in plain.result.diagnostics if d.code == "K212")
    assert "5 allocations are made late and freed early, 4 of them at a time" in told.message
    source = plain.result.source.decode().split("\n")
    assert all(note.span and re.search(r"cudaMemcpy|square|add", source[note.span.line - 1]) for note in told.notes)
    sized = compiled(tmp_path, program(size="1 << 26"))
    (told,) = (d for d in sized.result.diagnostics if d.code == "K212")
    assert f"freed early, {4 << 26} of {5 << 26} bytes at a time" in told.message


def test_the_flag_is_needed(tmp_path: Path) -> None:
    source = tmp_path / "input.cu"
    source.write_text(program())
    assert b"kesco_malloc" not in compile_and_keep(source).result.text


@pytest.mark.thorough
def test_one_stream_is_the_serial_program_again(plain: Compiled, toolchain: Toolchain, tmp_path: Path) -> None:
    """With ``KESCO_STREAMS=1`` everything is on the default stream: the dry run finds no race either way."""
    output = tmp_path / "output.cu"
    output.write_bytes(plain.result.text)
    for streams in ("1", "2"):
        environment = {**os.environ, "KESCO_STREAMS": streams, "PYTHONPATH": str(Path(__file__).parents[2])}
        command = [sys.executable, "-m", "kesco", "check", str(output)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert "no race" in done.stdout + done.stderr


def test_both_files_can_be_compared(plain: Compiled, tmp_path: Path) -> None:
    output = tmp_path / "output.cu"
    output.write_bytes(plain.result.text)
    assert not any(v.problems for v in verify_files(plain.result.path, str(output), Options()))


def wrong_texts(one: Compiled) -> Iterator[tuple[str, list[str]]]:
    """The text without a call, and with each early end one use earlier, and each late beginning one use later."""
    lines, start = one.lines, len(one.lines) - len(body(one))
    for n, line in enumerate(lines[start:], start):
        call = re.search(r"kesco_(malloc|free)\(&?(\w)", line)
        if "cudaStreamWaitEvent" in line or "cudaEventRecord(kesco->done" in line:
            yield f"without {line.strip()}", [*lines[:n], *lines[n + 1 :]]
        if call is None:
            continue
        yield f"without {line.strip()}", [*lines[:n], *lines[n + 1 :]]
        yield f"twice {line.strip()}", [*lines[:n], line, *lines[n:]]
        uses = [m for m, text in enumerate(lines) if m >= start and m != n and re.search(rf"[(, ]{call[2]}[,)]", text)
                and ("<<<" in text or "cudaMemcpy" in text)]  # fmt: skip
        near = max(m for m in uses if m < n) if call[1] == "free" else min(m for m in uses if m > n)
        rest = [*lines[:n], *lines[n + 1 :]]
        yield (
            f"beyond one use: {line.strip()}",
            [*rest[:near], line, *rest[near:]],
        )  # a use behind it has moved up by one


@pytest.mark.thorough
def test_no_life_may_be_shorter_or_longer(plain: Compiled) -> None:
    found = list(wrong_texts(plain))
    assert len(found) >= 30
    for what, lines in found:
        assert plain.refuses(lines), what


@pytest.mark.parametrize("size", ["64", "bytes / 2", "bytes + n", "argc"])
def test_the_size_stays(plain: Compiled, size: str) -> None:
    lines = [line.replace("kesco_malloc(&c, bytes", f"kesco_malloc(&c, {size}") for line in plain.lines]
    assert lines != plain.lines
    assert "'c' may have another size than in the serial program" in plain.refuses(lines)


MORE = {  # texts, and which allocations move
    "freed where it stands": (program(MADE + USES + FREED), "abcde"),
    "in a loop": (program(f"  for (int i = 0; i < argc; ++i) {{\n{MADE}{USES}{FREED}  }}\n"), "abcde"),
    "first used in a loop that may not run": (
        program(MADE + USES.replace("square<<<1, 32>>>(a", "for (int i = 1; i < argc; ++i)\n    square<<<1, 32>>>(a")
                + FREED),
        "abcde"),
    "first used in a branch": (
        program(MADE + USES.replace("square<<<1, 32>>>(a, c, n)", "if (argc > 1) square<<<1, 32>>>(a, c, n)") + FREED),
        "abcde"),
    "an early return": (
        program(MADE + USES.replace("  add<<<", "  if (argc > 9) return 1;\n  add<<<") + FREED), "abcde"),
    "no checks": (program((MADE + USES + FREED).replace("CHECK(cudaMalloc(&a, bytes))", "cudaMalloc((void**)&a, bytes)")
                          .replace("CHECK(cudaFree(a))", "cudaFree(a)")), "abcde"),
    "a checking function": (
        program((MADE + USES + FREED).replace("CHECK(", "check("),
                "static void check(cudaError_t e) {\n  if (e != cudaSuccess) exit(1);\n}\n"), "abcde"),
    "an event loop around": (program(f"  while (argc--) {{\n    printf(\"x\");\n{MADE}{USES}{FREED}  }}\n"), "abcde"),
}  # fmt: skip


@pytest.mark.parametrize("case", MORE)
def test_lives_on_other_paths(case: str, tmp_path: Path) -> None:
    text, expected = MORE[case]
    assert moved(compiled(tmp_path, text)) == expected


EACH = "  for (int i = 0; i < 3; ++i) "
ARRAYS = (
    "  float *p[3], *q[3];\n" + EACH + "CHECK(cudaMalloc(&p[i], bytes));\n"
    + EACH + "CHECK(cudaMalloc(&q[i], bytes));\n"
    + EACH + "CHECK(cudaMemcpy(p[i], h.data(), bytes, cudaMemcpyHostToDevice));\n"
    + EACH + "square<<<1, 32>>>(p[i], q[i], n);\n" + EACH + "square<<<1, 32>>>(q[i], q[i], n);\n"
    + "  add<<<1, 32>>>(q[0], q[1], q[2], n);\n  CHECK(cudaMemcpy(h.data(), q[2], bytes, cudaMemcpyDeviceToHost));\n"
    + EACH + "CHECK(cudaFree(p[i]));\n" + EACH + "CHECK(cudaFree(q[i]));\n"
)  # fmt: skip


def test_arrays_of_pointers_move_as_a_whole(tmp_path: Path) -> None:
    one = compiled(tmp_path, program(ARRAYS))
    assert moved(one) == "pq"
    (told,) = (d for d in one.result.diagnostics if d.code == "K212")
    assert "6 allocations are made late" in told.message
    start, ends = len(one.lines) - len(body(one)), []
    for n, line in enumerate(one.lines):
        if n >= start and "kesco_" in line and ("malloc" in line or "kesco_free(" in line):
            assert one.refuses([*one.lines[:n], *one.lines[n + 1 :]]), line
            ends += [n] if "kesco_free(p" in line else []
    (end,) = ends
    use = max(n for n in range(start, end) if "<<<" in one.lines[n] and "p[i]" in one.lines[n])
    rest = [*one.lines[:end], *one.lines[end + 1 :]]
    while not rest[use].lstrip().startswith("for"):  # before the loop with the last use, which has braces
        use -= 1
    assert one.refuses([*rest[:use], one.lines[end], *rest[use:]])


KEEPER = "__device__ float* kept;\n__global__ void keep(float* p) { kept = p; }\n"
LEFT = {
    "its value is printed": (program(MADE + '  printf("%p", (void*)c);\n' + USES + FREED), "abde"),
    "it has another name": (program(MADE + "  float* q = c;\n  square<<<1, 32>>>(q, a, n);\n" + USES + FREED), "abde"),
    "unseen code gets it": (program(MADE + USES + "  other(c);\n" + FREED), ""),
    "unseen code runs": (program(MADE + USES + "  unseen();\n" + FREED), ""),
    "a kernel keeps it": (program(MADE + "  keep<<<1, 1>>>(c);\n" + USES + FREED, KEEPER), ""),
    "memory is asked for": (program("  size_t x, y;\n  cudaMemGetInfo(&x, &y);\n" + MADE + USES + FREED), ""),
    "the size changes": (
        program("  size_t m = bytes;\n" + MADE.replace("&c, bytes", "&c, m") + "  m = 1;\n" + USES + FREED), "abde"),
    "it is allocated in a branch": (
        program(MADE.replace("  CHECK(cudaMalloc(&c", "  if (argc) CHECK(cudaMalloc(&c") + USES + FREED), "abde"),
    "it is freed in a branch": (
        program(MADE + USES + FREED.replace("  CHECK(cudaFree(c", "  if (argc) CHECK(cudaFree(c")), "abde"),
    "it is never freed": (program(MADE + USES + FREED.replace("  CHECK(cudaFree(c));\n", "")), "abde"),
    "it is allocated twice": (
        program(MADE + USES + "  CHECK(cudaFree(c));\n  CHECK(cudaMalloc(&c, bytes));\n" + FREED), "abde"),
    "the result is kept": (
        program(MADE.replace("CHECK(cudaMalloc(&c, bytes))", "cudaError_t s = cudaMalloc(&c, bytes)") + USES
                + '  printf("%d", (int)s);\n' + FREED), "abde"),
    "each check prints": (
        program((MADE + USES + FREED).replace("CHECK(cudaMalloc(&c", "say(cudaMalloc(&c"),
                'static void say(cudaError_t e) {\n  printf("%d", (int)e);\n}\n'), "abde"),
    "the check prints where all is well": (
        program((MADE + USES + FREED).replace("CHECK(cudaMalloc(&c", "say(cudaMalloc(&c"),
                'static void say(cudaError_t e) {\n  if (e == cudaSuccess) puts("fine");\n  else exit(1);\n}\n'),
        "abde"),
    "a macro in its size changes": (
        program("#define SIZE bytes\n" + MADE.replace("&c, bytes", "&c, SIZE") + "#undef SIZE\n#define SIZE 4\n" + USES
                + FREED), ""),  # nor are macros followed that are used in macros
    "a name in its size is hidden": (
        program("  {\n" + MADE + '  const size_t bytes = n * 4 + 16;\n  printf("%zu", bytes);\n'
                + USES.replace(", bytes,", ", 64,") + FREED + "  }\n"), ""),
    "a type in its size is hidden": (
        program("  typedef float T;\n  {\n" + MADE.replace("&c, bytes", "&c, n * sizeof(T)") + "  typedef char T;\n"
                + '  printf("%zu", sizeof(T));\n' + USES + FREED + "  }\n"), "abde"),
    "the trips of an array's loop change": (
        program(ARRAYS.replace("i < 3; ++i) CHECK(cudaMalloc(&p", "i < m; ++i) CHECK(cudaMalloc(&p")
                .replace("i < 3; ++i) CHECK(cudaFree(p", "i < m; ++i) CHECK(cudaFree(p")
                .replace("  float *p", "  int m = 3;\n  float *p").replace("  add<<<", "  m = 3;\n  add<<<")
                .replace(EACH + "CHECK(cudaMemcpy", "  m = 1;\n" + EACH + "CHECK(cudaMemcpy")), "q"),
    "some of an array is allocated": (
        program(ARRAYS.replace("++i) CHECK(cudaMalloc(&p", "++i) if (i < argc) CHECK(cudaMalloc(&p")), "q"),
    "an array is copied": (program(ARRAYS.replace(EACH + "square<<<1, 32>>>(p", "  CHECK(cudaMemcpy(p[0], p, 24, "
        "cudaMemcpyHostToDevice));\n" + EACH + "square<<<1, 32>>>(p", 1)), "q"),
    "not all of an array is freed": (
        program(ARRAYS.replace(EACH + "CHECK(cudaFree(q", "  for (int i = 0; i < 2; ++i) CHECK(cudaFree(q")), "p"),
    "it is small": (program(size="4096"), ""),
    "the device changes": (program(MADE + "  cudaSetDevice(0);\n" + USES + FREED), ""),
    "its life follows on another": (  # the serial program never has both
        program(MADE.replace("  CHECK(cudaMalloc(&e, bytes));\n", "")
                + USES.replace("  add<<<", "  CHECK(cudaFree(a));\n  CHECK(cudaMalloc(&e, bytes));\n  add<<<")
                + FREED.replace("  CHECK(cudaFree(a));\n", "")), "bcde"),
}  # fmt: skip


@pytest.mark.parametrize("case", LEFT)
def test_what_is_left_alone(case: str, tmp_path: Path) -> None:
    text, expected = LEFT[case]
    assert moved(compiled(tmp_path, text)) == expected


CALLS = """static void step(float* a, float* b, long n) {
  square<<<1, 32>>>(a, a, n);
  square<<<1, 32>>>(b, b, n);
}
int main(int argc, char** argv) {
  long n = argc * 1000;
  float *a, *b, *c;
  CHECK(cudaMalloc(&a, n * 4));
  CHECK(cudaMalloc(&b, n * 4));
  step(a, b, n);
  CHECK(cudaMalloc(&c, n * 4));
  square<<<1, 32>>>(a, c, n);
  square<<<1, 32>>>(b, b, n);
  @BETWEEN@
  square<<<1, 32>>>(c, c, n);
  @BEHIND@
  CHECK(cudaFree(c));
  step(a, b, n);
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
}
"""


@pytest.mark.parametrize(("between", "behind"), [("step(a, b, n);", ""), ("", "step(a, b, n);")])
def test_functions_that_are_called_within_a_life(tmp_path: Path, between: str, behind: str) -> None:
    """What returns from one call seems to come out behind any other, where the memory may not be there."""
    one = compiled(tmp_path, HEAD + CALLS.replace("@BETWEEN@", between).replace("@BEHIND@", behind))
    assert "c" in moved(one)
    assert not any(f.region.members for f in one.result.functions)


IDLE = """
__global__ void up(float* x) { x[threadIdx.x] += 1; }
__global__ void both(const float* x, float* y) { y[threadIdx.x] += x[threadIdx.x]; }
int main(int argc, char** argv) {
  const size_t n = 1000000 * argc, bytes = 64 * n, few = SHARE * n;
  float *a, *b, *c;
  cudaMalloc(&a, bytes);
  cudaMalloc(&b, bytes);
  cudaMalloc(&c, few);
  up<<<1, 32>>>(a);
  up<<<1, 32>>>(b);
  both<<<1, 32>>>(a, b);
  both<<<1, 32>>>(b, c);
  up<<<1, 32>>>(b);
  cudaFree(a);
  cudaFree(b);
  cudaFree(c);
}
"""


@pytest.mark.parametrize(("share", "moved"), [("3", []), ("4", ["a", "c"])])
def test_what_nobody_uses_again_stays(tmp_path: Path, share: str, moved: list[str]) -> None:
    """`b` is there all the time; `c` can have the memory of `a`, which is worth it if it is not far smaller."""
    source = tmp_path / "idle.cu"
    source.write_text(IDLE.replace("SHARE", share))
    text = compile_and_keep(source, Options(memory="reuse")).result.text.decode()
    assert re.findall(r"kesco_malloc\(&(\w)", text) == moved
