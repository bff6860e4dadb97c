"""What each operation reads and writes: kernels' effects, pointer expressions, and both together."""
