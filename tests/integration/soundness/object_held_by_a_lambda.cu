// A lambda holds a copy of the object whose method makes it, which puts a pointer back as it goes. Ordered: k1, k2
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k4(float* q) { q[0] -= 1; }
struct Restore {
  float** x;
  float* old;
  bool wanted;
  Restore(float** place, float* value) : x(place), old(value), wanted(false) {}
  Restore(const Restore& other) : x(other.x), old(other.old), wanted(true) {}
  ~Restore() { if (wanted) *x = old; }
  void look(float* other) {
    auto all = [*this] { return old; };
    *x = other;
  }
};
int main(int argc, char** argv) {
  float *a, *b, *z;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  cudaMalloc(&z, 256);
  float* cur = a;
  Restore keep(&cur, a);
  keep.look(b);
  k1<<<1, 1>>>(cur);
  k2<<<1, 1>>>(a);
  k4<<<1, 1>>>(z);
  return cudaDeviceSynchronize();
}
