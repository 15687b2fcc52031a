// SPDX-License-Identifier: MIT
// The records of a model file: a zip of stored records below one folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace torchspan {

class Archive {
 public:
  // Open a file and read its table of contents; a file that is none throws an error that says why.
  explicit Archive(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  bool has(const std::string& name) const { return records_.contains(name); }
  bool has_below(const std::string& folder) const;

  // One record's bytes, checked against the sum stored with it.
  std::string read(const std::string& name);

  // Name and size of each file below a folder, by the table of contents.
  std::map<std::string, std::uint64_t> sizes(const std::string& folder) const;

  // Write the records below `folder` to files in `target`, which must exist.
  void unpack(const std::string& folder, const std::filesystem::path& target);

 private:
  struct Record {
    std::uint64_t offset, size, packed;
    std::uint32_t sum;
    std::uint16_t method;
  };

  [[noreturn]] void fail_damaged(const std::string& what) const;
  [[noreturn]] void fail_no_archive();
  std::string read_at(std::uint64_t offset, std::uint64_t size);
  void read_directory();
  void read_entries(std::string_view directory, std::uint64_t count);

  std::filesystem::path path_;
  std::ifstream file_;
  std::uint64_t size_ = 0;
  std::string root_;
  std::map<std::string, Record> records_;
};

}  // namespace torchspan
