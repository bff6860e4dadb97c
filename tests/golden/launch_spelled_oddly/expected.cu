// Comments, tabs, line ends and continuations inside launches: cpy waits for both incs.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
__global__ void cpy(float* to, const float* from) { to[threadIdx.x] = from[threadIdx.x]; }
// <prologue: 2 streams, 1 events>

int main() {
  float *a, *b;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096);
	KescoStreams* kesco = &kesco_streams();
	inc /* k */ <<< 1 , 32 /* >>> */ , 0, kesco->stream[0]>>> /* args */ ( a ) /* ; */ ; // done
	cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: cpy waits for this
	inc<<<
	   1,
	   32
	, 0, kesco->stream[1]>>>(b) ;
	cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for inc#1 (WAW on a)
	cpy<<<1,32, 0, kesco->stream[1]>>>\
(a, b)
	;
  cudaDeviceSynchronize();
}
