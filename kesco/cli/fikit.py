"""``kesco fikit``: share one GPU among processes of different priority. The group, and what needs no GPU."""

from __future__ import annotations

import click


@click.group("fikit")
def fikit_group() -> None:
    """Share one GPU: fill the idle gaps of an urgent process with the kernels of others."""
