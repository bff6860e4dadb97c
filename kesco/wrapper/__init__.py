"""Kesco inside a build: what stands in the place of nvcc or clang++ and hands them the rewritten file.

`front` is what a build starts; it must begin within milliseconds, so the modules that it needs use neither dataclasses
nor pathlib. `analyse` is a process of its own, where the compiler proper runs: whatever happens there, the build goes
on with the file as it is.
"""
