"""``kesco-clang++`` in the place of clang++."""

from __future__ import annotations

import os
import shlex
import subprocess

import pytest
from wrapper.building import Yard, clang_command
from wrapper.test_headers import KERNELS, MAIN, STEPS, headers

from kesco.toolchain.model import Toolchain


@pytest.fixture(scope="module")
def clang(common_yard: Yard, toolchain: Toolchain) -> dict[str, str]:
    """The toolchain's clang with the headers that it needs, as one program."""
    yard = common_yard
    program = yard.script("clang++", f'exec {shlex.join(clang_command(toolchain, toolchain.clang))} "$@"\n')
    trial = [str(program), "--cuda-gpu-arch=sm_75", "-c", "src/one.cu", "-o", "one.o"]
    done = subprocess.run(trial, cwd=yard.folder, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"this clang does not compile CUDA to an object: {done.stderr.splitlines()[:1]}")
    return {"KESCO_CLANGXX": str(program)}


LINES = ["-g"] if os.environ.get("KESCO_THOROUGH") else []  # with it clang's own results differ from each other


@pytest.mark.thorough
def test_a_rewritten_program_says_the_same_and_is_the_same_again(yard: Yard, clang: dict[str, str]) -> None:
    words = ("--cuda-gpu-arch=sm_75", *LINES, "-c", "src/app.cu", "-o", "app.o", "-MD", "-MF", "app.d")
    done = yard.run("kesco-clang++", *words, env=clang)
    assert (done.code, done.err) == (0, "")
    data = (yard.folder / "app.o").read_bytes()
    assert b"cudaStreamWaitEvent" in data
    assert b"overlay.json" not in data
    assert yard.read("app.d").startswith("app.o: src/app.cu")
    assert "overlay" not in yard.read("app.d") and "/kesco-" not in yard.read("app.d")
    assert yard.run("nvcc", "app.o", "-o", "ours").code == 0
    assert yard.run("nvcc", "src/app.cu", "-o", "plain").code == 0
    assert yard.run("./ours").out == yard.run("./plain").out
    assert yard.run("kesco-clang++", *words, env=clang).code == 0
    assert LINES or (yard.folder / "app.o").read_bytes() == data


@pytest.mark.parametrize("words", ["-c src/one.cu src/plain.cpp", "-c src/none.cu", "-v", ""])
def test_what_stays_is_what_clang_makes(words: str, yard: Yard, clang: dict[str, str]) -> None:
    plain = yard.run(clang["KESCO_CLANGXX"], "--cuda-gpu-arch=sm_75", *words.split())
    files = {name: (yard.folder / name).read_bytes() for name in yard.files()}
    ours = yard.run("kesco-clang++", "--cuda-gpu-arch=sm_75", *words.split(), env=clang)
    assert (ours.code, ours.out, ours.err) == (plain.code, plain.out, plain.err)
    assert files == {name: (yard.folder / name).read_bytes() for name in yard.files()}


def test_an_edited_header_stands_in_the_place_of_the_users(yard: Yard, clang: dict[str, str]) -> None:
    for name, text in (("app.cu", MAIN), ("parts/steps.cuh", STEPS), ("parts/kernels.cuh", KERNELS)):
        yard.write(f"src/{name}", text)
    yard.write("src/parts/sizes.h", "#define SIZE 65536\n")
    words = ("--cuda-gpu-arch=sm_75", "-c", "src/app.cu", "-MD")
    assert yard.run(clang["KESCO_CLANGXX"], *words, "-o", "plain.o", "-MF", "plain.d", "-MT", "app.o").code == 0
    done = yard.run("kesco-clang++", *words, "-o", "app.o", "-MF", "app.d", "-MT", "app.o", env=clang)
    assert (done.code, done.err) == (0, "")
    assert b"cudaStreamCreate" in yard.data("app.o") and b"/kesco-" not in yard.data("app.o")
    assert headers(yard, "app.d") == headers(yard, "plain.d")
    assert yard.run("nvcc", "app.o", "-o", "ours").code == yard.run("nvcc", "plain.o", "-o", "plain").code == 0
    assert yard.run("./ours").out == yard.run("./plain").out != ""
