"""What FIKIT's client adds to a launch, without a GPU: the driver is the tests' own, which only tells the time.

    python3 scripts/fikit/launch_cost.py [--rounds 7] [--kernels 200]

The ways take turns; the median of each way's medians is printed, in nanoseconds for each launch.
"""
# ruff: noqa: T201, D103

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from kesco.fikit import programs, serving  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--launches", type=int, default=200_000)
    parser.add_argument("--kernels", type=int, default=200)
    given = parser.parse_args()
    client, daemon = programs.client(), programs.daemon()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fake = str(ROOT / "tests/fikit/fake_driver.cpp")
        common = ("g++", "-O2", "-std=c++17")
        shared = ("-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", f"{folder}/libcuda.so.1")
        subprocess.run((*common, *shared, fake, "-ldl"), check=True)
        program = f"{folder}/launch_cost"
        subprocess.run((*common, str(ROOT / "scripts/fikit/launch_cost.cpp"), "-o", program, "-ldl"), check=True)
        subprocess.run((*common, str(ROOT / "tests/fikit/task.cpp"), "-o", f"{folder}/task", "-ldl", "-lpthread"),
                       check=True)  # fmt: skip
        plain = dict(os.environ) | {"LD_LIBRARY_PATH": name}
        asked = serving.environment(client, {"SOCKET": f"{folder}/s", "PRIORITY": "9"}, plain)
        low = serving.environment(client, {"SOCKET": f"{folder}/s", "PRIORITY": "1"}, plain)
        command = [program, str(given.launches), str(given.kernels)]

        def once(env: dict[str, str]) -> float:
            return float(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.split()[0])

        found: dict[str, list[float]] = {}
        for _ in range(given.rounds):
            found.setdefault("plain", []).append(once(plain))
            found.setdefault("loaded, not asked for", []).append(once(plain | {"LD_PRELOAD": str(client)}))
            found.setdefault("no daemon", []).append(once(asked))
            serve = subprocess.Popen([str(daemon), "--socket", f"{folder}/s"], stdout=subprocess.PIPE)
            assert serve.stdout
            serve.stdout.readline()
            try:
                found.setdefault("attached, alone", []).append(once(asked))
                other = subprocess.Popen([f"{folder}/task", "1000", "1", "1", "50000"], env=low, stdout=-3)
                time.sleep(0.2)
                found.setdefault("attached, beside a lower task", []).append(once(asked))
                other.kill()
                other.wait()
            finally:
                serve.terminate()
                serve.wait()
        base = statistics.median(found["plain"])
        for way, times in found.items():
            middle = statistics.median(times)
            print(f"{way:32} {middle:8.1f} ns a launch, {middle - base:+8.1f}, least {min(times):.1f}")


main()
