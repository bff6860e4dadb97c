"""Stores of zero between kernels that become memsets: which do, and what the proof asks of a memset in their place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.proving import verify_files
from kesco.toolchain.model import Toolchain

pytestmark = pytest.mark.usefixtures("toolchain")

TEXT = """\
#include <cstdio>
#include <ctime>
__global__ void count(const float* x, int* found) { if (x[threadIdx.x] > 0) atomicAdd(found, 1); }
__global__ void scale(float* x, const int* found) { x[threadIdx.x] /= 1 + *found; }
void unseen(int* p);
int main(int argc, char** argv) {
  float *x, *y;
  int *a, *b;
  cudaMallocManaged(&x, 1 << 20);
  cudaMallocManaged(&y, 1 << 20);
  cudaMallocManaged(&a, 8);
  cudaMallocManaged(&b, 8);
  *a = 0;
  for (int t = 0; t < argc; ++t) {
    count<<<1, 64>>>(x, a);
    count<<<1, 64>>>(y, b);
    scale<<<1, 64>>>(x, a);
    scale<<<1, 64>>>(y, b);
    cudaDeviceSynchronize();
    *a = 0;  // for the next trip
    b[0] = 0;
  }
  printf("%d\\n", *a + *b);
  cudaDeviceSynchronize();
  cudaFree(x);
  cudaFree(y);
  cudaFree(a);
  cudaFree(b);
}
"""
STORE = "    *a = 0;  // for the next trip\n"
IN_A = "cudaMemsetAsync(a, 0, sizeof(*a), kesco->stream[0]); /* kesco: in place of the host's store */  // for the next"
IN_B = "cudaMemsetAsync(&b[0], 0, sizeof(b[0]), kesco->stream[1]);  // kesco: in place of the host's store\n"
WAIT = "  cudaDeviceSynchronize();  // kesco: until what is set to zero above is zero\n"


def compiled(tmp_path: Path, text: str) -> str:
    """What becomes of the functions of a program with ``--prefetch``."""
    (tmp_path / "a.cu").write_text(text)
    return compile_file(str(tmp_path / "a.cu"), Options(prefetch=True)).text.decode()


def memsets(tmp_path: Path, old: str, new: str) -> list[str]:
    """The memsets in the output where some of the text is another one."""
    assert old in TEXT
    return re.findall(r"cudaMemsetAsync\((.*), kesco->stream", compiled(tmp_path, TEXT.replace(old, new, 1)))


def test_stores_between_kernels_become_memsets(tmp_path: Path) -> None:
    text = compiled(tmp_path, TEXT)
    assert f"    {IN_A} trip\n    {IN_B}  }}\n{WAIT}" in text
    assert "  *a = 0;\n" in text  # before the loop: the page has to move to the device once
    (tmp_path / "b.cu").write_text(text)
    (found,) = verify_files(str(tmp_path / "a.cu"), str(tmp_path / "b.cu"), Options())
    assert not found.problems


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (STORE, "    *a = 0.0;\n"),
        (STORE, "    a[1] = 0;\n"),
        (STORE, "    if (argc > 2) *a = 0;\n"),
        (STORE, "    switch (argc) { case 1: *a = 0; }\n"),
        ('printf("%d\\n", *a + *b);', "cudaDeviceSynchronize();"),
        (STORE, "    *a = 0x0;\n    for (int i = 0; i < 4; ++i) argc += i;\n"),
    ],
)
def test_ways_to_write_it(tmp_path: Path, old: str, new: str) -> None:
    assert len(memsets(tmp_path, old, new)) == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (STORE, "    *a = 1;\n"),
        (STORE, "    *a = 0 /* a comment would be lost */;\n"),
        (STORE, "    *a = -0;\n"),
        (STORE, "    *(float*)a = -0.0f;\n"),
        (STORE, "    *a = *b = 0;\n"),
        (STORE, "    *a = 0, ++argc;\n"),
        (STORE, "    *a++ = 0;\n"),
        (STORE, "    *a += 0;\n"),
        (STORE, "    *(volatile int*)a = 0;\n"),
        (STORE, "#define zero(p) *p = 0\n    zero(a);\n"),
        (STORE, "#define a_again a\n    *a_again = 0;\n"),
        (STORE, "    a[argc] = 0;\n"),
        (STORE, "    int host;\n    int* p = argc > 2 ? a : &host;\n    *p = 0;\n"),
        (STORE, "    int* p = argc > 2 ? a : b;\n    *p = 0;\n"),
        (STORE, "    *a = 0;\n    if (a[1]) ++argc;\n"),  # the host looks at it in the same loop
        (STORE, "    *a = 0;\n    x[5] = 0;\n    ++x[6];\n"),  # and at other memory, which not all devices can share
        (STORE, "    *a = 0;\n    argc += clock() & 1;\n"),  # and at the clock
        (STORE, "    *a = 0;\n    unseen(nullptr);\n"),
        (STORE, "    *a = 0;\n    if (argc > 3) return 1;\n"),
        ("    cudaDeviceSynchronize();\n", ""),  # the kernels may still run, and wait for it
        ("    cudaDeviceSynchronize();\n", "    cudaDeviceSynchronize();\n    scale<<<1, 64>>>(y, b);\n"),
        (STORE, "    volatile int* v = a;\n    *v = 0;\n"),
        (STORE, "    argc += *a;\n    *a = 0;\n"),  # its page is with the host anyway
        ("  cudaMallocManaged(&a, 8);\n", "  a = new int[2];\n  cudaHostRegister(a, 8, cudaHostRegisterMapped);\n"),
        ("  cudaMallocManaged(&x", "  cudaMemAdvise(x, 8, cudaMemAdviseSetReadMostly, {});\n  cudaMallocManaged(&x"),
    ],
)
def test_what_stays_a_store(tmp_path: Path, old: str, new: str) -> None:
    assert [one for one in memsets(tmp_path, old, new) if one.startswith(("a", "&a", "p"))] == []


ALIASES = {
    "a function reads it": ("static int peek(int* p) { return *p; }", "", "*a = 0;\n    argc += peek(a);"),
    "another pointer": ("", "int* again = a;", "*a = 0;\n    argc += *again;"),
    "a pointer in memory that is not followed": (
        "#include <map>\nstatic std::map<int, int*> table;",
        "table[0] = a;",
        "*a = 0;\n    argc += *table[0];",
    ),
    "a pointer that the device wrote": (
        "__global__ void keep(int** p, int* a) { *p = a; }",
        "int** p;\n  cudaMallocManaged(&p, 8);\n  keep<<<1, 1>>>(p, a);\n  cudaDeviceSynchronize();",
        "*a = 0;\n    argc += **p;",
    ),
    "a function of the host that runs on the stream": (
        'static void CUDART_CB look(void* p) { printf("%d", *(int*)p); }',
        "",
        "*a = 0;\n    cudaLaunchHostFunc(0, look, a);",
    ),
    "an atomic": ("#include <atomic>", "auto* both = (std::atomic<int>*)a;", "*both = 0;"),
    "a class": ("struct Set { int v; Set& operator=(int); };", "Set* set = (Set*)a;", "*set = 0;"),
    "a pointer of a class": ("struct P { int* p; int& operator*(); };", "P p{a};", "*p = 0;"),
    "a bit-field": ("struct Bits { int b : 3; };", "Bits* bits = (Bits*)a;", "bits->b = 0;"),
    "a union": ("union Either { int* p; long n; };", "Either e{a};", "*e.p = 0;"),
    "a reference": ("", "int& first = *a;", "first = 0;"),
    "two allocations of one name": (
        "",
        "int* old = a;\n  cudaMallocManaged(&a, 8);\n  *old = 1;",
        "count<<<1, 1>>>(x, old);\n    cudaDeviceSynchronize();\n    *old = 0;",
    ),
    "several allocations of one place": (
        "",
        "int* last = nullptr;\n  for (int i = 0; i < argc; ++i) cudaMallocManaged(&last, 8);",
        "count<<<1, 1>>>(x, last);\n    cudaDeviceSynchronize();\n    *last = 0;",
    ),
    "a lambda": ("", "auto zero = [&] { *a = 0; };", "zero();"),
}


@pytest.mark.parametrize("name", ALIASES)
def test_what_may_be_something_else_stays(tmp_path: Path, name: str) -> None:
    declared, before, store = ALIASES[name]
    text = TEXT.replace("void unseen", f"{declared}\nvoid unseen").replace("  *a = 0;\n", f"  {before}\n", 1)
    found = compiled(tmp_path, text.replace(STORE, f"    {store}\n"))
    assert [one for one in re.findall(r"cudaMemsetAsync\((\S*),", found) if not one.startswith("&b")] == []


BROKEN = {
    "another stream without a wait": (IN_A, IN_A.replace("stream[0]", "stream[1]")),
    "a larger size": (IN_A, IN_A.replace("sizeof(*a)", "8")),
    "a smaller size": (IN_A, IN_A.replace("sizeof(*a)", "2")),
    "another value": (IN_A, IN_A.replace("(a, 0,", "(a, 1,")),
    "another place": (IN_A, IN_A.replace("(a, 0,", "(a + 1, 0,")),
    "another allocation": (IN_A, IN_A.replace("(a, 0, sizeof(*a)", "(b, 0, sizeof(*b)")),
    "in a branch": (IN_A, f"if (argc > 2) {IN_A}"),
    "twice": (IN_A, f"{IN_A}\n    {IN_A}"),
    "both": (IN_A, f"*a = 0;\n    {IN_A}"),
    "the host looks before it waits": (WAIT, ""),
    "the host reads it in the loop": (IN_B, f"{IN_B}    argc += *a;\n"),
    "before a kernel": ("    scale<<<1, 64, 0, kesco->stream[0]>>>(x, a);\n", f"    {IN_A}\n//"),
    "left out": (IN_A, "// "),
}


@pytest.fixture(scope="module")
def output(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The program, and what becomes of it."""
    folder = tmp_path_factory.mktemp("output")
    return folder / "a.cu", compiled(folder, TEXT)


