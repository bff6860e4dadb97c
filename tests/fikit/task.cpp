// A task: `task ROUNDS KERNELS KERNEL_US HOST_US [how]` launches KERNELS kernels, waits for them, works HOST_US on the
// host, and so ROUNDS times.
//
// how: plain; fork (a child does the same, then the parent); clone (so, and no handler of fork is called); exec (starts
// itself anew halfway); threads (four launch); capture (every launch is captured); cooperative; nccl (a kernel by that
// name); streams (two in turn); moves (the last two launches of a round are on another stream); again (so, and it is a
// new one with the handle of the old one); loose (nothing is waited for); context (for the context of the launches is
// waited, as CUDA 13's runtime does); foreign (for another one).
#include "found_driver.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

using Cooperative = int (*)(const void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                            void **);
using Synchronize = int (*)(void *);

Launch launch;
Cooperative cooperative;
Synchronize synchronize;
Synchronize context_synchronize;
int (*create)(void **, unsigned);
int (*current)(void **);

double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return double(time.tv_sec) + double(time.tv_nsec) / 1e9;
}

void rounds(int count, int kernels, unsigned kernel, int host, const char *how) {
    static const char plain[] = "_Z4workPf", nccl[] = "ncclDevKernel_AllReduce";
    const char *name = strcmp(how, "nccl") == 0 ? nccl : plain;
    const bool in_turn = strcmp(how, "streams") == 0, moves = strcmp(how, "moves") == 0;
    const bool again = strcmp(how, "again") == 0, loose = strcmp(how, "loose") == 0;
    void *stream = strcmp(how, "capture") == 0 ? reinterpret_cast<void *>(0xca) : nullptr;
    for (int i = 0; i < count; ++i) {
        if (again)
            create(&stream, 0);
        for (int k = 0; k < kernels; ++k) {
            if (in_turn || moves)
                stream = reinterpret_cast<void *>((in_turn ? k % 2 : k + 2 >= kernels) ? 0x51 : 0x52);
            if (again && k + 2 == kernels)
                create(&stream, 0); // the other one was destroyed
            if (strcmp(how, "cooperative") == 0)
                cooperative(name, kernel, 1, 1, 256, 1, 1, 0, stream, nullptr);
            else
                launch(name, kernel, 1, 1, 256, 1, 1, 0, stream, nullptr, nullptr);
        }
        if (strcmp(how, "context") == 0 || strcmp(how, "foreign") == 0) {
            void *context = nullptr;
            current(&context);
            context_synchronize(strcmp(how, "foreign") == 0 ? &context : context);
        } else if (!loose) {
            synchronize(nullptr);
        }
        if (host)
            usleep(useconds_t(host));
    }
}

} // namespace

int main(int count, char **words) {
    if (count < 5)
        return 2;
    const int times = atoi(words[1]), kernels = atoi(words[2]), host = atoi(words[4]);
    const unsigned kernel = unsigned(atoi(words[3]));
    const char *how = count > 5 ? words[5] : "plain";
    find(launch, "cuLaunchKernel");
    find(cooperative, "cuLaunchCooperativeKernel");
    find(synchronize, "cuStreamSynchronize");
    find(create, "cuStreamCreate");
    find(context_synchronize, "cuCtxSynchronize_v2");
    find(current, "cuCtxGetCurrent");
    const double begin = now();
    if (strcmp(how, "fork") == 0 || strcmp(how, "clone") == 0) {
        rounds(times, kernels, kernel, host, how);
        const pid_t child = strcmp(how, "fork") == 0 ? fork() : pid_t(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
        rounds(times, kernels, kernel, host, how);
        if (child == 0)
            _exit(0);
        int status = 0;
        if (waitpid(child, &status, 0) != child || status != 0)
            return 5;
    } else if (strcmp(how, "threads") == 0) {
        std::vector<std::thread> all;
        for (int i = 0; i < 4; ++i)
            all.emplace_back([&] { rounds(times, kernels, kernel, host, how); });
        for (auto &one : all)
            one.join();
    } else {
        rounds(times, kernels, kernel, host, how);
        if (strcmp(how, "exec") == 0) {
            words[5] = const_cast<char *>("plain");
            execv("/proc/self/exe", words);
            return 6;
        }
    }
    printf("%.6f\n", now() - begin);
    return 0;
}
