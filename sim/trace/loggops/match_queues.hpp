/// What waits at a rank for its match, messages or receives: whatever fits and came first is found
/// in as long as a look-up takes, however much waits.
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

namespace lockstep {

/// A peer and a tag, or any.
struct MatchKey {
  static constexpr std::uint32_t kAny = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t peer = kAny;
  std::uint32_t tag = kAny;

  /// Whether they agree in both, of which any agrees with all.
  [[nodiscard]] bool fits(const MatchKey& other) const {
    return (peer == kAny || other.peer == kAny || peer == other.peer) &&
           (tag == kAny || other.tag == kAny || tag == other.tag);
  }
};

/// Numbered as they come, and queued by what they say. Who asks with a peer and a tag gets the
/// first of at most four heads: those of this peer and tag, of any peer, of any tag, and of both.
/// For who asks for any, they stand in queues by peer, by tag and in one of all as well.
template <class Waiting>
class MatchQueues {
 public:
  /// Which of these queues somebody will ask for.
  struct Asked {
    bool any_tag = false;   ///< of one peer
    bool any_peer = false;  ///< with one tag
  };
  MatchQueues() = default;
  explicit MatchQueues(Asked asked) : asked_(asked) {}

  void push(const MatchKey& key, const Waiting& what) {
    const std::uint64_t number = all_.size();
    all_.push_back({what, false});
    own_[packed(key.peer, key.tag)].push_back(number);
    if (asked_.any_tag) of_peer_[key.peer].push_back(number);
    if (asked_.any_peer) of_tag_[key.tag].push_back(number);
  }

  /// The first that came of those that fit, and it waits no longer; nothing: none fits. Requires
  /// that `key` is as Asked said.
  std::optional<Waiting> take(const MatchKey& key) {
    constexpr std::uint32_t kAny = MatchKey::kAny;
    std::uint64_t first = kNone;
    if (key.peer != kAny && key.tag != kAny) {
      first = earliest(own_, {packed(key.peer, key.tag), packed(kAny, key.tag),
                              packed(key.peer, kAny), packed(kAny, kAny)});
    } else if (key.peer != kAny) {
      first = earliest(of_peer_, {key.peer, kAny});
    } else if (key.tag != kAny) {
      first = earliest(of_tag_, {key.tag, kAny});
    } else {
      skip_taken();
      if (first_ < all_.size()) first = first_;
    }
    if (first == kNone) return std::nullopt;
    all_[first].taken = true;
    return all_[first].what;
  }

  /// The first that came of all; nothing: none waits.
  std::optional<Waiting> first() {
    skip_taken();
    return first_ < all_.size() ? std::optional(all_[first_].what) : std::nullopt;
  }

 private:
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  using Queues = std::unordered_map<std::uint64_t, std::deque<std::uint64_t>>;
  struct Numbered {
    Waiting what;
    bool taken = false;
  };

  static std::uint64_t packed(std::uint32_t peer, std::uint32_t tag) {
    return std::uint64_t{peer} << 32U | tag;
  }
  /// Of the heads of these queues; kNone: they are empty. What was taken by way of another queue
  /// leaves this one here.
  std::uint64_t earliest(Queues& queues, std::initializer_list<std::uint64_t> keys) {
    std::uint64_t out = kNone;
    for (const std::uint64_t key : keys) {
      const auto at = queues.find(key);
      if (at == queues.end()) continue;
      std::deque<std::uint64_t>& queue = at->second;
      while (!queue.empty() && all_[queue.front()].taken) queue.pop_front();
      if (queue.empty()) {
        queues.erase(at);
      } else if (queue.front() < out) {
        out = queue.front();
      }
    }
    return out;
  }
  void skip_taken() {
    while (first_ < all_.size() && all_[first_].taken) ++first_;
  }

  Asked asked_;
  std::vector<Numbered> all_;
  std::uint64_t first_ = 0;  ///< none before it waits
  Queues own_, of_peer_, of_tag_;
};

}  // namespace lockstep
