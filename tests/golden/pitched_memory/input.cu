// Copies and memsets of pitched memory move like others; those of host memory and of arrays stay.
#include <cuda_runtime.h>

__global__ void step(float* x, size_t pitch) { x[threadIdx.x + blockIdx.x * pitch / sizeof(float)] += 1; }

int main() {
  float h[64], *a, *b, *c;
  size_t pitch;
  cudaMallocPitch(&a, &pitch, 64, 4);
  cudaMallocPitch(&b, &pitch, 64, 4);
  cudaMallocPitch(&c, &pitch, 64, 4);
  cudaPitchedPtr volume = make_cudaPitchedPtr(c, pitch, 64, 4);
  cudaMemcpy2D(a, pitch, h, 64, 64, 4, cudaMemcpyHostToDevice);
  cudaMemset2D(b, pitch, 0, 64, 4);
  cudaMemset3D(volume, 0, make_cudaExtent(64, 4, 1));
  step<<<4, 16>>>(a, pitch);
  step<<<4, 16>>>(b, pitch);
  step<<<4, 16>>>(c, pitch);
  cudaMemcpy2D(b, pitch, a, pitch, 64, 4, cudaMemcpyDeviceToDevice);
  cudaMemset2DAsync(a, pitch, 0, 64, 4, 0);
  step<<<4, 16>>>(c, pitch);
  cudaMemcpy2DAsync(c, pitch, b, pitch, 64, 4, cudaMemcpyDeviceToDevice);
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = volume;
  copy.dstPtr = make_cudaPitchedPtr(a, pitch, 64, 4);
  copy.extent = make_cudaExtent(64, 4, 1);
  copy.kind = cudaMemcpyDeviceToDevice;
  cudaMemcpy3D(&copy);
  cudaMemcpy2D(h, 64, a, pitch, 64, 4, cudaMemcpyDeviceToHost);
  return h[0] != 0;
}
