"""What only a failed call leads to: where it ends the process, cleaning up there is nothing to the functions around."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.ir import program as ir
from tests.integration.compiled import Compiled, compile_and_keep

pytestmark = pytest.mark.usefixtures("toolchain")

HEAD = """#include <cstdio>
#include <cstdlib>
#include <iostream>
void raise(int);
#define CHECK(value) check((value), #value, __LINE__)
__global__ void square(float* y, const float* x, long n) {
  for (long i = threadIdx.x; i < n; i += 32) y[i] = x[i] * x[i];
}
"""
WORK = """  CHECK(cudaMemset(x, 0, 4096));
  square<<<1, 32>>>(y, x, 1024);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  square<<<1, 32>>>(z, x, 1024);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
"""
MAIN = f"""int main() {{
  float *x, *y, *z;
  CHECK(cudaMalloc(&x, 4096)); CHECK(cudaMalloc(&y, 4096)); CHECK(cudaMalloc(&z, 4096));
{WORK}  CHECK(cudaFree(x)); CHECK(cudaFree(y)); CHECK(cudaFree(z));
}}
"""
# Only the reading of LLVM IR follows objects of class templates.
BUFFER = """template <class T> struct Buffer {
  T* at;
  explicit Buffer(long n) { CHECK(cudaMalloc(&at, n * sizeof(T))); }
  ~Buffer() { cudaFree(at); }
};
"""
OBJECTS = f"""{BUFFER}int main() {{
  Buffer<float> first(1024), second(1024), third(1024);
  float *x = first.at, *y = second.at, *z = third.at;
{WORK}}}
"""


def compiled(folder: Path, text: str) -> Compiled:
    path = folder / "app.cu"
    path.write_text(HEAD + text, "utf-8")
    return compile_and_keep(path)


def check(body: str) -> str:
    return f"void check(cudaError_t result, const char* what, int line) {{\n  {body}\n}}\n"


CLEANS = [
    'if (result) { std::cerr << what << line << "\\n"; cudaDeviceReset(); exit(99); }',
    'if (result != cudaSuccess) { printf("%s", what); cudaDeviceSynchronize(); cudaDeviceReset(); abort(); }',
    'if (cudaSuccess == result) return; fprintf(stderr, "%d", line); cudaDeviceReset(); exit(1);',
    'if (cudaSuccess == result) return; else { fprintf(stderr, "%d", line); cudaDeviceReset(); exit(1); }',
]
GOES_ON = [
    "if (result) cudaDeviceReset();",
    "if (result) { cudaDeviceReset(); if (line > 40) exit(99); }",
    "if (!result) { cudaDeviceReset(); exit(99); }",
    "if (line > 40) { cudaDeviceReset(); exit(99); }",
    "if (result) { cudaDeviceReset(); if (line > 40) return; exit(99); }",
    "if (result) { cudaDeviceReset(); raise(result); exit(99); }",
    "if (result) { cudaDeviceReset(); std::cerr << line; exit(99); }",  # which may be told to throw
]


@pytest.mark.parametrize("body", CLEANS)
@pytest.mark.parametrize("program", [MAIN, OBJECTS], ids=["tree", "ir"])
def test_a_check_may_clean_up_before_it_ends_the_process(tmp_path: Path, body: str, program: str) -> None:
    outcome = compiled(tmp_path, check(body) + program)
    (one,) = outcome.rewritten
    assert len(one.plan.waits) == 1
    assert "kesco->stream[1]" in outcome.result.text.decode()
    assert "K221" not in [d.code for d in outcome.result.diagnostics]


@pytest.mark.parametrize("body", GOES_ON)
@pytest.mark.parametrize("program", [MAIN, OBJECTS], ids=["tree", "ir"])
def test_a_reset_that_the_program_survives_is_a_barrier(tmp_path: Path, body: str, program: str) -> None:
    assert compiled(tmp_path, check(body) + program).rewritten == []


TWICE = """#include <cstdio>
#include <cstdlib>
#define CHECK(s) { if (s != cudaSuccess) { printf("%s", cudaGetErrorString(s)); ENDS } }
__global__ void square(float* y, const float* x, long n) {
  for (long i = threadIdx.x; i < n; i += 32) y[i] = x[i] * x[i];
}
"""
COPIES = """  float host[1024] = {1};
  CHECK(cudaMemcpy(x, host, 4096, cudaMemcpyHostToDevice));
  square<<<1, 32>>>(y, x, 1024);
  square<<<1, 32>>>(z, x, 1024);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
