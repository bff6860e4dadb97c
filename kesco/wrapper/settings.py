"""What the environment and a launcher's own options say about how kesco works in a build.

In: the environment, and words such as ``--streams 4``. Out: `Settings`. Raises `Wrong` with one line for what makes no
sense: a build that silently ignores a setting would be worse than one that ends.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

VALUES = {
    "--streams": "streams",
    "--strategy": "strategy",
    "--zone-limit": "zone_limit",
    "--zone-age": "zone_age",
    "--promise": "promise",
    "--emit": "emit",
    "--copies": "copies",
    "--order": "order",
    "--syncs": "syncs",
    "--launches": "launches",
    "--clang": "clang",
    "--libclang": "libclang",
    "--cuda-path": "cuda_path",
}
"""Options that take a value, and their fields."""
SWITCHES = {
    "--force": ("force", True),
    "--fikit": ("fikit", True),
    "--prefetch": ("prefetch", True),
    "--no-prefetch": ("prefetch", False),
}
"""Options without one, their fields, and what they are set to."""
_CHOICES = {
    "strategy": ("kesco", "serial", "zones", "zones-fair"),
    "emit": ("streams", "graph", "auto"),
    "copies": ("auto", "keep", "move"),
    "order": ("need", "keep"),
    "syncs": ("move", "keep"),
    "launches": ("batch", "keep"),
}
_RANGES = {"streams": (1, 64), "zone_limit": (1, 64), "zone_age": (0, 1000), "promise": (0, 1000)}
_OFF = {"off", "0", "no", "false"}
_ON = {"", "on", "1", "yes", "true"}
DECIDING = (
    *("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "NVCC_CCBIN", "CUDA_HOME", "CUDA_PATH"),
    *("KESCO_CLANG", "KESCO_LIBCLANG", "KESCO_CUDA_PATH", "KESCO_ARCH"),
)
"""Variables that may change what kesco makes of a file."""


class Wrong(Exception):
    """A setting that makes no sense, in one line."""


class Settings:
    """How kesco works in this build; `options` are fields of `kesco.options.Options`."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        state = environ.get("KESCO", "").strip().lower()
        if state not in _OFF | _ON | {"check"}:
            raise Wrong(f"KESCO is '{environ['KESCO']}': it is 'off', 'on' or 'check'")
        self.off, self.check = state in _OFF, state == "check"
        self.options: dict[str, object] = {}
        self.reports = environ.get("KESCO_REPORT_DIR", "")
        if self.reports:
            self.options["page"] = True
        home = environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        self.cache = os.path.join(home, "kesco", "build")
        try:
            self.timeout = float(environ.get("KESCO_TIMEOUT") or 120)
        except ValueError:
            self.timeout = 0.0
        if not 0 < self.timeout < 1e6:
            raise Wrong(f"KESCO_TIMEOUT is '{environ['KESCO_TIMEOUT']}': it is a number of seconds")
        if flags := environ.get("KESCO_FLAGS"):
            import shlex

            try:
                words = shlex.split(flags)
            except ValueError as problem:
                raise Wrong(f"KESCO_FLAGS cannot be read: {problem}") from None
            self.add(words, "KESCO_FLAGS")

    def add(self, words: Sequence[str], origin: str) -> None:
        """Take options as `kesco compile` has them; raises `Wrong` for one that it does not have."""
        left = list(words)
        while left:
            word = left.pop(0)
            name, equals, value = word.partition("=")
            if word in SWITCHES:
                key, switch = SWITCHES[word]
                self.options[key] = switch
                continue
            if name not in VALUES:
                known = " ".join([*VALUES, *SWITCHES])
                raise Wrong(f"{origin} has '{word}', which is none of {known}")
            if not equals:
                if not left:
                    raise Wrong(f"{origin}: '{word}' needs a value")
                value = left.pop(0)
            self.options[VALUES[name]] = _value(VALUES[name], value, f"{origin}: {name}")


def _value(key: str, text: str, what: str) -> object:
    if key in _RANGES:
        least, most = _RANGES[key]
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise Wrong(f"{what} is '{text}': it is a number from {least} to {most}")
        return int(text)
    if key in _CHOICES and text not in _CHOICES[key]:
        raise Wrong(f"{what} is '{text}': it is {' or '.join(_CHOICES[key])}")
    return text
