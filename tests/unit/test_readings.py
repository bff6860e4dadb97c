"""Whether clang and nvcc read a text alike, where there is no g++, and where g++ cannot read it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kesco.frontend.standard import is_standard_path
from kesco.toolchain.model import Toolchain
from kesco.toolchain.readings import differs, without_curand

CHOICE = "#if {0}\nint picked = 1;\n#else\nint picked = 2;\n#endif\n"


def asked(toolchain: Toolchain, folder: Path, text: str, *flags: str) -> str:
    path = folder / "app.cu"
    path.write_text(text)
    return differs(toolchain, str(path), flags, [text.encode()], (toolchain.arch,), is_standard_path)


@pytest.mark.parametrize(
    "condition, alike",
    [
        ("__GNUC__ >= 4", True),
        ("defined(__linux__) && !defined(_WIN32)", True),
        ("defined(__GCCXML__)", True),
        ("__GNUC__ >= 9", False),
        ("defined(__clang__)", False),
        ("defined(__NVCC__)", False),
        ("__cpp_concepts >= 201907L", False),
        ("defined(_GLIBCXX_ATOMIC_BUILTINS)", False),
        ("__has_feature(cxx_rtti)", False),
        ("__has_include(<vector>)", True),
    ],
)
def test_clang_stands_in_for_a_compiler_that_is_not_there(
    toolchain: Toolchain, tmp_path: Path, condition: str, alike: bool
) -> None:
    """What it cannot know is an answer, and so is a version between the oldest and the newest."""
    without = replace(toolchain, gxx="")
    assert (asked(without, tmp_path, CHOICE.format(condition)) == "") == alike


def test_what_an_older_libclang_may_not_have_is_an_answer(toolchain: Toolchain, tmp_path: Path) -> None:
    text = CHOICE.format("__has_builtin(__builtin_trap)")
    older = replace(toolchain, libclang_version="18", gxx="")
    assert asked(older, tmp_path, text) == "it asks for __has_builtin"


def test_the_host_compiler_that_is_named_is_asked(toolchain: Toolchain, tmp_path: Path) -> None:
    text, named = CHOICE.format("__STDC_HOSTED__"), "there-is-none"
    for flags in (("-ccbin", named), (f"--compiler-bindir={named}",)):
        assert named in asked(toolchain, tmp_path, text, *flags)
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "g++").write_text("#!/bin/sh\necho 'this is an error of its own' >&2\nexit 1\n")
    (folder / "g++").chmod(0o755)
    assert "g++ says: this is an error of its own" in asked(toolchain, tmp_path, text, "-ccbin", str(folder))


def test_what_nvcc_defines_for_its_flags(toolchain: Toolchain, tmp_path: Path) -> None:
    for flag, macro in (("--extended-lambda", "__CUDACC_EXTENDED_LAMBDA__"), ("-rdc=true", "__CUDACC_RDC__")):
        text = CHOICE.format(f"defined({macro})")
        assert asked(toolchain, tmp_path, text) == ""
        assert asked(toolchain, tmp_path, text, flag) == "line 2 is another for nvcc than for clang"


def test_curand_is_read_where_the_program_includes_it(tmp_path: Path) -> None:
    """Also by a header of a header, in a folder of its own."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "outer.h").write_text('#include "inner.h"\n')
    (tmp_path / "mine" / "inner.h").write_text("#include <vector>\n")
    path, text = str(tmp_path / "app.cu"), b"#include <outer.h>\n"
    assert without_curand(path, text, ["-I", f"{tmp_path}/mine"]) == ("-DKESCO_NO_CURAND",)
    (tmp_path / "mine" / "inner.h").write_text("#include <curand_kernel.h>\n")
    assert without_curand(path, text, ["-I", f"{tmp_path}/mine"]) == ()
    assert without_curand(path, b"", [f"-I{tmp_path}/mine", "-include", f"{tmp_path}/mine/outer.h"]) == ()
    assert without_curand(path, b"#include <curand.h>\n", []) == ()
    named = b"#ifdef CURAND_H_\nconst char* name(curandStatus_t);\n#endif\n"
    assert without_curand(path, named, []) == ("-DKESCO_NO_CURAND",)
    assert without_curand(path, b"#define HEADER <curand.h>\n# include HEADER\n", []) == ()


def test_pragmas_of_openmp_are_read_alike(toolchain: Toolchain, tmp_path: Path) -> None:
    """With its flag g++ would leave out their lines, and count the others as if they had not been there."""
    loop = "void f(int* a, int n) {\n#pragma omp parallel for\n  for (int i = 0; i < n; i++) a[i] = i;\n}\n"
    for flags in ((), ("-fopenmp",), ("-Xcompiler", "-fopenmp")):
        assert asked(toolchain, tmp_path, CHOICE.format("CUDART_VERSION >= 12000") + loop, *flags) == ""
    assert "is another for nvcc" in asked(toolchain, tmp_path, CHOICE.format("_OPENMP > 201600") + loop, "-fopenmp")
