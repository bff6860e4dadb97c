"""Parts of an expression that may be evaluated in any order: only where they meet is nothing known of the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.ir.access import UNKNOWN, AccessMode
from kesco.ir.flow import Site
from kesco.options import Options
from kesco.session import Session
from tests.integration.compiled import Compiled, compile_and_keep

WHY = "the order in which parts of an expression are evaluated is open, and matters"
pytestmark = pytest.mark.usefixtures("toolchain")

# Only the reading of LLVM IR follows objects of class templates.
PROGRAM = """#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <vector>
__global__ void square(float* y, const float* x) { y[threadIdx.x] = x[threadIdx.x] * x[threadIdx.x]; }
template <class T> struct Buffer {
  T* at;
  explicit Buffer(long n) { cudaMalloc(&at, n * sizeof(T)); }
  ~Buffer() { cudaFree(at); }
};
struct Shape { struct { int n; } size; };
static float* lists[2];
static int at = 0;
static float* next() { return lists[at++]; }
static float* keep(float*& where, float* what) { return where = what; }
static long sum(const std::vector<int>& v) { long s = 0; for (int x : v) s += x; return s; }
static float total(const float* x) {
  std::vector<float> host(32);
  cudaMemcpy(host.data(), x, 128, cudaMemcpyDeviceToHost);
  float s = 0;
  for (float one : host) s += one;
  return s;
}
static void take(float* y, float* x) { square<<<1, 32>>>(y, x); }
static int number(int n) { return n; }
static int use(int a, int b) { return a + b; }
static float* both(int, float* x) { return x; }
struct Chosen { int n; float* x; };
static Chosen chosen;
static float* other(Chosen& which) { float* old = which.x; which.x = lists[1]; return old; }
static int copied(float* to, const float* from) { return cudaMemcpy(to, from, 128, cudaMemcpyHostToDevice); }
static float* deep(int n) { return n > 1 ? both(n, deep(n - 1)) : next(); }
static float* chosen_by(int i) { return lists[i & 1]; }
static int counted() { static int calls = 0; return ++calls; }
static float* raw(int n) { void* p; if (cudaMalloc(&p, n)) printf("none"), exit(1); return (float*)p; }
static void done(void* p) { cudaFree(p); }
struct Given { int n, more; explicit Given(int n, int more = 60) : n(n), more(more) {} };
struct Three { float *a, *b; int n; };
static float* third(const Three&, float* x) { return x; }
struct Taken { float *a, *b; explicit Taken(float* a, float* b = next()) : a(a), b(b) { take(a, b); } };
struct Either {
  static int first(float*& p, float* to) { p = to; return 1; }
  static int second(float*& p) { return p == lists[0]; }
};
struct Moves {
  int n; float*& p; float* to;
  Moves(float*& p, float* to) : n(1), p(p), to(to) {}
  ~Moves() { p = to; }
};
static Moves made(float*& p, float* to) { return Moves(p, to); }
static void by_value(Moves, Moves) {}
static void take_one(float* y, int n = 1, float* x = nullptr) { take(y, y + n); }
static void take_another(float* y, float* x = next()) { take(y, x); }
#define TWICE(f, g) take(f, g)
#define FIRST(what) what
int main(int n, char**) {
  Buffer<float> x(1024), y(1024), z(1024);
  lists[0] = x.at;
  lists[1] = y.at;
  Shape shape{{n}};
  std::vector<int> v(n), w(n);
  std::map<int, std::unique_ptr<int>> table;
  table[n] = std::make_unique<int>(3);
  std::mt19937 random(n);
  float* p = x.at;
  int i = 0;
  struct { float *first, *second; } pair{x.at, y.at};
  std::vector<float> host(32);
  chosen.x = x.at;
  STATEMENT
  take(y.at, p);
  take(y.at, chosen.x);
  take(y.at, pair.first);
  square<<<1, 32>>>(y.at, x.at);
  square<<<1, 32>>>(z.at, x.at);
  cudaDeviceSynchronize();
}
"""
APART = [
    'printf("%ld %ld\\n", sum(v), sum(w));',
    'printf("%d %d\\n", *table.at(n), n);',
    'printf("%f\\n", total(x.at) * 2.0 / shape.size.n);',
    'printf("%f %f\\n", total(x.at), total(y.at));',
    'printf("%d\\n", int(random() % 7) - int(random() % 9));',
    "use(copied(x.at, host.data()), copied(y.at, host.data()));",
    "take_one(next());",
    "host[0] += host[1] = 2.0f * host[2];",
    "v[w[n]++] = w[0];",
    "w[i++] = n > 1 && counted() ? n : 1;",
    "use(copied(x.at, host.data()), (host[0] = 1, 1));",
    "use((host[0] = 1, 1), copied(x.at, host.data()));",
    "std::unique_ptr<float, void (*)(void*)> held(raw(n), done);",
    "Given given(counted());",
    "auto made = std::make_unique<std::pair<int, int>>(n, i += 7);",
]
FIRST_LINE = PROGRAM[: PROGRAM.index("STATEMENT")].count("\n") + 1
LOOSE = {  # what the walked paths show, by the lines, counted from there, on which a launch may get one of two buffers
    "take(next(), next());": {0},
    "square<<<1, number(32)>>>(next(), next());": {0},
    "TWICE(next(), next());": {0},
    "take(keep(p, y.at), p);": {0, 1},
    "take(p, keep(p, y.at));": {0, 1},
    "take([&] { p = z.at; return y.at; }(), p);": {0, 1},
    "take(p, both(1, [&] { p = z.at; return y.at; }()));": {0, 1},
    "use(1, Either::first(p, z.at) > Either::second(p));": {1},
    "use(Moves(p, y.at).n, Moves(p, z.at).n);": {1},
    "by_value(Moves(p, y.at), Moves(p, z.at));": {1},
    "by_value(made(p, y.at), made(p, z.at));": {1},
    "take((&chosen)->x, other(chosen));": {0, 2},
    "take(((&chosen))->x, other(chosen));": {0, 2},
}
MEET = [  # the same, and the device is in it, or not all is followed
    "take(deep(2), deep(3));",
]
TEXT = [  # what the text shows
    "take(lists[at++], lists[at]);",
    "take(lists[i], chosen_by(++i));",
    "take(chosen_by(i++), lists[i]);",
    "take(FIRST(lists[i]), chosen_by(i += 1));",
    "take(pair.first, (pair.first = y.at, x.at));",
    "take_another(next());",
    "int& other = i; take(lists[other++], lists[i]);",
    "auto& [first, second] = pair; take(first, (second = first, first = y.at, x.at));",
    "Taken taken(next());",
    "float*& q = p; take(third((q = y.at, Three{x.at, z.at, n}), p), x.at);",
    "auto& [first, second] = pair; take(third((first = y.at, Three{x.at, z.at, n}), pair.first), x.at);",
    "float** q = &p; take(third((*q = y.at, Three{x.at, z.at, n}), p), x.at);",
]


def compiled(folder: Path, statement: str) -> Compiled:
    path = folder / "app.cu"
    path.write_text(PROGRAM.replace("STATEMENT", statement), "utf-8")
    return compile_and_keep(path)


@pytest.mark.parametrize("statement", APART)
def test_parts_that_do_not_meet_are_followed(tmp_path: Path, statement: str) -> None:
    assert [one.serial.function for one in compiled(tmp_path, statement).rewritten] == ["main"]


@pytest.mark.parametrize("statement", [*MEET, *TEXT])
def test_parts_that_meet_are_not(tmp_path: Path, statement: str) -> None:
    outcome = compiled(tmp_path, statement)
    assert outcome.rewritten == []
    regions = Session(str(tmp_path / "app.cu"), Options()).of_ir()
    assert {region.serial_because.partition(" (")[0] for region in regions if region.sites} == {WHY}


@pytest.mark.parametrize(("statement", "lines"), LOOSE.items(), ids=LOOSE)
def test_of_what_parts_meet_in_nothing_is_known(tmp_path: Path, statement: str, lines: set[int]) -> None:
    (done,) = compiled(tmp_path, statement).rewritten

    def is_open(site: Site) -> bool:
        written = {a.buffer for a in site.accesses if a.mode & AccessMode.WRITE}
        return UNKNOWN in {a.buffer for a in site.accesses} or len(written) > 1

    launches = (s for s in done.serial.sites if s.label.startswith(("take", "square")))
    assert {one.span.line - FIRST_LINE for one in launches if is_open(one)} == lines


# In clang's order `q` is z, in that of a compiler that goes from right to left it is x, which the others use.
OTHER_ORDER = """#include <cstdlib>
#include <cstring>
__global__ void twice(const float* a, float* b, int n) { b[threadIdx.x] = a[threadIdx.x] * n; }
__global__ void bump(float* a, int n) { a[threadIdx.x] += n; }
static float* second(float*, float* b) { return b; }
static float* first(float* a, float*) { return a; }
static int number(int n) { return n; }
static float *gx, *gy;
static float* change() { float* old = gy; gx = gy; return old; }
TOP
int main(int argc, char** argv) {
  float *x, *y, *z, *w;
  cudaMalloc(&x, 256), cudaMalloc(&y, 256), cudaMalloc(&z, 256), cudaMalloc(&w, 256);
  gx = x, gy = z;
  BODY
  for (int i = 0; i < atoi(argv[1]); ++i) {
    bump<<<1, 32>>>(q, i);
    twice<<<1, 32>>>(x, y, i);
    twice<<<1, 32>>>(w, x, i);
  }
  return cudaDeviceSynchronize();
}
"""
MEMBERS = """struct B { float *px, *py; }; struct S : B { float* v; };
static S gg;
static float* put() { float* old = gg.py; gg.px = gg.py; return old; }"""
HIDDEN = {
    "a register by a reference": ("", "float* p = z; float*& r = p; float* q = first(r, (p = x, number(1), y));"),
    "a reference to a register": ("", "float* p = x; float*& r = p; float* q = second((number(1), r = z, y), p);"),
    "a register by a pointer": ("", "float* p = z; float** r = &p; float* q = first(*r, (p = x, number(1), y));"),
    "a default argument that changes what is given": (
        "static int gi; static float* pick(float* a, int = gi++) { return a; }",
        "float* t[2] = {z, x}; float* q = pick(t[gi]);",
    ),
    "a default argument of a lambda": (
        "static int gi;",
        "float* t[2] = {z, x}; float* q = [](float* a, int = gi++) { return a; }(t[gi]);",
    ),
    "a default argument of a template": (
        "static int gi; template <class T> static T* pick(T* a, int = gi++) { return a; }",
        "float* t[2] = {z, x}; float* q = pick(t[gi]);",
    ),
    "a reference to an integer as a float": (
        "",
        "float* t[2] = {z, x}; int i = 0; float& f = reinterpret_cast<float&>(i); "
        "float* q = first(t[i], (f = 1.4e-45f, y));",
    ),
    "a union's float": (
        "",
        "float* t[2] = {z, x}; union { int i; float f; } u; u.i = 0; float* q = first(t[u.i], (u.f = 1.4e-45f, y));",
    ),
    "a float of a union without a name": (
        "struct U { union { int i; float f; }; };",
        "float* t[2] = {z, x}; U u; u.i = 0; float* q = first(t[u.i], (u.f = 1.4e-45f, y));",
    ),
    "an integer as a float": (
        "",
        "float* t[2] = {z, x}; int i = 0; float* q = first(t[i], (reinterpret_cast<float&>(i) = 1.4e-45f, y));",
    ),
    "memcpy to a register": ("", "float* p = z; float* q = first(p, (__builtin_memcpy(&p, &x, 8), y));"),
    "memcpy to a register by its name": ("", "float* p = z; float* q = first(p, (memcpy(&p, &x, 8), y));"),
    "a builtin that writes": (
        "",
        "float* t[2] = {z, x}; int i = 0; float* q = first(t[i], (__builtin_add_overflow(1, 0, &i), y));",
    ),
    "an atomic store": (
        "",
        "float* t[2] = {z, x}; int i = 0; float* q = first(t[i], (__atomic_store_n(&i, 1, 0), y));",
    ),
    "a structured binding": (
        "struct P { float *a, *b; };",
        "P p{x, z}; auto& [a, b] = p; float* q = second((number(1), a = z, y), p.a);",
    ),
    "a comment in front of a member": (MEMBERS, "gg.px = x, gg.py = z; float* q = second(put(), gg /* it */ .px);"),
    "a member of a base": (MEMBERS, "gg.px = x, gg.py = z; float* q = second(put(), gg.B::px);"),
    "two functions of one line": (
        "static float* pick(int) { return second(change(), gx); } static float* pick(float) { return nullptr; }",
        "float* q = pick(1);",
    ),
    "a function with another symbol": (
        'float* pick(int) __asm__("elsewhere"); float* pick(int) { return second(change(), gx); }',
        "float* q = pick(1);",
    ),
    "members of this": (
        """struct S {
  float *px, *py;
  float* set() { float* old = py; px = py; return old; }
  float* go() { return second(set(), px); }
};""",
        "S s{x, z}; float* q = s.go();",
    ),
    "an initialiser of a member": ("struct D { float* q = second(change(), gx); };", "D d; float* q = d.q;"),
    "an operator and its object": (
        """struct E { float* p; E(float* p) : p(p) {} E operator+(E o) const { return o; } };
