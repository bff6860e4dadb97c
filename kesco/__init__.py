"""kesco compiles serial CUDA into concurrent CUDA and proves that no dependence was lost."""

__version__ = "0.1.0"
