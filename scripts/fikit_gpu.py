"""FIKIT on a GPU: pairs of tasks under each way of sharing, what it costs, and that results stay the same.

    python3 scripts/fikit_gpu.py --parts smoke                                # two minutes: does all of it work here?
    python3 scripts/fikit_gpu.py --parts overhead,right [--processes 2 --budget 230]
    python3 scripts/fikit_gpu.py --parts kinds [--kinds eager,graph --beside training --ways fikit]
    python3 scripts/fikit_gpu.py --parts pairs [--pairs 1-4,7] [--rounds 3]   # until all is there, call after call

Needs python3 with PyTorch, nvcc and g++. What is found goes to ``$OUT/fikit_gpu.json`` after each round, and what is
found there, in ``--resume`` (default ``.scratch/fikit_gpu.json``) or in the temporary folder of an earlier call on this
machine is not done again; pairs that were measured in another way are. Everything has a time limit, and nothing new
begins after ``--budget`` seconds. ``--fake`` runs all of it without a GPU, with the tests' driver: its numbers mean
nothing.
"""
# ruff: noqa: T201, D102, D103

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts/fikit")]
os.environ.setdefault("XDG_CACHE_HOME", str(Path(tempfile.gettempdir()) / "kesco-fikit-cache"))

from bench import Bench, Failed  # noqa: E402
from kinds import BESIDE, KINDS, WAYS, kinds  # noqa: E402
from overhead import launches, nets, right  # noqa: E402
from pairs import METHOD, MODES, PAIRS, Pair, profiles, several, whole  # noqa: E402
from places import nowhere, places  # noqa: E402
from slices import SLICE  # noqa: E402
from summary import summary, table  # noqa: E402
from turns import Plan  # noqa: E402

from kesco.errors import KescoError  # noqa: E402
from kesco.ir import kfikit  # noqa: E402

NETS = ("bert", "resnet50", "small")  # of which it is measured what FIKIT costs
NET = 60  # seconds for one of them, with the start of its processes; with a quarter of that none begins
ROUNDS = 12  # of turns, at most
TURN = {"launches": 0.15, "nets": 0.5}  # seconds: 200 requests of 200 launches, or some dozens of a net
KEPT = Path(tempfile.gettempdir()) / "kesco-fikit-gpu"


def chosen(text: str) -> list[Pair]:
    """`1-4,7` or names; all where it is empty."""
    found = []
    for part in text.split(",") if text else [f"1-{len(PAIRS)}"]:
        first, dash, last = part.partition("-")
        if first.isdigit():
            found += PAIRS[int(first) - 1 : int(last if dash else first)]
        else:
            found += [one for one in PAIRS if one.name == part]
    return found


def written(value: Any, depth: int = 0) -> str:
    """JSON, in which what is small has a line for itself: a task, a way of a pair, a slice."""
    if not value or not isinstance(value, dict | list) or not any(isinstance(one, dict | list) for one in inner(value)):
        return json.dumps(value, separators=(",", ":"))
    names = [f"{json.dumps(name)}: " for name in value] if isinstance(value, dict) else [""] * len(value)
    parts = [name + written(one, depth + 1) for name, one in zip(names, inner(value), strict=True)]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return first + "\n" + ",\n".join(" " * depth + part for part in parts) + last


def inner(value: dict[str, Any] | list[Any]) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value


class Results:
    """What was found until now, kept where the next call finds it."""

    def __init__(self, out: Path, resume: Path, bench: Bench) -> None:
        self.out, self.bench = out, bench
        self.cpus = bench.places.to_json()
        how = {"method": METHOD, "slice": SLICE}
        self.data: dict[str, Any] = {**how, "profiles": {}, "pairs": {}, "cpus": self.cpus}
        for folder in (resume.parent, KEPT, out):
            self._read(folder / "fikit_gpu.json" if folder != resume.parent else resume, folder / "tasks.kfikit")

    def _read(self, file: Path, tasks: Path) -> None:
        try:
            found = json.loads(file.read_text())
        except (OSError, ValueError):
            return
        if bool(found.get("cpus", {}).get("own")) != bool(self.cpus["own"]):
            print(f"{file} is left alone: its processes had CPUs of their own or not, and these have it otherwise")
            return
        if found.get("pairs") and found.get("method") != METHOD:
            print(f"{file}: its pairs were not measured in slices that lie side by side, and are begun anew")
            found = {name: value for name, value in found.items() if name not in ("pairs", "summary")}
        if sum(map(len, found.get("pairs", {}).values())) >= sum(map(len, self.data["pairs"].values())):
            self.data |= found | {"method": METHOD, "slice": SLICE, "cpus": self.cpus}
        try:
            self.bench.known |= {one.key: one for one in kfikit.read(tasks).tasks}
        except KescoError as problem:
            print(f"no profiles in {tasks}: {problem}", flush=True)

    def save(self) -> None:
        store = kfikit.Store("", "", tuple(sorted(self.bench.known.values(), key=lambda one: one.key)))
        for folder in (self.out, KEPT):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "fikit_gpu.json").write_text(written(self.data) + "\n")
            (folder / "tasks.kfikit").write_text(kfikit.to_json(store))


