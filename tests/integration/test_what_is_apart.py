"""What kernels of a program touch is told apart: each program overlaps, and its twin, a word away, must not."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.options import Options
from tests.integration.compiled import compile_and_keep

pytestmark = pytest.mark.usefixtures("toolchain")

# Only the reading of LLVM IR follows a file with such a directive.
DIRECTIVE = """static void twice(float* a) {
#pragma omp parallel for
  for (int i = 0; i < 4; i++) a[i] *= 2;
}
"""
# A template that launches for its callers is given their pointers, which have no name in it: it follows all the same.
LAMBDAS = (
    DIRECTIVE
    + """template <typename F> __global__ void each(int n, F f) { if (threadIdx.x < n) f(threadIdx.x); }
template <typename F> void for_each(int n, F f) { each<<<1, 256>>>(n, f); }
struct Particles { float *x, *y, *vx, *vy; };
void kick(int n, float* v, const float* x) { for_each(n, [=] __device__(int i) { v[i] -= x[i]; }); }
int main(int argc, char**) {
  Particles p;
  for (float** one : {&p.x, &p.y, &p.vx, &p.vy}) cudaMalloc(one, 1024);
  for (int s = 0; s < argc; s++) {
    kick(256, p.vx, p.x);
    kick(256, p.vy, p.OTHER);
  }
  cudaDeviceSynchronize();
}
"""
)
# Clang unrolls the loop of a kernel over pointers in a struct; else it could write all that are behind the first.
VIEWS = """struct View { float* p[4]; };
struct Both { View to, from; };
__global__ void flux(Both of, int n) {
  float s[4] = {of.from.p[0][n], of.from.p[1][n], of.from.p[2][n], of.from.p[3][n]};
  for (int k = 0; k < 4; k++) of.to.p[k][threadIdx.x] = s[k];
}
static View made() { View v; for (float*& p : v.p) cudaMalloc(&p, 1024); return v; }
int main() {
  View u = made(), x = made(), y = made();
  flux<<<1, 256>>>(Both{x, u}, 1);
  flux<<<1, 256>>>(Both{y, OTHER}, 2);
  cudaDeviceSynchronize();
}
"""
# Elements of arrays in a struct that came in have names which the output can compare.
ELEMENTS = (
    DIRECTIVE
    + """struct Image { float* data; int w; };
struct Pyramid { Image level[2], gx[2], gy[2]; };
__global__ void slope(const float* from, float* to) { to[threadIdx.x] = from[threadIdx.x] * 2; }
void slopes(Pyramid& p) {
  for (int l = 0; l < 2; l++) {
    slope<<<1, 256>>>(p.level[l].data, p.gx[l].data);
    slope<<<1, 256>>>(p.OTHER[l].data, p.gy[l].data);
  }
}
"""
)
# No kernel writes a constant symbol, so no pointer that came in matters to it.
CONSTANT = """__CONSTANT__ float table[256];
float *first, *second, *third;
__global__ void look(const float* from, float* to) { to[threadIdx.x] = from[threadIdx.x] + table[threadIdx.x]; }
void run() {
  look<<<1, 256>>>(first, second);
  look<<<1, 256>>>(first, third);
}
void set(const float* host) { cudaMemcpyToSymbol(table, host, sizeof table); }
"""
# A copy to the device goes to no memory in which the host finds its pointers.
COPIED = (
    DIRECTIVE
    + """template <class T> struct Shot { T *cur, *seen, *other; };
