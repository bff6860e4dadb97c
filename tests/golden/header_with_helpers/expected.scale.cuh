#ifndef SCALE_CUH
#define SCALE_CUH
#include "parts/sizes.h"

__global__ void scale(float* x, float by) { x[threadIdx.x] *= by; }

static void scaled(float* x, float by) { scale<<<1, COUNT, 0, kesco_current()>>>(x, by); }
#endif
