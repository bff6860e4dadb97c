"""Each help that kesco gives is followed once: then it is not given again, and what it was about is gone.

A way is a program before and after its author did what the help says. Every help of the tables has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kesco.ir.flow import SiteKind
from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.remarks import lost as remarks_lost
from kesco.remarks import verdicts
from kesco.report.explain import lost
from kesco.report.helps import HELP

pytestmark = pytest.mark.usefixtures("toolchain")

HEAD = """\
#include <cstdio>
#include <cstdlib>
#include <ctime>
__global__ void k(float* p, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] += 1; }
__global__ void set(float* q, const float* p, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) q[i] = p[i]; }
__global__ void add(float* q, const float* p, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) q[i] += p[i]; }
"""  # noqa: E501
MAIN = """\
int main(int argc, char**) {
  int n = argc << 20;
  float *x, *y, *z, *w, *h = (float*)malloc(n * 4), *g, *f;
  cudaMalloc(&x, n * 4);
  cudaMalloc(&y, n * 4);
  cudaMalloc(&z, n * 4);
  cudaMalloc(&w, n * 4);
  cudaMallocHost(&g, n * 4);
  cudaMallocHost(&f, n * 4);
"""
END = "\n  cudaDeviceSynchronize();\n  return 0;\n}\n"
ON = "<<<n / 256, 256>>>"
SYNC = "if (cudaDeviceSynchronize()) return 1;"
UP, HOME, D2D = (f"cudaMemcpy{way}" for way in ("HostToDevice", "DeviceToHost", "DeviceToDevice"))


@dataclass(frozen=True)
class Way:
    """The help, and what stands in main, or before it, when it is given, and when it was followed."""

    help: str
    before: str
    after: str
    functions: str = ""
    then: str | None = None  # the functions afterwards
    asked: Options = field(default_factory=Options)
    answered: Options | None = None
    files: tuple[tuple[str, str], ...] = ()


def two(what: str) -> str:
    return f"k{ON}(x, n); {what} k{ON}(y, n);"


BOTH = two("")
MOVE = "move it in front of both or behind both"
HEADER = Path(__file__).parents[1] / "golden/library_calls/cuda/include/libraries.h"
LIBRARY = f'#include "{HEADER}"\n'
CREATE = "float o = 1; cublasHandle_t b; cublasCreate(&b);"
BETWEEN = {
    "a synchronize is removed": Way(remarks_lost.BETWEEN[SiteKind.SYNC], two(SYNC), BOTH),
    "memory is freed behind both": Way(
        remarks_lost.BETWEEN[SiteKind.FREE], two("cudaFree(z);"), f"{BOTH} cudaFree(z);"
    ),
    "a copy in front of both": Way(
        MOVE, two(f"cudaMemcpy(z, h, 400, {UP});"), f"cudaMemcpy(z, h, 400, {UP}); {BOTH}"
    ),
    "a copy behind both": Way(MOVE, two(f"cudaMemcpy(z, h, 400, {UP});"), f"{BOTH} cudaMemcpy(z, h, 400, {UP});"),
    "a copy that is asynchronous": Way(
        "call cudaMemcpyAsync with page-locked memory (cudaMallocHost)",
        two(f"cudaMemcpy(z, h, 400, {UP});"),
        two(f"cudaMemcpyAsync(z, g, 400, {UP});"),
    ),
    "a call of unseen code behind both": Way(MOVE, two("unseen();"), f"{BOTH} unseen();", "void unseen();\n"),
    "a call of unseen code in front of both": Way(MOVE, two("unseen();"), f"unseen(); {BOTH}", "void unseen();\n"),
    "a call of a library behind both": Way(
        MOVE,
        f"{CREATE} {two('cublasSaxpy(b, n, &o, z, 1, w, 1);')}",
        f"{CREATE} {BOTH} cublasSaxpy(b, n, &o, z, 1, w, 1);",
        LIBRARY,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BETWEEN)
def test_what_stands_between(tmp_path: Path, name: str) -> None:
    follow(tmp_path, BETWEEN[name])


PINNED = "page-locked memory (cudaMallocHost)"
TWO_IN_ONE = "write two turns in one, the second with another buffer than 'x'"
TURN = "for (int i = 0; i < argc; ++i)"
FIRST = f"cudaMemcpy(x, h, n * 4, {UP}); cudaMemcpy(z, h, n * 4, {UP}); set{ON}(y, x, n); add{ON}(z, y, n);"
CLOCK = "long t = clock();"
LAST = f"set{ON}(y, x, n); set{ON}(z, y, n); {SYNC} t -= clock();"


def sent(*names: str, form: str = "cudaMemcpyAsync", host: str = "g") -> str:
    return " ".join(f"{form}({name}, {host}, n * 4, {UP});" for name in names)


def home(name: str, form: str = "cudaMemcpyAsync", host: str = "g") -> str:
    return f"{form}({host}, {name}, n * 4, {HOME});"


PAIRS = {
    "copies on streams": Way(remarks_lost.MOVE, FIRST, FIRST, answered=Options(copies="move")),
    "a copy from page-locked memory": Way(
        f"call cudaMemcpyAsync with {PINNED}",
        f"{sent('x', 'z', form='cudaMemcpy', host='h')} {CLOCK} set{ON}(y, x, n); add{ON}(z, y, n);",
        f"{sent('x', 'z')} {CLOCK} set{ON}(y, x, n); add{ON}(z, y, n);",
    ),
    "a copy that only lacks page-locked memory": Way(
        f"copy with {PINNED}",
        f"{sent('x', 'z', host='h')} {CLOCK} set{ON}(y, x, n); add{ON}(z, y, n);",
        f"{sent('x', 'z')} {CLOCK} set{ON}(y, x, n); add{ON}(z, y, n);",
    ),
    "a copy that only lacks its asynchronous form": Way(
        "call cudaMemcpyAsync",
        f"{sent('x', 'z', form='cudaMemcpy')} {CLOCK} set{ON}(y, x, n); add{ON}(z, y, n);",
        f"{sent('x', 'z')} {CLOCK} set{ON}(y, x, n); add{ON}(z, y, n);",
    ),
    "a copy behind the kernel beside which it could run": Way(
        f"{PINNED}, behind 'set'",
        f"{sent('x', 'z', form='cudaMemcpy', host='h')} unseen(); set{ON}(y, x, n); add{ON}(z, y, n);",
        f"{sent('x', form='cudaMemcpy', host='h')} unseen(); set{ON}(y, x, n); {sent('z')} add{ON}(z, y, n);",
        "void unseen();\n",
    ),
    "a result in front of the kernel beside which it could go home": Way(
        f"call cudaMemcpyAsync with {PINNED}, in front of 'set#2'",
        f"{CLOCK} {LAST} {home('y', 'cudaMemcpy', 'h')} {home('z', 'cudaMemcpy', 'h')}",
        f"{CLOCK} set{ON}(y, x, n); {home('y')} set{ON}(z, y, n); {SYNC} t -= clock(); {home('z', 'cudaMemcpy', 'h')}",
    ),
    "a second buffer": Way(
        "give 'cudaMemcpy#2', and what reads that, another buffer than 'x'",
        f"{sent('x')} add{ON}(y, x, n); {sent('x', host='f')} add{ON}(y, x, n);",
        f"{sent('x')} add{ON}(y, x, n); {sent('z', host='f')} add{ON}(y, z, n);",
    ),
    "a second buffer in a loop": Way(
        TWO_IN_ONE,
        f"{TURN} {{ {sent('x')} add{ON}(y, x, n); }}",
        f"{TURN} {{ {sent('x')} add{ON}(y, x, n); {sent('z')} add{ON}(y, z, n); }}",
    ),
    "a second buffer in a loop, and copies that do not hold the host": Way(
        f"{TWO_IN_ONE}; call cudaMemcpyAsync with {PINNED}",
        f"{TURN} {{ {sent('x', form='cudaMemcpy', host='h')} add{ON}(y, x, n); }}",
        f"{TURN} {{ {sent('x')} add{ON}(y, x, n); {sent('z')} add{ON}(y, z, n); }}",
    ),
    "a constant number of turns": Way(
        remarks_lost.TURNS,
        "for (int i = 0; i < argc; ++i) k<<<1, 256>>>(x + 256 * i, 256);",
        "for (int i = 0; i < 4; ++i) k<<<1, 256>>>(x + 256 * i, 256);",
    ),
    "a synchronize in a loop": Way(
        remarks_lost.BETWEEN[SiteKind.SYNC],
        f"{TURN} {{ {two(SYNC)} {SYNC} }}",
        f"{TURN} {{ {BOTH} }}",
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_what_is_independent(tmp_path: Path, name: str) -> None:
    follow(tmp_path, PAIRS[name])


FAR = "__global__ void far(float* q, int row, int w) { q[row * w + threadIdx.x] += 1; }\n"
UNSURE = {
    "a buffer for each use": Way(
        "give each use of the buffer one of its own",
        f"set{ON}(y, x, n); add{ON}(x, y, n); set{ON}(y, z, n); add{ON}(z, y, n);",
        f"set{ON}(y, x, n); add{ON}(x, y, n); set{ON}(w, z, n); add{ON}(z, w, n);",
    ),
    "a pointer to the part": Way(
        "pass a pointer to the part",
        "far<<<1, 256>>>(x, 0, argc); far<<<1, 256>>>(x, 1, argc);",
        "k<<<1, 256>>>(x, 256); k<<<1, 256>>>(x + 256, 256);",
        FAR,
    ),
    "a copy that does not hold the host": Way(
        "if it does not, copy asynchronously with page-locked memory",
        f"set{ON}(y, x, n); {home('y', host='h')} set{ON}(z, y, n); {SYNC}",
        f"set{ON}(y, x, n); {home('y')} set{ON}(z, y, n); {SYNC}",
    ),
}


@pytest.mark.parametrize("name", UNSURE)
def test_what_is_not_known(tmp_path: Path, name: str) -> None:
    follow(tmp_path, UNSURE[name])


def given(folder: Path, body: str, functions: str, options: Options) -> tuple[set[str], set[str]]:
    """The helps that are given for a program, and what they are about."""
    source = folder / "app.cu"
    source.write_text(f"{HEAD}{functions}{MAIN}  {body}{END}")
    result = compile_file(str(source), options)
    every = [one for function in result.functions for one in lost(function)]
    helps = {one.help for one in every} | {d.help for d in result.diagnostics}
    return helps - {""}, {one.what for one in every} | {d.message for d in result.diagnostics}


def follow(folder: Path, way: Way) -> None:
    """Give a help, follow it, and see it gone."""
    for name, text in way.files:
        (folder / name).write_text(text)
    helps, said = given(folder, way.before, way.functions, way.asked)
    assert any(way.help in one for one in helps), f"not given: {way.help}; but {helps}: {said}"
    then = way.functions if way.then is None else way.then
    helps, said = given(folder, way.after, then, way.answered or way.asked)
    assert not any(way.help in one for one in helps), f"given again: {way.help}: {said}"
