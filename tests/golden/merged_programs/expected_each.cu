// ---- kesco merge: task one, priority 7, from one.cu
// <calls of CUDA are the task's own>
#pragma push_macro("ROUNDS")
#pragma push_macro("CHECK")
#pragma pack(push)
#pragma pack()
namespace kesco_one {
#line 1 "one.cu"
// The more urgent program. All its names are also the other one's.

#define ROUNDS 2
#define CHECK(call) do { if ((call) != cudaSuccess) exit(3); } while (0)
#line 1 "./shared.h"


static int rounds = ROUNDS;
inline void said(const char* what, float value) { std::printf("%s: %d rounds, %g\n", what, rounds, value); }

#line 6 "one.cu"
__global__ void work(float* p, float by) { p[threadIdx.x] += by; }
// <prologue>

int main(int argc, char** argv) {
  float *a, *b, h;
  CHECK(cudaMalloc(&a, 4096));
  CHECK(cudaMalloc(&b, 4096));
  KescoStreams* kesco = &kesco_streams();
  for (int i = 0; i < rounds; ++i) {
    kesco = kesco_pace(kesco, 0);  // kesco: on one stream while that is faster
    work<<<1, 1024, 0, kesco_on( kesco->stream[0])>>>(a, 1.0f);
    work<<<1, 1024, 0, kesco_on( kesco->stream[1])>>>(b, 2.0f);
  }
  CHECK(cudaMemcpy(&h, a, sizeof h, cudaMemcpyDeviceToHost));
  said(argc > 1 ? argv[1] : "one", h);
return {};}

}  // namespace kesco_one
#pragma pack(pop)
#pragma pop_macro("ROUNDS")
#pragma pop_macro("CHECK")
// <and again CUDA's>

// ---- kesco merge: task two, priority 2, from two.cu
// <calls of CUDA are the task's own>
#pragma push_macro("ROUNDS")
#pragma pack(push)
#pragma pack()
namespace kesco_two {
#line 1 "two.cu"
// The less urgent one: on a single stream, without arguments, with another exit code.
#define ROUNDS 3
#line 1 "./shared.h"


static int rounds = ROUNDS;
inline void said(const char* what, float value) { std::printf("%s: %d rounds, %g\n", what, rounds, value); }

#line 4 "two.cu"
template <typename T>
__global__ void work(T* p) { p[threadIdx.x] *= 2; }
// <prologue>

int main() {
  float *a, *b, h;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  KescoStreams* kesco = &kesco_streams();
  cudaMemsetAsync(a, 0, 4096, kesco->stream[1]);
  for (int i = 0; i < rounds; ++i) {
    work<<<1, 1024, 0, kesco_on( kesco->stream[1])>>>(a);
    work<<<dim3(1), dim3(1024), 0, kesco_on( kesco->stream[0])>>>(b);
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
    kesco = kesco_stretch(kesco, 0);  // kesco: on one stream while that is faster
  }
  cudaMemcpy(&h, a, sizeof h, cudaMemcpyDeviceToHost);
  said("two", h);
  return rounds - 3;
return {};}

}  // namespace kesco_two
#pragma pack(pop)
#pragma pop_macro("ROUNDS")
// <and again CUDA's>

#line 1 "kesco_merged_main"
// The arguments of the tasks stand between "--", in the order in which they were named to kesco merge.
int main(int argc, char** argv) {
  using kesco_merged::Task;
  static Task tasks[] = {
      {[](int count, char** values) { return kesco_merged::call(kesco_one::main, count, values); }, 0, {argv[0]}},
      {[](int count, char** values) { return kesco_merged::call(kesco_two::main, count, values); }, 1, {argv[0]}},
  };
  size_t task = 0;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--") == 0) ++task;
    else if (task < 2) tasks[task].arguments.push_back(argv[i]);
  }
  if (task >= 2) {
    std::fprintf(stderr, "usage: %s [one's arguments] -- [two's arguments]\n", argv[0]);
    return 2;
  }
  cudaDeviceSynchronize();  // what initialisers of globals have given the device
  for (const int number : {0, 1}) {
    Task* const one = &tasks[number];
    one->arguments.push_back(nullptr);
    std::thread([one] {
      kesco_merged::current = one;
      kesco_merged::finish(one->run(static_cast<int>(one->arguments.size()) - 1, one->arguments.data()));
    }).detach();
  }
  std::unique_lock<std::mutex> lock(kesco_merged::guard);
  kesco_merged::ended.wait(lock, [] {
    for (const Task& one : tasks)
      if (!one.done) return false;
    return true;
  });
  for (const Task& one : tasks)
    if (one.code != 0) return one.code;
  return 0;
}
