"""``kesco clang-plugin``: what the Clang plugin calls (docs/plugins.md), and nobody else, so `--help` has it not."""

from __future__ import annotations

import click


@click.command("clang-plugin", hidden=True)
@click.option("--driver", type=int, required=True, help="The process of clang's driver.")
@click.option("--pass", "asking_pass", required=True, help="The pass that asks: 'host' or an architecture.")
@click.option("--source", required=True, help="The source, as the driver's command names it.")
@click.option("--answer", "folder", required=True, help="The folder that the passes share.")
@click.option("--plugin", required=True, help="The plugin's file.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def plugin_command(
    driver: int, asking_pass: str, source: str, folder: str, plugin: str, words: tuple[str, ...]
) -> None:
    """Write what all passes of one run of clang's driver compile into a folder."""
    from kesco.wrapper.plugin import answer

    answer(driver, asking_pass, source, folder, plugin, words)
