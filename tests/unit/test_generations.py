"""For which architectures a text is read when none is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.toolchain import generations
from kesco.toolchain.compile import device_ir
from kesco.toolchain.generations import told_apart
from kesco.toolchain.model import Toolchain


@pytest.mark.parametrize(
    ("text", "cuda", "expected"),
    [
        (b"__global__ void k() {}  // 800", "13.0", ("sm_90",)),
        (b"#if defined(__CUDA_ARCH__) && 800\n#ifdef __CUDA_ARCH__\n#ifndef __CUDA_ARCH__\n", "13.0", ("sm_90",)),
        (b"#if __CUDA_ARCH__ >= 800\n", "13.0", ("sm_90", "sm_75", "sm_80")),
        (b"#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800u\n", "13.0", ("sm_90", "sm_75", "sm_80")),
        (b"#define NEW 900\nbool b = __CUDA_ARCH__ >= NEW;\n", "13.0", ("sm_90", "sm_89", "sm_100")),
        (b"#if __CUDA_ARCH__ / 10 >= 89\n", "13.0", ("sm_90", "sm_87", "sm_89")),
        (b"#if __CUDA_ARCH__ >= 890\n", "13.0", ("sm_90", "sm_87", "sm_89")),
        (b"#if __CUDA_ARCH__ >= 600\n", "13.0", ("sm_90",)),
        (b"#if __CUDA_ARCH__ >= 600\n", "12.4", ("sm_90", "sm_53", "sm_60")),
        (b"#if __CUDA_ARCH__ > 1000\n", "13.0", ("sm_90", "sm_100", "sm_103")),
        (b"#if __CUDA_ARCH__ > 1000\n", "12.8", ("sm_90", "sm_100", "sm_101")),
        (b"#if __CUDA_ARCH__ > 1000\n", "12.4", ("sm_90",)),
        (b"#if __CUDA_ARCH__ >= 1010 && __CUDA_ARCH__ < 1030\n", "13.0", ("sm_90", "sm_103", "sm_120")),
    ],
)
def test_one_architecture_for_each_meaning(text: bytes, cuda: str, expected: tuple[str, ...]) -> None:
    assert told_apart([b"int a;", text], cuda, "sm_90") == expected


@pytest.mark.parametrize(
    ("text", "flags", "expected"),
    [
        (b"__global__ void k(float* sm_80) {}", "", ()),
        (b"#if __CUDA_ARCH__ >= 800\n", "", ("sm_86", "sm_75")),
        (b'#ifdef __CUDA_ARCH__\n#include "device_only.h"\n#endif\n', "", ("sm_86", "sm_75")),
        (b"NV_IF_TARGET(NV_PROVIDES_SM_80, (a();), (b();))", "", ("sm_86", "sm_75")),
        (b"#if FAST\n", "-DFAST=(__CUDA_ARCH__>800)", ("sm_86", "sm_75")),
        (b"", "-include other.h", ("sm_86", "sm_75")),
    ],
)
def test_of_several_that_are_named_the_others_count_where_the_text_may_ask(
    toolchain: Toolchain, text: bytes, flags: str, expected: tuple[str, ...]
) -> None:
    named = ["-gencode=arch=compute_75,code=sm_75", "-arch=sm_89", "--gpu-code=sm_86", "-arch=sm_86"]
    found = generations.architectures_read(toolchain, [*named, *flags.split()], [b"int a;", text])
    assert found[1:] == expected


@pytest.mark.thorough
def test_clang_reads_every_architecture_that_may_be_chosen(toolchain: Toolchain, tmp_path: Path) -> None:
    """The toolkit of version 13 calls 110 what was 101 before, and clang refuses the old name there."""
    source = tmp_path / "a.cu"
    source.write_text("__global__ void k() {}\n")
    seen: dict[str, None] = {}
    for bound in (one * 10 + more for one in generations._KNOWN for more in (0, 5)):
        for arch in told_apart([f"#if __CUDA_ARCH__ > {bound}\n".encode()], toolchain.cuda_version, toolchain.arch):
            seen.setdefault(arch, None)
    assert len(seen) > 8
    for arch in seen:
        assert "define" in device_ir(toolchain, source, arch=arch), arch


@pytest.mark.parametrize("arch", ["sm_87", "sm_88", "sm_103", "sm_110"])
def test_a_source_is_read_as_for_its_architecture_where_clang_22_crashes_for_it(
    toolchain: Toolchain, tmp_path: Path, arch: str
) -> None:
    """Clang 22 crashes at any source for 88 and 110, so it reads for the one before, with their value of the macro."""
    source = tmp_path / "a.cu"
    source.write_text("__global__ void k(int* p) { *p = __CUDA_ARCH__; }\n")
    expected = f"store i32 {arch.removeprefix('sm_')}0,"
    assert expected in device_ir(toolchain, source, arch=arch)
    assert expected in device_ir(toolchain, source, [f"-arch={arch}"])
