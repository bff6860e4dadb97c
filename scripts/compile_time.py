"""How long kesco takes in comparison with nvcc's own compile of the same file.

For each workload, both programs take turns; the table gives the medians and their ratio, start of the process included.
With --cold kesco finds an empty cache each time, as on its very first run.

    python scripts/compile_time.py [--repeat 5] [--style serial] [--cold]
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kesco.errors import ToolchainError
from kesco.toolchain.compile import architectures
from kesco.toolchain.discover import discover

ROOT = Path(__file__).resolve().parent.parent / "workloads"
NAMES = ("vec", "bs", "img", "ml", "hits", "dl", "m1", "m2")


def seconds(command: list[str], cache: str = "") -> float:
    """How long a command takes, with a cache folder of its own if one is named; it must succeed."""
    if cache:
        shutil.rmtree(cache, ignore_errors=True)
    environ = {**os.environ, **({"XDG_CACHE_HOME": cache} if cache else {})}
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    taken = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return taken


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=5, metavar="N")
    parser.add_argument("--style", choices=("serial", "managed"), action="append", help="default: both")
    parser.add_argument("--cold", action="store_true", help="with an empty cache each time")
    parser.add_argument("names", nargs="*", default=NAMES, metavar="WORKLOAD")
    given = parser.parse_args()
    try:
        toolchain = discover()
    except ToolchainError as problem:
        sys.exit(str(problem))
    if toolchain.nvcc is None:
        sys.exit("no nvcc found: see 'kesco doctor'")
    include = [part for folder in toolchain.cuda_include for part in ("-isystem", str(folder))]
    nvcc = [str(toolchain.nvcc), f"-arch={architectures(toolchain)[0]}", "-std=c++17", "-O2", *include]
    ratios = []
    write(f"{'program':16} {'kesco':>8} {'nvcc':>8} {'ratio':>6}   seconds, median of {given.repeat}, taking turns")
    with tempfile.TemporaryDirectory(prefix="kesco-time-") as folder:
        for name in given.names:
            for style in given.style or ("serial", "managed"):
                source = ROOT / name / f"{style}.cu"
                kesco = [sys.executable, "-m", "kesco", "compile", str(source), "-o", f"{folder}/out.cu", "--quiet"]
                plain = [*nvcc, "-c", str(source), "-o", f"{folder}/out.o"]
                cache = f"{folder}/cache" if given.cold else ""
                pairs = [(seconds(kesco, cache), seconds(plain)) for _ in range(given.repeat + 1)][1:]
                ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
                ratios.append(ours / theirs)
                write(f"{name + '/' + style:16} {ours:8.2f} {theirs:8.2f} {ratios[-1]:6.2f}")
    write(f"median ratio {statistics.median(ratios):.2f}, largest {max(ratios):.2f}")


def write(line: str) -> None:
    """One line, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
