#include "sim/answer/exact_rate.hpp"

#include <variant>

#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"

namespace lockstep {

std::string exact_rate(double bytes_per_s) {
  const std::string text = format_quantity(bytes_per_s, Dimension::data_rate);
  const auto read = parse_quantity(text, Dimension::data_rate);
  const double* const said = std::get_if<double>(&read);
  return said != nullptr && *said == bytes_per_s ? text : number_text(bytes_per_s) + " B/s";
}

}  // namespace lockstep
