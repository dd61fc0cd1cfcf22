#include "sim/laws/check_laws.hpp"

#include <algorithm>
#include <iterator>

#include "sim/laws/law_tables.hpp"

namespace lockstep {

std::size_t Certificate::count(LawVerdict verdict) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      laws, [&](const LawResult& law) { return law.book.verdict() == verdict; }));
}

std::vector<Law> product_laws() {
  std::vector<Law> out;
  for (auto* table : {conservation_laws, step_laws, run_laws, site_laws, exactness_laws,
                      hardware_laws, closed_form_laws}) {
    std::ranges::move(table(), std::back_inserter(out));
  }
  std::ranges::stable_sort(out, {}, &Law::family);
  return out;
}

}  // namespace lockstep
