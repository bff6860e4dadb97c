"""The compilers kesco stands on: finding them, running them, and saying what is missing."""