static E made() { return E(change()); }""",
        "float* q = (made() + E(gx)).p;",
    ),
    "a lambda": ("", "auto get = [] { return second(change(), gx); }; float* q = get();"),
    "a default argument": ("static float* pick(float*, float* b = gx) { return b; }", "float* q = pick(change());"),
    "a default argument behind a constant one": (
        "static float* pick(float* a, int k = 1, float* b = gx) { return b; }",
        "float* q = pick(change(), 2);",
    ),
    "an assignment beside a call": (
        "static float* rd() { return gx; }",
        "float* old = second((gx = gy, y), rd()); float* q = old;",
    ),
    "an assignment in an operand": (
        "static int k; static float* lists[4]; static int rd() { return k; }",
        "lists[2] = z, lists[1] = x; float* q = lists[++k + rd()];",
    ),
    "where an assignment goes": (
        "static float* tb[2]; static int k; static float* next(float* a) { ++k; return a; }",
        "tb[0] = tb[1] = z; tb[k] = next(x); float* q = tb[0];",
    ),
    "a pointer that an assignment goes through": (
        "static float **pp; static float* next(float* a) { ++pp; return a; }",
        "float* tb[2] = {z, z}; pp = tb; *pp = next(x); float* q = tb[0];",
    ),
    "an assignment that adds": (
        "static int o = 1, k; static int& slot() { o = 0; return k; }",
        "float* t[2] = {z, x}; slot() += o; float* q = t[k];",
    ),
    "an operator that assigns": (
        """struct F { float* q; F& operator=(float* b) { q = b; return *this; } };
