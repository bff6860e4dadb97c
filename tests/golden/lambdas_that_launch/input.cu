// A lambda that launches is a function: called for two fields it runs on two streams, and what is independent in one
// that is called at once gets streams of its own.
__global__ void move(const float* from, float* to, float c) { to[threadIdx.x] = from[threadIdx.x] * c; }
__global__ void cut(float* p) { p[threadIdx.x] += 1; }
__global__ void both(const float* a, const float* b, float* c) { c[threadIdx.x] = a[threadIdx.x] * b[threadIdx.x]; }

struct Tables {
  float *first, *second;
};

int main() {
  float *u, *v, *u2, *v2, *w;
  cudaMalloc(&u, 4096);
  cudaMalloc(&v, 4096);
  cudaMalloc(&u2, 4096);
  cudaMalloc(&v2, 4096);
  cudaMalloc(&w, 4096);
  float c = 2;
  auto component = [&](const float* from, float* to) {
    move<<<1, 256>>>(from, to, c);
    cut<<<1, 256>>>(to);
  };
  component(u, u2);
  component(v, v2);
  both<<<1, 256>>>(u2, v2, w);
  const Tables t = [] {
    Tables made;
    cudaMalloc(&made.first, 4096);
    cudaMalloc(&made.second, 4096);
    cut<<<1, 256>>>(made.first);
    cut<<<1, 256>>>(made.second);
    return made;
  }();
  both<<<1, 256>>>(t.first, t.second, w);
  cudaDeviceSynchronize();
}
