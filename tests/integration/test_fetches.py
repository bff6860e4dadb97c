"""Copies to the host that are waited for later: which ones, where, and what the proof refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from integration.compiled import Compiled, compile_and_keep
from integration.test_sends import HEAD

from kesco.check import Run, observe, prepare
from kesco.options import Options
from kesco.verify.destinations import destination_problems

MOVE = Options(copies="move", order="keep")  # else launches go ahead of copies, which are then waited for at once
pytestmark = pytest.mark.usefixtures("toolchain")

MORE = """\
struct Holder { float* out; int count; };
using Many = std::vector<std::vector<float>>;
inline void told(cudaError_t e, const char* what) { if (e != cudaSuccess) { fprintf(stderr, "%s", what); exit(1); } }
inline void step(float* y, float* x) { up<<<32, 64>>>(y, x); }
inline void last(float* y) { k_last = y[0]; }
#define QUIET(call) (void)(call)
#define RETURNS(call) do { if ((call) != cudaSuccess) return; } while (0)
#define KEEPS(call) do { status = (call); if (status != cudaSuccess) exit(1); } while (0)
"""
FUNCTION = """\
void f_@NAME@(float* h, float* g, float* out, Big& big, Holder& holder, std::vector<float>& v, Many& many, size_t n) {
  float *a, *b, *c, *d;
  Buffers all;
  int k = 0;
  cudaError_t status = cudaSuccess;
  CHECK(cudaMalloc(&a, n)); CHECK(cudaMalloc(&b, n)); CHECK(cudaMalloc(&c, n)); CHECK(cudaMalloc(&d, n));
  CHECK(cudaDeviceSynchronize());  // the first wait of a function stays
  up<<<32, 64>>>(a, b);
  up<<<32, 64>>>(c, d);
  @COPY@
  up<<<32, 64>>>(b, d);
  @BEHIND@
  CHECK(cudaDeviceSynchronize());
  cudaFree(a); cudaFree(b); cudaFree(c); cudaFree(d);
}
"""
COPY = "CHECK(cudaMemcpy(out, a, n, cudaMemcpyDeviceToHost));"
# What stands behind the copy, how many are then waited for later, in how many places; and the copy if it is another.
CASES = {
    "nothing": ("", 1, 1),
    "read": ("k = out[0] > 1;", 1, 1),
    "read_through_another_name": ("k = *h > 1;", 1, 1),
    "written": ("out[2] = 1;", 1, 1),
    "member_through_a_pointer": ("k = holder.count;", 1, 1),
    "element_of_a_container": ("k = v[2] > 1;", 1, 1),
    "address_of_a_container": ("float* p = v.data() + 2; k = p != h;", 1, 1),
    "copied_by_memcpy": ("memcpy(&k, out, 4);", 1, 1),
    "copied_on": ("CHECK(cudaMemcpy(d, out, n, cudaMemcpyHostToDevice)); up<<<32, 64>>>(b, d);", 1, 1),
    "copied_twice": (COPY + " up<<<32, 64>>>(a, d);", 2, 1),
    "own_variables": ("k += 2; float* p = h; p = g; int m[4]; m[k % 4] = 2; all.rounds = k; k = m[1];", 1, 1),
    "large_variable": ("float table[1 << 16]; table[k] = 2;", 1, 1),
    "reference": ("float& r = h[2]; k = r > 1;", 1, 1),
    "branch": ("if (n > 300) k = out[0] > 1;", 1, 1),
    "loop": ("for (int i = 0; i < k; ++i) { up<<<32, 64>>>(b, d); k += out[i] > 1; }", 1, 1),
    "launches": ("for (int i = 0; i < 3; ++i) up<<<32, 64>>>(b, d);", 1, 1),
    "helper": ('told(cudaGetLastError(), "launch");', 1, 1),
    "helper_that_prints": ("told(cudaGetLastError(), (const char*)out);", 1, 1),
    "helper_that_reads": ("last(out);", 1, 1),
    "says_why": ('if (k > 2) { fprintf(stderr, "%d", k); exit(2); }', 1, 1),
    "says_what_is_there": ('if (k > 2) { fprintf(stderr, "%s", (char*)out); exit(2); }', 1, 1),
    "frees": ("free(h);", 1, 1),
    "switch": ("switch (k) { case 1: k = out[1] > 1; break; default: k = 2; }", 1, 1),
    "scope": ("{ std::vector<float> w(n); k = 2; }", 1, 1),
    "clock_is_looked_at": ("k = clock() > 3;", 0, 0),
    "another_form": ("", 1, 1, 'told(cudaMemcpy(out, a, n, cudaMemcpyDeviceToHost), "out");'),
    "nobody_asks": ("k = out[0] > 1;", 1, 1, "cudaMemcpy(out, a, n, cudaMemcpyDeviceToHost);"),
    "quiet": ("k = out[0] > 1;", 1, 1, "QUIET(cudaMemcpy(out, a, n, cudaMemcpyDeviceToHost));"),
    "qualified": ("k = out[0] > 1;", 0, 0, "CHECK(::cudaMemcpy(out, a, n, cudaMemcpyDeviceToHost));"),
    "of_two_forms": ('told(cudaMemcpy(h, c, n, cudaMemcpyDeviceToHost), "h"); up<<<32, 64>>>(b, d);', 1, 1),
    "returns": ("", 0, 0, "RETURNS(cudaMemcpy(out, a, n, cudaMemcpyDeviceToHost));"),
    "keeps": ("", 0, 0, "KEEPS(cudaMemcpy(out, a, n, cudaMemcpyDeviceToHost));"),
    "asks_otherwise": ("", 0, 0, "if (cudaMemcpy(out, a, n, cudaMemcpyDeviceToHost) != cudaSuccess) exit(1);"),
    "small": ("", 0, 0, "CHECK(cudaMemcpy(out, a, 512, cudaMemcpyDeviceToHost));"),
    "into_a_container": ("", 1, 1, "CHECK(cudaMemcpy(v.data(), a, n, cudaMemcpyDeviceToHost));"),
    "into_an_element": (
        "k = many[1].size() > 2;", 1, 1, "CHECK(cudaMemcpy(many[k].data(), a, n, cudaMemcpyDeviceToHost));",
    ),
    "pageable_and_small": (
        "", 0, 0, "float* m = (float*)malloc(1 << 20); CHECK(cudaMemcpy(m, a, 1 << 20, cudaMemcpyDeviceToHost));",
    ),
    "pageable": ("", 1, 1, "float* m = (float*)malloc(n); CHECK(cudaMemcpy(m, a, n, cudaMemcpyDeviceToHost));"),
}  # fmt: skip
WAIT = "kesco_fetched()"


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory, toolchain: object) -> Compiled:
    path = tmp_path_factory.mktemp("fetches") / "app.cu"
    texts = [
        FUNCTION.replace("@NAME@", n).replace("@BEHIND@", c[0]).replace("@COPY@", c[3] if len(c) > 3 else COPY)
        for n, c in CASES.items()
    ]
    path.write_text(HEAD + "float k_last;\n#include <ctime>\n" + MORE + "".join(texts))
    return compile_and_keep(path, MOVE)


def body(outcome: Compiled, name: str) -> str:
    text = "\n".join(outcome.lines)
    return text[text.index(f"void f_{name}(") :].partition("\n}\n")[0]


@pytest.mark.parametrize("name", CASES)
def test_what_is_waited_for_later(outcome: Compiled, name: str) -> None:
    text = body(outcome, name)
    assert (text.count("kesco_fetch("), text.count(WAIT)) == CASES[name][1:3]


def refused(outcome: Compiled, lines: list[str]) -> set[str]:
    """The functions in which the host may look too early."""
    found = {span.line for span, _ in destination_problems(outcome.read(lines))}
    names = [(n, m[1]) for n, line in enumerate(lines, 1) if (m := re.match(r"void f_(\w+)\(float\* h", line))]
    return {max((n, name) for n, name in names if n <= line)[1] for line in found}


@pytest.mark.thorough
def test_each_wait_is_needed(outcome: Compiled) -> None:
    """Without its wait, behind the next statement, and where it treats an error otherwise each function is refused."""
    lines = outcome.lines
    fetching = {name for name, case in CASES.items() if case[1]}
    waits = [n for n, line in enumerate(lines) if WAIT in line and "// kesco:" in line]
    assert not refused(outcome, lines)
    assert not outcome.refuses(lines)
    less = [line for n, line in enumerate(lines) if n not in waits]
    assert refused(outcome, less) == fetching
    assert "the host may look at what this copies" in outcome.refuses(less)
    late = list(lines)
    for n in waits:
        if "}" not in late[n + 1]:
            late[n : n + 2] = late[n + 1], late[n]
    assert len(refused(outcome, late)) > 12
    checked = {name for name in fetching if f"CHECK({WAIT})" in body(outcome, name)}
    bare = [line.replace(f"CHECK({WAIT})", WAIT) for line in lines]
    assert refused(outcome, bare) == checked
    maybe = [line.replace(f"CHECK({WAIT});", f"if (n > 5) CHECK({WAIT});") for line in lines]
    assert refused(outcome, maybe) == checked
    hidden = [line.replace("CHECK(kesco_fetch(", "CHECK(n > 5 ? cudaSuccess : kesco_fetch(") for line in lines]
    assert refused(outcome, hidden) >= checked


def test_who_overwrites_what_is_copied_waits_for_the_copy(outcome: Compiled) -> None:
    """The host does not keep them apart any more."""
    lines = outcome.lines
    start = next(n for n, line in enumerate(lines) if line.startswith("void f_copied_twice("))
    wait = next(n for n in range(start, len(lines)) if "(WAR on a)" in lines[n])
    said = outcome.refuses([*lines[:wait], *lines[wait + 1 :]])
    assert "'cudaMemcpy" in said
    assert "(WAR on 'a')" in said


LOOKS = ("k = out[1] > 1;", "*h = 2;", "free(out);", 'printf("%f", *out);', "memcpy(&k, out, 4);", "last(out);",
         "cudaMemcpy(d, out, n, cudaMemcpyHostToDevice);", "cudaMemcpyAsync(d, out, n, cudaMemcpyHostToDevice);",
         "k = v[1] > 2;", "k = holder.count;", "CHECK(kesco_fetched(), 2);", "kesco_fetched();",
         'told(cudaSuccess, (char*)out);', "return;", "std::vector<float> w(v);", "k = big.rounds;",
         "k = many[1][2] > 1;", "many[1].resize(4);", "many.pop_back();", "std::swap(many[0], many[1]);",
         "k = *many[1].data() > 1;", "many[1] = v;", "k = many[1].front() > 1;", "k = many[1].at(2) > 1;",
         "step(out, out); std::cerr << out[2];")  # fmt: skip
CALM = ("k = many[1].size() > 2;", "float* p = many[k].data() + 3; k = p != h;", "k = many.front().empty();")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, toolchain: object) -> Compiled:
    """The function in which nothing stands behind the copy, in a file of its own: it is read for each of the looks."""
    path = tmp_path_factory.mktemp("fetches") / "alone.cu"
    function = FUNCTION.replace("@NAME@", "nothing").replace("@BEHIND@", "").replace("@COPY@", COPY)
    path.write_text(HEAD + "float k_last;\n#include <ctime>\n" + MORE + function)
    outcome = compile_and_keep(path, MOVE)
    assert body(outcome, "nothing").count("kesco_fetch(") == 1
    assert not refused(outcome, outcome.lines)
    return outcome


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_in_between_is_refused(alone: Compiled, look: str) -> None:
    lines = list(alone.lines)
    start = next(n for n, line in enumerate(lines) if line.startswith("void f_nothing("))
    at = next(n for n in range(start, len(lines)) if "kesco_fetch(" in lines[n])
    macro = (
        lines if "), 2" not in look else [x.replace("#define CHECK(call)", "#define CHECK(call, ...)") for x in lines]
    )
    assert refused(alone, [*macro[: at + 1], look, *macro[at + 1 :]]) == {"nothing"}


@pytest.mark.parametrize("calm", CALM)
def test_where_an_element_has_its_memory_may_be_asked(alone: Compiled, calm: str) -> None:
    lines = list(alone.lines)
    start = next(n for n, line in enumerate(lines) if line.startswith("void f_nothing("))
    at = next(n for n in range(start, len(lines)) if "kesco_fetch(" in lines[n])
    assert refused(alone, [*lines[: at + 1], calm, *lines[at + 1 :]]) == set()


def test_objects_of_a_thread_go_too_early(tmp_path: Path) -> None:
    path = tmp_path / "app.cu"
    function = FUNCTION.replace("@NAME@", "thread").replace("@BEHIND@", "").replace("@COPY@", COPY)
    path.write_text(HEAD + "struct Holder {};\nstruct Many {};\nthread_local int mine;\n" + function)
    outcome = compile_and_keep(path, MOVE)
    assert "kesco_fetch" not in body(outcome, "thread")


PIPELINE = """\
int main() {
  const int chunks = 3, n = 1 << 15;
  float *in, *out, *x, *y;
  CHECK(cudaMallocHost(&in, chunks * n * 4)); CHECK(cudaMallocHost(&out, chunks * n * 4));
  CHECK(cudaMalloc(&x, chunks * n * 4)); CHECK(cudaMalloc(&y, chunks * n * 4));
  for (int c = 0; c < chunks; ++c) {
    CHECK(cudaMemcpy(x + c * n, in + c * n, n * 4, cudaMemcpyHostToDevice));
    up<<<1, 64>>>(y + c * n, x + c * n);
    CHECK(cudaMemcpy(out + c * n, y + c * n, n * 4, cudaMemcpyDeviceToHost));
  }
  float sum = 0;
  for (int i = 0; i < chunks * n; ++i) sum += out[i];
  return sum > 1;
}
"""


@pytest.mark.thorough
def test_a_dry_run_sees_a_look_before_the_wait(tmp_path: Path) -> None:
    path, early = tmp_path / "app.cu", tmp_path / "early.cu"
    path.write_text(HEAD + PIPELINE)
    text = compile_and_keep(path, MOVE).result.text.decode()
    assert text.count(", c == 2));") == 1  # which waits for all, so that it is left out
    less = text.replace(", c == 2));", "));")
    lines = [line for line in less.splitlines() if f"CHECK({WAIT})" not in line]
    assert len(lines) == len(less.splitlines()) - 1
    early.write_text("\n".join(lines))
    path.write_text(less)
    found = []
    for program in (path, early):
        folder = tmp_path / program.stem
        folder.mkdir()
        found.append(observe(prepare(str(program), (), Options(), folder), Run((), limit=60)).races > 0)
    assert found == [False, True]
