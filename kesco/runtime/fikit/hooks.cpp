// The two functions that a program compiled by `kesco compile --fikit`, or with the LaunchHooks pass, calls around each
// launch where this library is loaded; and one by which a program that measures leaves the library out for a while.
#include "../hooks/launch_hooks.h"

#include "client.h"
#include "identity.h"
#include "names.h"

namespace {

thread_local bool entered = false;

fikit::Launch described(const KescoLaunchSite *site, const KescoLaunch *launch) {
    const fikit::Called &called = fikit::called_at(site, site->kernel, site->file, site->line, site->column);
    const std::uint64_t identity =
        called.hash ? kesco_kernel_identity(called.hash, launch->grid, launch->block, launch->shared) : 0;
    return {identity,          called.name,  launch->stream, false,
            called.never_held, launch->grid, launch->block,  launch->shared};
}

} // namespace

extern "C" {

__attribute__((visibility("default"))) void kesco_launch_before(const KescoLaunchSite *site,
                                                                const KescoLaunch *launch) {
    if (fikit::wanted() && !fikit::inside() && site->version == KESCO_LAUNCH_HOOKS_VERSION)
        entered = fikit::enter(described(site, launch));
}

__attribute__((visibility("default"))) void kesco_launch_after(const KescoLaunchSite *site, const KescoLaunch *launch) {
    if (!entered)
        return;
    entered = false;
    fikit::leave(described(site, launch), true);
}

__attribute__((visibility("default"))) void kesco_fikit_pass_by(int on) {
    fikit::pass_by(on != 0);
}
}
