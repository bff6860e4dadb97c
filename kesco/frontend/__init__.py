"""libclang's view of a CUDA file, lowered to `kesco.ir.program`."""
