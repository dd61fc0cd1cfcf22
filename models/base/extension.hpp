/// What code outside the tree adds to the library: rows of tables that scenarios name, such as
/// pipeline schedules (models/pipeline/schedule_extension.hpp), orders of a queue
/// (sim/scenario/queue_order_extension.hpp), its admissions and choices of victims
/// (sim/scenario/queue_policy_extension.hpp), rules of checkpoints
/// (sim/scenario/checkpoint_rule_extension.hpp), algorithms of collectives
/// (models/collectives/collective_extension.hpp) and processes beside training steps
/// (sim/scenario/traffic_process_extension.hpp).
///
/// A program adds its rows before it reads the first scenario, on one thread; nothing takes them
/// away again. Tables are listed in the order in which rows were added, behind those built in.
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lockstep {

/// The version of what an extension is written against. Code that was compiled against another one
/// is refused when it adds itself: it may lay out its rows in another way, or promise less. Grows
/// with every change that asks something of extensions; CHANGELOG.md says what.
inline constexpr int kExtensionInterface = 1;

/// Rows that code outside the tree may add to a table.
inline constexpr std::size_t kMostExtensions = 64;

/// A mistake of the program that adds an extension: `schedule "zigzag": made for interface 2 of
/// extensions; this library has 1`. Also of what it added, where no scenario names that.
class ExtensionError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Throws ExtensionError unless `interface` is kExtensionInterface of this library, the name is one
/// that a scenario can say (small letters, digits and underscores, a letter first), nobody of
/// `taken` has it, and there is place for one more beside `added`. `what` is "schedule".
void check_extension(std::string_view what, std::string_view name, int interface,
                     std::span<const std::string_view> taken, std::size_t added);

/// `schedule "zigzag" (an extension)`, as errors name what they found wrong with it.
std::string extension_text(std::string_view what, std::string_view name);

/// The text for as long as the program runs.
std::string_view kept_text(std::string_view text);

}  // namespace lockstep
