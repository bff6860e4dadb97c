"""What the host's LLVM IR tells of launches: each of many small functions, and whole programs.

What is expected stands in the programs: "@x" names the allocation of a line, "= x y" the ones that a launch's pointers
may be, ? where they may be anything, "never" for a launch that nothing leads to.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from kesco.analysis.host import host_facts
from kesco.analysis.host.values import NOTHING, Object, Pointer, Value, joined, pointer
from kesco.cli import main
from kesco.errors import InputError
from kesco.ir.host import HostEntry, HostFacts
from kesco.options import Options
from kesco.session import host_of

HERE = Path(__file__).parent / "host"
pytestmark = pytest.mark.usefixtures("toolchain")


def expected(path: Path) -> tuple[dict[int, str], dict[int, set[str]]]:
    """The names of the lines with allocations, and what is said of the lines with launches."""
    names, launches = {}, {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if found := re.search(r"// @(\w+)$", line):
            names[number] = found[1]
        if found := re.search(r"// = (.*)$", line):
            launches[number] = set(found[1].split())
    return names, launches


def told(facts: HostFacts, names: dict[int, str], entries: list[HostEntry]) -> dict[int, set[str]]:
    """What is found at each line with a launch, in the same words."""
    found: dict[int, set[str]] = {}
    for launch in (one for entry in entries for one in entry.operations if one.kernel):
        line = found.setdefault(int(launch.place.split(":")[1]), set())
        for pointed in launch.pointers:
            at = [origin.place.split(":")[1] for origin, _ in pointed.origins if origin.place]
            line |= {names.get(int(one), one) for one in at}
            line |= {"?"} if pointed.unknown else set()
    for unreached in facts.unreached:
        found.setdefault(int(unreached.split(":")[-2]), set()).add("never")
    return found


@pytest.fixture(scope="module")
def cases() -> HostFacts:
    return host_of(str(HERE / "cases.cu"), Options())


_NAMES, _LAUNCHES = expected(HERE / "cases.cu")


@pytest.mark.parametrize("line", _LAUNCHES, ids=str)
def test_case(line: int, cases: HostFacts) -> None:
    found = told(cases, _NAMES, list(cases.entries))
    known = found.get(line, set())
    if "?" in _LAUNCHES[line]:
        assert "?" in known
    else:
        assert known == _LAUNCHES[line]


def test_no_case_is_refused(cases: HostFacts) -> None:
    assert not cases.refused


@pytest.mark.parametrize("path", sorted(HERE.glob("main_*.cu")), ids=lambda one: one.stem)
def test_program(path: Path) -> None:
    facts = host_of(str(path), Options())
    names, launches = expected(path)
    assert told(facts, names, [one for one in facts.entries if one.name == "main"]) == launches


def test_offsets_are_kept_or_become_a_stride() -> None:
    one = Object("heap", "malloc", 0)
    places = [joined(pointer(one, 8 * at), NOTHING) for at in range(8)]
    assert joined(places[0], places[3]) == places[0] | places[3]
    every: Value = NOTHING
    for place in places:
        every = joined(every, place)
    assert every == frozenset((Pointer(one, (8, 0)),))
    assert joined(places[1], places[3], widen=True) == frozenset((Pointer(one, (16, 8)),))


def test_what_is_lost_is_told(cases: HostFacts) -> None:
    assert any("a store through an unknown pointer in _Z15stored_anywherev" in one for one in cases.lost)
    assert any("a call through an unknown pointer in _Z15called_anywherev" in one for one in cases.lost)
    assert any("_Z6unseenv" in one for one in cases.lost)


def test_setjmp_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jumps.cu"
    path.write_text("#include <csetjmp>\n__global__ void k() {}\njmp_buf b;\n"
                    "int main() { if (!setjmp(b)) k<<<1, 1>>>(); return 0; }\n")  # fmt: skip
    assert "setjmp" in host_of(str(path), Options()).refused


_PECULIAR = {
    "asm goto": '__global__ void k() {}\nint main() { asm goto("" : : : : out); k<<<1, 1>>>(); out: return 0; }',
}


@pytest.mark.parametrize("name", _PECULIAR)
def test_what_is_not_understood_is_refused_and_its_launches_told(name: str, tmp_path: Path) -> None:
    path = tmp_path / "peculiar.cu"
    path.write_text(_PECULIAR[name])
    facts = host_of(str(path), Options())
    assert facts.refused and any("in main" in one for one in facts.unreached)


def test_what_is_not_worth_following_costs_nothing_but_what_it_may_change(tmp_path: Path) -> None:
    path = tmp_path / "long.cu"
    path.write_text("#include <regex>\n__global__ void k(float *p) {}\nint main(int c, char **v) {\n"
                    "  float *p;\n  cudaMalloc(&p, 4);\n"
                    '  if (std::regex_match(v[0], std::regex("a+b"))) k<<<1, 1>>>(p);\n}\n')  # fmt: skip
    facts = host_of(str(path), Options())
    assert not facts.refused and not facts.unreached
    assert any("too long" in one for one in facts.lost)
    (launch,) = facts.launches()
    (pointer,) = launch.pointers
    assert not pointer.unknown and [one.name for one in pointer.sites] == ["cudaMalloc"]


_LINES = """\
target triple = "x86_64-unknown-linux-gnu"
define i32 @main(i32 %n) {{
  %p = alloca ptr
  %made = call i32 @cudaMalloc(ptr %p, i64 4)
{body}
  %set = call i32 @__cudaPushCallConfiguration(i64 1, i32 1, i64 1, i32 1, i64 0, ptr null)
  %held = load ptr, ptr %p
  call void @_Z16__device_stub__kPf(ptr %held)
  ret i32 0
}}
declare i32 @cudaMalloc(ptr, i64)
declare i32 @__cudaPushCallConfiguration(i64, i32, i64, i32, i64, ptr)
declare void @_Z16__device_stub__kPf(ptr)
"""


@pytest.mark.parametrize("length", [1, 100_000])
def test_a_launch_without_a_place_is_told_however_long_its_function_is(length: int) -> None:
    body = "\n".join(f"  %x{i} = add i32 {f'%x{i - 1}' if i else '%n'}, {i}" for i in range(length))
    facts = host_facts(_LINES.format(body=body))
    (launch,) = facts.launches()
    assert not facts.refused and (launch.place, launch.configured) == ("", "")
    assert [origin.name for origin, _ in launch.pointers[0].origins] == ["cudaMalloc"]


def test_what_llvm_rejects_is_an_input_error() -> None:
    with pytest.raises(InputError, match="LLVM cannot read the host code"):
        host_facts("define i32 @main() { ret i64 0 }")


_COROUTINE = """#include <coroutine>
struct Task { struct promise_type {
  Task get_return_object() { return {}; }
  std::suspend_never initial_suspend() { return {}; }
  std::suspend_never final_suspend() noexcept { return {}; }
  void return_void() {}
  void unhandled_exception() {}
}; };
__global__ void k() {}
Task work() { k<<<1, 1>>>(); co_return; }
int main() { work(); }
"""


def test_coroutines_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "coroutine.cu"
    path.write_text(_COROUTINE)
    facts = host_of(str(path), Options(flags=("-std=c++20",)))
    assert "llvm.coro" in facts.refused and facts.unreached


def _many_kernels(count: int) -> str:
    """A program that launches so many instances of a kernel, each through templates, one after the other in a loop."""
    head = """#include <vector>
