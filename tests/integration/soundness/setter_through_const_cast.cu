// Setter through const cast. Ordered: acc, acc
#include <cuda_runtime.h>
#include <utility>
__global__ void acc(const float*a,float*s){s[threadIdx.x]+=a[threadIdx.x];}
struct Pub{float*a,*b; void set(float*x){a=x;} Pub&me(){return *this;} float*get(){return a;} };
struct L: Pub { void rot(Pub&o){ std::swap(a,o.a);} };
template<class D> struct Crtp{ float*a; D&self(){return static_cast<D&>(*this);} void put(float*x){ static_cast<D&>(*this).impl(x);} }; struct Dd:Crtp<Dd>{ float*k; void impl(float*x){k=x;} };
typedef float* FP;

int main(){ L d; cudaMalloc(&d.a,256);cudaMalloc(&d.b,256); float*e,*f; cudaMalloc(&e,256);cudaMalloc(&f,256); 
 Pub p; p.a=d.b; p.b=d.a; Pub s; s.a=d.a; s.b=d.b; Dd w; w.k=d.a; w.a=d.b; Pub*ps=&s; void*vp=&s;
 const_cast<Pub&>(s).set(p.a); acc<<<1,64>>>(e,p.a); acc<<<1,64>>>(f,s.a);
 cudaDeviceSynchronize(); return 0;}
