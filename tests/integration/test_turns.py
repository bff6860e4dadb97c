"""Turns of a loop beside each other: which loops, that results are the serial program's, and what the proof refuses."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from kesco.options import Options
from kesco.proving import verify_files
from kesco.session import Session
from kesco.toolchain.model import Toolchain
from kesco.toolchain.process import run
from tests.integration.compiled import Compiled, compile_and_keep, read_host_side

pytestmark = pytest.mark.usefixtures("toolchain")
HERE = Path(__file__).parent

HEAD = """#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#define CHECK(e) do { cudaError_t r = (e); if (r != cudaSuccess) { puts(cudaGetErrorString(r)); exit(1); } } while (0)
__global__ void twice(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = a[i] * 2;
}
__global__ void more(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = a[i] + 1;
}
__global__ void some(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && a[i] > 40) b[i] = a[i];
}
__global__ void bump(float* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] += 1;
}
static int width = 64;
__global__ void usual(const float* a, float* b, int n = width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = a[i] * 2;
}
__global__ void keep(float** table, float* a) { table[0] = a; }
__global__ void kept(float** table, float* b) { b[0] = table[0][0]; }
"""
MAIN = """int main(int argc, char** argv) {
  const int n = 64, size = n * sizeof(float);
  const int turns = atoi(argv[1]);
  float *in, *tmp, *out, *src, *dst, **table;
  CHECK(cudaMallocHost(&src, size * (turns + 1)));
  CHECK(cudaMallocHost(&dst, size * (turns + 1)));
  CHECK(cudaMalloc(&in, size));
  CHECK(cudaMalloc(&tmp, size));
  CHECK(cudaMalloc(&out, size));
  CHECK(cudaMalloc(&table, sizeof(float*)));
  CHECK(cudaMemset(in, 0, size));
  CHECK(cudaMemset(tmp, 0, size));
  CHECK(cudaMemset(out, 0, size));
  for (int i = 0; i < n * turns; ++i) src[i] = i * 7 % 97;
"""
END = """  CHECK(cudaDeviceSynchronize());
  float sum = 0;
  for (int i = 0; i < n * turns; ++i) sum = sum * 0.5f + dst[i];
  printf("%.8g\\n", sum);
  CHECK(cudaFree(in));
  CHECK(cudaFree(tmp));
  CHECK(cudaFree(out));
  return 0;
}
"""
UP = "    cudaMemcpyAsync(in, src + b * n, size, cudaMemcpyHostToDevice);\n"
DOWN = "    cudaMemcpyAsync(dst + b * n, out, size, cudaMemcpyDeviceToHost);\n"
WORK = "    twice<<<2, 32>>>(in, tmp, n);\n    more<<<2, 32>>>(tmp, out, n);\n"
FOR = "  for (int b = 0; b < turns; ++b) {\n"
SEE = "  CHECK(cudaMemcpy(dst, tmp, size, cudaMemcpyDeviceToHost));\n"
OWN = "    float* own;\n    cudaMalloc(&own, size);\n"
WITH_OWN = "    twice<<<2, 32>>>(in, own, n);\n    more<<<2, 32>>>(own, out, n);\n"

BESIDE = {
    "batch": FOR + UP + WORK + DOWN + "  }\n",
    "read_behind": FOR + UP + WORK + DOWN + "  }\n" + SEE,
    "left_by_break": FOR + "    if (b == 3) break;\n" + UP + WORK + DOWN + "  }\n" + SEE,
    "part_of_a_buffer": "  bump<<<2, 32>>>(tmp, n);\n"
    + FOR
    + UP
    + "    twice<<<1, 32>>>(in, tmp, n / 2);\n    more<<<2, 32>>>(tmp, out, n);\n"
    + DOWN
    + "  }\n"
    + SEE,
    "in_place": FOR + UP + "    bump<<<2, 32>>>(in, n);\n" + WORK + DOWN + "  }\n",
    "changed_behind": FOR
    + UP
    + WORK.replace("    more", "    bump<<<2, 32>>>(tmp, n);\n    more")
    + DOWN
    + "  }\n"
    + SEE,
    "counted_down": "  int left = turns;\n  int b = 0;\n  while (left > 0) {\n"
    + UP
    + WORK
    + DOWN
    + "    ++b;\n    --left;\n  }\n",
    "shapes": "  dim3 grid((n + 31) / 32), block(32);\n"
    + FOR
    + UP
    + "    twice<<<grid, block>>>(in, tmp, n);\n    more<<<grid, block>>>(tmp, out, n);\n"
    + DOWN
    + "  }\n",
    "allocates": FOR + UP + OWN + WITH_OWN + "    cudaFree(own);\n" + DOWN + "  }\n",
    "allocates_only": FOR + OWN + "    twice<<<2, 32>>>(in, own, n);\n"
    "    cudaMemcpyAsync(dst + b * n, own, size, cudaMemcpyDeviceToHost);\n    cudaFree(own);\n  }\n",
    "allocates_checked": FOR
    + OWN.replace("cudaMalloc(&own, size)", "CHECK(cudaMalloc(&own, size))")
    + "    twice<<<2, 32>>>(in, own, n);\n    CHECK(cudaGetLastError());\n"
    "    cudaMemcpyAsync(dst + b * n, own, size, cudaMemcpyDeviceToHost);\n    CHECK(cudaFree(own));\n  }\n",
    "allocates_more_each_time": FOR + "    float* own;\n    cudaMalloc(&own, size * (b + 1));\n"
    "    twice<<<2, 32>>>(in, own, n);\n"
    "    cudaMemcpyAsync(dst + b * n, own, size, cudaMemcpyDeviceToHost);\n    cudaFree(own);\n  }\n",
    "allocates_in_two_loops": "  for (int k = 0; k < argc + 1; ++k) {\n"
    + FOR
    + OWN
    + "    twice<<<2, 32>>>(in, own, n);\n"
    "    cudaMemcpyAsync(dst + b * n, own, size, cudaMemcpyDeviceToHost);\n    cudaFree(own);\n  }\n"
    "  bump<<<2, 32>>>(in, n);\n  }\n",
}
SHORT = WORK.replace(", n)", ", m)")
BESIDE |= {
    name: FOR + f"    int {first};\n" + body + DOWN + "  }\n" + SEE
    for name, first, body in (
        ("short_copy", "part = b == turns - 1 ? size / 2 : size", UP.replace("size", "part") + WORK),
        ("the last is shorter", "m = b == turns - 1 ? n / 2 : n", UP + SHORT),
        ("the first is shorter", "m = b == 0 ? n / 2 : n", UP + SHORT),
        ("now and then longer", "m = b % 3 == 2 ? n : n / 4", UP + SHORT),
        ("set once more", "m = n;\n    if (b > 1) m = n / 2", UP + SHORT),
        ("with a grid of its own", "m = b == turns - 1 ? n / 2 : n",
         UP + "    int blocks = (m + 31) / 32;\n" + SHORT.replace("<<<2,", "<<<blocks,")),
        ("made of what changes", "x = b % 3 ? n / 2 : n;\n    int m = x;\n    x = 5", UP + SHORT),
        ("changed behind it, shorter", "m = b == turns - 1 ? n / 2 : n",
         UP + SHORT.replace("    more", "    bump<<<2, 32>>>(tmp, m);\n    more")),
        ("two sizes", "m = b == turns - 1 ? n / 2 : n;\n    int k = b % 4 == 3 ? n / 4 : n",
         UP + SHORT.replace("out, m", "out, k")),
    )
}  # fmt: skip
BEHIND = {
    "changed in the turn": FOR + "    int m = b % 2 ? n / 2 : n;\n" + UP + "    twice<<<2, 32>>>(in, tmp, m);\n"
    "    m = n / 2 + b % 3;\n    more<<<2, 32>>>(tmp, out, m);\n" + DOWN + "  }\n",
    "another one each time": FOR + "    int m = n - b;\n" + UP + SHORT + DOWN + "  }\n",
    "shorter_each_time": FOR + UP + "    twice<<<2, 32>>>(in, tmp, n - b);\n    more<<<2, 32>>>(tmp, out, n);\n"
    + DOWN + "  }\n",
    "where_it_is_large": FOR + UP + "    some<<<2, 32>>>(in, tmp, n);\n    more<<<2, 32>>>(tmp, out, n);\n"
    + DOWN + "  }\n",
    "adds_up": FOR + UP + "    twice<<<2, 32>>>(in, tmp, n);\n    bump<<<2, 32>>>(out, n);\n" + DOWN + "  }\n",
    "another_step_by_a_cast": FOR + UP + "    twice<<<1, 16>>>(in, (float*)tmp + 8, n);\n"
    "    bump<<<1, 16>>>((float*)((double*)tmp + 8), n);\n    more<<<2, 32>>>(tmp, out, n);\n" + DOWN + "  }\n",
    "another_type_of_number": "  int k = 30 + argc / 2;\n" + FOR + UP
    + "    twice<<<2, 32>>>(in, tmp, ((1 << k) > 0) * 16 + 8);\n"
    "    bump<<<2, 32>>>(tmp, ((1u << k) > 0u) * 16 + 8);\n    more<<<2, 32>>>(tmp, out, n);\n" + DOWN + "  }\n",
    "another_size_each_time": FOR + UP + "    char v[8 * (b % 3) + 8];\n    v[0] = 1;\n"
    "    twice<<<2, 32>>>(in, tmp, sizeof(v));\n    more<<<2, 32>>>(tmp, out, n);\n" + DOWN + "  }\n",
    "by_default": FOR + UP + "    usual<<<2, 32>>>(in, tmp);\n    more<<<2, 32>>>(tmp, out, n);\n    width = 64 - b;\n"
    + DOWN + "  }\n",
    "changed_beyond": FOR + UP + "    twice<<<1, 32>>>(in, tmp, n / 2);\n    bump<<<2, 32>>>(tmp, n);\n"
    "    more<<<2, 32>>>(tmp, out, n);\n" + DOWN + "  }\n",
    "changed_by_other_threads": FOR + UP + WORK.replace("    more", "    bump<<<1, 64>>>(tmp, n);\n    more")
    + DOWN + "  }\n",
    "changed_by_another_number": FOR + UP + "    int k = n / 2;\n" + WORK.replace("tmp, n", "tmp, k").replace(
        "    more", "    k += n / 2;\n    bump<<<2, 32>>>(tmp, k);\n    more") + DOWN + "  }\n",
    "changed_at_another_place": FOR + UP + "    twice<<<1, 32>>>(in, tmp, n / 2);\n"
    "    bump<<<1, 32>>>(tmp + 1, n / 2);\n    more<<<2, 32>>>(tmp, out, n);\n" + DOWN + "  }\n",
    "read_first": FOR + UP + "    more<<<2, 32>>>(tmp, out, n);\n    twice<<<2, 32>>>(in, tmp, n);\n" + DOWN + "  }\n",
    "only_sometimes": FOR + UP + "    if (b % 3 != 1) twice<<<2, 32>>>(in, tmp, n);\n"
    "    more<<<2, 32>>>(tmp, out, n);\n" + DOWN + "  }\n",
    "left_in_the_middle": FOR + UP + "    if (b == 3) break;\n" + WORK + DOWN + "  }\n" + SEE,
    "another_name": "  float* same = tmp;\n" + FOR + UP + "    twice<<<2, 32>>>(in, tmp, n);\n"
    "    more<<<2, 32>>>(same, out, n);\n" + DOWN + "  }\n",
    "kept_by_a_kernel": FOR + UP + WORK + "    keep<<<1, 1>>>(table, tmp);\n" + DOWN + "  }\n"
    "  kept<<<1, 1>>>(table, in);\n  CHECK(cudaMemcpy(dst, in, size, cudaMemcpyDeviceToHost));\n",
    "kept_by_the_host": "  float* last = tmp;\n" + FOR + UP + WORK + "    last = tmp;\n" + DOWN + "  }\n"
    "  CHECK(cudaMemcpy(dst, last, size, cudaMemcpyDeviceToHost));\n",
    "compared": FOR + UP + WORK + "    if (tmp == nullptr) puts(\"none\");\n" + DOWN + "  }\n",
    "swapped": FOR + UP + WORK + DOWN + "    float* other = in;\n    in = tmp;\n    tmp = other;\n  }\n",
    "until_it_is_small": "  int b = 0;\n  do {\n" + UP + WORK + DOWN
    + "    CHECK(cudaDeviceSynchronize());\n  } while (dst[b++ * n] > 3 && b < turns);\n",
    "one_place_of_the_host": FOR + UP + WORK + "    cudaMemcpyAsync(dst, out, size, cudaMemcpyDeviceToHost);\n"
    "    CHECK(cudaDeviceSynchronize());\n    dst[n] += dst[0];\n  }\n",
    "returns": FOR + UP + WORK + DOWN + "    if (b == 5) return 1;\n  }\n",
    "asks_how_much": FOR + "    size_t left, whole;\n    cudaMemGetInfo(&left, &whole);\n"
    "    if (left == 1) puts(\"full\");\n" + OWN + WITH_OWN + DOWN + "    cudaFree(own);\n  }\n",
    "tries_again": FOR + "    float* own;\n    int wanted = size * 2;\n"
    "    while (cudaMalloc(&own, wanted) != cudaSuccess) wanted -= size / 2;\n" + WITH_OWN + DOWN
    + "    cudaFree(own);\n  }\n",
    "is_not_freed": FOR + OWN + WITH_OWN + DOWN + "  }\n",
    "prints_the_address": FOR + OWN + WITH_OWN + DOWN
    + "    if (b == 99) printf(\"%p\\n\", (void*)own);\n    cudaFree(own);\n  }\n",
    "ends_the_process": "  static float* kept = tmp;\n"
    "  atexit([] { float x; cudaMemcpy(&x, kept, 4, cudaMemcpyDeviceToHost); printf(\"%g\\n\", x); });\n"
    + FOR + UP + "    CHECK(cudaGetLastError());\n" + WORK + DOWN + "  }\n",
    "outlives_the_turn": "  float* own = nullptr;\n" + FOR + "    if (b > 0) cudaFree(own);\n"
    "    cudaMalloc(&own, size);\n" + WITH_OWN + DOWN + "  }\n",
}  # fmt: skip


BLOCKING = (FOR + UP + WORK + DOWN + "  }\n").replace("cudaMemcpyAsync", "cudaMemcpy")


def compiled(folder: Path, body: str, options: Options | None = None) -> Compiled:
    source = folder / "input.cu"
    source.write_text(HEAD + MAIN + body + END)
    return compile_and_keep(source, options or Options())


class Cases(dict[str, Compiled]):
    """Each is compiled when it is asked for."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        self.factory = factory

    def __missing__(self, name: str) -> Compiled:
        return self.setdefault(name, compiled(self.factory.mktemp(name), (BESIDE | BEHIND)[name]))


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Compiled]:
    return Cases(tmp_path_factory)


