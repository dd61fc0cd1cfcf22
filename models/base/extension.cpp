#include "models/base/extension.hpp"

#include <algorithm>
#include <deque>

namespace lockstep {
namespace {

bool is_extension_name(std::string_view name) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";
  constexpr std::string_view kAll = "abcdefghijklmnopqrstuvwxyz0123456789_";
  return !name.empty() && kLetters.find(name.front()) != std::string_view::npos &&
         name.find_first_not_of(kAll) == std::string_view::npos;
}

}  // namespace

void check_extension(std::string_view what, std::string_view name, int interface,
                     std::span<const std::string_view> taken, std::size_t added) {
  const std::string who = std::string(what) + " \"" + std::string(name) + "\": ";
  if (interface != kExtensionInterface) {
    throw ExtensionError(who + "made for interface " + std::to_string(interface) +
                         " of extensions; this library has " + std::to_string(kExtensionInterface));
  }
  if (!is_extension_name(name)) {
    throw ExtensionError(who +
                         "found no name; allowed: small letters, digits and underscores, a "
                         "letter first");
  }
  if (std::ranges::find(taken, name) != taken.end()) {
    throw ExtensionError(who + "found twice; allowed: a name that no other " + std::string(what) +
                         " has");
  }
  if (added >= kMostExtensions) {
    throw ExtensionError(who + "found " + std::to_string(added) +
                         " that were added; allowed: at most " + std::to_string(kMostExtensions));
  }
}

std::string extension_text(std::string_view what, std::string_view name) {
  return std::string(what) + " \"" + std::string(name) + "\" (an extension)";
}

std::string_view kept_text(std::string_view text) {
  static std::deque<std::string> kept;
  return kept.emplace_back(text);
}

}  // namespace lockstep
