// A stencil between two buffers that change places by a temporary; a second field is worked on at the same time.
__global__ void relax(const float* from, float* to) { to[threadIdx.x] = from[threadIdx.x] * 0.5f; }

// <prologue: 2 streams, 0 events>

// <batches of 1 loops>

int main(int argc, char** argv) {
  float *u, *u_next, *v, *v_next;
  cudaMalloc(&u, 4096);
  cudaMalloc(&u_next, 4096);
  cudaMalloc(&v, 4096);
  cudaMalloc(&v_next, 4096);
  KescoStreams* kesco = &kesco_streams();
  KescoBatch kesco_batch_0(0);  // kesco: launches of this loop are given to the device many at a time, as graphs
  for (int step = 0; step < argc; ++step) {
    kesco_batch_trip();
    kesco = kesco_pace(kesco, 0);  // kesco: on one stream while that is faster
    relax<<<1, 32, 0, kesco_batch(kesco->stream[0])>>>(u, u_next);
    relax<<<1, 32, 0, kesco_batch(kesco->stream[1])>>>(v, v_next);
    float* t = u;
    u = u_next;
    u_next = t;
    t = v;
    v = v_next;
    v_next = t;
  }
  kesco_batch_0.end();
  cudaDeviceSynchronize();
  return 0;
}
