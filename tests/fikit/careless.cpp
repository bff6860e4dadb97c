// A program that does what libraries do not like: `careless HOW`. Ends with 0 where nothing alien came of it.
//
// HOW: closes (all descriptors from 3 on after its first launch, and opens files and sockets in their place; so the
// following, too); fork, clone (a child does so, and the parent then); exec (so does another program in its place);
// cancels PATH (threads that launch are cancelled; it says so, and waits until PATH is there); leaves (a thread ends
// between the hooks of a launch); stays PATH (leaves a child that no handler of fork saw, which waits until PATH is
// there; both go on); refused, old (as closes, where the kernel refuses own descriptors, or knows only the old way).
#include "../../kesco/runtime/hooks/launch_hooks.h"
#include "found_driver.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

namespace {

Launch launch;
int (*synchronize)(void *);

void launches(int count, unsigned microseconds = 20) {
    static const char name[] = "_Z4workPf";
    for (int i = 0; i < count; ++i)
        launch(name, microseconds, 1, 1, 256, 1, 1, 0, nullptr, nullptr, nullptr);
}

void close_all() {
    if (syscall(436 /* close_range */, 3U, ~0U, 0U) == 0)
        return;
    for (int fd = 3; fd < 4096; ++fd)
        close(fd);
}

struct Opened {
    std::vector<int> files, sockets;
    Opened() {
        char name[] = "/tmp/careless-XXXXXX";
        for (int i = 0; i < 12; ++i) {
            int pair[2];
            if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
                exit(5);
            for (const int one : pair) {
                if (write(one, "mine", 4) != 4)
                    exit(5);
                sockets.push_back(one);
            }
            strcpy(name + sizeof name - 7, "XXXXXX");
            files.push_back(mkstemp(name));
            unlink(name);
        }
    }
    // Whether all is as this program left it.
    bool mine() const {
        for (const int one : files) {
            struct stat found;
            if (fstat(one, &found) != 0 || !S_ISREG(found.st_mode) || found.st_size != 0)
                return false;
        }
        for (const int one : sockets) {
            char bytes[64];
            if (recv(one, bytes, sizeof bytes, MSG_DONTWAIT) != 4 || memcmp(bytes, "mine", 4) != 0)
                return false;
        }
        return true;
    }
};

// Exit code of who closes everything and opens files and sockets in its place.
int closes() {
    close_all();
    const Opened all;
    launches(5);
    usleep(400000); // the library's threads look as well
    launches(5);
    return all.mine() ? 0 : 7;
}

int code_of(pid_t child) {
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 6;
}

pid_t cloned() {
    return pid_t(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
}

bool there(const char *path) {
    return access(path, F_OK) == 0;
}

int cancels(const char *path) {
    for (int i = 0; i < 10; ++i) {
        pthread_t thread;
        void *result = nullptr;
        const auto forever = [](void *) -> void * {
            for (;; pthread_testcancel()) {
                launches(1, 2000);
                synchronize(nullptr); // which sleeps
            }
        };
        if (pthread_create(&thread, nullptr, forever, nullptr) != 0)
            return 5;
        usleep(20000);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        if (result != PTHREAD_CANCELED)
            return 8;
    }
    launches(5);
    puts("cancelled");
    fflush(stdout);
    while (!there(path))
        usleep(10000);
    return 0;
}

int leaves() {
    using Hook = void (*)(const KescoLaunchSite *, const KescoLaunch *);
    static const auto before = reinterpret_cast<Hook>(dlsym(RTLD_DEFAULT, "kesco_launch_before"));
    pthread_t thread;
    const auto half = [](void *) -> void * {
        static const KescoLaunchSite site = {KESCO_LAUNCH_HOOKS_VERSION, sizeof site, "work", "task.cu", 7, 3, "main"};
        const KescoLaunch one = {nullptr, {20, 1, 1}, {64, 1, 1}, 0, nullptr};
        before(&site, &one);
        return nullptr;
    };
    if (!before || pthread_create(&thread, nullptr, half, nullptr) != 0)
        return 5;
    pthread_join(thread, nullptr);
    launches(5);
    usleep(300000);
    return 0;
}

int stays(const char *path) {
    const pid_t child = cloned();
    for (; !there(path); usleep(10000))
        if (child)
            launches(1);
    return 0;
}

// From now on the kernel answers so to close_range, and to unshare if `both`.
void refuse(int error, bool both) {
    const unsigned second = both ? SYS_unshare : 436;
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 436, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, second, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | unsigned(error)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program = {5, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        exit(9);
}

} // namespace

int main(int count, char **words) {
    const std::string how = count > 1 ? words[1] : "";
    find(launch, "cuLaunchKernel");
    find(synchronize, "cuStreamSynchronize");
    if (how == "refused" || how == "old")
        refuse(how == "old" ? ENOSYS : EPERM, how == "refused");
    if (how == "cancels")
        return cancels(words[2]);
    launches(1);
    if (how == "fork" || how == "clone") {
        const pid_t child = how == "fork" ? fork() : cloned();
        if (child == 0)
            _exit(closes());
        if (const int code = code_of(child))
            return code;
    } else if (how == "exec") {
        words[1] = const_cast<char *>("closes");
        execv("/proc/self/exe", words);
        return 6;
    } else if (how == "leaves") {
        return leaves();
    } else if (how == "stays") {
        return stays(words[2]);
    }
    return closes();
}
