#include "tools/explore/address.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace lockstep {
namespace {

std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    constexpr std::size_t kDigits = 2;
    const std::string_view digits = text.substr(i + 1, kDigits);
    unsigned char byte = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (text[i] == '%' && error == std::errc() && end == digits.data() + kDigits) {
      out += static_cast<char>(byte);
      i += kDigits;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

std::string decoded_path(std::string_view address) {
  return decoded(address.substr(0, address.find('?')));
}

std::vector<std::pair<std::string, std::string>> decoded_query(std::string_view query) {
  std::string text(query);
  std::ranges::replace(text, '+', ' ');
  std::vector<std::pair<std::string, std::string>> out;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    const std::size_t name = std::min(pair.find('='), pair.size());
    if (name == 0) continue;
    out.emplace_back(decoded(pair.substr(0, name)),
                     decoded(pair.substr(std::min(name + 1, pair.size()))));
  }
  return out;
}

}  // namespace lockstep