@pytest.mark.parametrize("name", BESIDE)
def test_turns_are_beside_each_other(
    cases: dict[str, Compiled], name: str, toolchain: Toolchain, tmp_path: Path
) -> None:
    one = cases[name]
    assert [len(f.turns) for f in one.rewritten] == [1]
    output = tmp_path / "output.cu"
    output.write_bytes(one.result.text)
    assert not any(v.problems for v in verify_files(one.result.path, str(output), Options()))
    finished = read_host_side(toolchain, output)
    assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize("name", BEHIND)
def test_turns_stay_behind_each_other(cases: dict[str, Compiled], name: str) -> None:
    assert b"kesco_turn" not in cases[name].result.text


def test_blocking_copies_go_on_streams(tmp_path: Path) -> None:
    """Where what they bring home is looked at behind the loop alone; the check of a run finds no race."""
    source = tmp_path / "input.cu"
    text = (HEAD + MAIN + BLOCKING + END).replace("n = 64", "n = 1 << 16").replace("<<<2, 32>>>", "<<<n / 32, 32>>>")
    source.write_text(text)
    one = compile_and_keep(source)
    assert [len(f.turns) for f in one.rewritten] == [1]
    assert "    kesco_fetch(dst + b * n, out, size, cudaMemcpyDeviceToHost, kesco->stream[0]);" in one.lines
    output = tmp_path / "output.cu"
    output.write_bytes(one.result.text)
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
    for copies in ("auto", "move"):
        environment["KESCO_COPIES"] = copies
        done = run((sys.executable, "-m", "kesco", "check", str(output), "--", "6"), timeout=300, env=environment)
        assert done.returncode == 0 and "no race" in done.stdout.decode() + done.stderr, done.stderr
    looked = text.replace(
        "cudaMemcpyDeviceToHost);\n  }", "cudaMemcpyDeviceToHost);\n    src[0] += dst[b * n];\n  }", 1
    )
    assert looked != text
    source.write_text(looked)
    assert b"kesco_turn" not in compile_and_keep(source).result.text


