// Copies and memsets of pitched memory move like others; those of host memory and of arrays stay.
#include <cuda_runtime.h>

__global__ void step(float* x, size_t pitch) { x[threadIdx.x + blockIdx.x * pitch / sizeof(float)] += 1; }

// <prologue: 3 streams, 3 events>

int main() {
  float h[64], *a, *b, *c;
  size_t pitch;
  cudaMallocPitch(&a, &pitch, 64, 4);
  cudaMallocPitch(&b, &pitch, 64, 4);
  cudaMallocPitch(&c, &pitch, 64, 4);
  cudaPitchedPtr volume = make_cudaPitchedPtr(c, pitch, 64, 4);
  cudaMemcpy2D(a, pitch, h, 64, 64, 4, cudaMemcpyHostToDevice);
  KescoStreams* kesco = &kesco_streams();
  cudaMemset2DAsync(b, pitch, 0, 64, 4, kesco->stream[2]);
  cudaMemset3DAsync(volume, 0, make_cudaExtent(64, 4, 1), kesco->stream[0]);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: step#1, step#2 wait for this
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: step#1 waits for cudaMemset3D (it fills the device: blocks that start beside its end crowd on few multiprocessors)
  step<<<4, 16, 0, kesco->stream[1]>>>(a, pitch);
  cudaStreamWaitEvent(kesco->stream[2], kesco->done[0], 0);  // kesco: step#2 waits for cudaMemset3D (it fills the device: blocks that start beside its end crowd on few multiprocessors)
  step<<<4, 16, 0, kesco->stream[2]>>>(b, pitch);
  cudaEventRecord(kesco->done[1], kesco->stream[2]);  // kesco: cudaMemcpy2D#2 waits for this
  step<<<4, 16, 0, kesco->stream[0]>>>(c, pitch);
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[1], 0);  // kesco: wait for step#2 (WAW on b)
  cudaMemcpy2DAsync(b, pitch, a, pitch, 64, 4, cudaMemcpyDeviceToDevice, kesco->stream[1]);
  cudaEventRecord(kesco->done[2], kesco->stream[1]);  // kesco: cudaMemcpy2D#3 waits for this
  cudaMemset2DAsync(a, pitch, 0, 64, 4, kesco->stream[1]);
  step<<<4, 16, 0, kesco->stream[0]>>>(c, pitch);
  cudaStreamWaitEvent(kesco->stream[0], kesco->done[2], 0);  // kesco: wait for cudaMemcpy2D#2 (RAW on b)
  cudaMemcpy2DAsync(c, pitch, b, pitch, 64, 4, cudaMemcpyDeviceToDevice, kesco->stream[0]);
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = volume;
  copy.dstPtr = make_cudaPitchedPtr(a, pitch, 64, 4);
  copy.extent = make_cudaExtent(64, 4, 1);
  copy.kind = cudaMemcpyDeviceToDevice;
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: cudaMemcpy3D sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: cudaMemcpy3D sees all of this as done on the default stream
  cudaMemcpy3D(&copy);
  cudaMemcpy2D(h, 64, a, pitch, 64, 4, cudaMemcpyDeviceToHost);
  return h[0] != 0;
}
