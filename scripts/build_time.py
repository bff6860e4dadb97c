"""What a build costs with kesco-nvcc in comparison with nvcc: wall and processor time, from the same commands.

In: a shell command that builds (``{nvcc}`` in it stands for the compiler), and one that cleans. The builds take turns:
plain, kesco with an empty cache, kesco with what that one kept. Processor time is that of everything the command
started, also of what was ended half-way: this process becomes the one that orphans go to, and waits for them. On a
machine that others use, the processor time is what to compare. kesco's own modules are compiled before, as pip does
when it installs them: with PYTHONDONTWRITEBYTECODE a checkout would be compiled anew for each file of the build.

    python scripts/build_time.py 'make -j2 NVCC={nvcc}' --clean 'make clean' --folder src [--rounds 3]
"""

from __future__ import annotations

import argparse
import compileall
import ctypes
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import kesco

_PR_SET_CHILD_SUBREAPER = 36
WAYS = ("plain", "cold", "warm")


def spent(command: str, folder: str, environ: dict[str, str]) -> tuple[float, float]:
    """Wall and processor seconds of a shell command and all that came from it; it must succeed."""
    before, began = os.times(), time.perf_counter()
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(command, shell=True, cwd=folder, env=environ, stdout=said, stderr=said)
        status = child.wait()
        wall = time.perf_counter() - began
        while True:  # orphans, too
            try:
                os.wait()
            except ChildProcessError:
                break
        after = os.times()
        if status:
            said.seek(0)
            sys.exit(f"{command}\n{said.read().decode(errors='replace')[-4000:]}")
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, used


def main() -> None:
    """Build in turns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("build", help="the command; {nvcc} is the compiler")
    parser.add_argument("--clean", required=True, help="the command that removes what was built")
    parser.add_argument("--folder", default=".", help="where both run")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--nvcc", default=shutil.which("nvcc"))
    parser.add_argument("--kesco", default=shutil.which("kesco-nvcc"))
    given = parser.parse_args()
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    compileall.compile_dir(Path(kesco.__file__).parent, quiet=1)
    times: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for _ in range(given.rounds):
        with tempfile.TemporaryDirectory(prefix="kesco-build-") as cache:
            environ = {**os.environ, "XDG_CACHE_HOME": cache}
            for way in WAYS:
                spent(given.clean.replace("{nvcc}", given.nvcc), given.folder, environ)
                compiler = given.nvcc if way == "plain" else given.kesco
                times[way].append(spent(given.build.replace("{nvcc}", compiler), given.folder, environ))
                entries = len(list(Path(cache).glob("kesco/build/*/*")))
                sys.stderr.write(
                    f"{way}: {times[way][-1][0]:.1f} s wall, {times[way][-1][1]:.1f} s, {entries} entries\n"
                )
    sys.stdout.write(f"{'':8}{'wall':>8}{'ratio':>7}{'processor':>11}{'ratio':>7}   medians of {given.rounds}\n")
    middle = {way: [statistics.median(column) for column in zip(*found, strict=True)] for way, found in times.items()}
    for way, (wall, used) in middle.items():
        plain = middle["plain"]
        sys.stdout.write(f"{way:8}{wall:8.1f}{wall / plain[0]:7.2f}{used:11.1f}{used / plain[1]:7.2f}\n")


if __name__ == "__main__":
    main()
