// SPDX-License-Identifier: MIT
// Checksums: CRC-32 as zip archives carry it, SHA-256 as builds are named by.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace torchspan {

std::uint32_t crc32(std::string_view bytes);

// SHA-256 of what is added, piece by piece.
class Sha256 {
 public:
  Sha256();
  void add(std::string_view bytes);
  // The digest in hexadecimal; nothing may be added afterwards.
  std::string finish();

 private:
  void add_block(const unsigned char* block);

  std::array<std::uint32_t, 8> state_;
  std::array<unsigned char, 64> rest_;
  std::size_t rest_size_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace torchspan