__global__ void add(float* to, float by) { to[threadIdx.x] += by; }
void run(Shot<float>& s, const float* host) {
  cudaMemcpy(s.cur, host, 1024, cudaMemcpyHostToDevice);
  add<<<1, 256>>>(s.seen, 1);
  add<<<1, 256>>>(s.OTHER, 1);
}
"""
)

# A method that swaps its members cannot compare them, and follows; members of a class with a base have names.
WORLD = """#include <memory>
#include <utility>
#include <vector>
__global__ void wave(float* h, const float* old) { h[threadIdx.x] = 2 * h[threadIdx.x] - old[threadIdx.x]; }
__global__ void fade(float* a) { a[threadIdx.x] *= 0.5f; }
struct System { virtual ~System() = default; virtual void tick() = 0; };
struct Water : System {
  float *h = nullptr, *old = nullptr;
  Water() { cudaMalloc(&h, 4096); cudaMalloc(&old, 4096); }
  void tick() override {
    for (int i = 0; i < 4; i++) {
      wave<<<1, 1024>>>(h, old);
      std::swap(h, old);
    }
  }
};
struct Smoke : System {
  float* a = nullptr;
  explicit Smoke(float* a) : a(a) {}
  void tick() override { fade<<<1, 1024>>>(a); }
};
int main(int argc, char**) {
  float* a;
  cudaMalloc(&a, 4096);
  auto water = std::make_unique<Water>();
  auto smoke = std::make_unique<Smoke>(OTHER);
  std::vector<std::unique_ptr<System>> world;
  world.push_back(std::move(water));
  world.push_back(std::move(smoke));
  for (int f = 0; f < argc; f++)
    for (auto& one : world) one->tick();
  cudaDeviceSynchronize();
}
"""


def _streams(folder: Path, text: str, function: str) -> int:
    path = folder / "program.cu"
    path.write_text(text)
    found = compile_and_keep(path, Options(flags=("-std=c++17", "--extended-lambda"))).function(function)
    return found.schedule.streams if found.rewritten and found.schedule is not None else 0


@pytest.mark.parametrize(
    ("text", "function", "word", "apart", "same", "least"),
    [
        (LAMBDAS, "main", "OTHER", "y", "vx", 0),
        (VIEWS, "main", "OTHER", "u", "x", 0),
        (ELEMENTS, "slopes", "OTHER", "level", "gx", 2),
        (CONSTANT, "run", "CONSTANT", "constant", "device", 0),
        (COPIED, "run", "OTHER", "other", "seen", 0),
        (WORLD, "main", "OTHER", "a", "water->old", 0),
    ],
    ids=["lambdas", "views", "elements", "constant", "copied", "world"],
)
def test_apart(tmp_path: Path, text: str, function: str, word: str, apart: str, same: str, least: int) -> None:
    assert _streams(tmp_path, text.replace(word, apart), function) > 1
    assert _streams(tmp_path, text.replace(word, same), function) <= least


def test_a_volatile_member_is_not_read_to_be_compared(tmp_path: Path) -> None:
    text = """struct D { float* QUALIFIED x[2]; float* z; };
__global__ void grow(float* x) { x[threadIdx.x] += 1; }
void run(D& p) {
  grow<<<1, 32>>>(p.x[1]);
  grow<<<1, 32>>>(p.z);
}
"""
    assert _streams(tmp_path, text.replace("QUALIFIED", ""), "run") == 2
    assert _streams(tmp_path, text.replace("QUALIFIED", "volatile"), "run") == 0


# Ways in which the address of a constant symbol gets to who may copy to it: there, a pointer that came in may be that.
ASKED = {
    "in a function": "void give() { cudaGetSymbolAddress((void**)&third, table); }",
    "in an initializer": "static float* at = [] { float* p; cudaGetSymbolAddress((void**)&p, table); return p; }();",
    "by another file": "const void* symbol() { return table; }",
    "by a reference": "static const float (&other)[256] = table;",
    "by a macro": "#define TABLE table\nvoid give() { cudaGetSymbolAddress((void**)&third, TABLE); }",
    "by the device": "__global__ void tell(const float** where) { *where = &table[1]; }",
    "by its first element": "void give() { cudaGetSymbolAddress((void**)&third, table[0]); }",
    "behind a copy": "bool other(int, const float&); bool f(float* h) {"
    " return cudaMemcpyFromSymbol(h, table, 4) == cudaSuccess && other(1, table[0]); }",
    "by a pasted name": "#define GET(n) cudaGetSymbolAddress((void**)&third, ta##n)\nvoid give() { GET(ble); }",
    "on both sides": "__host__ __device__ const float& at(int i) { return table[i]; }",
}


@pytest.mark.parametrize("case", ASKED)
def test_a_constant_symbol_whose_address_is_known(tmp_path: Path, case: str) -> None:
    text = CONSTANT.replace("__CONSTANT__", "__constant__")
    assert _streams(tmp_path, text + ASKED[case] + "\n", "run") == 0


@pytest.mark.parametrize(
    ("declared", "used"),
    [
        ("__constant__ float table", "from[threadIdx.x] < table ? 1 - table : table * 2"),
        ("__constant__ Pair table", "table.a * table.b"),
        ("static __constant__ float table[4][4]", "table[1][threadIdx.x]"),
    ],
)
def test_uses_of_a_constant_symbol(tmp_path: Path, declared: str, used: str) -> None:
    text = CONSTANT.replace("__CONSTANT__ float table[256]", declared).replace("table[threadIdx.x]", used)
    assert _streams(tmp_path, f"struct Pair {{ float a, b; }};\n{text}", "run") == 2
