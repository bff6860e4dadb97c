// Measuring a task alone: what each kernel takes on the device, and how long the device then stands idle.
#pragma once

#include "client.h"

namespace fikit {

// Whether this process is measured (KESCO_FIKIT_MEASURE names where the samples go).
bool measuring() noexcept;
void measure_before(const Launch &launch) noexcept;
void measure_after(const Launch &launch, bool launched) noexcept;
// Before anything else in a process, and again in a child: nothing is measured yet.
void measure_forked() noexcept;
// The program has waited for the device.
void measure_waited() noexcept;

} // namespace fikit
