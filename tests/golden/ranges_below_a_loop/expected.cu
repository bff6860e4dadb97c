// A range-based loop that is all of another loop's body gets braces around its counter; one buffer twice stays in order.
__global__ void scale(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }

// <prologue: 4 streams, 0 events, 2 stretches>

// <batches of 3 loops>

static void apart(int steps) {
  const int n = 1 << 20;
  float* buffers[4];
  for (auto& p : buffers) cudaMalloc(&p, n * sizeof(float));
  KescoStreams* kesco = kesco_stretch(&kesco_streams(), 0, false);
  KescoBatch kesco_batch_0(0);  // kesco: launches of this loop are given to the device many at a time, as graphs
  for (int step = 0; step < steps; ++step)
    {
      kesco_batch_trip();
      int kesco_trip4 = -1;  // kesco: counts the turns of the loop
    for (float* p : buffers)
      {
        kesco_batch_trip();
      ++kesco_trip4;
      scale<<<n / 256, 256, 0, kesco_batch(kesco->stream[kesco_trip4])>>>(p, n);
      }
    }
  kesco_batch_0.end();
  cudaDeviceSynchronize();
  kesco = kesco_stretch(kesco, 1);  // kesco: on one stream while that is faster
  if (steps > 3)
    {
      int kesco_trip2 = -1;  // kesco: counts the turns of the loop
    KescoBatch kesco_batch_1(1);  // kesco: launches of this loop are given to the device many at a time, as graphs
    for (float* p : buffers) {
      kesco_batch_trip();
      ++kesco_trip2;
      if (p == nullptr) continue;
      scale<<<n / 256, 256, 0, kesco_batch(kesco->stream[kesco_trip2])>>>(p, n);
    }
    kesco_batch_1.end();
    }
  else
    {
      int kesco_trip3 = -1;  // kesco: counts the turns of the loop
    KescoBatch kesco_batch_2(2);  // kesco: launches of this loop are given to the device many at a time, as graphs
    for (float* p : buffers) {
      kesco_batch_trip();
      ++kesco_trip3;
      scale<<<n / 256, 256, 0, kesco_batch(kesco->stream[kesco_trip3])>>>(p, n / 2);
    }
    kesco_batch_2.end();
    }
  for (float* p : buffers) {
    for (int s = 0; s < 4; ++s) { cudaEventRecord(kesco->tail[s], kesco->stream[s]); cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[s], 0); }  // kesco: cudaFree#1 sees all of this as done on the default stream
    cudaFree(p);
  }
}

static void the_same(int steps) {
  const int n = 1 << 20;
  float *x, *y;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  float* buffers[] = {x, x, y};
  KescoStreams* kesco = &kesco_streams();
  for (int step = 0; step < steps; ++step)
    {
      int kesco_trip = -1;  // kesco: counts the turns of the loop
    for (float* p : buffers)
      {
      ++kesco_trip;
      scale<<<n / 256, 256, 0, kesco->stream[kesco_trip == 0 || kesco_trip == 1 ? 0 : 1]>>>(p, n);
      }
    }
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: cudaFree#1 sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: cudaFree#1 sees all of this as done on the default stream
  cudaFree(x);
  cudaFree(y);
}

int main(int argc, char**) {
  apart(argc);
  the_same(argc);
}
