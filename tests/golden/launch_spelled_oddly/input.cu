// Comments, tabs, line ends and continuations inside launches: cpy waits for both incs.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
__global__ void cpy(float* to, const float* from) { to[threadIdx.x] = from[threadIdx.x]; }
int main() {
  float *a, *b;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096);
	inc /* k */ <<< 1 , 32 /* >>> */ >>> /* args */ ( a ) /* ; */ ; // done
	inc<<<
	   1,
	   32
	>>>(b) ;
	cpy<<<1,32>>>\
(a, b)
	;
  cudaDeviceSynchronize();
}
