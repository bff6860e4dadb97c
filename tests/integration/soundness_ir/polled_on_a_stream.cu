// Another function polls device memory on a stream of its own. Ordered: k1, k2
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k3(float* q) { q[0] -= 3; }
static cudaStream_t s;
void poll(float* flag) { float h = 0; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); while (h == 0) { cudaMemcpyAsync(&h, flag, 4, cudaMemcpyDeviceToHost, s); cudaStreamSynchronize(s); } }
void work(float* a, float* flag, float* c) { k3<<<1, 1>>>(c); k1<<<1, 1>>>(a); k2<<<1, 1>>>(flag); goto e; e: return; }
