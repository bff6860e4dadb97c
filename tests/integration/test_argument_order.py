"""In which order arguments are evaluated is open: what only tells leaves nothing open, what changes something does."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.analysis.host.models import Models
from kesco.analysis.host_regions.quiet import Quiet
from kesco.analysis.host_regions.refusing import OrdersOfText
from kesco.analysis.host_regions.texts import Texts
from kesco.llvm.canonical import canonical
from kesco.llvm.module import Module
from kesco.options import Options
from kesco.session import Session, host_ir_of
from tests.integration.compiled import compile_and_keep
from tests.integration.test_soundness_ir import unordered

pytestmark = pytest.mark.usefixtures("toolchain")

TEXT = """#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>
__global__ void inc(float* a, int n) { a[threadIdx.x] += n; }
int made = 0;
struct Tensor {
  std::shared_ptr<float> data;
  float* ptr() const { return data.get(); }
  int next() const { return ++made; }
  int size() const { return made; }
  std::vector<int> all;
  std::map<int, int> few;
  int last() { return all.back() + all[0] + all.at(1); }
  int other() { return all.front(); }
  int found() { return few[3]; }
  int more() { return all.back()++; }
};
int numbers(int a, int b) { return a - b; }
static int now() { return made; }
static int later() { return ++made; }
static int one() { return 1; }
static int odd(int n);
static int even(int n) { return n > 0 ? odd(n - 1) : ++made; }
static int odd(int n) { return n > 0 ? even(n - 1) : 0; }
static int filled(int* p) { return *p = 1; }
int far(), farther();
struct Counting {
  using result_type = unsigned;
  static constexpr unsigned min() { return 0; }
  static constexpr unsigned max() { return ~0u; }
  unsigned operator()() { return ++made; }
};
struct Part { ~Part() { ++made; } };
struct Shape {
  virtual int sides() const = 0;
  virtual int corners() const = 0;
  virtual ~Shape() {}
};
struct Square : Shape {
  int sides() const override { return 4; }
  int corners() const override { return 4; }
};
struct Cube : Shape {
  int sides() const override { return 12; }
  int corners() const override { return ++made; }
};
static int read(std::vector<float>& v, std::mt19937& engine) { return v[0] + engine(); }
int main(int argc, char**) {
  float *x, *y;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  Tensor t;
  std::map<int, int> m;
  std::unordered_map<int, int> u;
  std::vector<float> v(9);
  auto it = v.begin();
  std::mt19937 engine(7);
  std::normal_distribution<float> normal;
  Counting counting;
  std::vector<std::unique_ptr<Part>> parts;
  std::string name = "a";
  const Shape* shape = argc > 1 ? (const Shape*)new Square : new Cube;
  auto scaled = [](double x) { return int(x * 2); };
  %s;
  inc<<<1, 32>>>(x, 1);
  inc<<<1, 32>>>(y, 2);
  cudaDeviceSynchronize();
}
"""


@pytest.mark.parametrize(
    ("written", "open_"),
    [
        ("numbers(t.ptr() != nullptr, t.ptr() == nullptr)", False),
        ("numbers(t.next(), t.next())", True),
        ("numbers(t.last(), t.other())", False),
        ("numbers(t.last(), t.found())", True),
        ("numbers(t.last(), t.more())", True),
        ("numbers(t.size(), t.next())", True),
        ("std::cout << t.next() << std::string(t.next(), 'a')", False),
        ("operator<<(std::cout << t.next(), std::string(t.next(), 'a'))", True),
        ("numbers(m[1], m[2])", False),
        ("numbers(m[1], (int)m.size())", True),
        ("numbers(u[1], u[2])", True),
        ("numbers(now(), later())", True),
        ("now() - later()", True),
        ("numbers(later(), one())", False),
        ("numbers(now(), now())", False),
        ("numbers(now(), filled(&argc))", True),
        ("numbers(now(), [] { return ++made; }())", True),
        ("numbers(now(), far())", True),
        ("numbers(far(), farther())", False),
        ("numbers(now(), odd(1)), numbers(even(2), one())", True),
        ("std::cout << now() << later()", False),
        ("numbers(v.begin() == v.end() - 1, v.end() - v.begin())", False),
        ("numbers(*it++, it == v.end())", True),
        ("v[0] + normal(engine)", False),
        ("normal(engine) + normal(engine)", True),
        ("v[0] + normal(counting)", False),
        ("now() + normal(counting)", True),
        ("read(v, engine) + engine()", True),
        ("numbers(parts.size(), parts.empty())", False),
        ("numbers(parts.size(), (parts.clear(), 1))", True),
        ("numbers(scaled(2.0), scaled(3.0))", False),
        ("numbers(made, counted())", True),
        ("numbers(made, shape->sides())", False),
        ("numbers(made, shape->corners())", True),
        ("numbers(std::string(t.all.size(), 'a') < name + std::to_string(argc), t.all[0])", False),
    ],
)
def test_what_leaves_the_order_open(tmp_path: Path, written: str, open_: bool) -> None:
    text = TEXT % written
    if "counted" in written:
        text = text.replace(
            "auto scaled = [](double x) {", "auto counted = [] { return ++made; };\n  auto scaled = [](double x) {"
        )
    assert is_open(tmp_path, text) is open_


@pytest.mark.parametrize(("told", "open_"), [('"failed"', False), ('(++made, "failed")', True)])
def test_what_an_exception_is_about(tmp_path: Path, told: str, open_: bool) -> None:
    """Unless a class of the program's does more than tell."""
    failed = f"struct Failed : std::exception {{ const char* what() const noexcept override {{ return {told}; }} }};\n"
    text = TEXT.replace("int numbers(", f"{failed}int numbers(").replace(
        "#include <map>", "#include <map>\n#include <cstdio>"
    )
    assert (
        is_open(
            tmp_path, text % 'try { throw Failed(); } catch (std::exception& e) { fprintf(stderr, "%%s", e.what()); }'
        )
        == open_
    )


