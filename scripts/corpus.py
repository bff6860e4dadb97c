"""What kesco makes of every CUDA program below a folder: a table, and what stood most often in the way.

A program is a `.cu` file that launches kernels or has a `main`. Its include folders are its own and the folders named
Common, common, include or inc beside it and beside each folder above it, up to PATH. Each program is compiled in a
process of its own, bounded in time and memory; what was rewritten is compiled with nvcc, like its source, and proven
again with `kesco verify`. Nothing that a program does ends the run.

    python scripts/corpus.py PATH [--jobs 2] [--json FILE] [--resume] [--keep FOLDER] [--flag=-DN=4] [--only TEXT]
                             [--force]
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

SECONDS, GIGABYTES = 120, 4
_SHARED = ("Common", "common", "include", "inc")
_PROGRAM = re.compile(rb"<<<|\bcudaLaunchKernel|\bmain\s*\(")
Row = dict[str, Any]


def programs(root: Path) -> list[Path]:
    """The files that are programs, in order."""
    files = sorted(root.rglob("*.cu")) if root.is_dir() else [root]
    return [f for f in files if f.is_file() and _PROGRAM.search(f.read_bytes())]


def include_flags(source: Path, root: Path) -> list[str]:
    """The include folders of a program."""
    top = root if root.is_dir() else root.parent
    above = [p for p in source.parents if p == top or top in p.parents]
    folders = [source.parent, *(p / name for p in above for name in _SHARED)]
    return [f"-I{f}" for f in folders if f.is_dir()]


# ---- one program, in a process of its own ----------------------------------------------------------------


def one(source: str, target: str, force: bool, flags: Sequence[str]) -> Row:
    """Compile one program and say what was made of it."""
    from kesco.errors import KescoError
    from kesco.options import Options
    from kesco.pipeline import compile_file

    try:
        result = compile_file(source, Options(flags=tuple(flags), force=force))
    except KescoError as error:
        said = [{"code": d.code, "message": d.message} for d in error.diagnostics]
        return {"outcome": "refused", "exit": error.exit_code, "diagnostics": said}
    if result.changed:
        Path(target).write_bytes(result.text)
    done = [f for f in result.functions if f.rewritten]
    work = [s for f in result.functions for s in f.region.sites if s.kind.value == "kernel"]
    return {
        "outcome": "changed" if result.changed else "unchanged",
        "diagnostics": [d.to_json() for d in result.diagnostics],
        "launches": len({(s.span.start, s.span.path) for s in work}),
        "functions": [f.region.function for f in done],
        "waits": sum(len(f.plan.waits) for f in done),
        "streams": max((f.schedule.streams for f in done), default=0),
        "width": max((f.width for f in result.functions), default=0),
    }


def bounded(command: Sequence[str], seconds: int = SECONDS) -> tuple[int | None, str]:
    """Run a command in bounds; its exit status (None: it took too long) and what it wrote."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (GIGABYTES << 30, GIGABYTES << 30))

    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=limit,
    )
    try:
        out, _ = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return None, f"took longer than {seconds} s"
    return child.returncode, out.decode("utf-8", "replace")


# ---- the tests of one program ----------------------------------------------------------------


