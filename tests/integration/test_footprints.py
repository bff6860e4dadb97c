"""Footprints, from CUDA text to the proof: what is bounded, what is apart, and what must not be taken for apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.analysis.effects import kernel_effects
from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.proving import verify_files
from kesco.session import device_ir_of, toolchain_for

KERNELS = {
    # how the index is made: bytes behind the first parameter, and how many conditions there are
    "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = 1;": ("[0, 4*s32 arg1)", 2),
    "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; x[i] = 1;": ("[0, 4*s32 arg1)", 2),
    "unsigned i = blockIdx.x * blockDim.x + threadIdx.x; if (i < (unsigned)n) x[i] = 1;": ("[0, 4*u32 arg1)", 0),
    "size_t i = blockIdx.x * blockDim.x + threadIdx.x; if (i < m) x[i] = 1;": ("[0, 4*u64 arg2)", 0),
    "long i = (long)blockIdx.x * blockDim.x + threadIdx.x; if (i < (long)m) x[i] = 1;": ("[0, 4*s64 arg2)", 0),
    "x[blockIdx.x * blockDim.x + threadIdx.x] = 1;": ("[0, 4*blockDim.x*gridDim.x)", 2),
    "x[threadIdx.x] = 1;": ("[0, 4*blockDim.x)", 0),
    "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i > 0 && i < n - 1) x[i] = x[i - 1] + x[i + 1];": (
        "[0, 4*s32 arg1)",
        0,
    ),
    "for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = 1;": ("[0, 4*s32 arg1)", 1),
    "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) x[i] = 1;": (
        "[0, 4*s32 arg1)",
        4,
    ),
    "for (int k = 0; k < n; ++k) x[k] += 1;": ("[0, 4*s32 arg1)", 0),
    "int r = threadIdx.x; if (r < n) for (int k = 0; k < w; ++k) x[r * w + k] += 1;": ("[0, 4*s32 arg1*s32 arg3)", 0),
    "((double*)x)[threadIdx.x & 31] = 1;": ("[0, 256)", 0),
    "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i != n) x[i] = 1;": ("[0, 4*blockDim.x*gridDim.x)", 2),
    "if ((int)threadIdx.x < n) x[-(int)threadIdx.x] = 1;": ("[-4*s32 arg1 + 4, 4)", 0),
    "for (int i = n; i >= 0; --i) x[i] = 1;": ("[0, 17179869184)", 0),
    "float* p = n ? x : x + 1; p[threadIdx.x] = 1;": ("[0, 4*blockDim.x + 4)", 0),
    "x[threadIdx.x * n] = 1;": ("[0, 4*blockDim.x*u32 arg1 - 4*u32 arg1 + 4)", 1),
    "x[(unsigned)(n / 2)] = 1;": ("[0, 17179869184)", 0),  # half of a negative number is larger than it, unsigned
    "x[(unsigned)(n >> 1)] = 1;": ("[0, 17179869184)", 0),
    "if (n >= 0) x[(unsigned)(n / 2)] = 1;": ("[0, 4*s32 arg1 + 4)", 0),
    "x[(int)x[0]] = 1;": None,
    "float* p = n ? x : y; p[threadIdx.x] = 1;": None,
    "x[0] = 1; x[n] = 1;": None,
    "kept = x;": None,
    "unseen(x); x[0] = 1;": None,
}
HEAD = "#include <cstddef>\n__device__ float* kept;\n__device__ void unseen(float*);\n"


@pytest.fixture(scope="module")
def effects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    path = tmp_path_factory.mktemp("footprints") / "kernels.cu"
    head = "(float* x, int n, size_t m, int w, float* y)"
    lines = [f"__global__ void k{at}{head} {{ {body} }}" for at, body in enumerate(KERNELS)]
    path.write_text(HEAD + "\n".join(lines))
    options = Options(flags=("-rdc=true",))
    ir = device_ir_of(toolchain_for(options), str(path), options)
    return {one.display: one for one in kernel_effects(ir)}


@pytest.mark.parametrize("at", range(len(KERNELS)), ids=lambda at: list(KERNELS)[at])
def test_what_a_launch_touches(effects: dict, at: int) -> None:
    body, expected = list(KERNELS.items())[at]
    found = {p.index: dict(p.fields)[0].footprint for p in effects[f"k{at}"].params}.get(0)
    assert (None if found is None else (str(found.bytes), len(found.fits))) == expected, body


# ---- host programs --------------------------------------------------------------------------------------------------

PROGRAM = """\
#include <cstddef>
__global__ void scale(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = 2 * x[i] + 1;
}
__global__ void uscale(float* x, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = 2 * x[i] + 1;
}
__global__ void zscale(float* x, size_t n) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < n) x[i] = 2 * x[i] + 1;
}
__global__ void raw(float* x) { x[blockIdx.x * blockDim.x + threadIdx.x] += 1; }
__global__ void halo(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i <= n) x[i] += 1; }
__global__ void stride(float* x, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) x[i] += 1;
}
__global__ void row(float* a, int w) { for (int j = threadIdx.x; j < w; j += blockDim.x) a[j] += 1; }
int H;
void f(float* d, int n, size_t z, int k, bool b) {
BODY
}
"""
APART = {
    "halves": "int h = n / 2; scale<<<(h + 255) / 256, 256>>>(d, h); scale<<<(n - h) / 256, 256>>>(d + h, n - h);",
    "constants": "scale<<<4, 256>>>(d, 1024); scale<<<4, 256>>>(d + 1024, 1024);",
    "by the launch": "raw<<<4, 256>>>(d); raw<<<4, 256>>>(d + 1024);",
    "chunks": "int c = n / 4; for (int i = 0; i < 4; i++) scale<<<(c + 255) / 256, 256>>>(d + i * c, c);",
    "address of an element": "int c = n / 4; for (int i = 0; i < 4; i++) scale<<<64, 256>>>(&d[i * c], c);",
    "unsigned, divided": "size_t c = z / 4; for (int i = 0; i < 4; i++) zscale<<<64, 256>>>(d + i * c, c);",
    "strides": "int c = n / 4; for (int i = 0; i < 4; i++) stride<<<64, 256>>>(d + i * c, c);",
    "rows": "int w = n / 8; for (int r = 0; r < 6; r++) row<<<1, 128>>>(d + r * w, w);",
    "a pointer that walks": "int h = n / 4; float* p = d; scale<<<64, 256>>>(p, h); p += h; scale<<<64, 256>>>(p, h);",
    "the largest grid that fits": "scale<<<8388608, 256>>>(d, 1024); scale<<<8388608, 256>>>(d + 1024, 1024);",
    "a few bytes in front": "int c = n / 4; cudaMemsetAsync(d, 0, 4); scale<<<64, 256>>>(d + c, c);",
    "memsets": "cudaMemsetAsync(d, 0, n / 2 * sizeof(float)); cudaMemsetAsync(d + n / 2, 0, n / 2 * sizeof(float));",
}
TOGETHER = {
    "one too many": "scale<<<4, 256>>>(d, 1025); scale<<<4, 256>>>(d + 1024, 1024);",
    "one too far back": "raw<<<4, 256>>>(d); raw<<<4, 256>>>(d + 1023);",
    "a few bytes more": "int c = n / 4; cudaMemsetAsync(d, 0, 5); scale<<<64, 256>>>(d + c, c);",
    "a halo": "int h = n / 2; halo<<<64, 256>>>(d, h); halo<<<64, 256>>>(d + h, h);",
    "an index that may wrap around": "int h = n / 2; scale<<<k, 256>>>(d, h); scale<<<k, 256>>>(d + h, n - h);",
    "a grid too large": "scale<<<8388609, 256>>>(d, 1024); scale<<<8388609, 256>>>(d + 1024, 1024);",
    "a stride that may wrap around": "for (int i = 0; i < 4; i++) stride<<<64, 256>>>(d + i * n, n);",
    "an offset that may wrap around": "for (int i = 0; i < 4; i++) zscale<<<64, 256>>>(d + i * z, z);",
    "an unsigned offset": "unsigned c = n; for (int i = 0; i < 4; i++) uscale<<<64, 256>>>(d + i * c, c);",
    "a negative length": "for (int i = 0; i < 4; i++) zscale<<<64, 256>>>(d + i * n, n);",
    "another length": "for (int i = 0; i < 4; i++) scale<<<64, 256>>>(d + i * n, k);",
    "a shorter offset": "for (int i = 0; i < 4; i++) scale<<<64, 256>>>(d + i * (short)n, n);",
    "a variable that changes": "int h = n / 2; scale<<<64, 256>>>(d, h); h--; scale<<<64, 256>>>(d + h, h);",
    "a variable that may change": "int h = n / 2; scale<<<64, 256>>>(d, h); if (b) h = 3; "
    "scale<<<64, 256>>>(d + h, h);",
    "changed by a reference": "int h = n; int& r = h; scale<<<64, 256>>>(d, h); r = k; scale<<<64, 256>>>(d + h, h);",
    "changed by a pointer": "int h = n; int* r = &h; scale<<<64, 256>>>(d, h); *r = k; scale<<<64, 256>>>(d + h, h);",
    "a global": "scale<<<64, 256>>>(d, H); scale<<<64, 256>>>(d + H, H);",
    "a counter": "int h = n / 2; for (int i = 0; i < k; i++) { scale<<<64, 256>>>(d + i * h, h); "
    "scale<<<64, 256>>>(d + (i + 1) * h, h); }",
    "a pointer that walks in a loop": "int h = n / 2; float* p = d; for (int i = 0; i < k; i++) "
    "{ scale<<<64, 256>>>(p, h); p += h; scale<<<64, 256>>>(p, h); }",
    "read again in a loop": "for (int i = 0; i < k; i++) { int h = H; scale<<<64, 256>>>(d, h); "
    "scale<<<64, 256>>>(d + h, h); }",
    "bytes, not elements": "int c = n / 4; scale<<<64, 256>>>(d, c); scale<<<64, 256>>>((float*)((char*)d + c), c);",
    "wider rows": "int w = n / 8; for (int r = 0; r < 6; r++) row<<<1, 128>>>(d + r * w, w + 1);",
}


def dependences(folder: Path, body: str, flags: tuple[str, ...] = ()) -> int:
    path = folder / "f.cu"
    path.write_text(PROGRAM.replace("BODY", body))
    result = compile_file(str(path), Options(force=True, flags=flags))
    (function,) = (one for one in result.functions if one.region.function == "f")
    assert not function.region.serial_because and function.dfg is not None
    return len(function.dfg.dependences)


@pytest.mark.parametrize("name", APART)
def test_apart(tmp_path: Path, name: str) -> None:
    assert dependences(tmp_path, APART[name]) == 0


@pytest.mark.parametrize("name", TOGETHER)
def test_not_apart(tmp_path: Path, name: str) -> None:
    assert dependences(tmp_path, TOGETHER[name]) > 0


def test_signed_integers_that_wrap_around_are_not_followed(tmp_path: Path) -> None:
    assert dependences(tmp_path, APART["chunks"], ("-Xcompiler", "-fwrapv")) > 0


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("d + i * c, c)", "d + i * c, c + 1)"),
        ("d + i * c, c)", "d + i * (c - 1), c)"),
        pytest.param("d + i * c, c)", "d, c)", marks=pytest.mark.thorough),
        pytest.param("d + i * c, c)", "d + i / 2 * c, c)", marks=pytest.mark.thorough),
    ],
)
def test_the_proof_rejects_chunks_that_meet(tmp_path: Path, was: str, becomes: str) -> None:
    body = APART["chunks"].replace("(c + 255) / 256", "64")
    serial, emitted = tmp_path / "f.cu", tmp_path / "f_async.cu"
    serial.write_text(PROGRAM.replace("BODY", body))
    text = compile_file(str(serial), Options(force=True)).text.decode()
    emitted.write_text(text)
    assert not [p for v in verify_files(str(serial), str(emitted), Options()) for p in v.problems]
    changed = text.replace(was, becomes)
    assert changed != text
    emitted.write_text(changed)
    assert [p for v in verify_files(str(serial), str(emitted), Options()) for p in v.problems if p.code == "K401"]
    serial.write_text(serial.read_text().replace(was, becomes))  # and where the serial program says so, too
    assert [p for v in verify_files(str(serial), str(emitted), Options()) for p in v.problems if p.code == "K401"]
