"""Kernels whose blocks wait for each other run alone, as in the serial program; those that only try again do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.analysis.effects import kernel_effects
from kesco.ir.flow import Role
from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.session import device_ir_of, toolchain_for

pytestmark = pytest.mark.usefixtures("toolchain")

HEAD = """\
__device__ unsigned count;
__device__ __noinline__ void until(volatile unsigned* c, unsigned n) { while (*c < n) {} }
__device__ __noinline__ unsigned seen(volatile unsigned* c) { return *c; }
__device__ __noinline__ unsigned seen_by_another(volatile unsigned* c) { return seen(c); }
"""
WAITS = {
    "volatile": "atomicAdd(&count, 1); while (*(volatile unsigned*)&count < n) {}",
    "added nothing": "atomicAdd(c, 1); while (atomicAdd(c, 0) < n) {}",
    "swapped the same": "while (atomicCAS(c, n, n) != n) {}",
    "in another function": "until(c, n);",
    "past the first cache": "while (true) { __threadfence(); if (__ldcg(c) >= n) break; }",
    "one after another": "for (int i = 0; i < n; ++i) while (((volatile unsigned*)c)[i] == 0) {}",
    "look in another function": "while (seen_by_another(c) < n) {}",
    "plain, behind a fence": "while (*c < n) __threadfence();",
    "plain, behind a barrier": "while (c[1] < n) { __syncthreads(); x[0] += 1; }",
    "swapped when all are there": "while (atomicCAS(c, n, 0) != n) {}",
    "taken": "while (atomicExch(c, 0) == 0) {}",
    "one after another in one loop": "unsigned b = 0; while (b < gridDim.x) if (((volatile unsigned*)c)[b] == n) ++b;",
    "added nothing by assembly": 'unsigned v; do asm volatile("atom.add.u32 %0, [%1], 0;" : "=r"(v) : "l"(c) :'
    ' "memory"); while (v < n);',
    "with a sleep": "while (*(volatile unsigned*)c == 0) __nanosleep(10);",
}
DOES_NOT = {
    "swap until it is mine": "int *a = (int*)x, old = *a, seen; do { seen = old; "
    "old = atomicCAS(a, seen, __float_as_int(__int_as_float(seen) + 1)); } while (seen != old);",
    "lock": "while (atomicExch(c, 1)) {} x[0] += 1; __threadfence(); atomicExch(c, 0);",
    "lock by comparison": "while (atomicCAS(c, 0, 1) != 0) {} x[0] += 1; __threadfence(); atomicExch(c, 0);",
    "slot of a table": "int s = n; while (atomicCAS(c + s, 0xffffffffu, 1) != 0xffffffffu) s = (s + 1) % 64;",
    "bound behind a barrier": "for (int i = 0; i < c[0]; ++i) { x[i] += 1; __syncthreads(); }",
    "own change": "do { __syncthreads(); if (threadIdx.x == 0) c[0] = x[n] > 3; __syncthreads(); x[n] += 1; } "
    "while (c[0]);",
    "queue": "int i; while ((i = atomicAdd(c, 1)) < n) x[i] += 1;",
    "volatile data": "volatile float* v = x; for (int i = 0; i < n; ++i) v[i] += v[i + 1];",
    "look back": "int i = blockIdx.x - 1; while (i >= 0) if (((volatile unsigned*)c)[i]) --i;",
    "shared": "__shared__ volatile int f; if (threadIdx.x == 0) f = 1; while (f == 0) {}",
}


def test_which_kernels_wait(tmp_path: Path) -> None:
    path = tmp_path / "kernels.cu"
    bodies = [*WAITS.values(), *DOES_NOT.values()]
    lines = [f"__global__ void k{at}(float* x, unsigned* c, int n) {{ {b} x[0] += 1; }}" for at, b in enumerate(bodies)]
    path.write_text(HEAD + "\n".join(lines))
    ir = device_ir_of(toolchain_for(Options()), str(path), Options())
    found = {one.display: "spin" in one.order for one in kernel_effects(ir)}
    names = dict(zip((*WAITS, *DOES_NOT), (found[f"k{at}"] for at in range(len(bodies))), strict=True))
    assert names == dict.fromkeys(WAITS, True) | dict.fromkeys(DOES_NOT, False)


def test_they_stay_on_the_default_stream(tmp_path: Path) -> None:
    path = tmp_path / "app.cu"
    path.write_text(
        """__global__ void up(float* x) { x[threadIdx.x] += 1; }
__global__ void meet(float* x, unsigned* c) {
  if (threadIdx.x == 0) { atomicAdd(c, 1); while (*(volatile unsigned*)c < gridDim.x) {} }
  x[threadIdx.x] += 1;
}
int main() {
  float *x, *y; unsigned *c, *d;
  cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); cudaMalloc(&c, 4); cudaMalloc(&d, 4);
  meet<<<108, 32>>>(x, c);
  meet<<<108, 32>>>(y, d);
  up<<<108, 32>>>(x);
  up<<<108, 32>>>(y);
  cudaDeviceSynchronize();
}
"""
    )
    result = compile_file(str(path), Options())
    (main,) = result.functions
    roles = {s.label: s.role for s in main.region.sites if s.kind.value == "kernel"}
    expected = {f"meet#{n}": Role.LEGACY for n in (1, 2)} | {f"up#{n}": Role.MOVABLE for n in (1, 2)}
    assert main.rewritten and roles == expected
    assert any(d.code == "K205" and "its blocks wait for each other" in d.message for d in result.diagnostics)
