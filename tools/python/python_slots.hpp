/// What Python has under its names in a table of the library. Rows of tables stay, so that each of
/// Python's asks a slot, which Python may fill anew, as a cell of a notebook does that is run
/// again, or empty.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <deque>
#include <stdexcept>
#include <string>
#include <utility>

#include "models/base/extension.hpp"

namespace lockstep {

/// Slots of one table. Any thread may ask them; Python's lock guards all else. What was in a slot
/// is kept for ever: a thread may still ask it, and Python may end before the library's tables.
template <class Filling>
class PythonSlots {
 public:
  class Slot {
   public:
    /// Throws std::runtime_error where it was emptied.
    [[nodiscard]] Filling& filling() const {
      if (Filling* const there = filling_) return *there;
      throw std::runtime_error("removed by lockstep.remove()");
    }
    [[nodiscard]] bool is_empty() const { return filling_ == nullptr; }

   private:
    friend PythonSlots;
    std::string name_, traits_;
    std::atomic<Filling*> filling_ = nullptr;
  };

  /// `what` is "schedule".
  explicit PythonSlots(std::string what) : what_(std::move(what)) {}

  /// Fills the slot of the name. Where there is none yet, `add(slot, place)` makes a row for a new
  /// one, at a place from 0, and may throw. `traits` say what the row holds beside what it asks: a
  /// slot whose row has others throws ExtensionError.
  template <class Add>
  void put(const std::string& name, const std::string& traits, Filling* filling, const Add& add) {
    const auto known = std::ranges::find(slots_, name, &Slot::name_);
    if (known != slots_.end()) {
      if (known->traits_ != traits) {
        throw ExtensionError(what_ + " \"" + name + "\": found " + traits +
                             "; allowed: " + known->traits_ + ", as it was added, or another name");
      }
      known->filling_ = filling;
      return;
    }
    Slot& made = slots_.emplace_back();
    made.name_ = name;
    made.traits_ = traits;
    made.filling_ = filling;
    try {
      add(made, slots_.size() - 1);
    } catch (...) {
      slots_.pop_back();
      throw;
    }
  }

  /// Whether there was something under the name.
  bool remove(const std::string& name) {
    const auto known = std::ranges::find(slots_, name, &Slot::name_);
    return known != slots_.end() && known->filling_.exchange(nullptr) != nullptr;
  }

  [[nodiscard]] const Slot& at(std::size_t place) const { return slots_[place]; }

 private:
  std::string what_;
  std::deque<Slot> slots_;
};

}  // namespace lockstep
