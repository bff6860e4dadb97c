"""The host side of a CUDA program as it runs, held against what the analysis says of it; no GPU is needed."""
