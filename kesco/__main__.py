"""``python -m kesco`` is the same as ``kesco``."""

from kesco.cli import main

if __name__ == "__main__":
    main()
