// A call runs beside others though an object is made for it that holds a record without code of its own; not where an
// object of its statement launches as it is made, copied or destroyed.
__global__ void cut(float* p) { p[threadIdx.x] += 1; }
template <class F>
__global__ void each(F f) { f(threadIdx.x); }
template <class F>
void parallel_for(const char*, F f) { each<<<1, 256>>>(f); }

struct View {
  float* data;
  explicit View(int n) { cudaMalloc(&data, n * sizeof(float)); }
  __host__ __device__ float& operator()(int i) const { return data[i]; }
};
struct Loud {
  float* at;
  explicit Loud(float* p) : at(p) {}
  ~Loud() { cut<<<1, 256>>>(at); }
};
static void given(const Loud& one, float* p) {
  cut<<<1, 256>>>(one.at);
  cut<<<1, 256>>>(p);
}

static void louds(float* p, float* q, float* r) {
  given(Loud(p), q);
  given(Loud(r), q);
}

int main() {
  View u(256), v(256), w(256);
  parallel_for("u", [=] __device__(int i) { u(i) = i; });
  parallel_for("v", [=] __device__(int i) { v(i) = 2 * i; });
  parallel_for("w", [=] __device__(int i) { w(i) = u(i) + v(i); });
  louds(u.data, v.data, w.data);
  cudaDeviceSynchronize();
}