"""


@pytest.mark.parametrize(("ends", "concurrent"), [("exit(1);", True), ("std::abort();", True), ("", False)])
def test_a_check_may_make_its_call_again_before_it_ends_the_process(
    tmp_path: Path, ends: str, concurrent: bool
) -> None:
    """Both calls stand at one place; the second one changes nothing that anybody sees."""
    path = tmp_path / "app.cu"
    path.write_text(TWICE.replace("ENDS", ends) + OBJECTS.replace(WORK, COPIES), "utf-8")
    outcome = compile_and_keep(path)
    assert [one.region.function for one in outcome.rewritten] == (["main"] if concurrent else [])


LOOKS = """#include <cstdio>
__global__ void bump(float* a, int n) { if (threadIdx.x < n) a[threadIdx.x] += 1; }
static void look(const float* h, TYPE quick) { BODY }
int main(int argc, char** argv) {
  float *p, *q, *r;
  cudaMallocHost(&p, 256), cudaMalloc(&q, 256), cudaMalloc(&r, 256);
  look(p, 1);
  for (int i = 0; i < argc; ++i) {
    bump<<<1, 64>>>(q, 64);
    bump<<<1, 64>>>(p, 64);
    cudaDeviceSynchronize();
    look(p, GIVEN);
    bump<<<1, 64>>>(q, 64);
    bump<<<1, 64>>>(p, 64);
    bump<<<1, 64>>>(r, 64);
  }
  cudaDeviceSynchronize();
}
"""
QUICK = 'if (quick) return; printf("%g ", h[5]);'


@pytest.mark.parametrize(
    ("kind", "body", "given", "gone"),
    [
        ("int", QUICK, "2", True),
        ("int", QUICK, "0", False),
        ("unsigned char", QUICK, "256", False),
        ("int", QUICK, "(char)256", False),
        ("int", f"switch (quick) {{ case 0: if (quick) return; else {{ case 1: {QUICK[19:]} }} }}", "1", False),
    ],
)
def test_what_a_parameter_settles_is_settled_in_its_own_type(
    tmp_path: Path, kind: str, body: str, given: str, gone: bool
) -> None:
    path = tmp_path / "app.cu"
    path.write_text(LOOKS.replace("TYPE", kind).replace("BODY", body).replace("GIVEN", given), "utf-8")
    assert (b"not needed here" in compile_and_keep(path).result.text) is gone


ASKS = """#include <cstdio>
#include <cstdlib>
#define CHECK(value) { check((value), __FILE__, __LINE__); }
inline void check(cudaError_t code, const char* file, int line, bool ends = true) {
  if (code != cudaSuccess) {
    fprintf(stderr, "%s %s %d\\n", cudaGetErrorString(code), file, line);
    if (ends) exit(code);
  }
}
__global__ void square(float* y, const float* x, long n) {
  for (long i = threadIdx.x; i < n; i += 32) y[i] = x[i] * x[i];
}
int main(int argc, char** argv) {
  int size = 4096 * argc, turns = argc + 5;
  float *in = (float*)malloc(turns * size), *out = (float*)malloc(turns * size), *x, *y;
  CHECK(cudaMalloc(&x, size));
  CHECK(cudaMalloc(&y, size));
  for (int i = 0; i < turns; ++i) {
    CHECK(cudaMemcpy(x, in + i * 1024 * argc, size, cudaMemcpyHostToDevice));
    square<<<1, 32>>>(y, x, 1024 * argc);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out + i * 1024 * argc, y, size, cudaMemcpyDeviceToHost));
  }
  printf("%f\\n", out[7]);
}
"""


@pytest.mark.parametrize(
    ("old", "new", "turns"),
    [
        ("", "", True),
        ("bool ends = true", "int ends = 1", True),
        ("if (ends) exit(code);", "if (!ends) return; exit(code);", False),  # a way out all the same
        ("bool ends = true", "bool ends = false", False),
        ("CHECK(cudaMalloc(&y", "check(cudaMalloc(&y, 0), __FILE__, __LINE__, false);\n  CHECK(cudaMalloc(&y", False),
        ("if (code !=", "ends = code > 9;\n  if (code !=", False),
    ],
)
def test_a_check_that_is_told_each_time_to_end_the_process_does(
    tmp_path: Path, old: str, new: str, turns: bool
) -> None:
    assert old in ASKS
    path = tmp_path / "app.cu"
    path.write_text(ASKS.replace(old, new, 1) if old else ASKS, "utf-8")
    text = compile_and_keep(path).result.text
    assert (b"kesco_turn(" in text) is turns


def test_what_other_files_may_call_in_another_way_is_not_settled(tmp_path: Path) -> None:
    """The wait in it stays for whoever asks to see what the device has done."""
    text = LOOKS.replace("TYPE", "int").replace("GIVEN", "2").replace("BODY", f"bump<<<1, 1>>>(q, 1); {QUICK}")
    text = text.replace("static void look(const float* h,", "void look(float* q, const float* h,").replace(
        "look(p", "look(q, p"
    )
    waits = text.replace("bump<<<1, 1>>>(q, 1);", "cudaMemset(q, 0, 4); cudaDeviceSynchronize();")
    for name, one in (("launches.cu", text), ("waits.cu", waits)):
        (tmp_path / name).write_text(one, "utf-8")
        look = compile_and_keep(tmp_path / name).session.program.functions
        body = next(f.body for f in look if f.name == "look")
        assert any(isinstance(n, ir.If) for n in ir.walk(body))
