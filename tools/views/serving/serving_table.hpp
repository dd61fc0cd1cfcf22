/// What `lockstep run` prints of a service.
#pragma once

#include <string>

#include "sim/answer/serving_answer.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// For people: what requests see, pools, where time goes, and who else is on the fabric.
std::string serving_table(const ServingAnswer& a, const TextStyle& style);

/// A header line, then a line for each number.
CsvText serving_csv(const ServingAnswer& a);

}  // namespace lockstep