class Bench:
    """What all programs share: the folder of outputs, nvcc, the flags."""

    def __init__(self, root: Path, folder: Path, flags: Sequence[str], force: bool) -> None:
        self.root, self.folder, self.flags, self.force = root, folder, list(flags), force
        self.nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
        listed = bounded([sys.executable, "-m", "kesco", "--help"])[1]
        self.can_check = re.search(r"^\s+check\b", listed, re.MULTILINE) is not None

    def row(self, source: Path) -> Row:
        """All that is said of one program."""
        name = str(source.relative_to(self.root)) if source != self.root else source.name
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        said = target.with_suffix(".json")
        flags = [*include_flags(source, self.root), *self.flags]
        start = time.perf_counter()
        command = [sys.executable, __file__, "--one", str(source), str(target), str(said), str(int(self.force)), *flags]
        status, text = bounded(command)
        row: Row = {"program": name, "seconds": round(time.perf_counter() - start, 1)}
        if status == 0 and said.exists():
            row |= json.loads(said.read_text())
            said.unlink()
        else:
            row |= {"outcome": "too slow" if status is None else "crashed", "diagnostics": [], "tail": text[-2000:]}
        if row["outcome"] in ("changed", "refused"):
            row["original compiles"] = self.compiles(source, flags)
        if row["outcome"] == "changed":
            row["output compiles"] = self.compiles(target, flags)
            row |= self.verified(source, target, flags)
        if self.can_check and row["outcome"] in ("changed", "unchanged"):
            row["check"] = self.checked(target if row["outcome"] == "changed" else source, flags)
        return row

    def compiles(self, source: Path, flags: Sequence[str]) -> str:
        """Empty if nvcc compiles a file, or its first error."""
        with tempfile.NamedTemporaryFile(suffix=".o") as out:
            quick = ["-Xcicc", "-O0", "-Xptxas", "-O0"]
            command = [self.nvcc, "-c", "-arch=sm_90", "-std=c++17", "-w", *quick, *flags, str(source), "-o", out.name]
            status, text = bounded(command)
        if status == 0:
            return ""
        return next((line for line in text.splitlines() if "error" in line), text.strip()[-200:] or "failed")

    def verified(self, source: Path, target: Path, flags: Sequence[str]) -> Row:
        """Whether `kesco verify` proves each function that was rewritten."""
        status, text = bounded([sys.executable, "-m", "kesco", "verify", str(source), str(target), "--", *flags])
        wrong = [line for line in text.splitlines() if "error[K401]" in line or "error[K402]" in line]
        vague = [line for line in text.splitlines() if "error[K403]" in line]
        bad = status is None or "Traceback" in text or wrong or (status != 0 and not vague)
        return {"verify": "failed" if bad else "ok", **({"verify said": text[-2000:]} if bad else {})}

    def checked(self, source: Path, flags: Sequence[str]) -> str:
        """What `kesco check` finds when the program, or what was made of it, runs without arguments."""
        status, text = bounded([sys.executable, "-m", "kesco", "check", str(source), "--flags", shlex.join(flags)])
        return "ok" if status == 0 else f"exit {status}: {text.strip()[-200:]}"


# ---- what is shown ----------------------------------------------------------------


def shape(message: str) -> str:
    """A message without the names and numbers that tell programs apart."""
    text = re.sub(r"'[^']*'", "'…'", message)
    text = re.sub(r"\(line \d+\)", "", text)
    text = re.sub(r"^\S+ (uses a stream)", r"… \1", re.sub(r"stays serial: \S+ uses", "stays serial: … uses", text))
    return re.sub(r"\b\d+\b", "N", text).strip()


def obstacles(rows: Sequence[Row]) -> list[tuple[int, int, str, str, str]]:
    """Programs, messages, code, shape and an example of each kind of diagnostic; the most programs first."""
    seen: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    for row in rows:
        for said in row["diagnostics"]:
            notes = "; ".join(shape(n["message"]) for n in said.get("notes", [])[:1])
            text = shape(said["message"]) + (f" [{notes}]" if notes else "")
            seen[said["code"], text].append(f"{row['program']}:{said.get('line', '')}")
    found = [
        (len({p.rpartition(":")[0] for p in places}), len(places), code, text, places[0])
        for (code, text), places in seen.items()
    ]
    return sorted(found, reverse=True)


