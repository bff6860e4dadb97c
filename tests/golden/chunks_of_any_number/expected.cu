// How many chunks there are is not known: copies in, kernels and copies out of different chunks run beside each other.
#include <cstdlib>
__global__ void scale(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = 2 * x[i] + 1;
}
__global__ void scale_from(float* x, int offset, int n) {
  int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) x[offset + i] *= 3;
}
// <prologue: 3 streams, 6 events>

int main(int argc, char** argv) {
  int chunks = argc > 1 ? atoi(argv[1]) : 16, chunk = argc > 2 ? atoi(argv[2]) : 1 << 20, n = chunks * chunk;
  float *d, *h;
  cudaMalloc(&d, (size_t)n * sizeof(float));
  cudaMallocHost(&h, (size_t)n * sizeof(float));
  KescoStreams* kesco = &kesco_streams();
  for (int c = 0; c < chunks; ++c) {
    kesco = kesco_pace(kesco, 0);  // kesco: on one stream while that is faster
    size_t at = (size_t)c * chunk, bytes = chunk * sizeof(float);
    cudaMemcpyAsync(d + at, h + at, bytes, cudaMemcpyHostToDevice, kesco->stream[1]);
    cudaEventRecord(kesco->done[0], kesco->stream[1]);  // kesco: scale#1 waits for this
    cudaStreamWaitEvent(kesco->stream[0], kesco->done[0], 0);  // kesco: wait for cudaMemcpy#1 (RAW on d, WAW on d)
    scale<<<(chunk + 255) / 256, 256, 0, kesco->stream[0]>>>(d + at, chunk);
    cudaEventRecord(kesco->done[1], kesco->stream[0]);  // kesco: cudaMemcpy#2 waits for this
    cudaStreamWaitEvent(kesco->stream[2], kesco->done[1], 0);  // kesco: wait for scale#1 (RAW on d)
    cudaMemcpyAsync(h + at, d + at, bytes, cudaMemcpyDeviceToHost, kesco->stream[2]);
  }
  cudaDeviceSynchronize();
  for (int offset = 0; offset < n; offset += chunk) {  // the last chunk may be shorter
    kesco = kesco_pace(kesco, 1);  // kesco: on one stream while that is faster
    int length = n - offset < chunk ? n - offset : chunk;
    cudaMemcpyAsync(&d[offset], &h[offset], length * sizeof(float), cudaMemcpyHostToDevice, kesco->stream[1]);
    cudaEventRecord(kesco->done[2], kesco->stream[1]);  // kesco: scale_from waits for this
    cudaStreamWaitEvent(kesco->stream[0], kesco->done[2], 0);  // kesco: wait for cudaMemcpy#3 (RAW on d, WAW on d)
    scale_from<<<64, 256, 0, kesco->stream[0]>>>(d, offset, length);
    cudaEventRecord(kesco->done[3], kesco->stream[0]);  // kesco: cudaMemcpy#4 waits for this
    if (length < 100) continue;
    cudaStreamWaitEvent(kesco->stream[2], kesco->done[3], 0);  // kesco: wait for scale_from (RAW on d)
    cudaMemcpyAsync(&h[offset], &d[offset], length * sizeof(float), cudaMemcpyDeviceToHost, kesco->stream[2]);
    cudaEventRecord(kesco->done[4], kesco->stream[2]);  // kesco: scale#2 waits for this
  }
  cudaStreamWaitEvent(kesco->stream[0], kesco->done[4], 0);  // kesco: wait for cudaMemcpy#4 (WAR on d)
  scale<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(d, n);  // needs all chunks
  cudaDeviceSynchronize();
  float *to = d, *from = h;
  int left = chunks;
  while (left > 0) {
    kesco = kesco_pace(kesco, 2);  // kesco: on one stream while that is faster
    cudaMemcpyAsync(to, from, chunk * sizeof(float), cudaMemcpyHostToDevice, kesco->stream[1]);
    cudaEventRecord(kesco->done[5], kesco->stream[1]);  // kesco: scale#3 waits for this
    cudaStreamWaitEvent(kesco->stream[0], kesco->done[5], 0);  // kesco: wait for cudaMemcpy#5 (RAW on d, WAW on d)
    scale<<<(chunk + 255) / 256, 256, 0, kesco->stream[0]>>>(to, chunk);
    to += chunk;
    from += chunk;
    --left;
  }
  cudaDeviceSynchronize();
}