PARTS = (
    "  float *all, *res;\n  CHECK(cudaMalloc(&all, (turns + 2) * n * sizeof(float)));\n"
    "  CHECK(cudaMalloc(&res, (turns + 2) * n * sizeof(float)));\n"
    + FOR
    + "    cudaMemcpy(all + b * n, src + b * n, n * sizeof(float), cudaMemcpyHostToDevice);\n"
    "    twice<<<n / 32 + 1, 32>>>(all + b * n, res + b * n, n);\n"
    "    cudaMemcpy(dst + b * n, res + b * n, n * sizeof(float), cudaMemcpyDeviceToHost);\n  }\n"
)
MEETING = {
    "reads its neighbour": ("(all + b * n, res", "(all + b * n + 1, res"),
    "reads what the turn before wrote": ("(all + b * n, res", "(b > 0 ? res + (b - 1) * n : all, res"),
    "goes over its end": ("b * n, n);", "b * n, n + 1);"),
    "parts that meet": ("res + b * n, n)", "res + b * (n / 2), n)"),
    "copies that meet": ("src + b * n, n * sizeof(float)", "src + b * n, n * sizeof(float) + 4"),
    "looked at": ("DeviceToHost);\n  }\n", "DeviceToHost);\n    src[0] += dst[b * n];\n  }\n"),
}


