"""Uses the library as any Python program would."""

import ctypes
from pathlib import Path


def normalize(table: list[float], rows: int) -> int:
    """Divide each column of a table by its total; 0 if nothing failed."""
    library = ctypes.CDLL(str(Path(__file__).parent / "libtotals.so"))
    return library.normalize((ctypes.c_float * len(table))(*table), rows, len(table) // rows)


if __name__ == "__main__":
    normalize([1.0] * 4096, 1024)
