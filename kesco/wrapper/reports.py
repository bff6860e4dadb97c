"""What kesco did to each source of a build, as one JSON file a source in the folder that ``KESCO_REPORT_DIR`` names."""

from __future__ import annotations

import json
import os
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
        name = f"{os.path.basename(source)}.{digest([os.fsencode(path)])[:10]}.json"
        try:
            os.makedirs(folder, exist_ok=True)
            write_whole(os.path.join(folder, name), json.dumps(report, indent=1, sort_keys=True).encode() + b"\n")
        except OSError:
            pass