def test_blocking_copies_of_parts(tmp_path: Path, toolchain: Toolchain) -> None:
    """Turns that meet in nothing need no memory of their own, but as many streams as where they do."""
    text = HEAD + MAIN.replace("n = 64", "n = (1 << 16) + argc") + PARTS + END
    one = compile_and_keep(written(tmp_path, text))
    assert [(len(f.turns), f.turns[0].buffers, f.turns[0].taken) for f in one.rewritten] == [(1, (), ())]
    assert "  KescoTurns kesco_loop = kesco_turns(kesco);  // kesco: turns overlap" in one.lines
    output = tmp_path / "output.cu"
    output.write_bytes(one.result.text)
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1]), "KESCO_COPIES": "move"}
    done = run((sys.executable, "-m", "kesco", "check", str(output), "--", "6"), timeout=300, env=environment)
    assert done.returncode == 0 and "no race" in done.stdout.decode() + done.stderr, done.stderr
    assert "kesco_send(all + b * n, src + b * n, n * sizeof(float)," in one.result.text.decode()
    for name in (b"kesco_turned(kesco_loop);", b"kesco_fetched();"):
        without = one.result.text.replace(b"\n  " + name + b"  //", b"\n  //")
        output.write_bytes(without)
        assert without != one.result.text
        assert any(v.problems for v in verify_files(one.result.path, str(output), Options())), name