static F gf;
static F& made() { change(); return gf; }""",
        "made() = gx; float* q = gf.q;",
    ),
    "a default of a member": (
        "struct O { float* p = change(); }; static float* pick(O, float* b) { return b; }",
        "float* q = pick(O{}, gx);",
    ),
    "a constructor that the compiler wrote": (
        """struct C { int k = 0; C() {} C(const C&) { change(); } };
struct O { C c; int j; };
static float* pick(O, float* b) { return b; }""",
        "O c; float* q = pick(c, gx);",
    ),
    "an inherited constructor": (
        """struct C { int k; C(int k) : k(k) { change(); } };
struct O : C { using C::C; };
static float* pick(const O&, float* b) { return b; }""",
        "float* q = pick(O(3), gx);",
    ),
    "what a lambda holds": ("", "auto get = [q = second(change(), gx)] { return q; }; float* q = get();"),
    "a lambda that is called at once": ("", "float* q = second([p = change()] { return p; }(), gx);"),
    "a member by a pointer": (
        "struct S { float *a, *b; };",
        "S s{x, z}, t{z, z}; float** pp = &s.a; float* q = second((s = t, number(1), y), *pp);",
    ),
    "the address of an assignment": (
        "",
        "float* p; float** pp = &(p = x); float* q = second((p = z, number(1), y), *pp);",
    ),
    "a reference in an object": (
        "struct V { float*& r; };",
        "float* p = x; V* v = new V{p}; float* q = second((p = z, number(1), y), v->r);",
    ),
    "destructors of two aggregates": (
        "struct A { float** p; float* to; ~A() { *p = to; } }; static void take(const A&, const A&) {}",
        "float* p = x; take(A{&p, z}, A{&p, x}); float* q = p;",
    ),
    "an atomic operation": (
        "static float* lists[2];",
        "int k = 0; lists[0] = z; lists[1] = x; "
        "float* q = first(lists[__atomic_fetch_add(&k, 1, 0)], lists[__atomic_fetch_add(&k, 1, 0)]);",
    ),
    "the end of an object": (
        "struct D { int k = 0; ~D() { change(); } };",
        "D* d = new D; float* q = second((delete d, y), gx);",
    ),
    "a variable of a thread": (
        "struct O { float* p; O() : p(change()) {} }; static thread_local O tl;",
        "float* q = second(tl.p, gx);",
    ),
    "a pack in a lambda": (
        """template <class... A> static float* lastof(A... a) { float* r = nullptr; ((r = a), ...); return r; }
