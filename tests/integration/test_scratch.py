"""Scratch that calls share: each stream has its own; which memory that is, that results stay, and what is refused."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from kesco.options import Options
from kesco.toolchain.process import run
from tests.integration.compiled import Compiled, compile_and_keep

pytestmark = pytest.mark.usefixtures("toolchain")
HERE = Path(__file__).parent

HEAD = """#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
__global__ void rows(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = a[i] * 2 + 1;
}
__global__ void columns(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = a[i] - a[n - 1 - i] / 3;
}
__global__ void some(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && a[i] > 40) b[i] = a[i];
}
__global__ void bump(float* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] += 1;
}
__global__ void keeps(float** table, float* a) { table[0] = a; }
static int blocks_of(int n) { return (n + 31) / 32; }
"""
BLUR = """static void blur(const float* in, float* tmp, float* out, int n) {
  rows<<<(n + 31) / 32, 32>>>(in, tmp, n);
  columns<<<(n + 31) / 32, 32>>>(tmp, out, n);
}
"""
MAIN = """int main(int argc, char** argv) {
  int n = atoi(argv[1]), m = 32 + n / 2;
  float host[4 * 96];
  for (int i = 0; i < 4 * 96; ++i) host[i] = i * 7 % 97;
  float *a, *b, *c, *d, *e, *f, *tmp, *more;
  cudaMalloc(&a, 400), cudaMalloc(&b, 400), cudaMalloc(&c, 400);
  cudaMalloc(&d, 400), cudaMalloc(&e, 400), cudaMalloc(&f, 400);
  cudaMalloc(&tmp, 800), cudaMalloc(&more, 800);
  cudaMemcpy(a, host, 384, cudaMemcpyHostToDevice);
  cudaMemcpy(b, host + 96, 384, cudaMemcpyHostToDevice);
  cudaMemcpy(c, host + 192, 384, cudaMemcpyHostToDevice);
  cudaMemset(d, 0, 400), cudaMemset(e, 0, 400), cudaMemset(f, 0, 400);
"""
END = """  for (float* one : {d, e, f}) {
    cudaMemcpy(host, one, 4 * n, cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; ++i) printf("%g ", host[i]);
  }
  puts("");
}
"""
CALLS = (
    "  for (int s = 0; s < 3; ++s) {\n    blur(a, tmp, d, n);\n    blur(b, tmp, e, n);\n    blur(c, tmp, f, n);\n  }\n"
)
OBJECT = """class Filter {
  float* scratch_;
  int n_;

 public:
  explicit Filter(int n) : n_(n) { cudaMalloc(&scratch_, 800); }
  ~Filter() { cudaFree(scratch_); }
  float* scratch() const { return scratch_; }
  void apply(const float* in, float* out) {
    dim3 grid(blocks_of(n_)), block(32);
    rows<<<grid, block>>>(in, SCRATCH, n_);
    columns<<<grid, block>>>(SCRATCH, out, n_);
  }
};
"""
WITH = "  Filter one(n);\n  for (int s = 0; s < 3; ++s) {\n    one.apply(a, d);\n    one.apply(b, e);\n"
WITH += "    one.apply(c, f);\n  }\n"
CHANGED = OBJECT.replace("    columns", "    bump<<<grid, block>>>(SCRATCH, n_);\n    columns")
KERNEL = HEAD[HEAD.index("__global__ void rows") : HEAD.index("__global__ void columns")]
TWO = """class Two {
  float *a_, *b_, *cur_;
  float** where() { return &cur_; }

 public:
  Two() { cudaMalloc(&a_, 800), cudaMalloc(&b_, 800), cur_ = a_; }
  ~Two() { cudaFree(a_), cudaFree(b_); }
  float* flip() { return HOW; }
  struct End {
    Two* of;
    explicit End(Two* two) : of(two) {}
    ~End() { of->flip(); }
  };
  void apply(const float* in, float* out, int n) {
    rows<<<(n + 31) / 32, 32>>>(in, cur_, n);
    flip();
    columns<<<(n + 31) / 32, 32>>>(cur_, out, n);
  }
};
"""
WITH_TWO = "  Two one;\n  for (int s = 0; s < n / 20; ++s) {\n    one.apply(a, d, n);\n    one.apply(b, e, n);\n  }\n"
WORKSPACE = """struct Work { float *first, *second; int n; };
static void step(const float* in, float* out, const Work& work) {
  rows<<<blocks_of(work.n), 32>>>(in, work.first, work.n);
  columns<<<blocks_of(work.n), 32>>>(work.first, work.second, work.n);
  rows<<<blocks_of(work.n), 32>>>(work.second, out, work.n);
}
"""
COUNT = """static void count(const float* in, float* tmp, float* out, int n) {
  cudaMemset(tmp, 0, 800);
  some<<<(n + 31) / 32, 32>>>(in, tmp, n);
  bump<<<(n + 31) / 32, 32>>>(tmp, n);
  columns<<<(n + 31) / 32, 32>>>(tmp, out, n);
}
"""


def text_of(functions: str, body: str) -> str:
    return HEAD + functions + MAIN + body + END


GIVEN = {
    "a parameter": (BLUR, CALLS),
    "a part of an allocation": (BLUR, CALLS.replace("tmp", "tmp + 16")),
    "in a loop": (BLUR, "  float *in[] = {a, b, c}, *out[] = {d, e, f};\n"
                        "  for (int i = 0; i < 3; ++i) blur(in[i], tmp, out[i], n);\n"),
    "a member": (OBJECT.replace("SCRATCH", "scratch_"), WITH),
    "what a method gives": (OBJECT.replace("SCRATCH", "scratch()"), WITH),
    "members of a workspace": (WORKSPACE, "  Work work = {tmp, more, n};\n"
                                          "  step(a, d, work);\n  step(b, e, work);\n  step(c, f, work);\n"),
    "changed in place": (BLUR.replace("  columns", "  bump<<<(n + 31) / 32, 32>>>(tmp, n);\n  columns"), CALLS),
    "a member changed in place": (CHANGED.replace("SCRATCH", "scratch_"), WITH),
    "filled first": (COUNT, CALLS.replace("blur", "count")),
    "of the file": ("static float* kept;\n" + BLUR.replace("float* tmp, ", "").replace("tmp", "kept"),
                    "  cudaMalloc(&kept, 800);\n" + CALLS.replace("tmp, ", "")),
    "other bytes each time": (BLUR, CALLS.replace("blur(b, tmp, e, n)", "blur(b, tmp, e, s == 1 ? m : n)")),
    "between other calls": (BLUR, CALLS + "  blur(d, more, a, n);\n" + CALLS),
    "with results in the turn": (BLUR, CALLS.replace(
        "  }\n", '    cudaMemcpy(host, e, n * 4, cudaMemcpyDeviceToHost);\n    printf("%g\\n", host[1]);\n  }\n')),
}  # fmt: skip
KEPT = {
    "some bytes only": (BLUR.replace("rows<<<", "some<<<"), CALLS),
    "read first": (BLUR.replace("rows<<<(n", "bump<<<1, 1>>>(tmp, n);\n  rows<<<(n"), CALLS),
    "seen behind": (BLUR, CALLS + "  cudaMemcpy(host + 96, tmp, 4, cudaMemcpyDeviceToHost);\n"),
    "set before": (BLUR, "  cudaMemset(tmp, 0, 800);\n" + CALLS),
    "on some paths": (BLUR.replace("rows<<<(n", "if (n % 2) rows<<<(n"), CALLS),
    "more in place": (BLUR.replace("  columns", "  bump<<<2, 32>>>(tmp, n);\n  columns"), CALLS),
    "elsewhere in place": (BLUR.replace("  columns", "  bump<<<(n + 31) / 32, 32>>>(tmp + 1, n);\n  columns"), CALLS),
    "by two functions": (BLUR + BLUR.replace("blur", "other").replace("n + 31", "n + 63"),
                         CALLS.replace("blur(b", "other(b")),
    "an address that is kept": (BLUR.replace("  columns", "  keeps<<<1, 1>>>((float**)out, tmp);\n  columns"), CALLS),
    "another pointer by then": (BLUR.replace("  columns", "  tmp = tmp + 1;\n  columns"), CALLS),
    "a number by a call that counts": (
        "struct Size { int n; };\nstatic Size size;\nstatic Size next() { size.n = 64; return size; }\n"
        + BLUR.replace("rows<<<(n + 31) / 32", "rows<<<next().n"), CALLS,
    ),
    "a number that another one limits": (
        "static int limit = 32;\nstatic int max(int n, long) { return n < limit ? n : limit; }\n"
        + BLUR.replace("rows<<<(n + 31) / 32", "rows<<<max(n, 3l)"), CALLS + "  limit = 2;\n" + CALLS,
    ),
    "a default argument": (
        "static int width = 32;\nstatic int blocks(int n, int w = width) { return (n + w - 1) / w; }\n"
        + BLUR.replace("rows<<<(n + 31) / 32", "rows<<<blocks(n)"), CALLS + "  width = 64;\n" + CALLS,
    ),
    "a kernel's default argument": (
        "static int width = 32;\n" + KERNEL.replace("rows", "shown").replace("int n)", "int n = width)")
        + BLUR.replace("rows<<<(n + 31) / 32, 32>>>(in, tmp, n)", "shown<<<(n + 31) / 32, 32>>>(in, tmp)"),
        CALLS + "  width = 64;\n" + CALLS,
    ),
    "another size in each instance": (
        "template <class A> " + BLUR.replace("(in, tmp, n)", "(in, tmp, n / sizeof(A))"),
        CALLS.replace("blur(a", "blur<char>(a").replace("blur(b", "blur<short>(b").replace("blur(c", "blur<char>(c"),
    ),
    "another one by a method": (TWO.replace("HOW", "cur_ = cur_ == a_ ? b_ : a_"), WITH_TWO),
    "another one by an address": (TWO.replace("HOW", "*where() = b_"), WITH_TWO),
    "another one by an object's end": (
        TWO.replace("    flip();", "    { End end(this); }").replace("HOW", "cur_ = b_"), WITH_TWO,
    ),
    "both are one": (BLUR, CALLS.replace("blur(b, tmp", "blur(tmp, tmp")),
}  # fmt: skip


def compiled(folder: Path, text: str) -> Compiled:
    source = folder / "input.cu"
    source.write_text(text)
    return compile_and_keep(source, Options(copies="keep", launches="keep", force=True))


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Compiled]:
    folder = tmp_path_factory.mktemp("scratch")
    return {name: compiled(folder, text_of(*parts)) for name, parts in GIVEN.items()}


@pytest.mark.parametrize("name", GIVEN)
def test_each_stream_has_its_own(cases: dict[str, Compiled], name: str) -> None:
    text = cases[name].result.text.decode()
    assert len(re.findall(r"\(.*kesco_own\(", text)) >= 1
    assert len(set(re.findall(r"KescoOn\(kesco->stream\[(.)", text))) + text.count("stream[i]") >= 2


@pytest.mark.parametrize("name", KEPT)
def test_what_is_no_scratch(name: str, tmp_path: Path) -> None:
    done = compiled(tmp_path, text_of(*KEPT[name]))
    assert b"kesco_own" not in done.result.text
    assert "K221" not in {d.code for d in done.result.diagnostics}


def test_what_decides_is_compared(cases: dict[str, Compiled]) -> None:
    assert b"kesco_own(scratch(), n_, grid, block)" in (cases["what a method gives"].result.text)
    assert b"kesco_own(work.first, work.n)" in cases["members of a workspace"].result.text
    assert b"kesco_own(tmp)" in cases["filled first"].result.text


def test_one_call_needs_none(tmp_path: Path) -> None:
    """Where calls with the same scratch are on one stream anyway, it is left alone."""
    body = "  blur(a, tmp, d, n);\n  blur(d, tmp, e, n);\n  blur(b, more, f, n);\n"
    assert b"kesco_own" not in compiled(tmp_path, text_of(BLUR, body)).result.text


# ---- results, on a runtime that runs work late and in any order ----------------------------------------------------

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="the programs are run, which takes g++")


def executable(text: str, folder: Path, name: str) -> Path:
    """The program for that runtime: a launch is a call whose arguments are known when it is made."""

    def launch(found: re.Match[str]) -> str:
        parts = [*re.split(r",\s*(?![^()]*\))", found[2]), "0", "nullptr"]
        given = parts[:4] if len(parts) == 6 else [*parts[:2], "0", "nullptr"]
        return f"fake_launch({', '.join(given)}, std::bind({found[1]}, {found[3]}));"

    source, program = folder / f"{name}.cpp", folder / name
    source.write_text("#include <functional>\n" + re.sub(r"(\w+)<<<(.*?)>>>\((.*)\);", launch, text))
    built = run(("g++", "-std=c++17", f"-I{HERE / 'turns'}", "-o", str(program), str(source)), timeout=300)
    assert built.returncode == 0, built.stderr
    return program


def printed(program: Path, n: int, seed: int, more: dict[str, str] | None = None) -> str:
    environment = {**os.environ, "FAKE_SEED": str(seed), **(more or {})}
    done = run((str(program), str(n)), timeout=60, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_compiler
@pytest.mark.parametrize("name", GIVEN)
def test_results_are_those_of_the_serial_program(cases: dict[str, Compiled], name: str, tmp_path: Path) -> None:
    result = cases[name].result
    serial = executable(result.source.decode(), tmp_path, "serial")
    beside = executable(result.text.decode(), tmp_path, "beside")
    for n in (64, 90):
        wanted = printed(serial, n, 1)
        assert {printed(beside, n, seed) for seed in range(8)} == {wanted}
        for few in (4900, 20000, 26000, 52000, 78000):  # bytes: there is no room for some copies
            assert {printed(beside, n, seed, {"FAKE_BYTES": str(few)}) for seed in range(3)} == {wanted}
        assert printed(beside, n, 6, {"KESCO_STREAMS": "1"}) == wanted


@needs_compiler
def test_that_runtime_sees_scratch_that_is_shared(cases: dict[str, Compiled], tmp_path: Path) -> None:
    result = cases["a parameter"].result
    wanted = printed(executable(result.source.decode(), tmp_path, "serial"), 64, 1)
    wrong = result.text.decode().replace("kesco_own(tmp, n)", "tmp").replace("kesco_owned(tmp)", "tmp")
    assert {printed(executable(wrong, tmp_path, "shared"), 64, seed) for seed in range(8)} != {wanted}


# ---- what the proof refuses ----------------------------------------------------------------------------------------

FORGED = {
    "less is compared": ("kesco_own(tmp, n)", "kesco_own(tmp, (char)n)"),
    "less is compared, silently": ("kesco_own(tmp, n)", "kesco_own<float, bool>(tmp, n)/*kesco_own()*/"),
    "one pointer is shared": ("kesco_owned(tmp)", "tmp"),
    "the first is shared": ("kesco_own(tmp, n)", "tmp"),
    "nothing is compared": ("kesco_own(tmp, n)", "kesco_own(tmp)"),
    "something else is": ("kesco_own(tmp, n)", "kesco_own(tmp, 1)"),
    "it begins later": ("kesco_owned(tmp)", "kesco_own(tmp, n)"),
    "it never begins": ("kesco_own(tmp, n)", "kesco_owned(tmp)"),
    "a result": (", out, n);", ", kesco_owned(out), n);"),
    "in main": ("blur(a, tmp, d, n)", "blur(a, kesco_owned(tmp), d, n)"),
    "not on the current stream": ("32, 0, kesco_current()>>>(in", "32>>>(in"),
}


@pytest.mark.parametrize("change", FORGED)
def test_the_proof_refuses(cases: dict[str, Compiled], change: str) -> None:
    done = cases["a parameter"]
    old, new = FORGED[change]
    text = "\n".join(done.lines)
    assert text.count(old) == 1
    assert done.refuses(text.replace(old, new).split("\n"))
