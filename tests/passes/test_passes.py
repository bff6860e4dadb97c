"""The plugins: they build without a warning, lit's tests of them pass, `KernelEffects` agrees with kesco's analysis.

Skipped where there is no CMake or no LLVM of 18 or newer to build against.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from wrapper.building import clang_command

from kesco.analysis.effects import kernel_effects
from kesco.bench.programs import examples
from kesco.options import Options
from kesco.session import device_ir_of, toolchain_for
from kesco.toolchain.model import Toolchain

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LLVM = 22  # which reads all that kesco's clang makes
GOLDEN = sorted(ROOT.glob("tests/golden/*/input.cu"))[:: 1 if os.environ.get("KESCO_THOROUGH") else 12]
SAMPLES = sorted([*ROOT.glob("workloads/*/serial.cu"), *examples(ROOT), *GOLDEN])


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folders of the plugins and of the LLVM tools that load them."""
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("no CMake")
    ours = tmp_path_factory.getbasetemp()  # of this worker: beside it is what all workers of the run share
    folder = (ours.parent if "PYTEST_XDIST_WORKER" in os.environ else ours) / "kesco-passes"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:  # several workers build in one folder, one after the other
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _build(cmake, folder)


def _build(cmake: str, folder: Path) -> tuple[Path, Path]:
    options = [f"-DLLVM_DIR={os.environ['KESCO_LLVM_DIR']}"] if "KESCO_LLVM_DIR" in os.environ else []
    made = subprocess.run(
        [cmake, "-S", ROOT, "-B", folder, "-DKESCO_WERROR=ON", *options], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    tools = folder / "passes" / "llvm_tools.txt"
    if not tools.is_file():
        pytest.skip(next((line for line in made.stdout.splitlines() if "passes: " in line), "no LLVM"))
    # The other native parts, which nobody warns about, are built where kesco is installed.
    subprocess.run([cmake, "--build", folder, "--target", "kesco_passes"], check=True, stdout=sys.stderr)
    return folder / "passes", Path(tools.read_text().strip())


def test_an_llvm_that_is_too_old_is_not_looked_at(tmp_path: Path) -> None:
    """Debian's LLVM 14 cannot even be looked at without a C compiler; it must not keep kesco from being installed."""
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("no CMake")
    old = tmp_path / "lib" / "cmake" / "llvm"
    old.mkdir(parents=True)
    (old / "LLVMConfig.cmake").write_text('message(FATAL_ERROR "looked at")\n')
    (old / "LLVMConfigVersion.cmake").write_text(
        'set(PACKAGE_VERSION "14.0.6")\nset(PACKAGE_VERSION_COMPATIBLE FALSE)\n'
    )
    made = subprocess.run(
        [cmake, "-S", ROOT, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={tmp_path}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert "passes: " in made.stdout


def _programs(plugins: Path, tools: Path, toolchain: Toolchain) -> Path:
    """The folder of the programs that the tests of ScheduleAction start; not there where they cannot be run."""
    folder = plugins / "programs"
    clang = tools / "clang"
    if not (plugins / "libkesco.so").is_file() or not clang.is_file():
        return folder
    folder.mkdir(exist_ok=True)
    python = f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
    command = shlex.join(clang_command(toolchain, [str(clang)]))
    for name, text in (
        ("clang++", f'#!/bin/sh\nexec {command} "$@"\n'),
        ("kesco", f"{python}from kesco.cli import main\nmain()\n"),
        ("kesco-clang++", f"{python}from kesco.wrapper.front import clang\nclang()\n"),
    ):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    empty = plugins / "empty.cu"
    empty.write_text("__global__ void nothing() {}\n")
    trial = [folder / "clang++", "--cuda-gpu-arch=sm_75", "-c", empty, "-o", plugins / "empty.o"]
    if subprocess.run(trial, capture_output=True, check=False).returncode:
        shutil.rmtree(folder)  # a clang of another version than the CUDA headers are for
    return folder


def test_lit(built: tuple[Path, Path], toolchain: Toolchain) -> None:
    plugins, tools = built
    lit = Path(sys.executable).with_name("lit")
    programs = _programs(plugins, tools, toolchain)
    command = [lit, "-v", f"-Dplugins={plugins}", f"-Dtools={tools}", f"-Dprograms={programs}", HERE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda p: f"{p.parent.parent.name}-{p.parent.name}-{p.stem}")
def test_access_modes_agree(sample: Path, built: tuple[Path, Path], tmp_path: Path) -> None:
    plugins, tools = built
    options = Options()
    flags = sample.parent / "cuda" / "include"
    if flags.is_dir():
        options = Options(flags=("-I", str(flags)))
    ir = device_ir_of(toolchain_for(options), str(sample), options)
    module = tmp_path / "device.ll"
    module.write_text(ir)
    command = [tools / "opt", "-load-pass-plugin", plugins / "KernelEffects.so", "-passes=kernel-effects"]
    done = subprocess.run([*command, "-disable-output", module], capture_output=True, text=True, check=False)
    if done.returncode and f"/llvm-{LLVM}" not in str(tools):
        pytest.skip("this LLVM is older than the clang that made the device code")
    assert done.returncode == 0, done.stderr
    theirs = {one["name"]: one["parameters"] for one in json.loads(done.stdout)["kernels"]}
    ours = {one.name: one for one in kernel_effects(ir)}
    assert theirs.keys() == ours.keys()
    for name, effects in ours.items():
        if effects.opaque:
            continue
        known = {param.index: dict(param.fields).get(0) for param in effects.params}
        for parameter in theirs[name]:
            if parameter.get("by_value") or parameter["escapes"]:
                continue
            root = known.get(parameter["index"])
            assert parameter["mode"] == (root.direct.text if root is not None else "-"), (name, parameter)
