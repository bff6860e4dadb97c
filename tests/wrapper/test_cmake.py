"""CMake: kesco-nvcc as its CUDA compiler, and ``find_package(kesco)`` with ``kesco_target``."""

from __future__ import annotations

import shutil

import pytest
from wrapper.building import ROOT, SERIAL, Done, Yard

pytestmark = pytest.mark.skipif(shutil.which("cmake") is None, reason="no cmake")
HEAD = "cmake_minimum_required(VERSION 3.20)\nproject(app LANGUAGES CXX CUDA)\n"
PACKAGE = f"find_package(kesco 0.1 REQUIRED PATHS {ROOT / 'kesco' / 'cmake'} NO_DEFAULT_PATH)\n"


def configure(yard: Yard, text: str, *words: str) -> Done:
    yard.write("CMakeLists.txt", HEAD + text)
    return yard.run("cmake", "-S", ".", "-B", "build", "-DCMAKE_CUDA_ARCHITECTURES=75", *words)


def is_concurrent(yard: Yard, program: str) -> bool:
    return b"kesco_streams" in (yard.folder / "build" / program).read_bytes()


@pytest.mark.thorough
def test_kesco_nvcc_as_the_compiler(yard: Yard) -> None:
    yard.write("src/one.cu", SERIAL.replace("fill", "other"))
    text = "add_executable(app src/app.cu src/one.cu src/plain.cpp)\n"
    text += "set_target_properties(app PROPERTIES CUDA_SEPARABLE_COMPILATION ON)\n"
    done = configure(yard, text, "-DCMAKE_CUDA_COMPILER=kesco-nvcc")
    assert done.code == 0, done.err
    assert "NVIDIA" in done.out and "Check for working CUDA compiler" in done.out
    done = yard.run("cmake", "--build", "build")
    assert done.code == 0, done.out + done.err
    assert is_concurrent(yard, "app")
    yard.write("src/sizes.h", yard.read("src/sizes.h") + "// changed\n")
    again = yard.run("cmake", "--build", "build", "--verbose")
    assert "src/app.cu" in again.out and "src/plain.cpp.o -c" not in again.out
    assert yard.run("build/app").out.count("app.cu:") == 5


def test_one_target_of_two(yard: Yard) -> None:
    targets = ("one", "two", "three")
    text = PACKAGE + "".join(f"add_library({name} OBJECT src/app.cu)\n" for name in targets)
    text += "kesco_target(one FIKIT)\nkesco_target(three STREAMS 1)\n"
    done = configure(yard, text)
    assert done.code == 0, done.err
    done = yard.run("cmake", "--build", "build")
    assert done.code == 0, done.out + done.err
    results = [f"CMakeFiles/{name}.dir/src/app.cu.o" for name in targets]
    assert [is_concurrent(yard, result) for result in results] == [True, False, False]
    hooked = [b"kesco_launch_before" in (yard.folder / "build" / result).read_bytes() for result in results]
    assert hooked == [True, False, False]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("kesco_target(app STREAMS 65)", "from 1 to 64"),
        ("kesco_target(app STREAMS many)", "from 1 to 64"),
        ("kesco_target(app STREAMS)", "STREAMS n"),
        ("kesco_target(app FAST)", "'FAST'"),
        ("kesco_target(nothing)", "no target 'nothing'"),
        ("set_property(TARGET app PROPERTY CUDA_COMPILER_LAUNCHER ccache)\nkesco_target(app)", "a compiler launcher"),
        ("find_package(kesco 0.2 REQUIRED PATHS ${kesco_DIR} NO_DEFAULT_PATH)", "0.2"),
    ],
)
def test_what_makes_no_sense_is_told(call: str, said: str, yard: Yard) -> None:
    yard.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.20)\nproject(app LANGUAGES NONE)\n" + PACKAGE
               + "add_library(app INTERFACE)\nadd_custom_target(x)\n" + "set(kesco_DIR_was ${kesco_DIR})\n"
               + (f"unset(kesco_DIR CACHE)\n{call}\n" if "find_package" in call else f"{call}\n"))  # fmt: skip
    done = yard.run("cmake", "-S", ".", "-B", "build")
    assert done.code != 0
    assert said in " ".join(done.err.split())


def test_the_version_is_that_of_the_package() -> None:
    from kesco import __version__

    assert f'"{__version__}"' in (ROOT / "kesco/cmake/kescoConfigVersion.cmake").read_text()
