// Each chunk of one allocation is copied in, worked on and copied out apart from the others.
__global__ void scale(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = 2 * x[i] + 1;
}
// <prologue: 4 streams, 0 events>

int main(int argc, char** argv) {
  int chunk = argc * 1000;
  float *d, *h;
  cudaMalloc(&d, 4 * chunk * sizeof(float));
  cudaMallocHost(&h, 4 * chunk * sizeof(float));
  KescoStreams* kesco = &kesco_streams();
  for (int c = 0; c < 4; c++) {
    cudaMemcpyAsync(d + c * chunk, h + c * chunk, chunk * sizeof(float), cudaMemcpyHostToDevice, kesco->stream[c]);
    scale<<<(chunk + 255) / 256, 256, 0, kesco->stream[c]>>>(d + c * chunk, chunk);
    cudaMemcpyAsync(h + c * chunk, d + c * chunk, chunk * sizeof(float), cudaMemcpyDeviceToHost, kesco->stream[c]);
  }
  cudaDeviceSynchronize();
}
