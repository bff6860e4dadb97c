// g++ keeps omp.h in a folder beside its own versions of clang's headers, which clang must not find. So kesco names the
// file, and it is read where no other folder has one.
#if !__has_include_next(<omp.h>) && defined(KESCO_OMP_H)
#include KESCO_OMP_H
#else
#include_next <omp.h>
#endif
