"""A number that is stored nobody knows where changes no pointer, as C++ has it; and it may change any number."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.options import Options
from tests.integration.compiled import compile_and_keep

pytestmark = pytest.mark.usefixtures("toolchain")

PROGRAM = """#include <cstddef>
#include <cstdio>
__global__ void grow(float* x) {{ x[threadIdx.x] += 1; }}
float* first;
float* second;
float* both[2];
int which;
void run({0}* given, long at, float* out) {{
  {0}* told = {3};
  cudaMalloc(&first, 128);
  cudaMalloc(&second, 128);
  both[0] = first;
  both[1] = second;
  which = 0;
  for (int i = 0; i < 4; i++) told[i] = {1};
  grow<<<1, 32>>>({2});
  grow<<<1, 32>>>(second);
  cudaMemcpy(out, first, 128, cudaMemcpyDeviceToHost);
}}
"""


FROM = ["given", "({0}*)at"]  # what has a name, and what may be anywhere


# What bytes are, is not told by who copies them: those of a number may be a pointer's, and members of a class an index.
HEAD = """#include <cstdio>
#include <cstdlib>
#include <cstring>
__global__ void grow(float* x) { x[threadIdx.x] += 1; }
float* first;
float* second;
float* both[2];
struct Pick { int a, b; };
Pick pick;
double box;
long bits() { long found; memcpy(&found, &box, 8); return found; }
__attribute__((noinline)) float* chosen(Pick which) { return both[which.a]; }
int main(int argc, char** argv) {
  cudaMalloc(&first, 128);
  cudaMalloc(&second, 128);
  both[0] = first;
  both[1] = second;
  printf("%p %p %p", (void*)second, (void*)&pick, (void*)&box);
  auto told = atol(argv[1]);
"""
END = """  grow<<<1, 32>>>(second);
  cudaDeviceSynchronize();
}
"""
BYTES = {
    "members that are passed as one": "pick.a = pick.b = 0; *(int*)told = 1; grow<<<1, 32>>>(chosen(pick));",
    "a pointer's in a number": (
        "memcpy(&box, &first, 8); *(double*)told = atof(argv[2]); float* q; memcpy(&q, &box, 8); grow<<<1, 32>>>(q);"
    ),
    "a number's": "box = 0; *(double*)told = atof(argv[2]); grow<<<1, 32>>>(both[bits() != 0]);",
}
FAILED = {
    "a parameter": "void run(float* a) { float* p = a; cudaMalloc(&p, 1ul << 36); GROW(p); GROW(a); }",
    "a member that was read": "void run(S& s) { float* a = s.p; cudaMalloc(&s.p, 1ul << 36); GROW(s.p); GROW(a); }",
    "a member": "void run(S& s) { s.p = s.a; cudaMalloc(&s.p, 1ul << 36); GROW(s.p); GROW(s.a); }",
}


@pytest.mark.parametrize("case", BYTES)
def test_bytes_are_of_anything(tmp_path: Path, case: str) -> None:
    assert _compiled(tmp_path, HEAD + BYTES[case] + END, "main") == 0


@pytest.mark.parametrize("case", FAILED)
def test_a_pointer_that_gets_no_memory_stays_what_it_was(tmp_path: Path, case: str) -> None:
    top = "#define GROW(x) grow<<<1, 32>>>(x)\n__global__ void grow(float* x) { x[threadIdx.x] += 1; }\n"
    top += "struct S { float *p, *a; };\n"
    assert _compiled(tmp_path, top + FAILED[case], "run") == 0


def _streams(folder: Path, told: str, stored: str, value: str, used: str = "first", *flags: str) -> int:
    return _compiled(folder, PROGRAM.format(stored, value, used, told.format(stored)), "run", *flags)


def _compiled(folder: Path, text: str, function: str, *flags: str) -> int:
    path = folder / "program.cu"
    path.write_text(text)
    found = compile_and_keep(path, Options(flags=("-std=c++17", *flags))).function(function)
    return found.schedule.streams if found.rewritten and found.schedule is not None else 0


@pytest.mark.parametrize("told", FROM)
@pytest.mark.parametrize("stored", ["double", "float", "int", "unsigned", "short", "bool"])
def test_a_number_changes_no_pointer(tmp_path: Path, told: str, stored: str) -> None:
    assert _streams(tmp_path, told, stored, "1") == 2


@pytest.mark.parametrize("told", FROM)
@pytest.mark.parametrize(
    ("stored", "value"),
    [("char", "1"), ("unsigned char", "1"), ("std::byte", "std::byte(1)"), ("long", "1"), ("size_t", "1"),
     ("float*", "out"), ("void*", "out")],
)  # fmt: skip
def test_what_may_hold_an_address_may_change_one(tmp_path: Path, told: str, stored: str, value: str) -> None:
    assert _streams(tmp_path, told, stored, value) == 0


@pytest.mark.parametrize("told", FROM)
def test_who_does_not_keep_to_the_rule_says_so(tmp_path: Path, told: str) -> None:
    assert _streams(tmp_path, told, "float", "1", "first", "-fno-strict-aliasing") == 0


@pytest.mark.parametrize("told", FROM)
def test_a_number_changes_numbers(tmp_path: Path, told: str) -> None:
    assert _streams(tmp_path, told, "int", "1", "both[0]") == 2
    assert _streams(tmp_path, told, "int", "1", "both[which]") == 0
