// SPDX-License-Identifier: MIT
// CRC-32 (IEEE 802.3) and SHA-256 (FIPS 180-4), so that files are checked without more libraries.
#include "digest.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace torchspan {
namespace {

std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table;
  for (std::uint32_t index = 0; index < 256; ++index) {
    std::uint32_t value = index;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0xEDB88320u : 0);
    table[index] = value;
  }
  return table;
}

// clang-format off
constexpr std::uint32_t rounds[64] = {
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};
// clang-format on

}  // namespace

std::uint32_t crc32(std::string_view bytes) {
  static const std::array<std::uint32_t, 256> table = make_crc_table();
  std::uint32_t value = 0xFFFFFFFFu;
  for (unsigned char byte : bytes) value = (value >> 8) ^ table[(value ^ byte) & 0xFF];
  return ~value;
}

Sha256::Sha256()
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {}

void Sha256::add(std::string_view bytes) {
  total_ += bytes.size();
  if (rest_size_ > 0) {
    std::size_t part = std::min(bytes.size(), rest_.size() - rest_size_);
    std::memcpy(rest_.data() + rest_size_, bytes.data(), part);
    rest_size_ += part;
    bytes.remove_prefix(part);
    if (rest_size_ < rest_.size()) return;
    add_block(rest_.data());
    rest_size_ = 0;
  }
  for (; bytes.size() >= 64; bytes.remove_prefix(64)) {
    add_block(reinterpret_cast<const unsigned char*>(bytes.data()));
  }
  std::memcpy(rest_.data(), bytes.data(), bytes.size());
  rest_size_ = bytes.size();
}

std::string Sha256::finish() {
  std::uint64_t bits = total_ * 8;
  add(std::string_view("\x80", 1));
  while (rest_size_ != 56) add(std::string_view("\0", 1));
  char length[8];
  for (int index = 0; index < 8; ++index)
    length[index] = static_cast<char>(bits >> (56 - 8 * index));
  add(std::string_view(length, 8));
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (std::uint32_t word : state_) {
    for (int shift = 28; shift >= 0; shift -= 4) text += digits[word >> shift & 15];
  }
  return text;
}

void Sha256::add_block(const unsigned char* block) {
  std::uint32_t words[64];
  for (int i = 0; i < 16; ++i) {
    words[i] = std::uint32_t(block[4 * i]) << 24 | std::uint32_t(block[4 * i + 1]) << 16 |
               std::uint32_t(block[4 * i + 2]) << 8 | block[4 * i + 3];
  }
  for (int i = 16; i < 64; ++i) {
    std::uint32_t a = words[i - 15], b = words[i - 2];
    words[i] = words[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + words[i - 7] +
               (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (int i = 0; i < 64; ++i) {
    std::uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                          ((e & f) ^ (~e & g)) + rounds[i] + words[i];
    std::uint32_t second =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + first;
    d = c, c = b, b = a, a = first + second;
  }
  const std::uint32_t added[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i) state_[i] += added[i];
}

}  // namespace torchspan
