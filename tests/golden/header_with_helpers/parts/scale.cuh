#ifndef SCALE_CUH
#define SCALE_CUH
#include "sizes.h"

__global__ void scale(float* x, float by) { x[threadIdx.x] *= by; }

static void scaled(float* x, float by) { scale<<<1, COUNT>>>(x, by); }
#endif