template <class T, int N> __global__ void step(const T *in, T *out, int n) { if (n) out[0] = in[0] * N; }
template <class T, int N> struct Stage {
  T *in, *out;
  void run(int n) const { step<T, N><<<(n + 255) / 256, 256>>>(in, out, n); }
};
template <class T, int N> void launch(std::vector<T *> &b, int n) { Stage<T, N>{b[N % 16], b[(N + 1) % 16]}.run(n); }
template <class T> void dispatch(int kind, std::vector<T *> &b, int n) {
  switch (kind) {
"""
    cases = "".join(f"    case {i}: launch<T, {i}>(b, n); break;\n" for i in range(count // 2))
    return (
        head
        + cases
        + """  }
}
int main(int argc, char **argv) {
  std::vector<float *> f(16);
  std::vector<double *> d(16);
  for (float *&one : f) cudaMalloc(&one, 4);
  for (double *&one : d) cudaMalloc(&one, 8);
  for (int i = 0; i < 200; ++i) { dispatch(i, f, 4096); dispatch(i * 7 % 200, d, argc); }
}
"""
    )


def test_two_hundred_kernels_take_no_half_minute(tmp_path: Path) -> None:
    path = tmp_path / "many.cu"
    path.write_text(_many_kernels(200))
    began = time.process_time()
    facts = host_of(str(path), Options())
    assert time.process_time() - began < 30
    assert not facts.refused and not facts.unreached
    assert len({one.kernel for one in facts.launches()}) == 200
    assert not any(pointer.unknown for one in facts.launches() for pointer in one.pointers)


def test_dump() -> None:
    path = str(HERE / "main_globals.cu")
    result = CliRunner().invoke(main, ["compile", path, "-o", "-", "-q", "--dump", "host"])
    assert result.exit_code == 0, result.output
    assert "# host\nfrom main" in result.output and "_Z1kPf in main" in result.output


def test_strings_that_call_a_new_of_the_programs_own(tmp_path: Path) -> None:
    path = tmp_path / "app.cu"
    path.write_text("""#include <cstdlib>
#include <new>
#include <string>
__global__ void k(float* p) { *p += 1; }
float *g, *h;
struct { std::string s; float* p; } x;
void* operator new(std::size_t n) { x.p = h; return std::malloc(n); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
int main(int, char** v) { cudaMalloc(&g, 4); cudaMalloc(&h, 4); x.p = g; x.s = v[0]; k<<<1, 1>>>(x.p); }
""")
    facts = host_of(str(path), Options())
    (launch,) = (one for entry in facts.entries if entry.name == "main" for one in entry.operations if one.kernel)
    assert [pointed.unknown for pointed in launch.pointers] != [""]
