"""When a block of the host's memory is pinned: the class of the prologue, with a runtime that only counts."""

from __future__ import annotations

import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

DRIVER = r"""#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <malloc.h>
#include <mutex>
#include <unistd.h>
#include <utility>
#include <vector>
enum cudaError_t { cudaSuccess, wrong };
enum { cudaHostRegisterDefault };
int made = 0, gone = 0, waits = 0;
cudaError_t pending = cudaSuccess, result = cudaSuccess;
cudaError_t cudaHostRegister(void*, std::size_t, int) { return ++made, result; }
cudaError_t cudaHostUnregister(void*) { return ++gone, cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return pending; }
cudaError_t cudaGetLastError() { return std::exchange(pending, cudaSuccess); }
cudaError_t cudaDeviceSynchronize() { return ++waits, cudaSuccess; }
PINS
constexpr std::size_t MiB = std::size_t{1} << 20;
bool kesco_by_threads(std::size_t bytes) { return bytes >= 8 * MiB; }

int main() {
  int one = 0, two = 0;
  std::vector<char> large(64 * MiB);
  KescoPins::offer(&one, large.data(), large.size());
  std::size_t at = 0;  // a pass over it in pieces of 256 KiB
  while (KescoPins::of(&large[at], MiB / 4) == nullptr && at < large.size() - MiB) at += MiB / 4;
  std::printf("large: %.2f MiB first, %d\n", static_cast<double>(at) / MiB, made);
  std::printf("over its end: %d\n", KescoPins::of(&large[large.size() - 5], 6) != nullptr);
  KescoPins::wait();
  std::printf("waits: %d, %d\n", waits, KescoPins::told());
  KescoPins::release(&two, cudaSuccess);
  std::printf("another loop: %d\n", gone);
  KescoPins::release(&one, wrong);
  KescoPins::wait();  // who waits for what is read does not hear of it
  std::printf("its own: %d, %d, %d", gone, waits, KescoPins::told());
  std::printf(" %d; %d\n", KescoPins::told(), KescoPins::of(&large[at], 8) != nullptr);

  KescoPins::offer(&one, large.data(), large.size());
  int parts = 0;  // what threads copy is pinned when it is copied again
  while (KescoPins::of(&large[parts % 8 * 8 * MiB], 8 * MiB) == nullptr && parts < 100) ++parts;
  std::printf("by threads: %d parts of 8 first\n", parts);
  KescoPins::release(&one, cudaSuccess);
  made = 1, gone = 1;

  char* block = static_cast<char*>(std::malloc(MiB));  // numbers, one by one
  KescoPins::offer(&one, block, 0);
  std::printf("inside: %d\n", KescoPins::of(block + 8, 8) != nullptr);  // it is not known yet whether it is there
  int numbers = 1;
  while (KescoPins::of(block, 8) == nullptr && numbers < 1000) ++numbers;
  std::printf("small: %d numbers, %d\n", numbers, KescoPins::of(block + MiB - 8, 8) == block);
  KescoPins::release(&one, cudaSuccess);

  result = wrong;
  KescoPins::offer(&one, large.data(), large.size());
  for (int i = 0; i < 99; ++i) KescoPins::of(large.data(), MiB);
  std::printf("refused: %d more, %d\n", made - 2, gone);
  KescoPins::release(&one, cudaSuccess);
  result = cudaSuccess, pending = wrong;
  KescoPins::offer(&one, large.data(), large.size());
  for (int i = 0; i < 99; ++i) KescoPins::of(large.data(), MiB);
  std::printf("an error: %d more, %d\n", made - 3, pending);
  pending = cudaSuccess;
  KescoPins::release(&one, cudaSuccess);
  KescoPins::offer(&one, large.data(), static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE));
  for (int i = 0; i < 99; ++i) KescoPins::of(large.data(), std::size_t{1} << 60);
  for (int i = 0; i < 9999; ++i) KescoPins::of(large.data(), large.size());
  std::printf("too large: %d more\n", made - 3);
}
"""
SAID = """large: 9.75 MiB first, 1
over its end: 0
waits: 1, 0
another loop: 0
its own: 1, 1, 1 0; 0
by threads: 8 parts of 8 first
inside: 0
small: 35 numbers, 1
refused: 1 more, 2
an error: 0 more, 1
too large: 0 more
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_when_blocks_are_pinned(tmp_path: Path) -> None:
    text = files("kesco.emit").joinpath("templates", "pins.cu.j2").read_text(encoding="utf-8")
    (tmp_path / "pins.cpp").write_text(DRIVER.replace("PINS", text))
    subprocess.run(("g++", "-std=c++17", "-Wall", "-o", tmp_path / "pins", tmp_path / "pins.cpp"), check=True)
    said = subprocess.run((tmp_path / "pins",), capture_output=True, text=True, check=True).stdout
    assert said == SAID
