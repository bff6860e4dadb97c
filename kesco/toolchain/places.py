"""Where to look: the file system's root, PATH, the folders wheels are installed in, and a cache for slow answers.

A value of its own so that tests can point the whole discovery at a made-up machine, and so that no other module reads
`os.environ` or `sys.path`. Wheels are found by looking at folders, not through importlib.metadata: importing that
alone costs more than the rest of the discovery.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_DIST_INFO = re.compile(r"(?P<name>.+)-(?P<version>[^-]+)\.dist-info$")


@dataclass(frozen=True)
class Places:
    """The parts of a machine that discovery looks at."""

    environ: Mapping[str, str]
    root: Path = Path("/")
    wheels: tuple[Path, ...] = ()
    machine: str = field(default_factory=lambda: os.uname().machine)

    @staticmethod
    def current(environ: Mapping[str, str]) -> Places:
        """This machine, as the running interpreter sees it."""
        folders = (Path(entry) for entry in sys.path if entry)
        return Places(environ, wheels=tuple(dict.fromkeys(folder for folder in folders if folder.is_dir())))

    @property
    def target(self) -> str:
        """The target triple of host code, spelled out because ziglang's clang defaults to musl."""
        return f"{'aarch64' if self.machine == 'arm64' else self.machine}-unknown-linux-gnu"

    @functools.cached_property
    def path(self) -> tuple[Path, ...]:
        """The folders of PATH that exist."""
        entries = self.environ.get("PATH", os.defpath).split(os.pathsep)
        return tuple(dict.fromkeys(Path(entry) for entry in entries if entry and Path(entry).is_dir()))

    @functools.cached_property
    def _distributions(self) -> dict[str, str]:
        """Installed wheels and their versions; the first folder wins, as it does for imports."""
        found: dict[str, str] = {}
        for folder in self.wheels:
            for name in names(folder):
                if match := _DIST_INFO.match(name):
                    found.setdefault(match["name"].replace("_", "-").lower(), match["version"])
        return found

    def version_of(self, distribution: str) -> str | None:
        """The installed version of a wheel, or None."""
        return self._distributions.get(distribution)

    def in_wheels(self, relative: str) -> Path | None:
        """The first file or folder of this name in the folders of installed wheels."""
        return next((path for folder in self.wheels if (path := folder / relative).exists()), None)

    def which(self, name: str) -> Path | None:
        """The program of this name: a path as it is, a bare name through PATH."""
        candidates = [Path(name)] if os.sep in name else [folder / name for folder in self.path]
        return next((path for path in candidates if path.is_file() and os.access(path, os.X_OK)), None)

    def system(self, pattern: str) -> list[Path]:
        """Paths below the root that match a pattern, highest version first."""
        return sorted(self.root.glob(pattern), key=lambda path: natural(str(path)), reverse=True)

    @property
    def cache(self) -> Path:
        """The file that keeps the answers of programs that had to be run."""
        return cache_folder(self.environ) / "toolchain.json"


def cache_folder(environ: Mapping[str, str]) -> Path:
    """The user's folder for what kesco keeps from one run to the next."""
    home = environ.get("HOME") or "~"
    return Path(environ.get("XDG_CACHE_HOME") or f"{home}/.cache").expanduser() / "kesco"


def names(folder: Path) -> list[str]:
    """The names in a folder, none if it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """A sort key in which 9 comes before 10."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", text))


def recall(places: Places, program: Path) -> dict[str, str] | None:
    """What was learned about a program earlier, unless the file has changed since."""
    try:
        entry = json.loads(places.cache.read_text("utf-8"))[str(program)]
        return dict(entry["facts"]) if entry["stamp"] == _stamp(program) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remember(places: Places, program: Path, facts: Mapping[str, str]) -> None:
    """Keep what was learned about a program; a cache that cannot be written is no error."""
    with contextlib.suppress(OSError):
        try:
            known = json.loads(places.cache.read_text("utf-8"))
        except (OSError, ValueError):
            known = {}
        known = known if isinstance(known, dict) else {}
        known[str(program)] = {"stamp": _stamp(program), "facts": dict(facts)}
        places.cache.parent.mkdir(parents=True, exist_ok=True)
        # Written aside and renamed, since several kesco processes may do this at once.
        aside = places.cache.with_suffix(f".{os.getpid()}")
        try:
            aside.write_text(json.dumps(known, indent=1, sort_keys=True), "utf-8")
            aside.replace(places.cache)
        finally:
            aside.unlink(missing_ok=True)


def _stamp(program: Path) -> str:
    status = program.stat()
    return f"{status.st_mtime_ns}:{status.st_size}"
