#include "sim/scenario/named_jobs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/number_text.hpp"

namespace lockstep {

void NamedJobs::add(const std::string& name) {
  constexpr std::size_t kNamed = 5;
  if (count_++ < kNamed) first_.push_back(name);
}

std::string NamedJobs::names() const {
  std::string out = fmt::format("{}", fmt::join(first_, ", "));
  if (count_ == first_.size()) return out;
  return fmt::format("{}, and {} more", out, grouped(static_cast<double>(count_ - first_.size())));
}

std::string NamedJobs::words() const {
  const std::string jobs = counted(static_cast<double>(count_), "job");
  return count_ == 0 ? jobs : fmt::format("{} ({})", jobs, names());
}

}  // namespace lockstep
