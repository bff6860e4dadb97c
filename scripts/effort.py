"""What each version of the workloads costs to write: lines and tokens, as in table II of the KeSCo paper.

Counted are the programs' own files, comments and blank lines left out; the kernels, which all share, are not. The
buffers, streams and graphs that only the hand-written versions share have a line of their own: the serial programs
spell out allocation and copies, so that the versions' own files alone do not compare.

    python scripts/effort.py
"""

from __future__ import annotations

import re
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "workloads"
NAMES = ("vec", "bs", "img", "ml", "hits", "dl", "m1", "m2")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\w+(?:\.\w+)?|<<<|>>>|::|->|\+\+|--|[-+*/%&|<>=!]=|&&|\|\||<<|>>|\S')


def count(path: Path) -> tuple[int, int]:
    """Lines and tokens of a file."""
    text = COMMENT.sub(" ", path.read_text("utf-8"))
    lines = [line for line in text.splitlines() if line.strip()]
    return len(lines), len(TOKEN.findall(text))


def main() -> None:
    """Print the table as Markdown."""
    files = {"serial": "serial.cu", "streams by hand": "async.cu", "graph by hand": "graph.cu", "kesco": "serial.cu"}
    write("| version | lines | tokens | tokens / serial | edits to the serial program |")
    write("|---|---|---|---|---|")
    base = statistics.mean(count(ROOT / name / "serial.cu")[1] for name in NAMES)
    for version, file in files.items():
        counted = [count(ROOT / name / file) for name in NAMES]
        lines, tokens = (statistics.mean(column) for column in zip(*counted, strict=True))
        edits = "0" if version in ("serial", "kesco") else "rewritten"
        write(f"| {version} | {lines:.0f} | {tokens:.0f} | {tokens / base:.2f} | {edits} |")
    lines, tokens = count(ROOT / "common/expert.cuh")
    write(f"| shared by those by hand, once | {lines} | {tokens} | {tokens / base:.2f} | |")


def write(line: str) -> None:
    """One line."""
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
