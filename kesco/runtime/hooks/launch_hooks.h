/* What the LaunchHooks pass calls around each kernel launch of a program that was compiled with it.
 *
 * A runtime defines kesco_launch_before and kesco_launch_after. In a program without a runtime both are null and a launch
 * costs a test of each. All sites of a program stand one behind another in the section `kesco_launches`: from
 * __start_kesco_launches up to __stop_kesco_launches, where the linker has put such a section.
 *
 * Handshake: each site begins with the version of this file that it was compiled for. A runtime must leave alone what has
 * a version that it does not know. Versions only ever add fields at the end, and `size` says how far a site reaches.
 */
#ifndef KESCO_LAUNCH_HOOKS_H
#define KESCO_LAUNCH_HOOKS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KESCO_LAUNCH_HOOKS_VERSION 1

/* A place in a program that launches a kernel. It never changes and never goes away, so its address is its identity. */
typedef struct {
  uint32_t version; /* KESCO_LAUNCH_HOOKS_VERSION */
  uint32_t size;    /* of this structure, in bytes */
  const char *kernel; /* the symbol of the kernel's host stub, or an empty text where the call is given a pointer */
  const char *file;   /* where the launch is written; empty without debug lines (-gline-tables-only) */
  uint32_t line;      /* from 1; 0 where it is not known */
  uint32_t column;
  const char *function; /* the symbol of the function around it */
} KescoLaunchSite;

/* What is only known when the launch happens. `stream` is a cudaStream_t. */
typedef struct {
  const void *function; /* what identifies the kernel to the CUDA runtime; null from `kesco compile --fikit` */
  uint32_t grid[3];
  uint32_t block[3];
  size_t shared; /* dynamic shared memory, in bytes */
  void *stream;
} KescoLaunch;

/* Called by the thread that launches, right before and right after. They must not throw. */
void kesco_launch_before(const KescoLaunchSite *site, const KescoLaunch *launch);
void kesco_launch_after(const KescoLaunchSite *site, const KescoLaunch *launch);

#ifdef __cplusplus
}
#endif

#endif
