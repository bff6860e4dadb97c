"""What kesco did to each source of a build, in the folder that ``KESCO_REPORT_DIR`` names.

A JSON file for programs and a page for people, for each source that kesco read; for one that it could not read, or that
has nothing to read, only the first.
"""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Mapping
from typing import Any

from kesco.wrapper.files import digest, write_whole


def write(folder: str, found: Mapping[str, dict[str, Any]]) -> None:
    """Write the reports of these entries; one that cannot be written is no error of the build."""
    for source, entry in found.items():
        path = os.path.abspath(source)
        report = {
            "source": path,
            "rewritten": bool(entry["text"]),
            "compiled_as_it_is_because": entry["why"],
            **entry["report"],
        }
        name = os.path.join(folder, f"{os.path.basename(source)}.{digest([os.fsencode(path)])[:10]}")
        try:
            os.makedirs(folder, exist_ok=True)
            write_whole(f"{name}.json", json.dumps(report, indent=1, sort_keys=True).encode() + b"\n")
            if page := entry.get("page"):
                write_whole(f"{name}.html", zlib.decompress(base64.b64decode(page)))
        except OSError:
            pass


def packed(page: str) -> str:
    """A page as an entry keeps it: about a tenth as long."""
    return base64.b64encode(zlib.compress(page.encode(), 9)).decode()
