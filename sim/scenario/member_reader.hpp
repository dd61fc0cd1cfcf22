/// Reads the members of one JSON object into fields, as presets and scenarios share them.
#pragma once

#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "models/base/json_cursor.hpp"
#include "models/base/units.hpp"
#include "sim/scenario/declared_members.hpp"

namespace lockstep {

/// Reads members of one object. A required one must be there unless only changes are read.
class MemberReader {
 public:
  MemberReader(const JsonCursor& from, Extent extent) : from_(from), extent_(extent) {}

  /// Calls `use` with the member.
  template <class Use>
  void required(std::string_view key, Use use) const {
    if (extent_ == Extent::whole) {
      use(from_.at(key));
    } else {
      optional(key, use);
    }
  }
  template <class Use>
  void optional(std::string_view key, Use use) const {
    if (const std::optional<JsonCursor> member = from_.find(key)) use(*member);
  }

  void required(std::string_view key, double& out, const Interval& allowed) const {
    required(key, [&](const JsonCursor& member) { out = member.number(allowed); });
  }
  void optional(std::string_view key, double& out, const Interval& allowed) const {
    optional(key, [&](const JsonCursor& member) { out = member.number(allowed); });
  }
  void required(std::string_view key, int& out, int low, int high) const {
    required(key, [&](const JsonCursor& member) { out = member.integer(low, high); });
  }
  void optional(std::string_view key, int& out, int low, int high) const {
    optional(key, [&](const JsonCursor& member) { out = member.integer(low, high); });
  }
  template <int S, int B, int F, int J>
  void required(std::string_view key, Quantity<S, B, F, J>& out, const Interval& allowed) const {
    required(key, [&](const JsonCursor& member) { assign(member, out, allowed); });
  }
  template <int S, int B, int F, int J>
  void optional(std::string_view key, Quantity<S, B, F, J>& out, const Interval& allowed) const {
    optional(key, [&](const JsonCursor& member) { assign(member, out, allowed); });
  }
  void optional(std::string_view key, bool& out) const {
    optional(key, [&](const JsonCursor& member) { out = member.boolean(); });
  }
  void optional(std::string_view key, std::string& out) const {
    optional(key, [&](const JsonCursor& member) { out = member.string(); });
  }
  void required(std::string_view key, std::string& out) const {
    required(key, [&](const JsonCursor& member) { out = member.string(); });
  }

 private:
  static void assign(const JsonCursor& from, Seconds& out, const Interval& allowed) {
    out = from.seconds(allowed);
  }
  static void assign(const JsonCursor& from, Bytes& out, const Interval& allowed) {
    out = from.bytes(allowed);
  }
  static void assign(const JsonCursor& from, BytesPerSecond& out, const Interval& allowed) {
    out = from.data_rate(allowed);
  }
  static void assign(const JsonCursor& from, FlopsPerSecond& out, const Interval& allowed) {
    out = from.flops_rate(allowed);
  }
  static void assign(const JsonCursor& from, Watts& out, const Interval& allowed) {
    out = from.watts(allowed);
  }
  static void assign(const JsonCursor& from, Joules& out, const Interval& allowed) {
    out = Joules{from.number(allowed)};
  }

  const JsonCursor& from_;
  Extent extent_;
};

}  // namespace lockstep
