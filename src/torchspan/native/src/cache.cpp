// SPDX-License-Identifier: MIT
// An entry is filled beside its final name under a lock and then renamed, so one that is there is
// whole. Python processes take the same locks (_model_file/_cache.py): the two must agree.
#include "cache.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "digest.hpp"
#include "status.hpp"

namespace torchspan {
namespace {

namespace fs = std::filesystem;

constexpr auto unused = std::chrono::hours(30 * 24);
constexpr const char* partial_suffix = ".partial";
constexpr const char* lock_suffix = ".lock";

// A lock file held by this process; it is removed when it is let go.
class Lock {
 public:
  Lock(fs::path path, bool wait) : path_(std::move(path)) {
    while (!held_) {
      handle_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
      if (handle_ < 0) throw fs::filesystem_error("lock", path_, last_code());
      int code;
      while ((code = ::flock(handle_, LOCK_EX | (wait ? 0 : LOCK_NB))) != 0 && errno == EINTR) {
      }
      if (code == 0 && is_still_there()) {
        held_ = true;
      } else {
        // Its last holder removed the file between our opening and our locking it, or has it yet.
        bool busy = code != 0 && errno == EWOULDBLOCK;
        std::error_code why = last_code();
        ::close(std::exchange(handle_, -1));
        if (busy) return;
        if (code != 0) throw fs::filesystem_error("lock", path_, why);
      }
    }
  }
  ~Lock() {
    if (!held_) return;
    ::unlink(path_.c_str());
    ::close(handle_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  bool held() const { return held_; }
  static std::error_code last_code() { return {errno, std::generic_category()}; }

 private:
  bool is_still_there() const {
    struct stat mine, named;
    return ::fstat(handle_, &mine) == 0 && ::stat(path_.c_str(), &named) == 0 &&
           mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
  }

  fs::path path_;
  int handle_ = -1;
  bool held_ = false;
};

// Python's choice of a temporary folder.
fs::path temporary_folder() {
  for (const char* name : {"TMPDIR", "TEMP", "TMP"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0' && ::access(value, W_OK | X_OK) == 0) return value;
  }
  for (const char* folder : {"/tmp", "/var/tmp", "/usr/tmp"}) {
    if (::access(folder, W_OK | X_OK) == 0) return folder;
  }
  return fs::current_path();
}

void make_private(const fs::path& folder) {
  if (fs::is_directory(folder)) return;
  if (folder.has_parent_path()) fs::create_directories(folder.parent_path());
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    throw fs::filesystem_error("mkdir", folder, Lock::last_code());
  }
}

fs::path cache_folder() {
  const char* named = std::getenv("TORCHSPAN_CACHE");
  fs::path folder = named != nullptr && *named != '\0'
                        ? fs::path(named)
                        : temporary_folder() / say("torchspan-", ::getuid());
  struct stat found = {};
  try {
    make_private(folder);
    if (::stat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) {
      throw fs::filesystem_error("stat", folder, {ENOTDIR, std::generic_category()});
    }
  } catch (const fs::filesystem_error& error) {
    fail(TSPAN_ERROR_MODEL_FILE, "the cache folder ", folder.string(),
         " cannot be made: ", error.code().message(), ". Name another one in TORCHSPAN_CACHE.");
  }
  // A build is machine code: a folder that others may write to would let them run theirs.
  if ((found.st_uid != ::getuid() && found.st_uid != 0) || (found.st_mode & 022) != 0) {
    fail(TSPAN_ERROR_MODEL_FILE, "the cache folder ", folder.string(),
         " belongs to, or may be written by, another user. Name another one in TORCHSPAN_CACHE, "
         "or 'chmod go-w' it.");
  }
  return folder;
}

std::string without_suffix(std::string name, const char* suffix) {
  if (name.ends_with(suffix)) name.erase(name.size() - std::strlen(suffix));
  return name;
}

// Remove what killed processes left, and entries that nobody has used for a long time.
void clean(const fs::path& folder) {
  auto oldest = fs::file_time_type::clock::now() - unused;
  for (const fs::directory_entry& each : fs::directory_iterator(folder)) {
    std::string name = each.path().filename();
    std::string stem = without_suffix(without_suffix(name, partial_suffix), lock_suffix);
    std::error_code gone;
    auto used = each.last_write_time(gone);
    if (gone || (name == stem && used > oldest)) continue;
    // Taking a dead process's lock file removes it, too.
    Lock lock(folder / (stem + lock_suffix), false);
    if (lock.held() && each.is_directory(gone)) fs::remove_all(each.path(), gone);
  }
}

std::string digest_folder(const fs::path& folder) {
  std::map<std::string, fs::path> files;
  for (const auto& each : fs::directory_iterator(folder)) {
    files[each.path().filename()] = each.path();
  }
  Sha256 total;
  for (const auto& [name, path] : files) {
    Sha256 inner;
    std::ifstream stream(path, std::ios::binary);
    std::string part(1 << 20, '\0');
    while (stream) {
      stream.read(part.data(), static_cast<std::streamsize>(part.size()));
      inner.add(std::string_view(part).substr(0, static_cast<std::size_t>(stream.gcount())));
    }
    total.add(name + std::string(1, '\0') + inner.finish() + "\n");
  }
  return total.finish();
}

bool is_whole(const fs::path& entry, const std::map<std::string, std::uint64_t>& sizes) {
  fs::path opened = entry / opened_folder;
  std::error_code gone;
  if (!fs::is_directory(opened, gone)) return false;
  std::map<std::string, std::uint64_t> found;
  for (const auto& each : fs::directory_iterator(opened, gone)) {
    found[each.path().filename()] = each.file_size(gone);
  }
  return found == sizes;
}

void fill(const fs::path& folder, const fs::path& entry, Archive& archive, const Build& build) {
  clean(folder);
  fs::path partial = entry.string() + partial_suffix;
  fs::remove_all(partial);
  fs::remove_all(entry);
  make_private(partial);
  try {
    fs::create_directories(partial / opened_folder);
    archive.unpack(build.folder, partial / opened_folder);
    if (digest_folder(partial / opened_folder) != build.digest) {
      fail(TSPAN_ERROR_MODEL_FILE, archive.path().string(), " is damaged: the files of its build ",
           build.name,
           " are not those that were saved. Copy the file again, or save the model again.");
    }
    fs::rename(partial, entry);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(partial, ignored);
    throw;
  }
}

}  // namespace

fs::path unpack_build(Archive& archive, const Build& build) {
  fs::path folder = cache_folder();
  fs::path entry = folder / build.digest;
  auto sizes = archive.sizes(build.folder);
  if (!is_whole(entry, sizes)) {
    try {
      Lock lock(folder / (build.digest + lock_suffix), true);
      if (!is_whole(entry, sizes)) fill(folder, entry, archive, build);
    } catch (const fs::filesystem_error& error) {
      fail(TSPAN_ERROR_MODEL_FILE, "the cache folder ", folder.string(),
           " cannot be written: ", error.code().message(),
           ". Free some space, or name another one in TORCHSPAN_CACHE.");
    }
  }
  // Noting its use keeps the entry; a cache that is read-only is fine without.
  std::error_code ignored;
  fs::last_write_time(entry, fs::file_time_type::clock::now(), ignored);
  return entry;
}

}  // namespace torchspan
