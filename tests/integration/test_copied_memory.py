"""Host memory that only copies touch: no kernel changes it, and what was copied of it is known to kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.options import Options
from kesco.session import Session

pytestmark = pytest.mark.usefixtures("toolchain")

PROGRAM = """struct Pair { float *x, *y; };
__global__ void bump(float* p) { p[threadIdx.x] += 1; }
__global__ void follow(const Pair* p) { p->y[threadIdx.x] *= 2; }
int main() {
  Pair here, *there;
  cudaMalloc(&here.x, 256);
  cudaMalloc(&here.y, 256);
  cudaMalloc(&there, sizeof here);
  cudaMemcpy(there, &here, sizeof here, cudaMemcpyHostToDevice);
  bump<<<1, 32>>>(here.x);
  bump<<<1, 32>>>(here.y);
  follow<<<1, 32>>>(there);
  cudaMemcpy(&here, there, sizeof here, cudaMemcpyDeviceToHost);
  bump<<<1, 32>>>(here.x);
  return cudaDeviceSynchronize();
}
"""


def test_a_launch_does_not_change_what_copies_read(tmp_path: Path) -> None:
    path = tmp_path / "app.cu"
    path.write_text(PROGRAM, "utf-8")
    (region,) = Session(str(path), Options()).of_ir()
    keys = {site.label: {access.buffer.key for access in site.accesses} for site in region.sites}
    first, second, behind = keys["bump#1"], keys["bump#2"], keys["bump#3"]
    assert len(first) == len(second) == 1 and "?" not in first | second and first != second
    assert "?" in keys["follow"]  # it has the addresses from the copy
    assert "?" in behind
    assert len([site for site in region.sites if site.label.startswith("host")]) > 2  # it reads what copies touch