static float* rd() { return gx; }""",
        "auto go = [](auto... f) { return lastof(f()...); }; float* q = go(change, rd);",
    ),
    "a fold in a lambda": (
        """struct E { float* p; };
static E operator+(E, E b) { return b; }
static E ch() { return E{change()}; }
static E rd() { return E{gx}; }""",
        "auto go = [](auto... a) { return (a() + ...).p; }; float* q = go(ch, rd);",
    ),
    "a part that always throws": (
        """static float* ch() { change(); throw 1; }
static float* rd(float** o) { *o = gx; return gx; }""",
        "float* o = z; try { second(ch(), rd(&o)); } catch (int) {} float* q = o;",
    ),
}


@pytest.mark.parametrize("case", HIDDEN)
def test_another_order_is_never_forgotten(tmp_path: Path, case: str) -> None:
    top, body = HIDDEN[case]
    path = tmp_path / "app.cu"
    path.write_text(OTHER_ORDER.replace("TOP", top).replace("BODY", body), "utf-8")
    assert compile_and_keep(path).rewritten == []


PLAIN = {
    "nothing": ("", "change(); float* q = z;"),
    "an item": ("static float* next() { change(); return gx; }", "float* t[2]; t[number(1)] = next(); float* q = z;"),
    "an operator that assigns": (
        "struct F { float* q; F& operator=(float* b) { q = b; return *this; } };", "F f; f = change(); float* q = z;",
    ),
    "what a lambda holds": ("", "auto get = [n = number(1)] { return n; }; float* q = get() ? z : z;"),
    "members of items": (
        "#include <vector>\nstruct I { int w, h; };",
        "std::vector<I> a(2), b(2); for (int i = 0; i < 2; i++) a[i].w = b[i].w = number(i); float* q = z;",
    ),
    "a pack that is passed on": (
        "#include <utility>", "auto go = [](auto&&... a) { return first(std::forward<decltype(a)>(a)...); }; "
        "float* q = go(z, z);",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PLAIN)
def test_one_order_is_followed(tmp_path: Path, case: str) -> None:
    top, body = PLAIN[case]
    path = tmp_path / "app.cu"
    path.write_text(OTHER_ORDER.replace("TOP", top).replace("BODY", body), "utf-8")
    assert [one.serial.function for one in compile_and_keep(path).rewritten] == ["main"]


OPERANDS = """__global__ void grow(float* x) { x[threadIdx.x] += 1; }
int g;
static int set(int v) { g = v; return v; }
int main() {
  float* l[3];
  for (int i = 0; i < 3; i++) cudaMalloc(&l[i], 128);
  g = 0;
  int y = WHAT;
  grow<<<1, 32>>>(l[y]);
  grow<<<1, 32>>>(l[2]);
  cudaDeviceSynchronize();
}
"""


def test_operands_that_meet_tell_nothing(tmp_path: Path) -> None:
    path = tmp_path / "app.cu"
    for what, rewritten in (("g + set(1)", 0), ("set(1) - g", 0), ("set(1) + 0", 1), ("(set(0), g + 1)", 1)):
        path.write_text(OPERANDS.replace("WHAT", what), "utf-8")
        assert len(compile_and_keep(path).rewritten) == rewritten, what
