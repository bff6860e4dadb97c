"""The guide as a site: every page has its place in it, and no link or anchor is dead where MkDocs makes the anchors.

Links on GitHub are looked at in ``test_docs.py``; links to elsewhere by nobody, since that needs a network.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "workloads/README.md")


def places(configuration: str) -> list[str]:
    """The pages that the navigation names, in its order."""
    return re.findall(r"^ +- (?:[^:\n]+: )?(\S+\.md)$", configuration.partition("\nnav:\n")[2], re.MULTILINE)


def test_every_page_has_one_place() -> None:
    pages = [
        *PAGES,
        *(str(p.relative_to(ROOT)) for folder in ("docs", "examples") for p in ROOT.glob(f"{folder}/**/*.md")),
    ]
    assert sorted(places((ROOT / "mkdocs.yml").read_text("utf-8"))) == sorted(pages)


def build(configuration: Path, to: Path) -> subprocess.CompletedProcess[str]:
    """MkDocs' verdict on a site."""
    pytest.importorskip("mkdocs")
    command = (sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(configuration), "-d", str(to))
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def test_the_site_has_no_dead_link(tmp_path: Path) -> None:
    done = build(ROOT / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 0, done.stderr
    tutorial = (tmp_path / "site/docs/tutorial/index.html").read_text("utf-8")
    assert 'src="../img/particles.svg"' in tutorial and (tmp_path / "site/docs/img/particles.svg").is_file()
    assert "```" not in tutorial
    elsewhere = re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(https?:[^"]*)"', tutorial)
    assert elsewhere == [], "the site fetches nothing from elsewhere"


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    configuration = (ROOT / "mkdocs.yml").read_text("utf-8").replace("docs_dir: docs", "docs_dir: pages")
    configuration = re.sub(r"^hooks:\n.*\n", "", configuration, flags=re.MULTILINE).partition("\nnav:\n")[0]
    (tmp_path / "mkdocs.yml").write_text(configuration)
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages/index.md").write_text("# One\n\n[a](#two) [b](nowhere.md)\n")
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode != 0 and "'#two'" in done.stderr and "'nowhere.md'" in done.stderr
