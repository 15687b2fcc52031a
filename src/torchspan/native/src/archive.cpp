// SPDX-License-Identifier: MIT
// Read a zip's table of contents (zip64 too) and its stored records; each is checked by its sum.
#include "archive.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "digest.hpp"
#include "status.hpp"

namespace torchspan {
namespace {

constexpr std::uint32_t in_zip64 = 0xFFFFFFFF;
constexpr std::size_t end_size = 22, locator_size = 20, end64_size = 56;
constexpr std::size_t entry_size = 46, header_size = 30, longest_comment = 65535;

// A little-endian number in bytes whose length was checked.
template <class Number>
Number number_at(std::string_view bytes, std::size_t offset) {
  Number value = 0;
  for (std::size_t index = 0; index < sizeof value; ++index) {
    value |= Number(static_cast<unsigned char>(bytes.at(offset + index))) << (8 * index);
  }
  return value;
}

constexpr auto u16 = number_at<std::uint16_t>;
constexpr auto u32 = number_at<std::uint32_t>;
constexpr auto u64 = number_at<std::uint64_t>;

// The 64-bit values of a record, in the order in which the 32-bit ones overflowed.
std::string_view zip64_values(std::string_view extra) {
  while (extra.size() >= 4) {
    std::size_t length = u16(extra, 2);
    if (u16(extra, 0) == 1) return extra.substr(4, length);
    extra.remove_prefix(std::min(extra.size(), 4 + length));
  }
  return {};
}

std::uint64_t widened(std::uint32_t value, std::string_view& values) {
  if (value != in_zip64 || values.size() < 8) return value;
  std::uint64_t wide = u64(values, 0);
  values.remove_prefix(8);
  return wide;
}

}  // namespace

Archive::Archive(const std::filesystem::path& path) : path_(path) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) {
    fail(TSPAN_ERROR_MODEL_FILE, "there is no model file ", path.string(), ".");
  }
  if (std::filesystem::is_directory(path)) {
    fail(TSPAN_ERROR_MODEL_FILE, path.string(), " is a folder; give a model file.");
  }
  file_.open(path, std::ios::binary);
  if (!file_) {
    fail(TSPAN_ERROR_MODEL_FILE, path.string(), " cannot be read: ", std::strerror(errno), ".");
  }
  size_ = std::filesystem::file_size(path);
  try {
    read_directory();
  } catch (const std::out_of_range&) {
    fail_damaged("its table of contents makes no sense");
  }
}

bool Archive::has_below(const std::string& folder) const {
  auto found = records_.lower_bound(folder + "/");
  return found != records_.end() && found->first.starts_with(folder + "/");
}

std::string Archive::read(const std::string& name) {
  auto found = records_.find(name);
  if (found == records_.end()) fail_damaged("its record " + name + " is not there");
  const Record& record = found->second;
  if (record.method != 0 || record.packed != record.size) {
    fail(TSPAN_ERROR_MODEL_FILE, path_.string(), " holds its record ", name,
         " compressed; model files hold theirs as they are. Save the model again.");
  }
  try {
    std::string header = read_at(record.offset, header_size);
    std::uint64_t begin = record.offset + header_size + u16(header, 26) + u16(header, 28);
    std::string bytes = read_at(begin, record.size);
    if (u32(header, 0) == 0x04034B50 && crc32(bytes) == record.sum) return bytes;
  } catch (const std::out_of_range&) {
    // Said below: the record lies beyond the file's end.
  }
  fail_damaged("its record " + name + " cannot be read");
}

std::map<std::string, std::uint64_t> Archive::sizes(const std::string& folder) const {
  std::map<std::string, std::uint64_t> found;
  for (const auto& [name, record] : records_) {
    if (name.starts_with(folder + "/")) {
      found[std::filesystem::path(name).filename()] = record.size;
    }
  }
  return found;
}