@pytest.mark.parametrize("name", MEETING)
def test_parts_that_two_turns_touch(name: str, tmp_path: Path) -> None:
    old, new = MEETING[name]
    assert PARTS.count(old) == 1
    text = HEAD + MAIN.replace("n = 64", "n = (1 << 16) + argc") + PARTS.replace(old, new) + END
    result = compile_and_keep(written(tmp_path, text)).result
    assert b"kesco_turn" not in result.text
    assert "K221" not in {d.code for d in result.diagnostics}  # it is the plan that is right, not only the proof


def written(folder: Path, text: str) -> Path:
    source = folder / "input.cu"
    source.write_text(text)
    return source


def test_what_decides_which_bytes_are_written(tmp_path: Path) -> None:
    source = tmp_path / "input.cu"
    source.write_text(
        HEAD
        + "__global__ void by_index(const int* a, float* b, int n) { if (threadIdx.x < n) b[a[threadIdx.x]] = 1; }\n"
        "__global__ void shared(const float* a, float* b) {\n  __shared__ float s[32];\n  "
        "s[threadIdx.x] = a[threadIdx.x];\n  __syncthreads();\n  b[threadIdx.x] = s[31 - threadIdx.x];\n"
        "  if (s[threadIdx.x] > 0) b[32 + threadIdx.x] = 1;\n}\n"
        "__global__ void counted(float* a, float* b) { if (atomicAdd(a, 1.0f) > 3) b[0] = 1; }\n"
        '__global__ void says(float* b) { b[0] = 1; printf("%f", b[0]); }\n' + MAIN + END
    )
    found = {
        re.sub(r"_Z\d+([a-z_]+?)P.*", r"\1", name): of
        for name, of in Session(str(source), Options()).kernels.steering.items()
    }
    assert found["twice"] == {0: frozenset({2}), 1: frozenset({2})}
    assert found["some"] == {0: frozenset({2})}
    assert found["by_index"].keys() == {0}
    assert found["shared"].keys() == {0}
    assert 1 not in found["counted"]
    assert {"says", "keep"}.isdisjoint(found)


# ---- results, on a runtime that runs work late and in any order ----------------------------------------------------


