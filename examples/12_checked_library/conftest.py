"""Tests of a library with device code: `pytest --kesco-check` looks for races in what they do."""

pytest_plugins = ["kesco.check.plugin"]
