"""Calls of CUDA's libraries: when they are known to work on the default stream, and when they stay opaque."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.ir.flow import Role, Site, SiteKind
from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.session import Session

HEADER = Path(__file__).parent.parent / "golden" / "library_calls" / "cuda" / "include" / "libraries.h"
KERNEL = "__global__ void k(float* x) { x[0] += 1; }\n"
MEMORY = "  float *x, *y, a = 2;\n  cudaMalloc(&x, 4), cudaMalloc(&y, 4);\n  cublasHandle_t h;\n  cublasCreate(&h);\n"
CALL = "  cublasSaxpy(h, 1, &a, x, 1, y, 1);\n"

pytestmark = pytest.mark.usefixtures("toolchain")


def saxpy(folder: Path, text: str) -> Site:
    program = folder / "program.cu"
    program.write_text(f'#include "{HEADER}"\n{KERNEL}{text}')
    found = [s for f in compile_file(str(program), Options()).functions for s in f.region.sites]
    (site,) = (s for s in found if s.label.startswith("cublasSaxpy"))
    return site


def touched(site: Site) -> dict[str, str]:
    return {a.buffer.name: a.mode.text for a in site.accesses}


def test_of_a_call_with_a_handle_made_here_the_effects_are_known(tmp_path: Path) -> None:
    program = tmp_path / "program.cu"
    program.write_text(f'#include "{HEADER}"\n{KERNEL}int main() {{\n{MEMORY}{CALL}  return 0;\n}}\n')
    found = [s for region in Session(str(program), Options()).of_ir() for s in region.sites]
    (site,) = (s for s in found if s.label.startswith("cublasSaxpy"))
    assert (site.kind, site.foreign) == (SiteKind.LIBRARY, False)
    assert touched(site).items() >= {"x": "r", "y": "rw"}.items()


@pytest.mark.parametrize(
    "text",
    [
        f"int main() {{\n{MEMORY}  cudaStream_t s;\n  cudaStreamCreate(&s);\n  cublasSetStream(h, s);\n{CALL}}}\n",
        f"void set(cublasHandle_t h, cudaStream_t s) {{ cublasSetStream(h, s); }}\nint main() {{\n{MEMORY}{CALL}}}\n",
        f"void work(cublasHandle_t h, float* x, float* y) {{\n  float a = 1;\n{CALL}}}\n",
        f"cublasHandle_t h;\nvoid work(float* x, float* y) {{\n  float a = 1;\n{CALL}}}\n",
        f"void unseen(cublasHandle_t h);\nint main() {{\n{MEMORY}  unseen(h);\n{CALL}}}\n",
        f"void unseen(cublasHandle_t* h);\nint main() {{\n{MEMORY}  unseen(&h);\n{CALL}}}\n",
        f"int main() {{\n{MEMORY}  cublasSetWorkspace(h, x, 4);\n{CALL}}}\n",
        f"int main(int n, char**) {{\n{MEMORY}  cublasHandle_t other;\n  if (n > 1) h = other;\n{CALL}}}\n",
        f"cublasHandle_t kept;\nvoid unseen();\nint main() {{\n{MEMORY}  kept = h;\n  unseen();\n{CALL}}}\n",
        f"static cublasHandle_t* kept;\ncublasHandle_t given() {{ return *kept; }}\nvoid unseen();\n"
        f"int main() {{\n{MEMORY}  cublasHandle_t copy = h;\n  kept = &copy;\n  unseen();\n{CALL}}}\n",
    ],
    ids=[
        *("stream", "elsewhere", "parameter", "global", "given", "address", "workspace", "another"),
        *("kept in a global", "kept behind a static"),
    ],
)
def test_a_handle_that_is_not_known_makes_a_call_opaque(tmp_path: Path, text: str) -> None:
    site = saxpy(tmp_path, text)
    assert site.kind is SiteKind.CALL
    assert site.foreign


def test_a_function_of_the_user_with_a_librarys_name_is_not_the_librarys(tmp_path: Path) -> None:
    program = tmp_path / "program.cu"
    program.write_text(
        f"{KERNEL}int curandGenerateUniform(int g, float* x, unsigned long n);\n"
        "int curandCreateGenerator(int* g, int t);\n"
        "int main() {\n  float* x;\n  int g;\n  cudaMalloc(&x, 4);\n  curandCreateGenerator(&g, 1);\n"
        "  curandGenerateUniform(g, x, 1);\n  return 0;\n}\n"
    )
    (main,) = (f for f in compile_file(str(program), Options()).functions if f.region.function == "main")
    assert all(s.foreign for s in main.region.sites if s.label.startswith("curand"))


def test_a_function_of_the_user_with_a_name_of_the_runtimes_may_do_anything(tmp_path: Path) -> None:
    program = tmp_path / "program.cu"
    program.write_text(
        f"{KERNEL}void cudaProfilerStart(float* x);\n"
        "int main() {\n  float *x, *y;\n  cudaMalloc(&x, 4), cudaMalloc(&y, 4);\n"
        "  k<<<1, 1>>>(x);\n  k<<<1, 1>>>(y);\n  cudaProfilerStart(x);\n  k<<<1, 1>>>(x);\n  k<<<1, 1>>>(y);\n"
        "  return 0;\n}\n"
    )
    (main,) = (f for f in compile_file(str(program), Options()).functions if f.region.function == "main")
    (site,) = (s for s in main.region.sites if s.label.startswith("cudaProfilerStart"))
    assert (site.role, site.foreign) == (Role.JOIN, True)