def executable(text: str, folder: Path, name: str) -> Path:
    """The program for that runtime, where a launch is a call."""

    def launch(found: re.Match[str]) -> str:
        parts = [*re.split(r",\s*(?![^()]*\))", found[2]), "0", "nullptr"]
        given = parts[:4] if len(parts) == 6 else [*parts[:2], "0", "nullptr"]
        return f"fake_launch({', '.join(given)}, [=] {{ {found[1]}({found[3]}); }});"

    source, program = folder / f"{name}.cpp", folder / name
    source.write_text(re.sub(r"(\w+)<<<(.*?)>>>\((.*?)\);", launch, text))
    built = run(("g++", "-std=c++17", f"-I{HERE / 'turns'}", "-o", str(program), str(source)), timeout=300)
    assert built.returncode == 0, built.stderr
    return program


def printed(program: Path, turns: int, seed: int, more: dict[str, str] | None = None) -> str:
    environment = {**os.environ, "FAKE_SEED": str(seed), **(more or {})}
    done = run((str(program), str(turns)), timeout=60, env=environment)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="the programs are run, which takes g++")


@needs_compiler
@pytest.mark.parametrize("name", BESIDE)
def test_results_are_those_of_the_serial_program(cases: dict[str, Compiled], name: str, tmp_path: Path) -> None:
    result = cases[name].result
    serial = executable(result.source.decode(), tmp_path, "serial")
    beside = executable(result.text.decode(), tmp_path, "beside")
    for turns in (0, 1, 2, 3, 8):
        wanted = printed(serial, turns, 1)
        assert {printed(beside, turns, seed) for seed in range(4)} == {wanted}, turns
        for few in (0, 256, 1 << 10, 1 << 12):  # bytes beside what is always there: the turns go on one by one
            less = {"FAKE_BYTES": str((256 << 20) + few)}
            assert printed(beside, turns, 5, less) == printed(serial, turns, 5, less)
        assert printed(beside, turns, 6, {"KESCO_STREAMS": "1"}) == wanted


@needs_compiler
def test_an_error_that_nobody_asked_for_yet_stays(tmp_path: Path) -> None:
    """Though a second place is looked for in vain, the program hears of its launch that failed."""
    body = (
        FOR
        + UP
        + "    float* own;\n    cudaMalloc(&own, size_t(300) << 20);\n    twice<<<b == 0 ? 0 : 2, 32>>>(in, own, n);\n"
    )
    body += '    cudaFree(own);\n  }\n  printf("%d\\n", cudaGetLastError());\n'
    result = compiled(tmp_path, body).result
    assert b"kesco_take(" in result.text
    for name, text in (("serial", result.source), ("beside", result.text)):
        one = executable(text.decode(), tmp_path, name)
        assert printed(one, 2, 1, {"FAKE_BYTES": str(580 << 20)}).startswith(b"9\n"), name


@needs_compiler
def test_that_runtime_sees_a_buffer_that_is_shared(cases: dict[str, Compiled], tmp_path: Path) -> None:
    result = cases["batch"].result
    wanted = printed(executable(result.source.decode(), tmp_path, "serial"), 8, 1)
    first = "tmp = (float*)kesco_loop.buffers[2].given;"
    wrong = result.text.decode().replace("kesco_place(kesco_loop, 2, &tmp);", first)
    assert wrong != result.text.decode()
    shared = executable(wrong, tmp_path, "shared")
    assert {printed(shared, 8, seed) for seed in range(12)} != {wanted}


# ---- what the proof refuses ----------------------------------------------------------------------------------------