def pairs(given: argparse.Namespace, bench: Bench, results: Results, wanted: list[Pair], until: float) -> None:
    modes = [one for one in MODES if one in given.modes.split(",")]
    record = given.out / "records" if given.record else None
    if record:
        record.mkdir(parents=True, exist_ok=True)
    kept = results.data["pairs"]

    def rounds(one: Pair) -> int:
        return sum(whole(turn, modes) for turn in kept.get(one.name, [])[: given.rounds])

    wanted = [one for one in wanted if rounds(one) < given.rounds]
    for first in range(0, len(wanted), given.together):
        if time.monotonic() > until:
            break
        some = wanted[first : first + given.together]
        try:
            profiles(
                bench, (task for one in some for task in (one.high, one.low)), results.data["profiles"], results.save
            )
            several(bench, some, modes, given.rounds, given.seconds, until, kept, results.save, record)
        except Exception as problem:
            print(f"FAILED: {type(problem).__name__}: {problem}", flush=True)
            traceback.print_exc()
    every = [one for one in PAIRS if results.data["pairs"].get(one.name)]
    summaries = {}
    for one in every:
        try:
            summaries[one.name] = summary(one, results.data["pairs"][one.name], results.data["profiles"])
        except Exception as problem:
            print(f"{one.name}: no summary: {type(problem).__name__}: {problem}", flush=True)
    results.data["summary"] = summaries
    results.save()
    text = table(summaries)
    (results.out / "fikit_gpu.txt").write_text(text + "\n")
    print("the high task's time over alone beside it, the low one's rate over alone; of FIKIT where the ratio lies,")
    print("each process by itself over the plain one, the plain one over itself, the bound, fill ratio and overruns")
    print(text, flush=True)


def overhead(given: argparse.Namespace, bench: Bench, results: Results, until: float) -> None:
    """Launches and each net by itself: each has the same part of the time that is left, and what is done is kept."""
    profiles(bench, ((name, 0.0) for name in NETS), results.data["profiles"], results.save)
    for number, name in enumerate(("launches", *NETS)):
        left = until - time.monotonic()
        part = left / (1 + len(NETS) - number)
        if part < NET / 4:
            print(f"no time for {name}: {left:.0f} s are left", flush=True)
            break
        begin = time.monotonic()
        seconds = 0.1 if given.fake else TURN["launches" if name == "launches" else "nets"]
        plan = Plan(given.processes, ROUNDS, seconds, begin + min(part, 2 * NET))
        try:
            if name == "launches":
                results.data[name] = launches(bench, plan)
            else:
                results.data.setdefault("nets", {})[name] = nets(bench, name, plan)
        except Failed as problem:
            print(f"{name} FAILED: {problem}", flush=True)
        results.save()
        print(f"{name}: {time.monotonic() - begin:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--parts", default="smoke")
    parser.add_argument("--pairs", default="")
    for name in ("kinds", "beside", "ways"):
        parser.add_argument(f"--{name}", default="", help="of the part kinds; all where it is not given")
    parser.add_argument("--warm", type=float, default=0.7, help="seconds of each turn of a kind that do not count")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.18, help="of each slice")
    parser.add_argument("--together", type=int, default=6, help="pairs whose processes live side by side")
    parser.add_argument("--processes", type=int, default=3, help="of each kind, to measure what FIKIT costs")
    parser.add_argument("--pin", action=argparse.BooleanOptionalAction, default=False, help="CPUs for each role")
    parser.add_argument("--record", action="store_true", help="keep what daemons saw in each first round")
    parser.add_argument("--budget", type=float, default=500)
    parser.add_argument("--resume", type=Path, default=ROOT / ".scratch/fikit_gpu.json")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    parser.add_argument("--fake", action="store_true")
    parser.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE", help="of FIKIT's daemons")
    given = parser.parse_args()
    until = time.monotonic() + given.budget
    more = tuple(word for one in given.set for word in ("--" + one.split("=")[0].replace("_", "-"), one.split("=")[1]))
    for name in ("fikit", "fikit_mps"):
        MODES[name] = (*MODES[name][:2], MODES[name][2] + more)
    bench = Bench(given.fake, places() if given.pin else nowhere())
    results = Results(given.out, given.resume, bench)
    if not given.fake:
        query = ("nvidia-smi", "--query-gpu=name,driver_version,compute_mode", "--format=csv,noheader")
        results.data["gpu"] = subprocess.run(query, capture_output=True, text=True, timeout=30).stdout.strip()
        print(results.data["gpu"], flush=True)
    print(f"CPUs: {results.cpus}", flush=True)
    for part in given.parts.split(","):
        begin = time.monotonic()
        try:
            if part == "smoke":
                given.rounds = 1
                pairs(given, bench, results, [PAIRS[6]], until)
                nets(bench, "bert", Plan(1, 1, 0.1 if given.fake else 0.5, until))
            elif part == "pairs":
                pairs(given, bench, results, chosen(given.pairs), until)
            elif part == "overhead":
                overhead(given, bench, results, until)
            elif part == "kinds":
                tables = (given.kinds, KINDS), (given.beside, BESIDE), (given.ways, WAYS)
                wanted = tuple([one for one in table if not text or one in text.split(",")] for text, table in tables)
                results.data["kinds"] = []
                text = kinds(
                    bench,
                    wanted,
                    given.rounds,
                    max(given.seconds, 0.5 - 0.4 * given.fake),
                    given.warm,
                    until,
                    results.data,
                    results.save,
                )
                results.save()
                (given.out / "fikit_kinds.txt").write_text(text + "\n")
                print(text, flush=True)
            elif part == "right":
                results.data["right"] = right(bench)
            else:
                print(f"no part '{part}'", flush=True)
        except Exception as problem:
            print(f"{part} FAILED: {type(problem).__name__}: {problem}", flush=True)
            traceback.print_exc()
        results.save()
        print(f"{part} took {time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
