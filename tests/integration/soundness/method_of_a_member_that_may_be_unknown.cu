// Method of a member that may be unknown. Ordered: acc, acc
#include <cuda_runtime.h>
#include <utility>
#include <vector>
__global__ void acc(const float*a,float*s){s[threadIdx.x]+=a[threadIdx.x];}
struct Pub{float*a,*b; void set(float*x){a=x;} void ex(Pub&o){std::swap(a,o.a);} Pub&me(){return *this;} float*get(){return a;} };
struct G{Pub*cur; void upd(float*x){cur->set(x);} };
extern Pub*ext(int); extern Pub&extr(int);

int main(int argc,char**argv){ float*e,*f; cudaMalloc(&e,256);cudaMalloc(&f,256); 
 Pub p,s; cudaMalloc(&s.a,256);cudaMalloc(&s.b,256); p.a=s.b; p.b=s.a; std::vector<Pub*> v; 
 G g; g.cur=&s; if(argc>3) g.cur=v[0]; g.upd(p.a); acc<<<1,64>>>(e,p.a); acc<<<1,64>>>(f,s.a);
 cudaDeviceSynchronize(); return 0;}
