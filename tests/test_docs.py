"""The documentation, checked: what it shows is what happens, what exists is documented, and no link is broken.

Fenced blocks say by a second word after the language what is to be done with them:

- ``console test``: each line after ``$`` is run beside a copy of the examples, and what follows must be its output.
  A line ``…`` stands for any lines, ``[…]`` for any text within a line. ``--update-golden`` writes the real output
  into blocks that have neither.
- ``sh test``: commands whose output is not shown. They must succeed; ``pip install`` before ``&&`` is skipped.
- ``… needs=make,nvcc``: skipped, like what follows it in its page, where one of these programs is not installed.
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
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

import kesco
from kesco.cli import main
from kesco.toolchain.model import Toolchain

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "kesco"
PAGES = sorted(
    [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
    + [*ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md"), *ROOT.glob("workloads/**/*.md")]
)
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


def wrong_options(command: str) -> list[str]:
    """What a command line gives to kesco and kesco does not know: commands, and options in front of ``--``."""
    found = []
    for simple in re.split(r"[;&|()]+", command):
        words = shlex.split(simple, comments=True)
        if "kesco" not in words:
            continue
        group: click.Command = main
        options: set[str] = set()
        for word in words[words.index("kesco") + 1 :]:
            if word == "--" or word.startswith(">"):
                break
            if isinstance(group, click.Group) and not word.startswith("-"):
                if word not in group.commands:
                    found.append(f"{command}: there is no '{word}'")
                    break
                group = group.commands[word]
            elif word.startswith("-"):
                options.add(word.partition("=")[0])
        known = {o for p in group.params if isinstance(p, click.Option) for o in (*p.opts, *p.secondary_opts)}
        found += [f"{command}: there is no {o}" for o in sorted(options - known - {"-h", "--help", "--version"})]
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
        elif any(name and shutil.which(name, path=place.environment["PATH"]) is None for name in needed):
            break
        elif block.language == "sh":
            problems += script(block, place)
        else:
            found, lines = console(block, place)
            problems += found
        pieces += [text[position : block.start], "".join(f"{line}\n" for line in lines)]
        position = block.end
    return problems, "".join([*pieces, text[position:]])


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.close()


WITH_BLOCKS = [page for page in PAGES if page.is_file() and blocks(page.read_text("utf-8"))]


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_shows_happens(page: Path, place: Place, toolchain: Toolchain, update_golden: bool) -> None:
    text = page.read_text("utf-8")
    problems, real = work_through(text, place)
    pictures = [(ROOT / "docs/img" / name, place.folder / name) for name in drawn(text)]
    if update_golden:
        for shown, made in pictures:
            shown.write_text(made.read_text("utf-8"), "utf-8")
    problems += [f"{shown.name} is not what kesco draws" for shown, made in pictures if not same_text(shown, made)]
    if update_golden and real != text:
        page.write_text(real, "utf-8")
        return
    assert not problems, "\n\n".join(problems)


def test_the_readme_and_ci_agree_on_the_two_commands() -> None:
    readme, ci = (ROOT / "README.md").read_text("utf-8"), (ROOT / ".ci/run").read_text("utf-8")
    first = "pip install '.[toolchain]' && kesco compile examples/01_image_pipeline/image.cu -o image_async.cu"
    second = "pip install '.[toolchain,test]' && pytest -n 2"
    assert readme.find(first) in range(2000)
    assert readme.find(second) in range(2000)
    assert "pip install --quiet '.[toolchain,test]'" in ci
    assert re.search(r"^pytest -n 2$", ci, re.MULTILINE)


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_is_run_or_says_why_not(page: Path) -> None:
    assert unmarked_commands(page.read_text("utf-8")) == []


# ---- what exists is documented ---------------------------------------------------------------------------------------


def undocumented_codes(package: Path, page: str) -> tuple[set[str], set[str]]:
    """Codes that the program uses and the page lacks, and the other way round."""
    used = {code for path in package.rglob("*.py") for code in re.findall(r'"(K\d{3})"', path.read_text("utf-8"))}
    documented = set(re.findall(r"^### (K\d{3})\b", page, re.MULTILINE))
    return used - documented, documented - used


def test_every_code_is_documented_and_every_documented_code_exists() -> None:
    page = (ROOT / "docs/diagnostics.md").read_text("utf-8")
    assert undocumented_codes(PACKAGE, page) == (set(), set())


def undocumented_options(group: click.Group, page: str) -> list[str]:
    """Commands and options that the page lacks, or has and should not have."""
    found = []
    sections = dict(re.findall(r"^## kesco (\w+)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    common = dict(re.findall(r"^### (\w[\w ]*options)\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL))
    found += [f"'{name}' is no command" for name in sections.keys() - group.commands.keys()]
    for name, command in group.commands.items():
        if command.hidden:  # for a program, not for people
            continue
        if name not in sections:
            found.append(f"command '{name}' is not documented")
            continue
        if isinstance(command, click.Group):  # its commands have sections within its own
            inner = re.sub(rf"^### kesco {name} ", "## kesco ", sections[name], flags=re.MULTILINE)
            found += [f"of kesco {name}: {one}" for one in undocumented_options(command, inner)]
            continue
        text = sections[name] + "".join(common[title] for title in common if title in sections[name])
        rows = {o for row in re.findall(r"^\| (`-[^|]*)\|", text, re.MULTILINE) for o in re.findall(r"`(-[\w-]+)", row)}
        options = [p for p in command.params if isinstance(p, click.Option)]
        real = {"-h", "--help"} | {o for p in options for o in (*p.opts, *p.secondary_opts)}
        found += [f"kesco {name}: {o} is not documented" for o in sorted(real - rows)]
        found += [f"kesco {name}: there is no {o}" for o in sorted(rows - real)]
    return found


def test_every_command_and_option_is_documented() -> None:
    assert undocumented_options(main, (ROOT / "docs/reference.md").read_text("utf-8")) == []


def test_every_environment_variable_is_documented() -> None:
    sources = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.j2")]
    used = {name for path in sources for name in re.findall(r"\bKESCO_[A-Z_]+\b", path.read_text("utf-8"))}
    plugins = [path.read_text("utf-8") for path in (ROOT / "passes").glob("*.cpp")]
    used |= {name for text in plugins for name in re.findall(r'"(KESCO_[A-Z_]+)"', text)}
    documented = set(
        re.findall(r"^\| `(KESCO_[A-Z_]+)`", (ROOT / "docs/reference.md").read_text("utf-8"), re.MULTILINE)
    )
    assert used == documented


# ---- links -----------------------------------------------------------------------------------------------------------


def _anchors(text: str) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_tables(text: str) -> list[str]:
    """First lines of tables without a head: an empty line within a table is mostly why."""
    lines = ["", *re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL).splitlines(), ""]
    firsts = [n for n, line in enumerate(lines) if line.startswith("|") and not lines[n - 1].startswith("|")]
    return [lines[n] for n in firsts if not re.fullmatch(r"[|\s:-]+", lines[n + 1] or "x")]


def broken_links(page: Path) -> Iterator[str]:
    """Relative links of a page that lead nowhere."""
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            yield f"{page.name}: {link}: there is no such file"
        elif anchor and anchor not in _anchors(target.read_text("utf-8")):
            yield f"{page.name}: {link}: there is no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert list(broken_links(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tables_have_a_head(page: Path) -> None:
    assert broken_tables(page.read_text("utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_are_not_too_long(page: Path) -> None:
    bare = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert [line for line in bare.splitlines() if len(line) > 120 and not line.startswith("|")] == []


# ---- a checker that never fails is no checker ------------------------------------------------------------------------


def test_a_wrong_output_is_found(place: Place) -> None:
    page = "x\n```console test\n$ echo one; echo two\none\nthree\n$ echo four\n…\n```\ny\n"
    problems, real = work_through(page, place)
    assert len(problems) == 1 and "three" in problems[0]
    assert real == page.replace("three", "two")


def test_a_failing_command_and_a_missing_line_are_found(place: Place) -> None:
    page = "```sh test\npip install x && false\n```\n```cuda in=examples/README.md\nno such line\n```\n"
    problems, real = work_through(page, place)
    assert [p.partition(":")[0] for p in problems] == ["pip install x && false", "not in examples/README.md"]
    assert real == page


def test_what_cannot_run_here_is_read(place: Place) -> None:
    page = "```sh yours\nkesco compile --strems 2 x.cu && kesco fikit sarve\nkesco check x.cu -- --any\n```\n"
    problems, _ = work_through(page, place)
    assert [problem.rpartition(": ")[2] for problem in problems] == ["there is no --strems", "there is no 'sarve'"]


def test_a_file_of_a_page_is_there(place: Place) -> None:
    page = "```cuda file=x.cu\nint x;\n```\n```console test\n$ cat x.cu; echo $$\nint x;\n[…]\n```\n"
    assert work_through(page, place) == ([], page)


def test_what_is_left_running_is_ended(place: Place) -> None:
    _, (pid,) = place.run("sleep 100 > /dev/null 2>&1 & echo $!")
    place.close()
    stat = Path("/proc", pid, "stat")
    for _ in range(500):
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.01)
    pytest.fail("it still runs")


def test_a_command_that_nobody_runs_is_found() -> None:
    page = "    kesco compile a.cu\n\n```sh test\nnvcc x\n```\n```\n$ ./a\n```\nmake it so\n    A=b pytest -x\n"
    assert unmarked_commands(page) == ["kesco compile a.cu", "$ ./a", "A=b pytest -x"]


@pytest.mark.parametrize(
    ("shown", "real", "same"),
    [
        (["a […] c"], ["a b c"], True), (["a […] c"], ["a b"], False), (["a.c"], ["abc"], False),
        (["a", "b"], ["a", "b "], True), (["a"], ["a", "b"], False), (["a", "…"], ["a", "b"], True),
        (["…", "c"], ["a", "b", "c"], True), (["…", "c"], ["a"], False), ([], ["a"], False), (["a"], [], False),
    ],
)  # fmt: skip
def test_dots_stand_for_any_lines(shown: list[str], real: list[str], same: bool) -> None:
    assert agrees(shown, real) is same


def test_a_missing_code_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text('X = "K998"')
    assert undocumented_codes(tmp_path, "### K999\n") == ({"K998"}, {"K999"})


def test_a_missing_option_is_found() -> None:
    page = (ROOT / "docs/reference.md").read_text("utf-8")
    broken = page.replace("| `--time`", "| `--tame`").replace("## kesco doctor", "## kesco nurse")
    broken = broken.replace("### kesco fikit merge", "### kesco fikit marge").replace("| `--slice-us`", "| `--size`")
    assert undocumented_options(main, broken) == [
        "'nurse' is no command",
        "kesco compile: --time is not documented",
        "kesco compile: there is no --tame",
        "command 'doctor' is not documented",
        "of kesco fikit: 'marge' is no command",
        "of kesco fikit: command 'merge' is not documented",
        "of kesco fikit: kesco simulate: --slice-us is not documented",
        "of kesco fikit: kesco simulate: there is no --size",
    ]


def test_a_broken_table_is_found() -> None:
    assert broken_tables("| a |\n|---|\n| b |\n\n| c |\n| d |\n") == ["| c |"]


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A heading, here\n[a](nowhere.md) [b](#a-heading-here) [c](#none) [d](https://x.y) `[e](f.md)`\n")
    assert [problem.partition(": there")[0] for problem in broken_links(page)] == [
        "page.md: nowhere.md",
        "page.md: #none",
    ]
