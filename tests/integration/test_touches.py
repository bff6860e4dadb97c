"""What a launch touches, held against the same text compiled for the host and run: every thread, every index."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from kesco.analysis.device_touches import KernelTouches
from kesco.ir.touched import Bytes
from kesco.toolchain.compile import device_ir
from kesco.toolchain.model import Toolchain

COUNT = 24  # expressions of one kernel
BASE = 1 << 20
GRID, BLOCK = (3, 2, 1), (16, 2, 2)
AS_HOST = """
#include <cstdio>
#define __global__
struct Size { int x, y, z; };
Size gridDim, blockDim, blockIdx, threadIdx;
"""
_LEAVES = ["(int)threadIdx.x", "(int)threadIdx.y", "(int)threadIdx.z", "(int)blockIdx.x", "(int)blockIdx.y",
           "(int)blockDim.x", "(int)gridDim.x", "n", "m", "(int)s", "(int)q", "7", "-3", "12", "i"]  # fmt: skip


def expression(draw: random.Random, depth: int) -> str:
    """An integer that every compiler computes alike: what could overflow is done without a sign."""
    if depth == 0:
        return draw.choice(_LEAVES)
    a, b = expression(draw, depth - 1), expression(draw, draw.randrange(depth))
    return draw.choice(
        [
            f"(int)((unsigned)({a}) + (unsigned)({b}))",
            f"(int)((unsigned)({a}) - (unsigned)({b}))",
            f"(int)((unsigned)({a}) * (unsigned)({b}))",
            f"(({a}) ^ ({b}))",
            f"(({a}) & ({b}))",
            f"(({a}) | ({b}))",
            f"(({a}) / (int)((({b}) & 15) + 1))",
            f"(({a}) % (int)((({b}) & 7) + 2))",
            f"(int)((unsigned)({a}) / (((unsigned)({b}) & 31) + 1))",
            f"(int)((unsigned)({a}) << (({b}) & 7))",
            f"(int)((unsigned)({a}) >> (({b}) & 7))",
            f"(({a}) >> (({b}) & 7))",
            f"(({a}) < ({b}) ? ({a}) : ({b}))",
            f"((unsigned)({a}) > (unsigned)({b}) ? 5 : ({b}))",
            f"(int)(short)({a})",
            f"(int)(((long long)({a}) * ({b})) >> 3)",
            f"(int)(unsigned char)({a})",
        ]
    )


def kernel(draw: random.Random) -> str:
    lines = []
    for k in range(COUNT):
        index, limit, guard = (expression(draw, depth) for depth in (3, 1, 2))
        trips = draw.choice(["1", f"(({limit}) & 3)", "(n & 5)"])
        lines.append(f"  for (int i = 0; i < {trips}; ++i)")
        lines.append(f"    if ((({guard}) & {draw.choice([0, 1, 3, 8])}) == 0) TOUCH({k}, ({index}) & 4095);")
    pointers = ", ".join(f"float *p{k}" for k in range(COUNT))
    return f"__global__ void k({pointers}, int n, unsigned m, short s, unsigned char q) {{\n" + "\n".join(lines) + "\n}"


def as_sets(found: Bytes) -> tuple[set[int] | None, set[int]]:
    both = []
    for spans in (found.may, found.surely):
        bytes_ = None if spans is None else zip(spans.lows.tolist(), spans.highs.tolist(), strict=True)
        both.append(None if bytes_ is None else {at for low, high in bytes_ for at in range(low, high, 4)})
    assert both[1] is not None
    return both[0], both[1]


@pytest.mark.parametrize("seed", range(4))
def test_every_thread_touches_what_the_same_text_touches_on_the_host(
    seed: int, toolchain: Toolchain, tmp_path: Path
) -> None:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    draw = random.Random(seed)
    text, n, m, s, q = kernel(draw), draw.randrange(-50, 50), draw.randrange(1 << 32), draw.randrange(-99, 99), 77
    (tmp_path / "k.cu").write_text("#define TOUCH(k, index) p##k[index] = 1\n" + text)
    nulls = ", ".join(["nullptr"] * COUNT)
    loops = "".join(
        f"for (block{a}.{b} = 0; block{a}.{b} < gridDim.{b}; ++block{a}.{b}) " for a, b in (("Idx", x) for x in "xyz")
    ) + "".join(f"for (threadIdx.{b} = 0; threadIdx.{b} < blockDim.{b}; ++threadIdx.{b}) " for b in "xyz")
    sizes = (f"{what} = {{{', '.join(map(str, size))}}}; " for what, size in (("gridDim", GRID), ("blockDim", BLOCK)))
    main = f"int main() {{ {''.join(sizes)}"
    main += f" {loops} k({nulls}, {n}, {m}u, {s}, {q}); }}"
    touch = '#define TOUCH(k, index) (p##k = p##k, std::printf("%d %d\\n", k, index))\n'
    (tmp_path / "k.cpp").write_text(AS_HOST + touch + text + main)
    subprocess.run([compiler, "-O1", "-w", "k.cpp", "-o", "k"], cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "k"], capture_output=True, text=True, check=True).stdout
    real: list[set[int]] = [set() for _ in range(COUNT)]
    for line in said.splitlines():
        number, index = map(int, line.split())
        real[number].add(BASE * (number + 1) + 4 * index)

    pointers = tuple(struct.pack("<Q", BASE * (k + 1)) for k in range(COUNT))
    numbers = struct.pack("<i", n), struct.pack("<I", m), struct.pack("<h", s), struct.pack("<B", q)
    asked = KernelTouches([device_ir(toolchain, str(tmp_path / "k.cu"), ())])
    (name,) = asked.names()
    found = asked(name, (*pointers, *numbers), GRID, BLOCK)
    assert found is not None
    assert found.whole
    for k in range(COUNT):
        assert as_sets(found.of((k, 0)).writes) == (real[k], real[k]), k


LARGE = """
__global__ void k(float *d, const float *x, const int *at, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int j = 0; j < n; ++j) sum += x[j * n + i % n];
  d[2 * i] = sum;
}
__global__ void leaves(float *d, const int *flags, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    if (flags[i] > 7) return;
    d[i] = 1;
  }
  d[n + threadIdx.x] = 2;
}
"""


def test_what_is_too_much_is_not_known_but_what_was_seen(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "k.cu").write_text(LARGE)
    asked = KernelTouches([device_ir(toolchain, str(tmp_path / "k.cu"), ())])
    arguments = (*(struct.pack("<Q", BASE * k) for k in (1, 2, 3)), struct.pack("<i", 100))

    def writes(threads: int) -> Bytes:
        found = asked("_Z1kPfPKfPKii", arguments, (threads // 256, 1, 1), (256, 1, 1))
        assert found is not None
        return found.of((0, 0)).writes

    exact = {BASE + 8 * i for i in range(1024)}
    assert as_sets(writes(1024)) == (exact, exact)
    monkeypatch.setattr("kesco.analysis.device_touches._WORK", 2_000_000)
    may, surely = as_sets(writes(1 << 20))
    assert may is None
    assert {BASE, BASE + 8, BASE + 8 * ((1 << 20) - 1)} <= surely


def test_nothing_is_sure_behind_a_way_out_that_memory_decides(toolchain: Toolchain, tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(LARGE)
    asked = KernelTouches([device_ir(toolchain, str(tmp_path / "k.cu"), ())])
    arguments = struct.pack("<Q", BASE), struct.pack("<Q", 2 * BASE), struct.pack("<i", 64)
    found = asked("_Z6leavesPfPKii", arguments, (1, 1, 1), (32, 1, 1))
    assert found is not None
    may, surely = as_sets(found.of((0, 0)).writes)
    assert surely == set()
    assert may is None or may >= {BASE + 4 * i for i in range(96)}
