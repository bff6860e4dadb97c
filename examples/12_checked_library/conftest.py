pytest_plugins = ["kesco.check.plugin"]
