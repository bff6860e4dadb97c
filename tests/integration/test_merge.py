"""``kesco merge``: programs whose names clash run side by side as each does alone; what cannot be one is refused."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kesco.cli import main
from kesco.errors import InputError
from kesco.frontend.clang import load
from kesco.merging.specs import parse
from kesco.merging.together import merge
from kesco.merging.units import read_unit
from kesco.merging.wrap import wrapped
from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.toolchain.compile import host_arguments
from kesco.toolchain.dryrun import build
from kesco.toolchain.model import Toolchain

pytestmark = pytest.mark.usefixtures("toolchain")

SHARED = """\
#pragma once
#include <cassert>
static int calls = 0;
inline int shared() { assert(calls >= 0); return ++calls + N; }
"""
A = """\
#include <cstdio>
#include <cstdlib>
#define N 100
#define SCALE(x) ((x) * 2)
#include "shared.h"
static int counter = 0;
#pragma pack(1)
struct Point { float x, y; };
__constant__ float table[4];
__global__ void work(float* p) { p[threadIdx.x] = SCALE(1.0f) * table[0]; }
int main(int argc, char** argv) {
  if (cudaSetDevice(0) != cudaSuccess) return 9;
  float *d, *e, h[4] = {1, 2, 3, 4};
  cudaMalloc(&d, N * sizeof(float));
  cudaMalloc(&e, N * sizeof(float));
  cudaMemcpyToSymbol(table, h, sizeof h);
  for (int i = 0; i < 3; ++i) {
    work<<<1, N>>>(d);
    work<<<1, N>>>(e);
    ++counter;
  }
  cudaDeviceSynchronize();
  std::printf("a %s: %d %s %d %d, %d %d\\n", __func__, argc - 1, argc > 1 ? argv[1] : "", counter, SCALE(N),
              shared(), static_cast<int>(sizeof(Point)));
  cudaDeviceReset();
  if (argc > 2) exit(7);
}
"""
B = """\
#include <algorithm>
#include <cstdio>
#define N 7
#define SCALE(x) ((x) * 3)
#include "shared.h"
namespace { int counter = 5; }
struct Point { int x[3]; double y; };
struct Say { Say() { ++counter; } } say;
__global__ void work(int* p, int* q) { p[threadIdx.x] = q[threadIdx.x] + SCALE(1); }
template <typename T> T larger(T a, T b) { return std::max(a, b); }
int main() {
  int *d, *e, h[N];
  cudaMalloc(&d, N * sizeof(int));
  cudaMalloc(&e, N * sizeof(int));
  cudaMemset(e, 0, N * sizeof(int));
  work<<<dim3(1), dim3(N), 0>>>(d, e);
  cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
  assert(sizeof(Point) == 24);
  std::printf("b: %d %d %d %d\\n", counter, SCALE(larger(1, 2)), static_cast<int>(sizeof(Point)), shared());
  return N - 4;
}
"""


def run(program: Path, *arguments: str) -> tuple[int, list[str]]:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, sorted(done.stdout.splitlines())


@pytest.mark.thorough
def test_each_program_does_what_it_does_alone(tmp_path: Path, toolchain: Toolchain) -> None:
    for name, text in (("a.cu", A), ("b.cu", B), ("shared.h", SHARED)):
        (tmp_path / name).write_text(text)
    words = [f"{tmp_path}/a.cu:main=3", f"{tmp_path}/b.cu=2"]
    done = CliRunner().invoke(main, ["merge", *words, "-o", f"{tmp_path}/both.cu", "-q"])
    assert done.exit_code == 0, done.output
    text = (tmp_path / "both.cu").read_text()
    assert "for (const int number : {0, 1})" in text
    assert "work<<<1, N, 0, kesco_on( kesco->stream[1])>>>(e);" in text
    assert "work<<<dim3(1), dim3(N), 0, kesco_on()>>>(d, e);" in text
    programs = {}
    for name in ("a", "b", "both"):
        folder = tmp_path / f"{name}-built"
        folder.mkdir()
        programs[name] = build(toolchain, [f"{tmp_path}/{name}.cu"], (), folder)
    _, a = run(programs["a"], "x")
    code, b = run(programs["b"])
    assert (a, code) == (["a main: 1 x 3 200, 101 8"], 3)
    assert run(programs["both"], "x") == (3, a + b)
    # A task that exits does not end the other; the first code in the order of the tasks counts.
    assert run(programs["both"], "x", "y", "--") == (7, ["a main: 2 x 3 200, 101 8", *b])
    assert run(programs["both"], "--", "--")[0] == 2
    one = CliRunner().invoke(main, ["merge", *words, "--threads", "one", "-o", f"{tmp_path}/one.cu", "-q"])
    assert one.exit_code == 0, one.output
    (tmp_path / "one-built").mkdir()
    programs["one"] = build(toolchain, [f"{tmp_path}/one.cu"], (), tmp_path / "one-built")
    assert run(programs["one"], "x") == (3, a + b)
    assert run(programs["one"], "x", "y", "--") == (7, ["a main: 2 x 3 200, 101 8", *b])
    again = CliRunner().invoke(main, ["merge", *words, "-o", f"{tmp_path}/a.cu", "-q"])
    assert again.exit_code == 2


@pytest.mark.thorough
def test_copies_that_the_host_waits_for_stay(tmp_path: Path) -> None:
    """Moved, they would be made by threads that belong to no task."""
    copies = "".join(f"  cudaMemcpy({d}, {h}.data(), bytes, cudaMemcpyHostToDevice);\n" for d, h in ("de", "fg"))
    (tmp_path / "one.cu").write_text(
        "#include <vector>\n__global__ void k(float* p) { p[threadIdx.x] += 1; }\n"
        "int main() {\n  const size_t bytes = 1 << 28;\n  std::vector<float> e(bytes / 4), g(bytes / 4);\n"
        f"  float *d, *f;\n  cudaMalloc(&d, bytes);\n  cudaMalloc(&f, bytes);\n{copies}"
        "  k<<<1, 64>>>(d);\n  k<<<1, 64>>>(f);\n  cudaDeviceSynchronize();\n}\n"
    )
    (tmp_path / "other.cu").write_text(B)
    (tmp_path / "shared.h").write_text(SHARED)
    assert b"kesco_send(" in compile_file(f"{tmp_path}/one.cu", Options()).text
    merged = merge(parse([f"{tmp_path}/one.cu=1", f"{tmp_path}/other.cu=2"]), Options())
    assert b"KescoRing" not in merged.text
    assert max(one.schedule.streams for one in merged.programs[0].functions) == 2


def refused(tmp_path: Path, one: str, other: str = B) -> str:
    (tmp_path / "one.cu").write_text(one)
    (tmp_path / "other.cu").write_text(other)
    (tmp_path / "shared.h").write_text(SHARED)
    with pytest.raises(InputError) as caught:
        merge(parse([f"{tmp_path}/one.cu=1", f"{tmp_path}/other.cu=2"]), Options())
    return " ".join(d.code for d in caught.value.diagnostics)


# The namespace would hide ::labs(long); a header of the other program would give a macro another value.
HIDES = """\
#include <cstdio>
#include <cstdlib>
inline double labs(double x) { return x < 0 ? -x : x; }
int main() { std::printf("%d\\n", static_cast<int>(sizeof(labs(1L)))); }
"""
LEAKS = """\
#include <cstdio>
#ifndef DEV_BSIZE
#define DEV_BSIZE 10
#endif
int main() { std::printf("%d\\n", DEV_BSIZE); }
"""
PARAMETERS = '#include <sys/param.h>\n#include <cstdio>\nint main() { std::puts(""); }\n'


@pytest.mark.thorough
def test_a_name_that_would_mean_something_else(tmp_path: Path) -> None:
    assert refused(tmp_path, HIDES, PARAMETERS) == "K126"
    assert refused(tmp_path, LEAKS, PARAMETERS) == "K126"


def test_what_two_processes_would_not_share(tmp_path: Path) -> None:
    one = "#include <cstdlib>\nint helper(int);\nint main() { return helper(rand()); }\n"
    other = "#include <cstdlib>\nint main() { srand(1); cudaDeviceReset(); void* p; cudaMalloc(&p, 4); }\n"
    assert refused(tmp_path, one, other) == "K121 K123 K122"


HEAD = """\
#include <cstdio>
#include <cstdlib>
#define CHECK(call) if ((call) != cudaSuccess) printf("%s", cudaGetErrorString(cudaGetLastError())), exit(1)
#define SAY(call) if (cudaError_t e = (call)) printf("%s", cudaGetErrorString(e))
#define BOTH cudaSetDevice(0); cudaSetDevice(n)
struct Gone { ~Gone(); };
Gone::~Gone() {}
void more() { static int n; ++n; }
"""


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("cudaSetDevice(0);", 1),
        ("const int device = 0; CHECK(cudaSetDevice(device)); cudaSetDevice(0);", 2),
        ("SAY(cudaDeviceReset()); return n == 0 ? EXIT_SUCCESS : EXIT_FAILURE;", 1),
        ('cudaDeviceReset(); printf("done"); if (n) exit(2);', 1),
        ("cudaSetDevice(1);", 0),
        ("int device = 0; cudaSetDevice(device);", 0),
        ("BOTH;", 0),
        ("auto set = cudaSetDevice; set(0);", 0),
        ("if (n) { cudaDeviceReset(); return 1; } void* p; cudaMalloc(&p, 4);", 0),
        ("cudaDeviceReset(); more();", 0),
        ("cudaDeviceReset(); [] { more(); }();", 0),
        ("Gone gone; cudaDeviceReset();", 0),
        ("static Gone gone; cudaDeviceReset();", 0),
        ("atexit(more); cudaDeviceReset();", 0),
        ("Gone* p = new Gone; cudaDeviceReset(); delete p;", 0),
        ("CHECK(cudaDeviceReset());", 0),  # a look at errors is one at the device
    ],
)
def test_settings_that_change_nothing(body: str, named: int, toolchain: Toolchain) -> None:
    load(str(toolchain.libclang))
    text = f"{HEAD}int main(int n, char**) {{\n{body}\n}}\n"
    assert len(read_unit("one.cu", text.encode(), host_arguments(toolchain, ())).harmless) == named


def test_what_cannot_stand_in_a_namespace(tmp_path: Path, toolchain: Toolchain) -> None:
    def wrap(text: str) -> None:
        wrapped(read_unit("one.cu", text.encode(), host_arguments(toolchain, ())))

    with pytest.raises(InputError) as caught:
        wrap("static int f() { return 1; }\n")
    assert caught.value.diagnostics[0].code == "K124"
    with pytest.raises(InputError) as caught:
        wrap("#define NDEBUG\n#include <assert.h>\nint main() {}\n")
    assert caught.value.diagnostics[0].code == "K125"
    wrap("#include <assert.h>\n#define NDEBUG\nint main() {}\n")


@pytest.mark.thorough
def test_merged_programs_are_merged_again(tmp_path: Path, toolchain: Toolchain) -> None:
    """Each task does what it does alone, in the order of the arguments; within its program it keeps its place."""
    for name, text in (("a.cu", A), ("b.cu", B), ("shared.h", SHARED)):
        (tmp_path / name).write_text(text)

    def made(name: str, *words: str) -> bytes:
        done = CliRunner().invoke(main, ["merge", *(f"{tmp_path}/{w}" for w in words), "-o", f"{tmp_path}/{name}"])
        assert done.exit_code == 0, done.output
        assert done.output.count("as it was") == {"both.cu": 0, "more.cu": 2, "again.cu": 3}[name]
        return (tmp_path / name).read_bytes()

    def built(name: str) -> Path:
        folder = tmp_path / f"{name}-built"
        folder.mkdir()
        return build(toolchain, [f"{tmp_path}/{name}"], (), folder)

    both = made("both.cu", "b.cu=2", "a.cu=3")
    text = made("more.cu", "a.cu=5", "both.cu=5").decode()
    found = re.findall(r"task (\w+), priority ([\d/]+)", text)
    assert found == [("a", "5"), ("b", "5/2"), ("a_2", "5/3")]
    assert re.findall(r"\}, (\d), \{argv", text) == ["0", "1", "0"]
    again = made("again.cu", "more.cu=1", "b.cu=9").decode()
    assert re.findall(r"task (\w+), priority ([\d/]+)", again) == [
        ("a", "1/5"), ("b_2", "1/5/2"), ("a_2", "1/5/3"), ("b", "9"),
    ]  # fmt: skip
    assert re.findall(r"\}, (\d), \{argv", again) == ["1", "2", "1", "0"]
    words = [f"{tmp_path}/more.cu=1", f"{tmp_path}/b.cu=9", "-o", f"{tmp_path}/alone.cu"]
    alone = subprocess.run([sys.executable, "-m", "kesco", "merge", *words], capture_output=True, check=False)
    assert alone.returncode == 0, alone.stderr  # in a process that has compiled nothing before
    assert (tmp_path / "alone.cu").read_bytes() == again.encode()
    _, b = run(built("b.cu"))
    ours = [["a main: 2 x 3 200, 101 8"], ["a main: 0  3 200, 101 8"]]
    assert run(built("again.cu"), "x", "y", "--", "--", "--") == (7, sorted([*ours[0], *b, *ours[1], *b]))
    # What is not word for word what kesco writes is a program like any other; what leaves its stream is refused.
    for old, new, code in (
        (b"detach();", b"join();", "K121"),
        (b"work<<<1, N, 0, kesco_on( kesco->stream[1])>>>", b"work<<<1, N, 0, kesco->stream[1]>>>", "K126"),
        (b"  ++counter;", b"  setenv(argv[0], argv[0], 1);", "K121"),
    ):
        assert old in both
        (tmp_path / "both.cu").write_bytes(both.replace(old, new, 1))
        with pytest.raises(InputError) as caught:
            merge(parse([f"{tmp_path}/both.cu=1", f"{tmp_path}/b.cu=2"]), Options())
        assert caught.value.diagnostics[0].code == code
