/// Whole-number arithmetic of a shell: $((A * B)), ((A > 1)), ${SIZES[i + 1]}.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace lockstep {

/// What a name is worth; nothing where that is not known.
using ArithmeticName = std::function<std::optional<std::int64_t>(std::string_view)>;

/// + - * / % **, comparisons, && || !, ?: and brackets over whole numbers and names, with or
/// without "$". Nothing where it says anything else, divides by 0, leaves 64 bits, or has a name
/// whose worth is not known.
std::optional<std::int64_t> arithmetic(std::string_view text, const ArithmeticName& name);

}  // namespace lockstep
