"""The pages of the guide as programs: their marked blocks, and a place where the commands in them are run.

Fenced blocks say by a second word after the language what is to be done with them:

- ``console test``: each line after ``$`` is run beside a copy of the examples, and what follows must be its output.
  A line ``…`` stands for any lines, ``[…]`` for any text within a line. ``--update-golden`` writes the real output
  into blocks that have neither.
- ``sh test``: commands whose output is not shown. They must succeed; ``pip install`` before ``&&`` is skipped.
- ``… needs=make,cufft.h``: skipped, like what follows it in its page, where one of these programs, or one of these
  headers of CUDA's libraries, is not installed.
- ``… needs=gpu``: run where there is an NVIDIA GPU. Elsewhere the options of its commands of kesco must exist.
- ``sh ci``: what ``.ci/run`` does from a fresh environment.
- ``sh yours``: commands about files and programs of the reader's. The options of kesco in it must exist.
- ``text usage``: how a command is called; not a command.
- ``LANGUAGE in=FILE``: each line must stand in FILE, which an earlier block of the page has made.
- ``LANGUAGE file=FILE``: the block is FILE, for what follows.

A picture ``docs/img/NAME.svg`` that a page shows is the NAME.svg that a command of that page has drawn. No
page shows a command in any other way.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

import kesco
from kesco.cli import main
from kesco.toolchain.discover import discover

ROOT = Path(__file__).resolve().parent.parent
_FENCE = re.compile(r"^```(\w+) ([^\n]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_WORDS = ("test", "ci", "yours", "usage")
_ANY, _ANY_TEXT = "…", "[…]"
# What a line of code begins with that is a command for a shell.
_COMMAND = re.compile(
    r"(?:\$ )?(?:[A-Z_]+=\S+ )*(?:python\S* |pip |pytest|kesco(?:-[\w+]+)? |nvcc |clang\S* |g\+\+ |opt\S* |cmake "
    r"|make\b|ninja |meson |mkdocs |sed |grep |cat |cd |export |ccache |eval |\./|\.ci/)"
)


@dataclass(frozen=True)
class Block:
    """A fenced block with something to be done: its language, the second word, its lines and where they are."""

    language: str
    what: str
    lines: tuple[str, ...]
    start: int
    end: int


def blocks(text: str) -> list[Block]:
    """The marked blocks of a page."""
    return [
        Block(m[1], m[2].strip(), tuple(m[3].splitlines()), m.start(3), m.end(3))
        for m in _FENCE.finditer(text)
        if m[2].split()[0] in _WORDS or m[2].startswith(("in=", "file="))
    ]


def steps(lines: tuple[str, ...]) -> list[tuple[str, list[str]]]:
    """A console's commands, each with the output that is shown for it."""
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def agrees(shown: list[str], real: list[str]) -> bool:
    """Whether the shown output is the real one, ``…`` standing for any lines."""
    if not shown:
        return not real
    if shown[0].strip() == _ANY:
        return any(agrees(shown[1:], real[at:]) for at in range(len(real) + 1))
    if not real:
        return False
    pattern = ".*".join(map(re.escape, shown[0].rstrip().split(_ANY_TEXT)))
    return re.fullmatch(pattern, real[0].rstrip()) is not None and agrees(shown[1:], real[1:])


