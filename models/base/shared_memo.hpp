/// Values that take long to work out and are asked for again and again, kept by what they depend
/// on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace lockstep {

/// May be used from several threads at once. A key holds everything that its value depends on, so
/// that answers are the same whoever asked first, and whatever has been forgotten; keys of one kind
/// are compared with `<`. Above its bound it forgets what nobody has asked for longest.
template <class Key, class Value>
class SharedMemo {
 public:
  /// `bytes_of` says what a key and its value take in memory, book-keeping left out.
  SharedMemo(std::size_t most_bytes, std::size_t (*bytes_of)(const Key&, const Value&))
      : most_bytes_(most_bytes), bytes_of_(bytes_of) {}

  /// The value of the key; `make()` works it out where it is not known. Two threads that ask for
  /// the same at once may both do so: no thread waits for the work of another.
  template <class Make>
  [[nodiscard]] std::shared_ptr<const Value> get(const Key& key, const Make& make) {
    if (auto known = find(key)) return known;
    auto made = std::make_shared<const Value>(make());
    keep(key, made);
    return made;
  }

  /// What the keys and values that it holds take in memory.
  [[nodiscard]] std::size_t bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  struct Known {
    std::shared_ptr<const Value> value;
    std::size_t bytes;
    std::uint64_t asked;  ///< when, in calls
  };

  std::shared_ptr<const Value> find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto place = known_.find(key);
    if (place == known_.end()) return nullptr;
    place->second.asked = ++calls_;
    return place->second.value;
  }

  void keep(const Key& key, const std::shared_ptr<const Value>& value) {
    const std::size_t bytes = bytes_of_(key, *value);
    const std::lock_guard lock(mutex_);
    if (bytes > most_bytes_ || !known_.try_emplace(key, Known{value, bytes, ++calls_}).second) {
      return;
    }
    bytes_ += bytes;
    while (bytes_ > most_bytes_) forget_oldest();
  }

  void forget_oldest() {
    auto oldest = known_.begin();
    for (auto place = known_.begin(); place != known_.end(); ++place) {
      if (place->second.asked < oldest->second.asked) oldest = place;
    }
    bytes_ -= oldest->second.bytes;
    known_.erase(oldest);
  }

  std::size_t most_bytes_;
  std::size_t (*bytes_of_)(const Key&, const Value&);
  mutable std::mutex mutex_;
  std::map<Key, Known> known_;
  std::size_t bytes_ = 0;
  std::uint64_t calls_ = 0;
};

}  // namespace lockstep
