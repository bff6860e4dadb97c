"""The script behind docs/breadth.md says of each file what kesco says, whether it was rewritten, left or refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from kesco.toolchain.model import Toolchain

HEAD = """#include "sizes.h"
__global__ void fill(float* p) { p[threadIdx.x] = 1; }
int main() {
  float *a, *b;
  cudaMalloc(&a, N * 4);
  cudaMalloc(&b, N * 4);
"""
TAIL = "  cudaDeviceSynchronize();\n}\n"


def run(repository: Path, folder: Path, *options: str) -> tuple[list[str], list[dict[str, object]]]:
    log = folder.parent / "said.json"
    command = [sys.executable, str(repository / "scripts/breadth.py"), str(folder), "--json", str(log), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return sorted(done.stdout.splitlines()), json.loads(log.read_text("utf-8"))


def test_each_file_has_its_line(repository: Path, tmp_path: Path, toolchain: Toolchain) -> None:
    folder = tmp_path / "programs"
    (folder / "Common").mkdir(parents=True)
    (folder / "Common/sizes.h").write_text("#define N 64\n", "utf-8")  # found without a flag
    (folder / "chain.cu").write_text(f"{HEAD}  fill<<<1, N>>>(a);\n  fill<<<1, N>>>(a);\n{TAIL}", "utf-8")
    (folder / "old.cu").write_text(f"{HEAD}  fill<<<1, N>>>(a);\n  cudaThreadExit();\n{TAIL}", "utf-8")
    (folder / "two.cu").write_text(f"{HEAD}  fill<<<1, N>>>(a);\n  fill<<<1, N>>>(b);\n{TAIL}", "utf-8")
    (folder / "host.cu").write_text("int main() {}\n", "utf-8")

    lines, said = run(repository, folder, "--launching")
    assert [line.split(" | ")[:3] for line in lines] == [
        ["chain.cu", "0", "-"],
        ["old.cu", "3", "-"],
        ["two.cu", "0", "main: 2 operations, 2 streams, 0 waits"],
    ]
    assert "K204 'main' stays serial" in lines[0]
    assert "K100 use of undeclared identifier 'cudaThreadExit'" in lines[1]
    assert [(row["program"], row["tail"]) for row in said] == [("chain.cu", ""), ("old.cu", ""), ("two.cu", "")]

    again, _ = run(repository, folder, "--resume")
    assert [line.split(" | ")[0] for line in again] == ["host.cu"], "the rest is kept"
    healed, _ = run(repository, folder, "--only", "old", "--flag=-DcudaThreadExit=cudaDeviceReset")
    assert healed[0].split(" | ")[:2] == ["old.cu", "0"]
    refused, _ = run(repository, folder, "--only", "two", "--flag=-fnonsense")
    assert refused[0].startswith("two.cu | 3 | - | K"), "what has no line is said, too"
