// Clang's CUDA wrapper includes cuda.h, the driver's, before the first line of every file; nvcc does not. So a program
// may have a cuda.h of its own, and may ask whether the driver's is there. For the wrapper this folder comes
// before the program's.
#ifndef KESCO_LIKE_NVCC
#include KESCO_CUDA_H
#else
#define __cuda_cuda_h__
#include_next <cuda.h>
#endif
