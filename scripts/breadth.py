"""What kesco does to each program below a folder: one line a program, as docs/breadth.md is written from.

`scripts/corpus.py` asks whether all is well: does what was written compile, is it proven again. This asks how much is
found: each file goes through `kesco compile` as a user calls it. Its line says the exit code, the functions that were
rewritten with their operations, streams and waits, and why others that launch stay serial. Nothing is fetched or built,
and no output is kept.

    python scripts/breadth.py FOLDER [--jobs 2] [--json FILE] [--resume] [--only TEXT] [--launching] [--flag=-DN=4]
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from corpus import bounded, include_flags

_LAUNCHES = re.compile(rb"<<<|\bcudaLaunchKernel|\bcudaLaunchCooperativeKernel")
Row = dict[str, Any]


def row(source: Path, root: Path, flags: Sequence[str]) -> Row:
    """What kesco says of one file."""
    name = str(source.relative_to(root))
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="kesco-breadth-") as folder:
        target = Path(folder) / source.name
        command = [sys.executable, "-m", "kesco", "compile", str(source), "-o", str(target), "--json"]
        status, text = bounded([*command, "--", *include_flags(source, root), *flags])
    seconds = round(time.perf_counter() - start, 1)
    said = re.search(r"^([\[{])\n.*^[\]}]$", text, re.DOTALL | re.MULTILINE)
    value: Any = json.loads(said.group()) if said else []
    if isinstance(value, list):  # refused: the diagnostics alone
        value = {"functions": [], "diagnostics": value}
    return {
        "program": name,
        "exit": status,
        "seconds": seconds,
        "done": [f for f in value["functions"] if f["rewritten"]],
        "diagnostics": value["diagnostics"],
        "tail": "" if said else text.strip()[-1500:],
    }


def line(found: Row) -> str:
    """One line for people."""
    done = "; ".join(
        f"{f['name']}: {f['operations']} operations, {f['streams']} streams, {f['waits']} waits" for f in found["done"]
    )
    why = "; ".join(
        (f"{d['line']}: " if "line" in d else "")
        + f"{d['code']} {d['message']}"
        + "".join(f" [{n['message']}]" for n in d.get("notes", [])[:1])
        for d in found["diagnostics"]
    )
    left = found["tail"].splitlines()[-1:] if found["tail"] else []
    return " | ".join([found["program"], str(found["exit"]), done or "-", why or "".join(left) or "-"])


def main() -> None:
    """Run kesco over all files and print their lines."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was said there, after every program")
    parser.add_argument("--resume", action="store_true", help="keep what that file already says")
    parser.add_argument("--only", default="", metavar="TEXT", help="only files whose path contains this")
    parser.add_argument("--launching", action="store_true", help="only files that launch kernels themselves")
    parser.add_argument("--flag", action="append", default=[], metavar="FLAG", help="a compiler flag for all files")
    given = parser.parse_args()
    root = given.folder.resolve()
    known: dict[str, Row] = {}
    if given.resume and given.json and given.json.exists():
        known = {r["program"]: r for r in json.loads(given.json.read_text())}
    files = [f for f in sorted(root.rglob("*.cu")) if f.is_file() and given.only in str(f)]
    files = [f for f in files if not given.launching or _LAUNCHES.search(f.read_bytes())]
    files = [f for f in files if str(f.relative_to(root)) not in known]
    with ThreadPoolExecutor(given.jobs) as pool:
        for done in as_completed([pool.submit(row, f, root, given.flag) for f in files]):
            found = done.result()
            known[found["program"]] = found
            sys.stdout.write(line(found) + "\n")
            sys.stdout.flush()
            if given.json:
                given.json.write_text(json.dumps([known[k] for k in sorted(known)], indent=1))


if __name__ == "__main__":
    main()