FORGED = {
    "batch": {
        "no place": ("    kesco_place(kesco_loop, 2, &tmp);\n", ""),
        "another place": ("kesco_place(kesco_loop, 2, &tmp)", "kesco_place(kesco_loop, 1, &tmp)"),
        "another buffer": ("kesco_turns(kesco, in, out, tmp)", "kesco_turns(kesco, in, tmp, out)"),
        "too few": ("kesco_turns(kesco, in, out, tmp)", "kesco_turns(kesco, in, out)"),
        "one buffer for all turns": (
            "    decltype(tmp) tmp;\n    kesco_place(kesco_loop, 2, &tmp);\n",
            "",
        ),
        "no wait behind": ("  kesco_turned(kesco_loop);  // kesco: the host waits\n", ""),
        "the streams of all turns": ("KescoStreams* kesco = kesco_turn", "KescoStreams* kesco2 = kesco_turn"),
        "on the default stream": ("twice<<<2, 32, 0, kesco->stream[0]>>>", "twice<<<2, 32>>>"),
        "given something else": ("(tmp, out, n);", "(in, out, n);"),
        "a turn less": ("    KescoStreams* kesco = kesco_turn(kesco_loop);\n", ""),
        "the turn behind work": ("int b = 0; b < turns; ++b) {\n",
                                 "int b = 0; b < turns; ++b) {\n    bump<<<1, 1>>>(in, n);\n"),
        "left for good": ("    cudaMemcpyAsync(dst + b", "    if (b == 7) return 2;\n    cudaMemcpyAsync(dst + b"),
    },
    "with a grid of its own": {
        "nothing is compared": ("kesco_turn(kesco_loop, m)", "kesco_turn(kesco_loop)"),
        "something else is": ("kesco_turn(kesco_loop, m)", "kesco_turn(kesco_loop, n)"),
        "what it was": ("    int blocks", "    m = n - b;\n    int blocks"),
        "another grid": ("int blocks = (m + 31) / 32", "int blocks = (n - b + 31) / 32"),
    },
    "made of what changes": {"what it is now": ("kesco_turn(kesco_loop, m)", "kesco_turn(kesco_loop, x)")},
    "two sizes": {"only one is compared": ("kesco_turn(kesco_loop, k, m)", "kesco_turn(kesco_loop, k)")},
    "allocates_only": {
        "freed": ("kesco_give(kesco_loop, own)", "cudaFree(own)"),
        "allocated for itself": ("kesco_take(kesco_loop, 0, &own, size)", "cudaMalloc(&own, size)"),
        "smaller": ("kesco_take(kesco_loop, 0, &own, size)", "kesco_take(kesco_loop, 0, &own, size / 2)"),
        "given back before": ("    twice<<<", "    kesco_give(kesco_loop, own);\n    twice<<<"),
        "no wait behind": ("  kesco_turned(kesco_loop);  // kesco: the host waits\n", ""),
    },
}  # fmt: skip


@pytest.mark.parametrize(("name", "how"), [(name, how) for name, hows in FORGED.items() for how in hows])
def test_forged_texts_are_refused(cases: dict[str, Compiled], name: str, how: str) -> None:
    one = cases[name]
    old, new = FORGED[name][how]
    text = one.result.text.decode()
    wrong = text.replace(old, new, 1)
    assert wrong != text
    assert one.refuses(wrong.split("\n")), how
    assert not one.refuses(one.lines)


@pytest.mark.parametrize("name", sorted(BEHIND.keys() - {"one_place_of_the_host"}))  # right, but it gains nothing
def test_the_proof_refuses_turns_that_need_order(cases: dict[str, Compiled], name: str, tmp_path: Path) -> None:
    """What an emitter that asks nothing would write for the loops that must stay as they are."""
    source = cases[name].result.source.decode()
    own = "cudaMalloc(&own" in source
    taken = source.replace("cudaMalloc(&own,", "kesco_take(kesco_loop, 0, &own,").replace(
        "cudaFree(own)", "kesco_give(kesco_loop, own)"
    )
    buffers = ["in", "out", "tmp"] if not own else ["out"]
    lines = "".join(f"    decltype({b}) {b};\n    kesco_place(kesco_loop, {n}, &{b});\n" for n, b in enumerate(buffers))
    text = taken if own else source
    head = next(h for h in (FOR, "  do {\n") if h in text)
    text = text.replace(head, f"  KescoTurns kesco_loop = kesco_turns(kesco, {', '.join(buffers)});\n{head}"
                              f"    KescoStreams* kesco = kesco_turn(kesco_loop);\n{lines}", 1)  # fmt: skip
    start = text.index("kesco_turn(kesco_loop)")
    loop = re.compile(r"^  \}.*\n", re.MULTILINE).search(text, start)
    assert loop is not None
    body = re.sub(r"<<<(\d+), (\d+)>>>", r"<<<\1, \2, 0, kesco->stream[0]>>>", text[start : loop.start()])
    body = re.sub(r"(cudaMemcpyAsync\(.*)\);", r"\1, kesco->stream[0]);", body)
    text = f"{text[:start]}{body}{loop[0]}  kesco_turned(kesco_loop);\n{text[loop.end() :]}"
    text = text.replace("  float *in,", "  KescoStreams* kesco = &kesco_streams();\n  float *in,", 1)
    prologue = cases["batch"].result.text.decode()
    first, last = prologue.index("// ---- kesco: streams"), prologue.index("int main(")
    (tmp_path / "serial.cu").write_text(source)
    (tmp_path / "beside.cu").write_text(text.replace("int main(", prologue[first:last] + "int main(", 1))
    verdicts = verify_files(str(tmp_path / "serial.cu"), str(tmp_path / "beside.cu"), Options())
    assert any(v.problems for v in verdicts)