def simple_commands(line: str) -> list[list[str]]:
    """The words of each command in a line for a shell; redirections count as an end."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    found: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set("();<>|&"):
            found.append([])
        else:
            found[-1].append(word)
    return found


def wrong_options(line: str) -> list[str]:
    """What a line gives to kesco and kesco does not know: commands, and options in front of ``--``."""
    found = []
    for words in simple_commands(line):
        rest = iter(words[words.index("kesco") + 1 :] if "kesco" in words else ())
        group: click.Command = main
        for word in rest:
            known = {o: p for p in group.params if isinstance(p, click.Option) for o in (*p.opts, *p.secondary_opts)}
            option, _, value = word.partition("=")
            if word == "--":
                break
            if option in known:
                if not known[option].is_flag and not value:
                    next(rest, None)
            elif word.startswith("-") and word not in ("-", "-h", "--help", "--version"):
                found.append(f"{line}: there is no {word}")
            elif isinstance(group, click.Group) and not word.startswith("-"):
                if word not in group.commands:
                    found.append(f"{line}: there is no '{word}'")
                    break
                group = group.commands[word]
    return found


class Place:
    """A folder with a copy of the examples and the workloads, and a `kesco` on its PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "here"
        for name in ("examples", "workloads"):
            shutil.copytree(ROOT / name, self.folder / name)
        program = folder / "bin" / "kesco"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kesco "$@"\n')
        program.chmod(0o755)
        for name, function in (("kesco-nvcc", "nvcc"), ("kesco-clang++", "clang"), ("kesco-launch", "launch")):
            other = program.with_name(name)
            other.write_text(f"#!{sys.executable}\nfrom kesco.wrapper.front import {function}\n{function}()\n")
            other.chmod(0o755)
        # The kesco under test, from the checkout or installed; other Python paths stay what they are.
        above = str(Path(kesco.__file__).resolve().parent.parent)
        self.environment = {
            **{k: v for k, v in os.environ.items() if k != "KESCO_STREAMS"},
            "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(filter(None, (above, os.environ.get("PYTHONPATH")))),
            "NO_COLOR": "1",
            # Where a daemon's socket goes. pytest's own folders have names that are too long for one.
            "XDG_RUNTIME_DIR": tempfile.mkdtemp(prefix="kesco"),
        }
        self.groups: list[int] = []

    def run(self, command: str) -> tuple[int, list[str]]:
        """Exit code and output lines."""
        with subprocess.Popen(
            ["bash", "-c", command], cwd=self.folder, env=self.environment, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as shell:  # fmt: skip
            self.groups.append(shell.pid)
            try:
                output, _ = shell.communicate(timeout=300)
            except subprocess.TimeoutExpired:
                self.close()
                raise
            return shell.returncode, output.splitlines()

    def close(self) -> None:
        """End what the commands have left running."""
        for group in self.groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        shutil.rmtree(self.environment["XDG_RUNTIME_DIR"], ignore_errors=True)


def console(block: Block, place: Place) -> tuple[list[str], list[str]]:
    """Run a console's commands; the problems, and the lines with the outputs as they are."""
    problems: list[str] = []
    written: list[str] = []
    for command, shown in steps(block.lines):
        _, output = place.run(command)
        if any(line.startswith("Traceback ") for line in output):
            pytest.fail("\n".join([f"$ {command}", *output]))
        if not agrees(shown, output):
            problems.append("\n".join([f"$ {command}", *output, "--- but the page shows", *shown]))
        anything = any(line.strip() == _ANY or _ANY_TEXT in line for line in shown)
        written += [f"$ {command}", *(shown if anything else [line.rstrip() for line in output])]
    return problems, written


def script(block: Block, place: Place) -> list[str]:
    """Run a block's commands, whose output is not shown; the problems."""
    problems = []
    for line in block.lines:
        code, output = place.run(re.sub(r"^pip install [^&]*&& ", "", line))
        if code:
            problems.append("\n".join([f"{line}: exit code {code}", *output]))
    return problems


def unlike(block: Block, file: str, place: Place) -> list[str]:
    """The lines of a block that do not stand in a file."""
    there = {line.strip() for line in (place.folder / file).read_text().splitlines()}
    lines = [line.strip() for line in block.lines]
    return [f"not in {file}: {line}" for line in lines if line not in ("", _ANY) and line not in there]


def drawn(text: str) -> list[str]:
    """The pictures of a page that its own commands draw: all of them, but for screenshots."""
    return sorted(set(re.findall(r"!\[[^\]]*\]\([\w./]*img/(\w+\.svg)\)", text)))


def same_text(one: Path, other: Path) -> bool:
    """Whether both files are there and hold the same."""
    return one.is_file() and other.is_file() and one.read_text("utf-8") == other.read_text("utf-8")


def has_gpu() -> bool:
    """Whether an NVIDIA GPU can be used here."""
    return shutil.which("nvidia-smi") is not None and subprocess.run(["nvidia-smi", "-L"], check=False).returncode == 0


def is_there(name: str, place: Place) -> bool:
    """Whether a program, or a header of CUDA's libraries, is installed."""
    if not name.endswith(".h"):
        return shutil.which(name, path=place.environment["PATH"]) is not None
    found = discover(environ=place.environment)
    return any((folder / name).is_file() for folder in (found.cuda_path / "include", *found.cuda_include))


def work_through(text: str, place: Place) -> tuple[list[str], str]:
    """Do what the blocks of a page say; the problems, and the page with the outputs as they are."""
    problems: list[str] = []
    pieces: list[str] = []
    position = 0
    for block in blocks(text):
        word, _, file = block.what.partition("=")
        needed = block.what.partition("needs=")[2].split(",")
        lines = list(block.lines)
        if word == "usage":
            pass
        elif word == "in":
            problems += unlike(block, file, place)
        elif word == "file":
            (place.folder / file).write_text("\n".join(lines) + "\n", "utf-8")
        elif word in ("ci", "yours") or (needed == ["gpu"] and not has_gpu()):
            problems += [wrong for line in lines for wrong in wrong_options(line.removeprefix("$ "))]
        elif any(name and not is_there(name, place) for name in needed):
            break
        elif block.language == "sh":
            problems += script(block, place)
        else:
            found, lines = console(block, place)
            problems += found
        pieces += [text[position : block.start], "".join(f"{line}\n" for line in lines)]
        position = block.end
    return problems, "".join([*pieces, text[position:]])


def unmarked_commands(text: str) -> list[str]:
    """Lines of code that look like a command and that no test knows of."""
    marked = [range(block.start, block.end) for block in blocks(text)]
    found, position, fenced = [], 0, False
    for line in text.splitlines(keepends=True):
        fenced ^= line.startswith("```")
        code = fenced or line.startswith("    ")
        if code and _COMMAND.match(line.strip()) and not any(position in block for block in marked):
            found.append(line.strip())
        position += len(line)
    return found