void Archive::unpack(const std::string& folder, const std::filesystem::path& target) {
  if (!has_below(folder)) {
    fail(TSPAN_ERROR_MODEL_FILE, path_.string(), " is damaged: it names ", folder,
         ", which is not there.");
  }
  for (const auto& [name, record] : records_) {
    if (!name.starts_with(folder + "/")) continue;
    std::string bytes = read(name);
    std::ofstream written(target / std::filesystem::path(name).filename(), std::ios::binary);
    written.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush();
    if (!written) {
      throw std::filesystem::filesystem_error("cannot write", target,
                                              std::error_code(errno, std::generic_category()));
    }
  }
}

void Archive::fail_damaged(const std::string& what) const {
  fail(TSPAN_ERROR_MODEL_FILE, path_.string(), " is damaged: ", what,
       ". Copy the file again, or save the model again.");
}

void Archive::fail_no_archive() {
  if (size_ >= 4 && u32(read_at(0, 4), 0) == 0x04034B50) {
    fail(TSPAN_ERROR_MODEL_FILE, path_.string(),
         " is truncated: it begins as a model file, but ends after ", size_,
         " bytes without its table of contents. Copy the file again, or save the model again.");
  }
  fail(TSPAN_ERROR_MODEL_FILE, path_.string(),
       " is no model file: a .pt2 or TorchScript .pt archive was expected. Make one with "
       "torchspan.save or 'torchspan export'.");
}

std::string Archive::read_at(std::uint64_t offset, std::uint64_t size) {
  if (offset > size_ || size > size_ - offset) throw std::out_of_range("beyond the end");
  std::string bytes(size, '\0');
  file_.clear();
  file_.seekg(static_cast<std::streamoff>(offset));
  file_.read(bytes.data(), static_cast<std::streamsize>(size));
  if (!file_) throw std::out_of_range("cannot be read");
  return bytes;
}

void Archive::read_directory() {
  std::uint64_t tail_size = std::min<std::uint64_t>(size_, end_size + longest_comment);
  std::string tail = read_at(size_ - tail_size, tail_size);
  std::size_t end = tail.rfind("PK\x05\x06");
  if (end == tail.npos || tail.size() - end < end_size) fail_no_archive();
  std::uint64_t count = u16(tail, end + 10);
  std::uint64_t size = u32(tail, end + 12), offset = u32(tail, end + 16);
  if (end >= locator_size && u32(tail, end - locator_size) == 0x07064B50) {
    std::string end64 = read_at(u64(tail, end - locator_size + 8), end64_size);
    if (u32(end64, 0) != 0x06064B50) throw std::out_of_range("zip64 end");
    count = u64(end64, 32), size = u64(end64, 40), offset = u64(end64, 48);
  }
  read_entries(read_at(offset, size), count);
}

void Archive::read_entries(std::string_view directory, std::uint64_t count) {
  for (std::uint64_t index = 0; index < count; ++index) {
    if (u32(directory, 0) != 0x02014B50) throw std::out_of_range("entry");
    std::size_t name_size = u16(directory, 28), extra_size = u16(directory, 30);
    std::size_t whole = entry_size + name_size + extra_size + u16(directory, 32);
    if (whole > directory.size()) throw std::out_of_range("entry");
    std::string name(directory.substr(entry_size, name_size));
    std::string_view wide = zip64_values(directory.substr(entry_size + name_size, extra_size));
    Record record = {};
    record.method = u16(directory, 10);
    record.sum = u32(directory, 16);
    record.size = widened(u32(directory, 24), wide);
    record.packed = widened(u32(directory, 20), wide);
    record.offset = widened(u32(directory, 42), wide);
    std::size_t slash = name.find('/');
    if (index == 0 && slash != name.npos) root_ = name.substr(0, slash + 1);
    if (name.starts_with(root_)) name.erase(0, root_.size());
    records_[name] = record;
    directory.remove_prefix(whole);
  }
}

}  // namespace torchspan
