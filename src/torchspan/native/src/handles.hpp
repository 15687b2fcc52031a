// SPDX-License-Identifier: MIT
// What C holds of things made in great numbers: a handle is the number of a slot and of its use, so
// that one that was deleted, or never made, is told apart from every one in use.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "status.hpp"

namespace torchspan {

template <class Handle, class Thing>
class Handles {
 public:
  // `noun` names the thing in errors.
  explicit Handles(const char* noun) : noun_(noun) {}

  Handle* add(Thing&& thing) {
    std::lock_guard lock(mutex_);
    if (free_.empty()) grow();
    const std::uint32_t index = free_.back();
    Slot& slot = *find_slot(index);
    new (slot.room) Thing(std::move(thing));
    free_.pop_back();
    // Odd while the slot is in use, so no handle is NULL.
    const std::uint32_t use = slot.use.load(std::memory_order_relaxed) + 1;
    slot.use.store(use, std::memory_order_release);
    return reinterpret_cast<Handle*>(std::uintptr_t(use) << 32 | index);
  }

  // The thing of a handle, which `what` names; throws an argument error where there is none.
  Thing& find(const Handle* handle, const char* what) const {
    require(handle, what);
    Slot* slot = used_slot(handle);
    if (slot == nullptr) {
      fail(TSPAN_ERROR_ARGUMENT, what, " is no ", noun_, " in use: it was deleted, or never made.");
    }
    return *std::launder(reinterpret_cast<Thing*>(slot->room));
  }

  void remove(Handle* handle, const char* what) {
    Thing thing = std::move(find(handle, what));
    std::lock_guard lock(mutex_);
    Slot* slot = used_slot(handle);
    if (slot == nullptr) return;
    free_.push_back(static_cast<std::uint32_t>(number(handle)));
    slot->use.fetch_add(1, std::memory_order_release);
    std::launder(reinterpret_cast<Thing*>(slot->room))->~Thing();
  }

 private:
  struct Slot {
    std::atomic<std::uint32_t> use = 0;
    alignas(Thing) unsigned char room[sizeof(Thing)];
  };
  // Block k has first << k slots and never moves, so that finding needs no lock.
  static constexpr std::uint64_t first = 256;
  static constexpr int blocks = 20;

  static std::uintptr_t number(const Handle* handle) {
    return reinterpret_cast<std::uintptr_t>(handle);
  }

  Slot* find_slot(std::uint64_t index) const {
    const std::uint64_t place = index + first;
    const int block = std::bit_width(place) - std::bit_width(first);
    if (block >= blocks) return nullptr;
    Slot* slots = blocks_[block].load(std::memory_order_acquire);
    return slots == nullptr ? nullptr : slots + (place - (first << block));
  }

  Slot* used_slot(const Handle* handle) const {
    const std::uintptr_t value = number(handle);
    const auto use = static_cast<std::uint32_t>(value >> 32);
    Slot* slot = find_slot(static_cast<std::uint32_t>(value));
    const bool used =
        slot != nullptr && use % 2 == 1 && slot->use.load(std::memory_order_acquire) == use;
    return used ? slot : nullptr;
  }

  void grow() {
    if (grown_ == blocks) fail(TSPAN_ERROR_MEMORY, "there are too many ", noun_, "s in use.");
    const std::uint64_t count = first << grown_, start = count - first;
    free_.reserve(static_cast<std::size_t>(start + count));
    // Never freed: what lives until the process ends must not be destroyed after torch is.
    blocks_[grown_].store(std::make_unique<Slot[]>(count).release(), std::memory_order_release);
    for (std::uint64_t index = count; index > 0; --index) {
      free_.push_back(static_cast<std::uint32_t>(start + index - 1));
    }
    ++grown_;
  }

  const char* noun_;
  std::mutex mutex_;
  std::vector<std::uint32_t> free_;
  std::array<std::atomic<Slot*>, blocks> blocks_ = {};
  int grown_ = 0;
};

}  // namespace torchspan