def show(rows: Sequence[Row], most: int) -> None:
    """The table, the sums, the obstacles."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 160, soft_wrap=False)
    table = Table("program", "outcome", "by", "launches", "waits", "streams", "width", "nvcc", "verify", "check", "s")
    for row in rows:
        codes = ",".join(sorted({d["code"] for d in row["diagnostics"]}))
        built = "/".join(
            "ok" if row[k] == "" else "no" for k in ("original compiles", "output compiles") if row.get(k) is not None
        )
        numbers = [str(row.get(k, "")) for k in ("launches", "waits", "streams", "width")]
        last = [built, row.get("verify", ""), row.get("check", ""), str(row["seconds"])]
        table.add_row(row["program"], row["outcome"], codes, *numbers, *last)
    console.print(table)
    console.print(summary(rows))
    worst = Table("programs", "messages", "code", "message", "for example", title="what was said most often")
    for count, total, code, text, example in obstacles(rows)[:most]:
        worst.add_row(str(count), str(total), code, text, example)
    console.print(worst)
    for row in rows:
        if bad := problem(row):
            console.print(f"{row['program']}: {bad}", style="red", markup=False)


def problem(row: Row) -> str:
    """What is wrong with kesco's work on a program, or an empty text."""
    if row["outcome"] in ("too slow", "crashed"):
        return f"{row['outcome']}: {row['tail'].strip()[-300:]}"
    if row["outcome"] == "refused" and row["exit"] != 3:
        return f"exit code {row['exit']}: {row['diagnostics'][0]['message']}"
    if row.get("output compiles") and not row["original compiles"]:
        return f"the output does not compile: {row['output compiles']}"
    if row.get("verify") == "failed":
        return f"not proven again: {row['verify said'].strip()[-300:]}"
    return ""


def summary(rows: Sequence[Row]) -> str:
    """One line of sums for each outcome."""
    outcomes = collections.Counter(row["outcome"] for row in rows)
    lines = [f"{len(rows)} programs: " + ", ".join(f"{n} {what}" for what, n in outcomes.most_common())]
    refused = [row for row in rows if row["outcome"] == "refused"]
    both = sum(bool(row["original compiles"]) for row in refused)
    lines.append(f"refused: {len(refused)}, of which nvcc does not compile {both} with the same flags")
    wide = sum(row.get("width", 0) > 1 for row in rows)
    lines.append(f"independent operations were found in {wide}; {sum(bool(problem(r)) for r in rows)} problems")
    return "\n".join(lines)


# ---- the run ----------------------------------------------------------------


def rows_of(bench: Bench, files: Sequence[Path], jobs: int) -> Iterator[Row]:
    """The rows as they are done."""
    with ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(bench.row, f): f for f in files}
        for done in as_completed(waiting):
            try:
                yield done.result()
            except Exception as error:  # this script's own failure on one program ends nothing either
                name = str(waiting[done].relative_to(bench.root))
                yield {"program": name, "outcome": "crashed", "diagnostics": [], "seconds": 0, "tail": repr(error)}


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("path", metavar="PATH")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--json", metavar="FILE", help="write the results there, after every program")
    parser.add_argument("--resume", action="store_true", help="keep what that file already says")
    parser.add_argument("--keep", metavar="FOLDER", help="leave the outputs there")
    parser.add_argument("--flag", action="append", default=[], metavar="FLAG", help="a compiler flag for all programs")
    parser.add_argument("--force", action="store_true", help="rewrite also where no gain is expected")
    parser.add_argument("--only", default="", metavar="TEXT", help="only programs whose path contains this")
    parser.add_argument("--obstacles", type=int, default=25, metavar="N", help="how many kinds of messages to show")
    return parser.parse_args()


def main() -> None:
    """Run all programs and print what came of them."""
    if sys.argv[1:2] == ["--one"]:
        source, target, said, force, *flags = sys.argv[2:]
        Path(said).write_text(json.dumps(one(source, target, force == "1", flags)))
        return
    given = arguments()
    root = Path(given.path).resolve()
    known: dict[str, Row] = {}
    if given.resume and given.json and Path(given.json).exists():
        known = {row["program"]: row for row in json.loads(Path(given.json).read_text())}
    with tempfile.TemporaryDirectory(prefix="kesco-corpus-") as temporary:
        folder = Path(given.keep or temporary).resolve()
        bench = Bench(root, folder, given.flag, given.force)
        files = [f for f in programs(root) if given.only in str(f)]
        files = [f for f in files if root == f or str(f.relative_to(root)) not in known]
        for number, row in enumerate(rows_of(bench, files, given.jobs), 1):
            known[row["program"]] = row
            sys.stderr.write(f"{number}/{len(files)} {row['program']}: {row['outcome']} {problem(row)[:200]}\n")
            if given.json:
                Path(given.json).write_text(json.dumps([known[k] for k in sorted(known)], indent=1))
    show([known[k] for k in sorted(known)], given.obstacles)


if __name__ == "__main__":
    main()