@pytest.mark.parametrize("name", BROKEN)
def test_what_the_proof_refuses(output: tuple[Path, str], tmp_path: Path, name: str) -> None:
    program, text = output
    old, new = BROKEN[name]
    assert old in text
    (tmp_path / "b.cu").write_text(text.replace(old, new))
    found = verify_files(str(program), str(tmp_path / "b.cu"), Options())
    assert any(one.problems for one in found)


SET, MEMSET, READ, WAIT_HERE = "*a = 0;", "cudaMemsetAsync(a, 0, 4, 0);", "argc += *a;", "cudaDeviceSynchronize();"


@pytest.mark.parametrize(
    ("serial", "concurrent", "proven"),
    [
        ((READ, SET), (READ, MEMSET, WAIT_HERE), True),
        ((READ, SET), (MEMSET, READ, WAIT_HERE), False),
        ((READ, SET), (MEMSET, WAIT_HERE, READ), False),
        ((SET, READ), (MEMSET, WAIT_HERE, READ), True),
        ((SET, READ), (MEMSET, READ, WAIT_HERE), False),
        ((SET, "clock();"), (MEMSET, "clock();", WAIT_HERE), False),
        ((SET, "unseen(nullptr);"), (MEMSET, "unseen(nullptr);", WAIT_HERE), False),
    ],
)
def test_the_host_has_what_it_stores_at_once(
    tmp_path: Path, serial: tuple[str, ...], concurrent: tuple[str, ...], proven: bool
) -> None:
    for name, lines in (("a.cu", serial), ("b.cu", concurrent)):
        (tmp_path / name).write_text(TEXT.replace(STORE, f"    {' '.join(lines)}\n"))
    found = verify_files(str(tmp_path / "a.cu"), str(tmp_path / "b.cu"), Options())
    assert any(one.problems for one in found) != proven


def test_a_kernel_may_watch_for_the_store(tmp_path: Path) -> None:
    """Where the host has not waited, a kernel may wait for what it stores: behind that kernel it would never come."""
    text = TEXT.replace("    cudaDeviceSynchronize();\n", "")
    (tmp_path / "a.cu").write_text(text)
    set_to_zero = "    cudaMemsetAsync(a, 0, 4, 0);\n    cudaDeviceSynchronize();\n"
    (tmp_path / "b.cu").write_text(text.replace(STORE, set_to_zero))
    found = verify_files(str(tmp_path / "a.cu"), str(tmp_path / "b.cu"), Options())
    assert any(one.problems for one in found)
