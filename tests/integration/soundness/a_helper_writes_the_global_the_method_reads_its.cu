// B3 the other way round: a helper writes the global, the method reads its own field. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
struct S { float *a, *b; void run(float* q); };
S G;
static void set(float* q) { G.a = q; }
void S::run(float* q) { set(q); k1<<<1, 64>>>(a); k2<<<1, 64>>>(q); }
