// The run of Clang's driver that a pass belongs to, and the folder in which its passes leave what they agree on.
//
// The driver starts one process a pass, one for each GPU architecture and one for the host, and none of them knows of
// the others. What they share is the driver: it is the process that started this one, or this one itself where there
// is only one job. Its number and the time of its start name a folder, which is this user's alone, with one folder in
// it for each source. The first pass writes there what all passes compile; the others read it.

#ifndef KESCO_PASSES_DRIVERRUN_H
#define KESCO_PASSES_DRIVERRUN_H

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace kesco {

inline llvm::Error failure(const llvm::Twine &Why) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), Why);
}

/// The content of a file of the system's, such as `/proc/self/stat`; empty where there is none.
inline std::string systemFile(const llvm::Twine &Path) {
    auto File = llvm::MemoryBuffer::getFileAsStream(Path);
    return File ? (*File)->getBuffer().str() : "";
}

/// A process, told from all others by its number and the time of its start, in clock ticks.
struct Process {
    pid_t Pid = 0;
    std::string Start;
};

/// The driver that started this process, or this process where it is the driver itself; an error where neither is.
inline llvm::Expected<Process> driver() {
    pid_t Pid = getppid();
    // The two are the same program. Where arguments are long they stand in a file, so what they begin with says little.
    if (!llvm::sys::fs::equivalent("/proc/" + llvm::Twine(Pid) + "/exe", "/proc/self/exe")) {
        Pid = getpid();
        std::string Words = systemFile("/proc/self/cmdline");
        if (llvm::StringRef(Words).split('\0').second.starts_with("-cc1"))
            return failure("no clang driver started this pass, so the other passes are not known");
    }
    // The start is the 22nd word, the 20th behind the name in parentheses, which may hold anything.
    std::string Status = systemFile("/proc/" + llvm::Twine(Pid) + "/stat");
    llvm::SmallVector<llvm::StringRef, 32> Words;
    llvm::StringRef(Status).rsplit(')').second.trim().split(Words, ' ');
    if (Words.size() < 20)
        return failure("there is no /proc, so the other passes are not known");
    return Process{Pid, Words[19].str()};
}

/// What the passes of one run agree on about one source. While an object lives, no other pass has the same.
class Agreement {
  public:
    /// Waits for a pass that is at it. Fails where the folder cannot be made or is not this user's alone.
    static llvm::Expected<Agreement> open(const Process &Driver, llvm::StringRef Source) {
        llvm::SmallString<128> Path;
        llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, Path);
        llvm::sys::path::append(Path, "kesco-plugin-" + llvm::Twine(getuid()));
        if (llvm::Error Problem = ownFolder(Path))
            return Problem;
        // Numbers are unique on one machine that has been running all the time, and within one container.
        char Space[64] = "";
        (void)!readlink("/proc/self/ns/pid", Space, sizeof(Space) - 1);
        std::string Where = systemFile("/proc/sys/kernel/random/boot_id") + Space;
        llvm::sys::path::append(Path, llvm::Twine(Driver.Pid) + "-" + Driver.Start + "-" +
                                          llvm::utohexstr(llvm::xxh3_64bits(Where)));
        if (llvm::Error Problem = ownFolder(Path))
            return Problem;
        llvm::sys::path::append(Path, llvm::utohexstr(llvm::xxh3_64bits(Source)));
        if (llvm::Error Problem = ownFolder(Path))
            return Problem;
        Agreement Made;
        Made.Folder = Path.str().str();
        Made.Lock = ::open(Made.file("lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        while (Made.Lock >= 0 && flock(Made.Lock, LOCK_EX))
            if (errno != EINTR)
                return failure("cannot lock " + Made.Folder + ": " + std::strerror(errno));
        if (Made.Lock < 0)
            return failure("cannot write to " + Made.Folder + ": " + std::strerror(errno));
        return Made;
    }

    Agreement(Agreement &&Other) : Folder(std::move(Other.Folder)), Lock(std::exchange(Other.Lock, -1)) {}
    ~Agreement() {
        if (Lock >= 0)
            close(Lock);
    }

    const std::string &folder() const { return Folder; }
    std::string file(llvm::StringRef Name) const { return Folder + "/" + Name.str(); }

    /// Remove it: no pass is going to ask any more.
    void remove() const {
        llvm::sys::fs::remove_directories(Folder);
        ::rmdir(llvm::sys::path::parent_path(Folder).str().c_str()); // stays while another source has a folder there
    }

  private:
    Agreement() = default;
    std::string Folder;
    int Lock = -1;

    static llvm::Error ownFolder(const llvm::SmallString<128> &Path) {
        std::string Name = Path.str().str();
        if (mkdir(Name.c_str(), 0700) && errno != EEXIST)
            return failure("cannot make the folder " + Name + ": " + std::strerror(errno));
        struct stat Status;
        if (lstat(Name.c_str(), &Status) || !S_ISDIR(Status.st_mode) || Status.st_uid != getuid() ||
            (Status.st_mode & 077))
            return failure(Name + " is not a folder of yours alone");
        return llvm::Error::success();
    }
};

} // namespace kesco

#endif
