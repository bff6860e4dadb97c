"""The architecture, checked: imports go down only, stages do not know each other, and only cli.py prints or exits."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "kesco"

# Lowest first. A module may import what stands in a lower row, and its own part of the package, nothing else.
LEVELS: tuple[tuple[str, ...], ...] = (
    ("source",),
    ("diagnostics",),
    ("errors",),
    ("nesting",),
    ("ir", "options"),
    ("llvm", "parts", "model", "tasks"),
    (
        *(
            "toolchain",
            "frontend",
            "analysis",
            "batching",
            "capture",
            "deferring",
            "dataflow",
            "issue",
            "lifetimes",
            "rings",
            "scheduling",
            "transfers",
        ),
        *("synchronize", "pricing", "emit", "verify", "report", "remarks", "runtime"),
    ),
    ("choosing", "judging"),
    ("replaying", "calling", "in_turns"),
    ("whose_streams",),
    ("planning", "session"),
    ("proving",),
    ("ordering",),
    ("pipeline",),
    ("check", "merging"),
    ("bench", "profiling", "tracing", "wrapper", "fikit"),
    ("project",),
    ("cli",),
    ("__main__",),
)
LEVEL = {part: level for level, parts in enumerate(LEVELS) for part in parts}

# What a stage may take from its neighbours, and why.
ALLOWED = {
    ("analysis", "kesco.frontend.api_table"),  # the CUDA API's facts are data that both read
    ("emit", "kesco.frontend.api_table"),  # so does who asks what a statement of the host may do
    ("analysis", "kesco.frontend.library_table"),  # and so are those of its libraries
    ("analysis", "kesco.frontend.standard"),  # and which headers are the library's, or CUDA's
    ("frontend", "kesco.toolchain.mending"),  # what nvcc alone takes is read alike on both sides
    ("frontend", "kesco.toolchain.precompiled"),  # libclang's half of the headers is kept as clang's is
}
# A second opinion must not reuse the first one's code.
ONLY = {"verify": {"ir", "source", "diagnostics"}}
MAY_PRINT = {"cli", "wrapper"}  # the wrapper is a program of its own, which may not load the command line
# Files allowed to be longer than LONGEST lines. Split by meaning instead of adding to it.
LONG_FILES: set[str] = set()
LONGEST = 400


def part_of(module: str) -> str:
    """The part of the package a module belongs to: ``kesco.ir.dfg`` → ``ir``."""
    return [*module.split("."), ""][1]


def modules(package: Path) -> Iterator[tuple[str, Path]]:
    """Every module of the package by its dotted name."""
    for path in sorted(package.rglob("*.py")):
        names = ("kesco", *path.relative_to(package).with_suffix("").parts)
        yield ".".join(names[:-1] if names[-1] == "__init__" else names), path


def imports(tree: ast.AST, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """The modules of kesco that a module imports, with their lines; also inside functions and TYPE_CHECKING."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name.startswith("kesco."))
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.split(".")[: None if is_package and node.level == 1 else -node.level + is_package]
                base = ".".join([*parents, *([base] if base else [])])
            if base == "kesco":
                yield from ((node.lineno, f"kesco.{alias.name}") for alias in node.names)
            elif base.startswith("kesco."):
                yield node.lineno, base


def forbidden_imports(package: Path) -> list[str]:
    """Imports that do not go down, as ``file:line: reason``."""
    found = []
    for module, path in modules(package):
        part = part_of(module)
        if not part:
            continue
        if part not in LEVEL:
            found.append(f"{path}: '{part}' has no level; add it to LEVELS")
            continue
        tree = ast.parse(path.read_text("utf-8"))
        for line, target in imports(tree, module, path.name == "__init__.py"):
            other = part_of(target)
            if other == part or (part, target) in ALLOWED or target == "kesco.__version__":
                continue
            if other not in LEVEL:
                found.append(f"{path}:{line}: imports {target}, which has no level")
            elif part in ONLY and other not in ONLY[part]:
                found.append(f"{path}:{line}: {part} may import only {sorted(ONLY[part])}, not {target}")
            elif LEVEL[other] >= LEVEL[part]:
                found.append(f"{path}:{line}: {part} may not import {target}: imports go down only")
    return found