@pytest.mark.parametrize(("other", "open_"), [("b.data()", False), ("(a.resize(9), b.data())", True)])
def test_thrust_says_where_its_vectors_are(tmp_path: Path, other: str, open_: bool) -> None:
    launch = f"inc<<<1, 32>>>(thrust::raw_pointer_cast(a.data()), *thrust::raw_pointer_cast({other}))"
    text = "#include <thrust/device_vector.h>\n#include <thrust/host_vector.h>\n" + TEXT % launch
    text = text.replace(
        "  Tensor t;", "  Tensor t;\n  thrust::device_vector<float> a(32);\n  thrust::host_vector<int> b(32);"
    )
    assert is_open(tmp_path, text) is open_


def is_open(tmp_path: Path, text: str) -> bool:
    (tmp_path / "app.cu").write_text(text)
    path, options = str(tmp_path / "app.cu"), Options()
    session = Session(path, options, lambda *_: None)
    module = Module(canonical(host_ir_of(session.toolchain, path, options), "host", sroa=True))
    quiet = Quiet(Texts(session.program, module), Models())
    said = OrdersOfText(session.program, quiet)
    return any(said.matters(one) or (said.has_more(one) and said.changes(one) is not None) for one in said.every())


DRAWS = """#include <random>
__global__ void inc(float* a, int n) { a[threadIdx.x] += n; }
static std::mt19937 engine;
static float *cur, *nxt;
static int big;
static float pick(const char* name) { cur = name[0] == 'a' ? nxt : cur; return 1.5f; }
static float pick(double which) { cur = which < 1 ? nxt : cur; return 1.5f; }
static float pick(long which) { cur = which < 200 ? nxt : cur; return 1.5f; }
template <int Which> static float picked() { return pick((long)Which); }
static float drawn() { cur = nxt; return engine(); }
static float sum(float x, float y) { return x + y; }
int main(int argc, char** argv) {
  big = argc;
  cudaMalloc(&cur, 4096);
  cudaMalloc(&nxt, 4096);
  sum(%s);
  inc<<<1, 32>>>(cur, 3);
  inc<<<1, 32>>>(nxt, 3);
  cudaDeviceSynchronize();
}
"""


@pytest.mark.parametrize(
    ("written", "open_"),
    [
        ("drawn(), 2 * drawn()", False),
        ('pick("a"), 2 * pick("b")', True),
        ("pick(0.5), pick(1.5)", True),
        ("pick((long)(unsigned char)big), pick((long)(short)big)", True),
        ("picked<1>(), picked<2>()", True),
    ],
)
def test_draws_are_alike_where_all_of_them_is(tmp_path: Path, written: str, open_: bool) -> None:
    (tmp_path / "app.cu").write_text(DRAWS % written)
    (main,) = (f for f in compile_and_keep(tmp_path / "app.cu").result.functions if f.region.function == "main")
    assert ("in which parts of an expression" in main.region.serial_because) is open_


CALLS = """#include <utility>
__global__ void inc(float* a, int n) { a[threadIdx.x] += n; }
static float *cur, *nxt;
static float* get() { return cur; }
static int change() { %s; return 1; }
int main() {
  cudaMalloc(&cur, 4096);
  cudaMalloc(&nxt, 4096);
  inc<<<1, 32>>>(nxt, 3);
  inc<<<1, 32>>>(get(), change());
  cudaDeviceSynchronize();
}
"""


@pytest.mark.parametrize("does", ["std::swap(cur, nxt)", "static int n; ++n"])
def test_what_a_call_gives_and_another_changes(tmp_path: Path, does: str) -> None:
    (tmp_path / "app.cu").write_text(CALLS % does)
    assert bool(compile_and_keep(tmp_path / "app.cu").rewritten) is ("swap" not in does)


NAMED = """__global__ void add(int* p, int v) { p[threadIdx.x] += v; }
__global__ void mul(int* p, int v) { p[threadIdx.x] *= v; }
struct Kept { int*& r; int change(int* to) { r = to; return 1; } };
static int change(int*& r, int* to) { r = to; return 1; }
static int* pick(int* p, int) { return p; }
int main() {
  int *x, *y, n = 0;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  int *c = x, *d = x, *both[] = {x, y};
  %s
  add<<<1, 32>>>(y, 5);
  int* p = pick(%s);
  mul<<<1, 32>>>(p, 2);
  cudaDeviceSynchronize();
}
"""


@pytest.mark.parametrize(
    ("declared", "written", "overlap"),
    [
        ("int*& r = c;", "c, change(r, y)", False),
        ("Kept r{c};", "c, r.change(y)", False),
        ("auto r = [&] { c = y; return 1; };", "c, r()", False),
        ("int& r = n;", "both[r], ++n", False),
        ("int*& r = d;", "c, change(r, y)", True),
    ],
)
def test_what_is_changed_by_a_second_name(tmp_path: Path, declared: str, written: str, overlap: bool) -> None:
    (tmp_path / "app.cu").write_text(NAMED % (declared, written))
    one = compile_and_keep(tmp_path / "app.cu")
    assert any(unordered(each.region, "add", "mul") for each in one.result.functions) is overlap
