"""Addresses that a kernel is given as integers, beside pointers: what it touches through them is never lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.analysis.effects import kernel_effects
from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.session import device_ir_of, toolchain_for

pytestmark = pytest.mark.usefixtures("toolchain")

HEAD = """\
#include <cstring>
union Either { unsigned long long address; float* pointer; };
struct Table { Either each[3]; float* last; };
struct Sized { float* each[3]; unsigned long long size[3]; };
"""
FOLLOWED = {
    "a union of a parameter": "t.each[i].pointer[0] = 1; t.last[1] = 1;",
    "a union in shared memory": "__shared__ Either e[2]; if (threadIdx.x == 0) { e[0].pointer = x; e[1].address = a; }"
    " __syncthreads(); e[i].pointer[0] = 1;",
    "a union on the stack": "Either e[2]; e[0].pointer = x; e[1].address = a; e[i].pointer[0] = 1;",
    "bytes that are copied": "unsigned long long e[2] = {a, (unsigned long long)x}; float* p; memcpy(&p, e + i, 8);"
    " p[0] = 1;",
    "an operand of assembly": 'asm volatile("{ .reg .u64 t; cvta.to.global.u64 t, %1; st.global.f32 [t], %2; }"'
    ' :: "l"(x), "l"(a), "f"(1.f) : "memory");',
}
PLAIN = "if (s.size[i] > 0) s.each[i][0] = 1;"  # the sizes beside them are no addresses
PARAMETERS = "Table t, Sized s, float* x, unsigned long long a, int i"


def test_an_integer_that_may_be_followed(tmp_path: Path) -> None:
    path = tmp_path / "kernels.cu"
    bodies = [*FOLLOWED.values(), PLAIN]
    kernels = [f"__global__ void k{at}({PARAMETERS}) {{ {body} }}" for at, body in enumerate(bodies)]
    path.write_text(HEAD + "\n".join(kernels))
    ir = device_ir_of(toolchain_for(Options()), str(path), Options())
    reasons = {one.display: one.opaque for one in kernel_effects(ir)}
    found = {name: reasons[f"k{at}"] for at, name in enumerate((*FOLLOWED, "plain"))}
    assert found == dict.fromkeys(FOLLOWED, "turns an integer into a pointer") | {"plain": ""}


def test_what_is_reached_by_it_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "app.cu"
    path.write_text(
        HEAD
        + """
__global__ void put(float* x, unsigned long long a, int i) {
  Either s[2];
  s[0].pointer = x;
  s[1].address = a;
  s[i].pointer[threadIdx.x] = 1;
}
__global__ void twice(const float* x, float* y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }
int main() {
  float *a, *b, *c, *d;
  cudaMalloc(&a, 256); cudaMalloc(&b, 256); cudaMalloc(&c, 256); cudaMalloc(&d, 256);
  put<<<1, 64>>>(a, (unsigned long long)b, 1);
  twice<<<1, 64>>>(b, c);
  twice<<<1, 64>>>(b, d);
  cudaDeviceSynchronize();
}
"""
    )
    (main,) = compile_file(str(path), Options()).functions
    labels = {site.number: site.label for site in main.region.sites}
    assert main.dfg is not None
    pairs = {(labels[one.source], labels[one.target]) for one in main.dfg.dependences}
    assert pairs >= {("put", "twice#1"), ("put", "twice#2")}
