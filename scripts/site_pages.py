"""A hook of MkDocs (`mkdocs.yml`): the site has the folders of the repository, so that one text serves both.

In: the files below ``docs/``. Out: the pages and what they link to, each under its path in the repository, and their
text with fences that Python-Markdown knows. So a relative link that works in the repository works in the site, and
MkDocs itself finds those that do not.

1. `on_files`: the files of `FOLDERS` and `PAGES` take the place of those that MkDocs found.
2. `on_page_markdown`: what `tests/test_docs.py` is told in a fence's first line is not for readers.

A link to a file that is in neither is left as it is, and ``mkdocs build --strict`` fails.
"""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "LICENSE", "CITATION.cff")
SOURCES = ("kesco/runtime/hooks/launch_hooks.h", "scripts/delays.py")  # that pages link to
FOLDERS = ("docs", "examples", "workloads")
SHOWN = {
    ".css",
    ".md",
    ".py",
    ".svg",
    ".png",
    ".json",
    ".cu",
    ".cuh",
    ".h",
    ".toml",
    ".ini",
    ".build",
    ".txt",
    ".kftrace",
    ".yaml",
    ".sh",
    ".conf",
    ".sbatch",
}
PLAIN = {"Makefile", "LICENSE", "CITATION.cff"}
_FENCE = re.compile(r"^( *```[\w+]+) [^\n]+$", re.MULTILINE)


def sources() -> list[str]:
    """Paths in the repository of all that belongs to the site."""
    below = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    found = [path for path in (*below, *(ROOT / name for name in (*PAGES, *SOURCES))) if path.is_file()]
    return sorted(str(path.relative_to(ROOT)) for path in found if path.suffix in SHOWN or path.name in PLAIN)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The repository's files instead of those of ``docs/``; the theme's own stay."""
    own = [
        file for file in files if file.generated_by or not Path(file.abs_src_path or "").is_relative_to(ROOT / "docs")
    ]
    made = [File.generated(config, path, abs_src_path=str(ROOT / path)) for path in sources()]
    return Files([*own, *made])


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A page's text with bare languages behind its fences."""
    return _FENCE.sub(r"\1", markdown)