SIX = FOR.replace("turns", "6")
KNOWN = {
    "batch": (SIX + UP + WORK + DOWN + "  }\n", True),
    "allocates": (SIX + UP + OWN + WITH_OWN + "    cudaFree(own);\n" + DOWN + "  }\n", True),
    "two_loops": (
        SIX + UP + WORK + DOWN + "  }\n" + SIX + "    bump<<<2, 32>>>(in, n);\n    more<<<2, 32>>>(in, out, n);\n  }\n",
        True,
    ),
    "two_at_once": (SIX + UP + "    twice<<<2, 32>>>(in, tmp, n);\n    more<<<2, 32>>>(in, out, n);\n  }\n", False),
    "adds_up": (BEHIND["adds_up"].replace(FOR, SIX), False),
}


@pytest.mark.parametrize("name", KNOWN)
def test_loops_of_known_trips_have_turns_where_unrolled_they_overlap_in_nothing(name: str, tmp_path: Path) -> None:
    body, beside = KNOWN[name]
    one = compiled(tmp_path, body)
    (tmp_path / "output.cu").write_bytes(one.result.text)
    assert one.result.text.count(b"= kesco_turns(") == beside
    verdicts = verify_files(str(tmp_path / "input.cu"), str(tmp_path / "output.cu"), Options())
    assert [v.problems for v in verdicts if v.problems] == []


MANY = (
    "  float* all[64];\n  for (int b = 0; b < turns; ++b) CHECK(cudaMalloc(&all[b], n * sizeof(float)));\n"
    "  for (int b = 0; b < turns; ++b) bump<<<n / 32, 32>>>(all[b], n);\n  cudaDeviceSynchronize();\n"
)


@pytest.mark.parametrize(("most", "streams"), [("64", 8), ("1", 2)])
def test_how_many_turns_are_in_flight(most: str, streams: int, tmp_path: Path) -> None:
    """As many as there are streams; of one stream, which is made, nothing is left but the default stream."""
    one = compile_and_keep(written(tmp_path, HEAD + MAIN.replace("n = 64", "n = (1 << 16) + argc") + MANY + END))
    assert [(len(f.turns), f.turns[0].lone, f.turns[0].copies) for f in one.rewritten] == [(1, True, False)]
    output = tmp_path / "output.cu"
    output.write_bytes(one.result.text)
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1]), "KESCO_COPIES": "move", "KESCO_STREAMS": most}
    done = run((sys.executable, "-m", "kesco", "check", str(output), "--", "20"), timeout=300, env=environment)
    said = re.search(r"on (\d+) streams?, (\d+) kernels among them: no race", done.stdout.decode() + done.stderr)
    assert done.returncode == 0 and said is not None, done.stderr
    assert (int(said[1]), int(said[2])) == (streams, 20)


# ---- calls that are work of a turn ---------------------------------------------------------------------------------

CALLED = {
    "no stream is set": ("KescoOn(kesco->stream[0]), step(&states[i]);", "step(&states[i]);"),
    "before the turn": (
        "KescoStreams* kesco = kesco_turn(kesco_loop);\n      KescoOn(kesco->stream[0]), step(&states[i]);",
        "KescoOn(kesco->stream[0]), step(&states[i]);\n      KescoStreams* kesco = kesco_turn(kesco_loop);",
    ),
    "one for all turns": ("step(&states[i])", "step(&states[0])"),
    "a neighbour": ("smooth(others[i])", "smooth(others[i + 1])"),
    "the streams of all turns": ("kesco = kesco_turn(kesco_loop1)", "k = kesco_turn(kesco_loop1)"),
    "no wait behind": ("  kesco_turned(kesco_loop1);  // kesco: the host waits\n", ""),
    "the function does not follow": ("s->n + 255) / 256, 256, 0, kesco_current()>>>", "s->n + 255) / 256, 256>>>"),
}  # fmt: skip


@pytest.fixture(scope="module")
def calling(repository: Path, toolchain: Toolchain) -> Compiled:
    return compile_and_keep(repository / "tests" / "golden" / "turns_of_calls" / "input.cu")


@pytest.mark.parametrize("how", CALLED)
def test_forged_calls_in_turns_are_refused(calling: Compiled, how: str) -> None:
    text = calling.result.text.decode()
    wrong = text.replace(*CALLED[how], 1)
    assert wrong != text
    assert calling.refuses(wrong.split("\n")), how
    assert not calling.refuses(calling.lines)
