// What a CUDA toolkit's folder of headers is known by.
