"""Copies that are read in the background: which ones, where the host waits for them, and what the proof refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from integration.compiled import Compiled, compile_and_keep

from kesco.options import Options
from kesco.verify.sources import source_problems

SEND = Options(copies="move")
pytestmark = pytest.mark.usefixtures("toolchain")

HEAD = """\
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>
#include <vector>
struct Buffers { float *a, *b, *c, *d; int rounds; };
struct Big { float data[1 << 22]; int rounds; };
__global__ void up(float* y, const float* x) { y[threadIdx.x] = x[threadIdx.x] + 1; }
inline void check(cudaError_t e, const char* what) { if (e != cudaSuccess) { printf("bad %s", what); exit(1); } }
inline void keep(float** one, float* other) { *one = other; }
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { std::cerr << "bad " << cudaGetErrorString(e) \\
  << std::endl; exit(1); } } while (0)
"""
FUNCTION = """\
void f_@NAME@(float* h, float* g, float* out, Big& big, size_t n) {
  float *a, *b, *c, *d;
  Buffers all;
  int k = 0;
  CHECK(cudaMalloc(&a, n)); CHECK(cudaMalloc(&b, n)); CHECK(cudaMalloc(&c, n)); CHECK(cudaMalloc(&d, n));
  CHECK(cudaDeviceSynchronize());  // the first wait of a function stays
  CHECK(cudaMemcpy(a, h, n, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(b, g, n, cudaMemcpyHostToDevice));
  up<<<32, 64>>>(c, a);
  up<<<32, 64>>>(d, b);
  @BEHIND@
  CHECK(cudaMemcpy(out, c, n, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(out + n, d, n, cudaMemcpyDeviceToHost));
  cudaFree(a); cudaFree(b); cudaFree(c); cudaFree(d);
}
"""
# What stands behind the launches, how many copies are then read in the background, and in how many places the host
# waits for that by itself.
CASES = {
    "nothing": ("", 2, 0),  # the copies to the host wait
    "store": ("h[0] = 1;", 2, 1),
    "through_another_name": ("*out = 3;", 2, 1),
    "own_variables": ("k += 2; float* p = h; p = g; int m[4]; m[k % 4] = 2; all.rounds = k;", 2, 0),
    "member_of_something_large": ("big.rounds = 2;", 2, 1),
    "frees": ("free(h);", 2, 1),
    "clears": ("memset(g, 0, n);", 2, 1),
    "branch": ("if (n > 300) h[0] = 1;", 2, 1),
    "launches": ("for (int i = 0; i < 3; ++i) up<<<32, 64>>>(c, a);", 2, 0),
    "loop": ("for (int i = 0; i < k; ++i) { up<<<32, 64>>>(c, a); h[i] = 1; }", 2, 1),
    "copies_in_a_loop": (
        "while (n-- > 9) { CHECK(cudaMemcpy(a, h, n, cudaMemcpyHostToDevice)); up<<<32, 64>>>(c, a); *h = 1; }", 3, 2),
    "copies_without_a_place": (
        "while (n-- > 300) { CHECK(cudaMemcpy(a, h, n, cudaMemcpyHostToDevice)); h[n] = 1; }", 2, 1),
    "objects_that_go": (
        "{ std::vector<float> v(n); CHECK(cudaMemcpy(a, v.data(), n, cudaMemcpyHostToDevice)); up<<<32, 64>>>(c, a); }",
        3, 2),
    "static_object": ("static float table[8]; k = table[2] > 1;", 2, 1),
    "reference": ("float& r = h[2]; r = 1;", 2, 1),
    "helper": ('check(cudaGetLastError(), "launch");', 2, 0),
    "helper_that_writes": ("keep(&all.a, h);", 2, 1),
    "large_variable": ("float table[1 << 22]; table[k] = 2;", 2, 1),
    "assertion": ("assert(n > 2);", 1, 0),
    "lock": ("static std::mutex m; { std::lock_guard<std::mutex> lock(m); k = 2; }", 0, 0),  # it may throw
    "switch": ("switch (k) { case 1: h[0] = 1; break; default: k = 2; }", 2, 1),
    "memory": ("CHECK(cudaMalloc(&all.a, n));", 2, 0),
    "memory_into_unknown": ("CHECK(cudaMalloc((void**)h, n));", 2, 1),
    "registered": ("cudaHostRegister(h, n, 0);", 1, 1),  # the other one waits: the call may look at the device
    "leaves": ("if (n > 300) return;", 1, 1),
    "writes_a_single_one": ("h[0] = 1; h[1] = 2;", 2, 1),
}  # fmt: skip


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory, toolchain: object) -> Compiled:
    path = tmp_path_factory.mktemp("sends") / "app.cu"
    functions = [FUNCTION.replace("@NAME@", n).replace("@BEHIND@", c[0]) for n, c in CASES.items()]
    path.write_text(HEAD + "".join(functions))
    return compile_and_keep(path, SEND)


def body(outcome: Compiled, name: str) -> str:
    text = "\n".join(outcome.lines)
    return text[text.index(f"void f_{name}(") :].partition("\n}\n")[0]


@pytest.mark.parametrize("name", CASES)
def test_what_is_read_in_the_background(outcome: Compiled, name: str) -> None:
    text = body(outcome, name)
    assert (len(re.findall(r"kesco_send\(", text)), len(re.findall(r"kesco_sent\(\);", text))) == CASES[name][1:]


def refused(outcome: Compiled, lines: list[str]) -> set[str]:
    """The functions in which a copy is read too late."""
    found = {span.line for span, _ in source_problems(outcome.read(lines))}
    names = [(n, m[1]) for n, line in enumerate(lines, 1) if (m := re.match(r"void f_(\w+)\(float\* h", line))]
    return {max((n, name) for n, name in names if n <= line)[1] for line in found}


@pytest.mark.thorough
def test_each_wait_is_needed(outcome: Compiled) -> None:
    """Without its wait, and with it behind the next statement, each function is refused; so is a copy that did wait."""
    waiting = {name for name, case in CASES.items() if case[2]}
    lines, waits = outcome.lines, [n for n, line in enumerate(outcome.lines) if "kesco_sent();  // kesco:" in line]
    assert not refused(outcome, lines)
    assert not outcome.refuses(lines)
    assert refused(outcome, [line for n, line in enumerate(lines) if n not in waits]) == waiting
    assert "the host may write or free what this copies" in outcome.refuses(
        [x for x in lines if "kesco_sent();  // kesco:" not in x]
    )
    late = list(lines)
    for n in waits:
        if "}" not in late[n + 1]:
            late[n : n + 2] = late[n + 1], late[n]
    inside = {"objects_that_go", "loop", "copies_in_a_loop", "copies_without_a_place", "switch", "leaves"}
    assert refused(outcome, late) >= waiting - inside  # in those it may still be in time
    sync = [line.replace("kesco_copy(a, h", "kesco_send(a, h") for line in lines]
    assert refused(outcome, sync) == {"copies_without_a_place"}
    plain = [
        re.sub(r"kesco_copy\((out[^;]*ToHost), kesco->stream\[\d\](?:, true)?\)", r"cudaMemcpy(\1)", line)
        for line in lines
    ]
    assert refused(outcome, plain) >= {name for name, case in CASES.items() if case[1]} - waiting
    hidden = [line.replace("CHECK(kesco_send(a", "CHECK(n > 5 ? cudaSuccess : kesco_send(a") for line in lines]
    assert not refused(outcome, hidden)


def test_objects_of_a_thread_go_too_early(tmp_path: Path) -> None:
    """Where the process ends they are destroyed before an exit handler can wait for what reads them."""
    path = tmp_path / "app.cu"
    function = FUNCTION.replace("@NAME@", "thread").replace("@BEHIND@", "")
    path.write_text(HEAD + "thread_local int mine;\n" + function)
    outcome = compile_and_keep(path, SEND)
    assert "kesco_send" not in body(outcome, "thread")
    lines = [line.replace("CHECK(kesco_copy(a", "CHECK(kesco_send(a") for line in outcome.lines]
    assert "objects of a thread's own" in outcome.refuses(lines)


@pytest.mark.parametrize("made", ["Bump{h};", "bump(h);", "if (Bump{h}.h == nullptr) ++k;", "eat({h});", "raised(h);"])
def test_a_destructor_may_change_what_is_read(tmp_path: Path, made: str) -> None:
    path = tmp_path / "app.cu"
    path.write_text(
        HEAD
        + "struct Bump { float* h; ~Bump() { h[0] += 1; } };\ninline Bump bump(float* h) { return {h}; }\n"
        + "inline void eat(Bump) {}\n"
        + "struct Raise { float* h; explicit Raise(float* p) : h(p) {} ~Raise() { h[0] += 1; } };\n"
        + "inline Raise raised(float* p) { return Raise(p); }\n"
        + FUNCTION.replace("@NAME@", "gone").replace("@BEHIND@", made)
    )
    text = body(compile_and_keep(path, SEND), "gone")
    sent = [at for at, line in enumerate(text.split("\n")) if "kesco_sent();" in line]
    gone = next(at for at, line in enumerate(text.split("\n")) if made in line)
    assert "kesco_send" not in text or any(at < gone for at in sent), text