_EXITS = {"print", "exit", "quit", "sys.exit", "os._exit", "sys.stdout.write", "sys.stderr.write"}
_SAYS = {"click.echo", "click.secho", "click.echo_via_pager", "rich.print", "console.print"}


def prints_or_exits(package: Path) -> list[str]:
    """Calls that print or end the program outside cli.py, as ``file:line: call``."""
    found = []
    for module, path in modules(package):
        if part_of(module) in MAY_PRINT:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in _EXITS | _SAYS:
                found.append(f"{path}:{node.lineno}: {ast.unparse(node.func)}")
            elif isinstance(node, ast.Raise) and node.exc and ast.unparse(node.exc).startswith("SystemExit"):
                found.append(f"{path}:{node.lineno}: raise SystemExit")
    return found


def too_long(package: Path) -> list[str]:
    """Files of more than LONGEST lines."""
    lengths = {path: len(path.read_text("utf-8").splitlines()) for _, path in modules(package)}
    return [
        f"{path}: {length} lines, split it by meaning (at most {LONGEST})"
        for path, length in lengths.items()
        if length > LONGEST and path.relative_to(package).as_posix() not in LONG_FILES
    ]


def test_imports_go_down_only() -> None:
    assert forbidden_imports(PACKAGE) == []


def test_only_the_command_line_prints_or_exits() -> None:
    assert prints_or_exits(PACKAGE) == []


def test_files_stay_short() -> None:
    assert too_long(PACKAGE) == []


def test_the_list_of_long_files_has_no_leftovers() -> None:
    still = {path.relative_to(PACKAGE).as_posix() for _, path in modules(PACKAGE)}
    assert still >= LONG_FILES


# A checker that never fails is no checker: each rule, broken once.


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("source.py", "import kesco.errors", "source may not import kesco.errors"),
        ("ir/dfg.py", "from kesco.frontend import parse", "ir may not import kesco.frontend"),
        (
            "analysis/effects.py",
            "from kesco.frontend.parse import parse",
            "analysis may not import kesco.frontend.parse",
        ),
        ("synchronize.py", "from kesco import scheduling", "synchronize may not import kesco.scheduling"),
        ("emit/edits.py", "def f():\n    from ..pipeline import run", "emit may not import kesco.pipeline"),
        ("emit/__init__.py", "from ..cli import main", "emit may not import kesco.cli"),
        ("verify/order.py", "from kesco.errors import InputError", "verify may import only"),
        ("verify/order.py", "from kesco.dataflow import build", "verify may import only"),
        ("pipeline.py", "from kesco.cli import main", "pipeline may not import kesco.cli"),
        ("newcomer.py", "", "'newcomer' has no level"),
        ("cli.py", "import kesco.nowhere", "which has no level"),
    ],
)
def test_a_forbidden_import_is_found(tmp_path: Path, file: str, text: str, reason: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    (problem,) = forbidden_imports(tmp_path)
    assert reason in problem


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("analysis/resolve.py", "from kesco.frontend.api_table import load\nfrom kesco.analysis import buffers"),
        ("ir/dfg.py", "from .access import Access\nfrom . import flow"),
        ("verify/order.py", "from kesco.ir import dfg\nfrom kesco import source, diagnostics"),
        ("cli.py", "import kesco.pipeline, networkx, llvmlite.binding\nfrom kesco import __version__"),
    ],
)
def test_an_import_that_goes_down_is_fine(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    assert forbidden_imports(tmp_path) == []


@pytest.mark.parametrize(
    "text",
    ["print(1)", "import sys\nsys.exit(1)", "click.echo('a')", "raise SystemExit(2)", "raise SystemExit", "exit()"],
)
def test_printing_and_exiting_is_found(tmp_path: Path, text: str) -> None:
    for name in ("emit.py", "cli.py"):
        (tmp_path / name).write_text(text)
    (problem,) = prints_or_exits(tmp_path)
    assert "emit.py" in problem


def test_a_long_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text("pass\n" * (LONGEST + 1))
    (tmp_path / "short.py").write_text("pass\n" * LONGEST)
    (problem,) = too_long(tmp_path)
    assert "long.py: 401 lines" in problem
