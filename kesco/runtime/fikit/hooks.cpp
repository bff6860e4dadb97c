// The two functions that a program compiled by `kesco compile --fikit`, or with the LaunchHooks pass, calls around each
// launch where this library is loaded; and one by which a program that measures leaves the library out for a while.
#include "../hooks/launch_hooks.h"

#include "client.h"
#include "names.h"

#include <utility>

namespace {

thread_local bool entered = false;
thread_local fikit::Launch current; // while it is

void end(bool launched) {
    if (std::exchange(entered, false))
        fikit::leave(current, launched);
}

const fikit::Called &at(const void *site) {
    const auto *one = static_cast<const KescoLaunchSite *>(site);
    return fikit::called_at(one, one->kernel, one->file, one->line, one->column);
}

fikit::Launch described(const KescoLaunchSite *site, const KescoLaunch *launch) {
    const fikit::Seen known = fikit::seen(site, at, launch->grid, launch->block, launch->shared);
    return {known.identity,           known.called->name, known.told,    launch->stream, false,
            known.called->never_held, launch->grid,       launch->block, launch->shared};
}

} // namespace

extern "C" {

__attribute__((visibility("default"))) void kesco_launch_before(const KescoLaunchSite *site,
                                                                const KescoLaunch *launch) {
    if (!fikit::wanted() || site->version != KESCO_LAUNCH_HOOKS_VERSION || (fikit::inside() && !entered))
        return;
    end(false); // where an exception led past the second hook, that launch counts as not made
    entered = fikit::enter(current = described(site, launch));
}

__attribute__((visibility("default"))) void kesco_launch_after(const KescoLaunchSite *, const KescoLaunch *) {
    end(true);
}

__attribute__((visibility("default"))) void kesco_fikit_pass_by(int on) {
    fikit::pass_by(on != 0);
}
}
