"""Calls as operations of their callers: what overlaps and what does not, and outputs in which a call was spoilt."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import networkx as nx
import pytest
from click.testing import CliRunner

from kesco.calling import priced
from kesco.cli import main as command
from kesco.model.forecast import Price, Prices
from kesco.model.gpu import KernelCost
from kesco.options import Options
from kesco.proving import verify_files
from kesco.scheduling.levels import phases
from tests.integration.compiled import Compiled, compile_and_keep

pytestmark = pytest.mark.usefixtures("toolchain")

HEAD = """#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <stdexcept>
__global__ void inc(float* a) { a[threadIdx.x] += 1; }
__global__ void add(const float* a, float* b) { b[threadIdx.x] += a[threadIdx.x]; }
"""
F = "static void f(float* p) {\n  inc<<<1, 32>>>(p);\n}\n"
H = "static void h(float* p) {\n  inc<<<1, 32>>>(p);\n}\n"
HOME = """static float here[32];
static void home(const float* p) { cudaMemcpy(here, p, sizeof here, cudaMemcpyDeviceToHost); }
"""
MAIN = """int main(int argc, char** argv) {
  float *x, *y, *z;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  cudaMalloc(&z, 4096);
%s  cudaDeviceSynchronize();
  return 0;
}
"""


def compiled(folder: Path, functions: str, body: str) -> Compiled:
    source = folder / "input.cu"
    lines = "".join(f"  {line};\n" for line in body.split("; "))
    source.write_text(HEAD + functions + MAIN % lines)
    return compile_and_keep(source)


def together(one: Compiled, name: str = "main") -> set[str]:
    """The pairs of operations of a function that may run at the same time, such as ``f#1 f#2``."""
    function = one.function(name)
    if not function.rewritten:
        return set()
    sites, stream_of = function.dfg.region.sites, function.schedule.as_dict()
    order = nx.transitive_closure(function.dfg.graph)
    pairs = (pair for phase in phases(function.dfg) for pair in combinations(phase, 2))
    apart = ((a, b) for a, b in pairs if stream_of[a] != stream_of[b] and not {(a, b), (b, a)} & {*order.edges})
    return {f"{sites[a].label} {sites[b].label}" for a, b in apart}


SOME = """__global__ void some(float* p, int n) { int i = threadIdx.x; if (i < n) p[i] = 1; }
static void f(float* p, int n) { some<<<1, 32>>>(p, n); }
"""

