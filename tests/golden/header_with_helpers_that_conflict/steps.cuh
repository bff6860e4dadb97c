#pragma once

__global__ void blur(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x] * 0.5f; }
__global__ void scale(float* x, float by) { x[threadIdx.x] *= by; }

static float* latest;

static void smooth(const float* in, float* out) {
  blur<<<1, 32>>>(in, out);
  latest = out;
}

static void halve(float* x) { scale<<<1, 32>>>(latest, 0.5f); }
