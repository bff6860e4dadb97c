// A whole program: what main and the constructors before it store in variables of the file is known.
#include <cstdio>
#include <vector>
__global__ void k(float *p) { p[0] = 1; }
static float *shared;
static std::vector<float *> every;
struct Early {
  float *p;
  Early() { cudaMalloc(&p, 8); }  // @early
};
static Early early;
static void init() {
  cudaMalloc(&shared, 8);  // @shared
  every.push_back(shared);
}
static void used() {
  k<<<1, 1>>>(shared);  // = shared
}
static float *once() {
  static float *p = [] {
    float *q;
    cudaMalloc(&q, 8);  // @once
    return q;
  }();
  return p;
}
static void first(float *p) { k<<<1, 1>>>(p); }   // = shared
static void second(float *p) { k<<<1, 1>>>(p); }  // = shared
static void (*chosen)(float *) = first;
static int mode[2];
int main(int argc, char **argv) {
  init();
  k<<<1, 1>>>(early.p);  // = early
  printf("%s\n", argv[argc - 1]);
  k<<<1, 1>>>(every[0]);  // = shared
  k<<<1, 1>>>(once());  // = once
  if (argc > 1) chosen = second;
  chosen(shared);
  if (argc > 2) mode[1] = 1;
  if (!mode[1]) k<<<1, 1>>>(early.p);  // = early
  used();
  return 0;
}
