"""The documentation, checked: what it shows is what happens, what exists is documented, and no link is broken.

``pages.py`` says how a page's blocks are marked, and runs them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from pages import ROOT, Place, agrees, blocks, drawn, same_text, unmarked_commands, work_through

from kesco.cli import main
from kesco.toolchain.model import Toolchain

PACKAGE = ROOT / "kesco"
PAGES = sorted(
    [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
    + [*ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md"), *ROOT.glob("workloads/**/*.md")]
)
WITH_BLOCKS = [page for page in PAGES if page.is_file() and blocks(page.read_text("utf-8"))]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.close()


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


def test_every_example_is_shown_and_run() -> None:
    folders = {path.name for path in (ROOT / "examples").iterdir() if path.is_dir()}
    listed = (ROOT / "examples/README.md").read_text("utf-8")
    assert sorted(set(re.findall(r"\]\((\w+)/README\.md\)", listed))) == sorted(folders)
    assert folders <= {page.parent.name for page in WITH_BLOCKS}
    assert [int(name[:2]) for name in sorted(folders)] == list(range(1, len(folders) + 1))


def test_the_readme_and_ci_agree_on_the_two_commands() -> None:
    readme, ci = (ROOT / "README.md").read_text("utf-8"), (ROOT / ".ci/run").read_text("utf-8")
    first = "pip install '.[toolchain]' && kesco compile examples/01_image_pipeline/image.cu -o image_async.cu"
    second = "pip install '.[toolchain,test]' && pytest -n auto"
    assert readme.find(first) in range(2000)
    assert readme.find(second) in range(2000)
    assert "pip install --quiet '.[toolchain,test]'" in ci
    assert re.search(r"^pytest -n auto$", ci, re.MULTILINE)


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
    right = "kesco check --flags '-Ia; -DN=1' x.cu -- --any  # --not"
    page = f"```sh yours\nkesco compile --strems 2 x.cu && kesco fikit sarve\n{right}\n```\n"
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
