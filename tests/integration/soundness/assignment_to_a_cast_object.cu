// Assignment to a cast object. Ordered: acc, acc
#include <cuda_runtime.h>
#include <utility>
__global__ void acc(const float*a,float*s){s[threadIdx.x]+=a[threadIdx.x];}
struct Pub{float*a,*b; void set(float*x){a=x;} Pub&me(){return *this;} }; struct Der2:Pub{float*c; using Pub::operator=; void assign(const Pub&p){ static_cast<Pub&>(*this)=p; } void assign2(const Pub&p){ Pub::operator=(p);} void assign3(const Pub&p){*static_cast<Pub*>(this)=p;} };

int main(){ Der2 d; cudaMalloc(&d.a,256);cudaMalloc(&d.b,256);cudaMalloc(&d.c,256); float*e,*f; cudaMalloc(&e,256);cudaMalloc(&f,256); 
 Pub p; p.a=d.b; p.b=d.a; float*oa=d.a; Pub s; s.a=d.a; s.b=d.b; (void)oa;
 static_cast<Pub&>(s)=p; acc<<<1,64>>>(e,p.a); acc<<<1,64>>>(f,s.a);
 cudaDeviceSynchronize(); return 0;}