TOGETHER = {
    "two arrays": (F, "f(x); f(y); f(x)", {"f#1 f#2", "f#2 f#3"}),
    "a value": ("static int f(float* p) { inc<<<1, 32>>>(p); return 1; }\n", "int a = f(x); a += f(y)", {"f#1 f#2"}),
    "a helper's helper": (F + "void h(float* p) { f(p); f(p); }\n", "h(x); h(y); f(x)", {"h#1 h#2", "h#2 f"}),
    "a kernel, planned as one": (F, "f(x); inc<<<1, 32>>>(y); inc<<<1, 32>>>(x)", {"inc#1 inc#2", "inc#2 inc#3"}),
    "a kernel": (F + "void other(float* p) { f(p); }\n", "f(x); inc<<<1, 32>>>(y); f(x)", {"f#1 inc", "inc f#2"}),
    "early returns": (
        "static void f(float* p, int n) { if (n < 2) return; inc<<<1, 32>>>(p); if (n < 5) inc<<<1, 32>>>(p); }\n",
        "f(x, argc); f(y, argc); f(x, 3)",
        {"f#1 f#2", "f#2 f#3"},
    ),
    "a member": (
        "struct S { float *a, *b; void one() { inc<<<1, 32>>>(a); } void two() { inc<<<1, 32>>>(b); } };\n",
        "S s{x, y}, t{y, y}; s.one(); s.two(); t.one(); t.two()",
        {"one#1 two#1", "one#1 one#2", "one#1 two#2"},
    ),
    "parts of an allocation": (F, "f(x); f(x + 32); f(x)", {"f#1 f#2", "f#2 f#3"}),
    "parts that meet": (F, "f(x); f(x + 31); f(y)", {"f#1 f#3", "f#2 f#3"}),
    "parts of any size": (
        SOME,
        "int n = argc; f(x, n); f(x + n, n)",
        {"f#1 f#2"},
    ),
    "parts of any size that meet": (
        SOME,
        "int n = argc; f(x, n + 1); f(x + n, n); f(y, n); add<<<1, 32>>>(x, z)",
        {"f#1 f#3", "f#2 f#3", "f#3 add"},
    ),
    "a device symbol beside pointers from outside": (
        "__constant__ float by[2];\n__global__ void scale(float* p) { p[threadIdx.x] *= by[0]; }\n"
        "void f(float* p, const float* q) { scale<<<1, 32>>>(p); add<<<1, 32>>>(q, p); }\n",
        "f(x, z); f(y, z)",
        {"f#1 f#2"},
    ),
    "waits that nobody needs": (F, "f(x); cudaDeviceSynchronize(); f(y); f(x)", {"f#1 f#2", "f#2 f#3"}),
    "a global": (
        "static float* g;\n" + F + "static void h() { inc<<<1, 32>>>(g); }\n",
        "g = x; f(x); h(); f(y)",
        {"f#1 f#2", "h f#2"},
    ),
    "a global that the called one changes": (
        "static float* g;\nstatic void f(float* p) { inc<<<1, 32>>>(g); g = p; }\n" + H,
        "g = x; f(y); h(x); f(z); h(z)",
        {"h#1 f#2", "f#1 f#2", "h#1 h#2", "f#1 h#2", "f#2 h#2"},
    ),
    "members in turn": (
        "struct B { float *p, *q; };\nstatic void f(B b) { inc<<<1, 32>>>(b.p); }\n"
        "static void h(const B& b) { inc<<<1, 32>>>(b.q); }\n",
        "B b{x, y}; f(b); h(b); b.q = x; h(b)",
        {"f h#1", "h#1 h#2"},
    ),
    "what a call returns": (
        "static float* f(float* p) { inc<<<1, 32>>>(p); return p; }\n" + H,
        "float* a = f(x); float* b = f(y); h(a); h(b)",
        {"f#1 f#2", "f#1 h#2", "f#2 h#1", "h#1 h#2"},
    ),
    "memory that a call makes": (
        "static float* f() { float* p; cudaMalloc(&p, 128); inc<<<1, 32>>>(p); return p; }\n" + H,
        "float* a = f(); float* b = f(); h(a); h(b); h(x)",
        {"f#1 f#2", "f#1 h#2", "f#2 h#1", "h#1 h#2", "f#1 h#3", "f#2 h#3", "h#1 h#3", "h#2 h#3"},
    ),
    "host code behind a wait": (
        "__managed__ float m[32];\n" + F + "static void h(float* p) { m[0] = 1; inc<<<1, 32>>>(p); }\n",
        "f(m); f(x); cudaDeviceSynchronize(); h(y); f(z)",
        {"f#1 f#2", "h f#3"},
    ),
    "a reference that turns": (
        "static void f(float*& p, float*& q) { inc<<<1, 32>>>(p); float* t = p; p = q; q = t; }\n",
        "f(x, y); f(x, y); f(x, y)",
        {"f#1 f#2", "f#2 f#3"},
    ),
    # What does not follow, or is not called alone:
    "static variable": (
        "static void f(float* p) { static float* l; if (l) add<<<1, 32>>>(l, p); inc<<<1, 32>>>(p); l = p; }\n",
        "f(x); f(y)",
        set(),
    ),
    "default argument": (
        "static float* g;\nstatic float* pick() { inc<<<1, 32>>>(g); return g; }\n"
        "static void f(float* p, float* q = pick()) { add<<<1, 32>>>(q, p); }\n",
        "g = x; f(y); f(z)",
        set(),
    ),
    "destructor of a temporary": (
        "struct Late { float* p; ~Late() { inc<<<1, 32>>>(p); } };\n"
        "static void f(float* p, const Late&) { inc<<<1, 32>>>(p); }\n",
        "f(x, Late{x}); f(y, Late{x})",
        set(),
    ),
    "destructor of what an argument gives": (
        "struct Late { float* p; ~Late() { inc<<<1, 32>>>(p); } };\n"
        "static Late make(float* p) { return Late{p}; }\n" + F,
        "f(make(x).p); f(make(y).p)",
        set(),
    ),
    "two declared in one statement": (
        "static int f(float* p) { inc<<<1, 32>>>(p); return 1; }\n", "int a = f(x), b = f(y)", set()
    ),
    "destructor of what it returns": (
        "struct Late { float* p; ~Late() { inc<<<1, 32>>>(p); } };\n"
        "static Late f(float* p) { inc<<<1, 32>>>(p); return Late{p}; }\n",
        "f(x); f(y)",
        set(),
    ),
    "destructor when the process ends": (
        "struct Last { float* p; ~Last(); };\nstatic Last last;\n"
        "static void f(float* p, int n) { inc<<<1, 32>>>(p); if (n && cudaGetLastError() != cudaSuccess) exit(1); }\n"
        "Last::~Last() { f(p, 0); }\n",
        "last.p = y; f(x, 1); f(y, 1)",
        set(),
    ),
    "two calls in one statement": (
        "static int f(float* p) { inc<<<1, 32>>>(p); return 1; }\n",
        "int a = f(x) + f(y); a += f(y) * f(x); f(x), f(y)",
        set(),
    ),
    "one throws": (
        "static void f(float* p, int n) { inc<<<1, 32>>>(p); if (n > 3) throw 1; }\n",
        "f(x, argc); f(y, argc)",
        {"f#1 f#2"},
    ),
    "one throws, and that is caught": (
        "static void f(float* p, int n) { inc<<<1, 32>>>(p); if (n > 3) throw 1; }\n",
        "try { f(x, argc); f(y, argc); } catch (int) { inc<<<1, 32>>>(x); }",
        set(),
    ),
    "it waits": ("static int f(float* p) { inc<<<1, 9>>>(p); return cudaDeviceSynchronize(); }\n", "f(x); f(y)", set()),
    "it looks at a clock": (
        "static clock_t f(float* p) { inc<<<1, 32>>>(p); return clock(); }\n",
        "clock_t a = f(x); cudaDeviceSynchronize(); a -= f(y)",
        set(),
    ),
    "recursion": (
        "static void f(float* p, int n) { inc<<<1, 32>>>(p); if (n) f(p, 0); }\n", "f(x, 3); f(y, 3)", {"f#1 f#2"},
    ),
    "recursion that waits in the end": (
        "static int f(float* p, int n) { inc<<<1, 32>>>(p); return n ? f(p, n - 1) : cudaDeviceSynchronize(); }\n",
        "f(x, argc); f(y, argc)",
        set(),
    ),
    "recursion of two, one of which waits": (
        "static void g(float* p, int n);\n"
        "static void f(float* p, int n) { inc<<<1, 32>>>(p); if (n) g(p, n - 1); }\n"
        "static void g(float* p, int n) {\n"
        "  if (n) f(p, n - 1);\n"
        "  inc<<<1, 9>>>(p);\n"
        "  if (n == 3) exit(cudaDeviceSynchronize());\n"
        "}\n",
        "f(x, argc); f(y, argc)",
        set(),
    ),
    "recursion with both in turn": (
        "static void f(float* p, float* q, int n) { inc<<<1, 32>>>(p); if (n) f(q, p, n - 1); }\n",
        "f(x, y, argc); f(y, x, argc)",
        set(),
    ),
    "a copy home now and then": (
        F + HOME, "for (int t = 0; t < argc; ++t) { f(x); f(y); if (t % 9 == 0) home(x); }", {"f#1 f#2"}
    ),
    "a copy home now and then, each after both": (
        F + HOME + "static void both(float* p, float* q) { add<<<1, 32>>>(p, q); }\n",
        "for (int t = 0; t < argc; ++t) { f(x); both(x, y); if (t % 9 == 0) home(y); }",
        set(),
    ),
    "a pointer": (F + H, "void (*q)(float*) = argc > 1 ? f : h; q(x); q(y)", {"q#1 q#2"}),
    "std::function": (
        F, "std::function<void(float*)> q = f; q(x); q(y)", {"operator()#1 operator()#2"}
    ),
    "std::function of one of two": (
        F + H, "std::function<void(float*)> q = f; if (argc > 1) q = h; q(x); q(y)",
        {"operator()#1 operator()#2"},
    ),
    "virtual": (
        "struct B { float* a; virtual void f() { inc<<<1, 32>>>(a); } };\n",
        "B b, c; b.a = x; c.a = y; b.f(); c.f()",
        {"f#1 f#2"},
    ),
    "virtual, of one of two": (
        "struct B { float* a; virtual void f() { inc<<<1, 32>>>(a); } };\n",
        "B b, c; b.a = x; c.a = y; B* q = argc > 1 ? &b : &c; q->f(); b.f()",
        set(),
    ),
    "its own stream": (
        "static cudaStream_t s;\nstatic void f(float* p) { inc<<<1, 32, 0, s>>>(p); }\n",
        "cudaStreamCreate(&s); f(x); f(y)",
        set(),
    ),
    "a flag": (
        "__global__ void raise(volatile int* flag) { *flag = 1; }\n" + F
        + "static void h(volatile int* flag) { raise<<<1, 1>>>(flag); }\n",
        "volatile int* flag; cudaMallocHost((void**)&flag, 4); *flag = 0; f(x); h(flag); while (!*flag) {}; f(y)",
        set(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TOGETHER)
def test_what_calls_may_run_beside(case: str, tmp_path: Path) -> None:
    functions, body, pairs = TOGETHER[case]
    one = compiled(tmp_path, functions, body)
    assert together(one) == pairs
    assert [f.region.function for f in one.result.functions if f.follows] == [] or pairs


def test_a_function_whose_launch_stands_in_a_macro_follows(tmp_path: Path) -> None:
    """The macro gets a variant that takes the stream, and the proof knows which one it is given."""
    functions = "#define INC(p) inc<<<1, 32>>>(p)\nstatic void f(float* p) { INC(p); }\n"
    one = compiled(tmp_path, functions, "  f(x);\n  f(y);\n")
    assert "static void f(float* p) { INC_ON(kesco_current(), p); }" in one.lines
    assert one.refuses([line.replace("INC_ON(kesco_current(), p)", "INC(p)") for line in one.lines])


def test_a_file_with_threads_stays_as_it_is(tmp_path: Path) -> None:
    one = compiled(tmp_path, F + "#include <thread>\n", "std::thread t([=] { f(x); }); f(y); f(z); t.join()")
    assert not one.result.changed


def test_pointers_from_outside_are_compared(tmp_path: Path) -> None:
    one = compiled(tmp_path, F + "void both(float* a, float* b) {\n  f(a);\n  f(b);\n}\n", "both(x, y)")
    assert together(one, "both") == {"f#1 f#2"}
    assert one.function("both").region.guards == ("a", "b")
    unguarded = [line.replace("_if_distinct(kesco_at_entry[0], kesco_at_entry[1])", "()") for line in one.lines]
    assert "run-time check" in one.refuses(unguarded)


def test_a_pointer_that_a_called_function_changes_is_not_compared(tmp_path: Path) -> None:
    functions = (
        "struct S { float *a, *b; };\n" + F
        + "static void turn(S* s) { s->a = s->b; }\nvoid both(S* s) {\n  turn(s);\n  f(s->a);\n  f(s->b);\n}\n"
    )  # fmt: skip
    assert together(compiled(tmp_path, functions, "f(x)"), "both") == set()


def test_both_files_are_proven_as_a_pair(tmp_path: Path) -> None:
    one = compiled(tmp_path, F, "f(x); f(y); add<<<1, 32>>>(x, y)")
    output = tmp_path / "output.cu"
    output.write_bytes(one.result.text)
    found = {v.function: v for v in verify_files(str(tmp_path / "input.cu"), str(output), Options())}
    assert found.keys() == {"f", "main"} and not any(v.problems for v in found.values()) and found["main"].pairs
    output.write_text(one.result.text.decode().replace("<<<1, 32, 0, kesco_current()>>>", "<<<1, 32>>>"))
    again = {v.function: v for v in verify_files(str(tmp_path / "input.cu"), str(output), Options())}
    assert "does not follow it" in again["main"].problems[0].message


@pytest.fixture(scope="module")
def spoiled(tmp_path_factory: pytest.TempPathFactory, toolchain: object) -> Compiled:
    functions = F + "static void own(float* p, float* q) {\n  inc<<<1, 32>>>(p);\n  inc<<<1, 32>>>(q);\n}\n"
    body = "f(x); f(y); add<<<1, 32>>>(x, y); f(x); own(x, z); int n = 1; f(y); f(z)"
    one = compiled(tmp_path_factory.mktemp("spoiled"), functions, body)
    assert one.refuses(one.lines) == ""
    assert one.function("f").follows and one.function("own").rewritten and one.function("main").rewritten
    return one


SPOILED = {
    "a launch on the default stream": ("0, kesco_current()>>>", "0, 0>>>"),
    "a launch on another stream": ("0, kesco_current()>>>", "0, kesco_streams().stream[0]>>>"),
    "another stream": ("KescoOn(kesco->stream[1]), f(y)", "KescoOn(kesco->stream[0]), f(y)"),
    "a wait on another stream": (
        "cudaStreamWaitEvent(kesco->stream[1], kesco->done",
        "cudaStreamWaitEvent(kesco->stream[0], kesco->done",
    ),
    "no stream": ("KescoOn(kesco->stream[1]), f(y)", "f(y)"),
    "no record": ("cudaEventRecord(kesco->done[0], kesco->stream[0]);", ""),
    "no wait": ("cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);", ""),
    "the event of the called function": (
        "inc<<<1, 32, 0, kesco_current()>>>(p);",
        "inc<<<1, 32, 0, kesco_current()>>>(p);\n  cudaEventRecord(kesco_streams().done[0], kesco_current());",
    ),
    "two calls": ("KescoOn(kesco->stream[1]), f(y)", "KescoOn(kesco->stream[1]), f(y), f(x)"),
    "for one call in another": ("KescoOn(kesco->stream[1]), f(y)", "KescoOn(kesco->stream[1]), f((f(x), y))"),
    "for no call": ("int n = 1;", "int n = ((void)KescoOn(kesco->stream[0]), 1);"),
    "for what follows": ("int n = 1;", "if (((void)KescoOn(kesco->stream[0]), true)) f(x);\n  int n = 1;"),
    "for one that has streams": ("own(x, z);", "KescoOn(kesco->stream[1]), own(x, z);"),
    "for a reference": ("int n = 1;", "int n = 1; int&& m = ((void)KescoOn(kesco->stream[1]), f(y), 1);"),
}


@pytest.mark.parametrize("case", SPOILED)
def test_a_call_that_was_spoilt_is_refused(case: str, spoiled: Compiled) -> None:
    old, new = SPOILED[case]
    text = "\n".join(spoiled.lines)
    assert old in text
    assert spoiled.refuses(text.replace(old, new, 1).split("\n"))


def test_summaries_are_printed(tmp_path: Path) -> None:
    compiled(
        tmp_path, "static float* g;\n" + F + "void h(float* q, int n) {\n  f(q);\n  if (n) cudaFree(g);\n}\n", "h(x, 1)"
    )
    asked = [str(tmp_path / "input.cu"), "-o", str(tmp_path / "output.cu"), "-q", "--dump", "summaries"]
    lines = CliRunner().invoke(command, ["compile", *asked]).stdout.split("\n")
    assert lines[:4] == ["# summaries", "f at 9:1: width 1, may follow its caller", "  rw p", lines[3]]
    assert lines[3].startswith("h at 12:1: width 0, does not follow its caller: 'cudaFree' (line 14) is a barrier")
    assert "  rw q" in lines and any(line.startswith("  barrier cudaFree 14:") for line in lines)


def test_a_call_weighs_what_it_launches(tmp_path: Path) -> None:
    loops = "static void many(float* p, int n) {\n  inc<<<1, 32>>>(p);\n  inc<<<1, 32>>>(p);\n  f(p);\n}\n"
    one = compiled(tmp_path, F + loops, "many(x, 1); f(y)")
    regions = one.session.regions()
    launches = [s for r in regions for s in r.sites if s.label.startswith("inc")]
    prices = priced(Prices(of={s.operation: Price(KernelCost(3.0, 1, 32)) for s in launches}), regions)
    calls = {
        s.label: prices.at(s).cost.microseconds for r in regions if r.function == "main" for s in r.sites if s.calls
    }
    assert calls == {"many": 9.0, "f": 3.0}


def test_a_function_that_raises_a_flag_is_not_given_a_stream(tmp_path: Path) -> None:
    functions, body, _ = TOGETHER["a flag"]
    one = compiled(tmp_path, functions, "f(x); f(y); " + body.replace("; f(y)", ""))
    text = "\n".join(one.lines).replace("raise<<<1, 1>>>", "raise<<<1, 1, 0, kesco_current()>>>")
    lines = text.replace("  h(flag);", "  KescoOn(kesco->stream[1]), h(flag);").split("\n")
    assert one.result.changed and lines != one.lines
    assert "'h' is given a stream, but 'raise'" in one.refuses(lines)


def test_a_stream_is_not_set_for_unseen_code_in_an_argument(tmp_path: Path) -> None:
    one = compiled(tmp_path, F + "float* other(float*);\n", "f(x); f(y); f(other(z))")
    lines = "\n".join(one.lines).replace("  f(other(z));", "  KescoOn(kesco->stream[1]), f(other(z));").split("\n")
    assert one.result.changed and lines != one.lines
    assert "other runs where a stream is set for another call" in one.refuses(lines)
