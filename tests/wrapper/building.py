"""What the tests of the build programs share: a folder with sources, and the programs run in it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import kesco
from kesco.toolchain.compile import host_arguments
from kesco.toolchain.model import Toolchain

ROOT = Path(kesco.__file__).resolve().parent.parent

CONCURRENT = """\
#include <cuda_runtime.h>
#include <cassert>
#include <cstdio>
#include "sizes.h"

__global__ void fill(float* out, float value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  assert(n >= 0);
  if (i < n) out[i] = value;
}

__global__ void add(const float* a, const float* b, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}

int main() {
  const int n = SIZE;
  float *x, *y, *z;
  std::printf("%s:%d\\n", __FILE__, __LINE__);
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  cudaMalloc(&z, n * sizeof(float));
  std::printf("%s:%d\\n", __FILE__, __LINE__);
  fill<<<64, 256>>>(x, 1.0f, n);
  std::printf("%s:%d\\n", __FILE__, __LINE__);
  fill<<<64, 256>>>(y, 2.0f, n);
  std::printf("%s:%d\\n", __FILE__, __LINE__);
  add<<<64, 256>>>(x, y, z, n);
  std::printf("%s:%d %s:%d\\n", __FILE__, __LINE__, where, line);
  std::printf("%s %s\\n", __BASE_FILE__, __BASE_FILE__);
  cudaDeviceSynchronize();
  return 0;
}
"""
SIZES = "#pragma once\n#define SIZE 65536\nstatic const char* where = __FILE__;\nconst int line = __LINE__;\n"
SERIAL = """\
#include <cuda_runtime.h>
#include "sizes.h"
__global__ void fill(float* out, float value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = value;
}
void twice(float* x) {
  fill<<<64, 256>>>(x, 1.0f, SIZE);
  fill<<<64, 256>>>(x, 2.0f, SIZE);
}
int unused() { int nothing; return where != nullptr; }
"""
PLAIN = "int plain() { return 1; }\n"
_PROGRAMS = {"kesco-nvcc": "nvcc", "kesco-clang++": "clang", "kesco-launch": "launch"}


@dataclass(frozen=True)
class Done:
    """What a program returned and said."""

    code: int
    out: str
    err: str


class Yard:
    """A folder with sources in ``src/``, and what is needed to build there."""

    def __init__(self, folder: Path, cache: Path, cuda: Path) -> None:
        self.folder, self.cache, self.cuda = folder / "yard", cache, cuda
        (self.folder / "src").mkdir(parents=True)
        self.programs = folder / "programs"
        self.programs.mkdir()
        for name, function in _PROGRAMS.items():
            path = self.programs / name
            path.write_text(
                f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
                f"from kesco.wrapper.front import {function}\nsys.exit({function}())\n"
            )
            path.chmod(0o755)
        for name, text in (("app.cu", CONCURRENT), ("one.cu", SERIAL), ("sizes.h", SIZES), ("plain.cpp", PLAIN)):
            self.write(f"src/{name}", text)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def script(self, name: str, text: str) -> Path:
        """A program of the test's own."""
        path = self.programs / name
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return path

    def counting(self, quick: bool = False) -> tuple[Path, Path]:
        """An nvcc of the test's own and its log, where each start leaves a line; always the same program.

        A quick one only preprocesses, by the host compiler that kesco stands in front of: enough to see what kesco
        finds out anew and what it takes from the cache.
        """
        program = self.programs / f"counting-{quick:d}-nvcc"
        log = self.folder.parent / "nvcc.log"
        if not program.exists():
            real = shutil.which("nvcc", path=self.environment()["PATH"])
            lines = [f'echo "$*" >> {log}', f'case " $* " in *" --dryrun "*) exec {real} "$@";; esac']
            lines += [f'exec g++ -E -x c++ -I {self.cuda / "include"} "$@"' if quick else f'exec {real} "$@"']
            self.script(program.name, "\n".join(lines) + "\n")
        return program, log

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        # Python keeps bytecode, as an installed kesco has it: else half of the time goes into reading sources.
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("KESCO", "NVCC_", "PYTHONDONTWRITE"))}
        path = [str(self.programs), os.environ["PATH"]]
        path += [] if shutil.which("nvcc") else [str(self.cuda / "bin")]
        libraries = [*filter(None, [os.environ.get("LIBRARY_PATH")]), str(self.cuda / "lib")]  # of the wheels
        kept |= {"PATH": os.pathsep.join(path), "LIBRARY_PATH": os.pathsep.join(libraries)}
        return {**kept, "XDG_CACHE_HOME": str(self.cache), **(more or {})}

    def run(self, *words: str, env: Mapping[str, str] | None = None, cwd: str = ".") -> Done:
        done = subprocess.run(
            words, cwd=self.folder / cwd, env=self.environment(env), capture_output=True, text=True, check=False,
            timeout=300,
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)

    def start(self, *words: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            words, cwd=self.folder, env=self.environment(env), start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def wait_for_all(self) -> None:
        """Wait until no process works in the folder: what a killed one had started goes on for a while."""
        end = time.monotonic() + 60
        while any(_works_in(process, self.folder) for process in Path("/proc").glob("[0-9]*")):
            assert time.monotonic() < end, "something does not end"
            time.sleep(0.05)

    def files(self) -> set[str]:
        """All files but those of the sources."""
        found = (p.relative_to(self.folder) for p in self.folder.rglob("*") if p.is_file())
        return {str(p) for p in found if p.parts[0] != "src"}

    def data(self, name: str) -> bytes:
        """The bytes of a result, without the number of the process by which nvcc names its temporary files."""
        return unnumbered((self.folder / name).read_bytes())

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()


def clang_command(toolchain: Toolchain, clang: Sequence[str]) -> list[str]:
    """A clang++ that compiles CUDA with the headers of a toolchain."""
    given = [w for w in host_arguments(toolchain) if w not in ("-x", "cuda", "-w", "--cuda-host-only", "-nocudalib")]
    given = [w for w in given if not w.startswith(("-D__", "-ferror"))]
    return [*clang, "--driver-mode=g++", *given]


def _works_in(process: Path, folder: Path) -> bool:
    try:
        return (process / "cwd").readlink() == folder
    except OSError:  # it has ended, or is somebody else's
        return False


def unnumbered(data: bytes) -> bytes:
    return re.sub(rb"tmpxft_[0-9a-f]{8}_", b"tmpxft_00000000_", data)
