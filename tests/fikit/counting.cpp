// Launches that are counted, to be linked with markers.cpp and driver.cpp: `counting WHICH` does what its name says and
// prints what was counted.
#include "../../kesco/runtime/fikit/driver.h"
#include "../../kesco/runtime/fikit/markers.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace fikit;

namespace {

void *const library = dlopen("libcuda.so.1", RTLD_NOW);
void *const one = reinterpret_cast<void *>(0x51), *const other = reinterpret_cast<void *>(0x52);

template <typename Function> Function find(const char *name) {
    return reinterpret_cast<Function>(dlsym(library, name));
}
void run(void *stream, unsigned microseconds) {
    using Launch =
        int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
    find<Launch>("cuLaunchKernel")(nullptr, microseconds, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
}
void *created() {
    void *stream = nullptr;
    find<int (*)(void **, unsigned)>("cuStreamCreate")(&stream, 0);
    return stream;
}
// On a credit, right behind the last event.
bool later(void *stream) {
    run(stream, 1);
    return mark_later(stream, false, {marked_at() + 1, 1000}, {1000000, 100});
}
void first(void *stream) {
    run(stream, 1);
    mark(stream, false);
    usleep(1000); // so that it has ended before anybody asks
}
unsigned long ended(std::uint64_t *unready = nullptr) {
    std::uint64_t none = 0;
    return markers_poll(unready ? *unready : none);
}

// Four on one stream, of which three are owed, and a long one beside them. How many have ended after a wait for these.
int beside() {
    first(one);
    const bool owed = later(one) && later(one) && later(one);
    run(other, 10000000);
    mark_alone(other, false);
    markers_waited(markers_made(), one, false, false);
    return owed ? int(ended()) : -1;
}
// One that is owed, and one on another stream 0.11 s later, while the program waits or does not. How many count as
// ended, with the first.
int long_ago(bool waits) {
    first(one);
    const bool owed = later(one);
    if (waits)
        markers_wait();
    usleep(110000);
    first(other);
    return owed ? int(ended()) : -1;
}
// A launch that has ended, and other work of its stream in front of its event. Whether it was seen not to have ended.
int behind() {
    first(one);
    std::uint64_t before = 0, unready = 0;
    if (ended(&before) != 1 || before || !later(one))
        return -1;
    run(one, 10000000);
    mark_behind(one, false);
    ended(); // the next question tells what this one saw
    return ended(&unready) == 1 ? unready != 0 : -1;
}
// Whether the end of a launch on a credit may be told later.
int told_later(void *stream, bool anew) {
    first(stream);
    if (ended() != 1)
        return -1;
    return later(anew ? created() : stream);
}

} // namespace

int main(int count, char **words) {
    setenv("FAKE_STREAMS", "1", 1);
    if (!library || count < 2)
        return 2;
    const char *which = words[1];
    printf("%d\n", strcmp(which, "beside") == 0    ? beside()
                   : strcmp(which, "waits") == 0   ? long_ago(true)
                   : strcmp(which, "goes on") == 0 ? long_ago(false)
                   : strcmp(which, "behind") == 0  ? behind()
                                                   : told_later(created(), strcmp(which, "anew") == 0));
    return 0;
}
