// The file of a measurement: text is taken at once, and written by a thread with descriptors of its own.
#pragma once

#include <string>

namespace fikit {

// Begins a file; whether it could.
bool begin_samples(const std::string &path) noexcept;
// Takes a part of the text.
void write_samples(const char *text) noexcept;
// Waits until all of it is written. A file that could not be written whole is empty afterwards.
void end_samples() noexcept;
// Before anything else in a process, and again in a child: there is no file.
void no_samples() noexcept;

} // namespace fikit
