// A struct in two registers, and one in none: the names must not be those of neighbours. Compared: nothing
__global__ void k1(float* p) { p[threadIdx.x] += 1; }
__global__ void k2(float* p) { p[threadIdx.x] *= 2; }
struct Tag {};
struct P { float *x, *y; };
template <typename S, typename E>
void work(S s, float* a, float* b, float* e, E t) {
  k1<<<1, 32>>>(a);
  k2<<<1, 32>>>(b);
}
void run(P p, float* a, float* b, float* c) { work(p, a, b, c, Tag()); }
