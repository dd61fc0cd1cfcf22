#include "sim/measured/diagnosed_operators.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "models/base/number_text.hpp"
#include "sim/measured/recorded_operators.hpp"

namespace lockstep {
namespace {

constexpr double kWorthSaying = 0.001;  // of the step
constexpr std::size_t kLongestKernelName = 60;

std::string short_name(const std::string& name) {
  return name.size() <= kLongestKernelName ? name : name.substr(0, kLongestKernelName) + "...";
}

}  // namespace

OperatorCollector::OperatorCollector(const RunResult& predicted)
    : products_(predicted.scenario.job), stages_(predicted_operators(predicted)) {
  for (std::size_t i = 0; i < kModelOperators; ++i) {
    const ModelOperatorInfo& own = info(static_cast<ModelOperator>(i));
    rows_[i].name = own.name;
    rows_[i].title = own.title;
  }
  rows_.back().name = "unassigned";
  rows_.back().title = "kernels of no known operator";
}

void OperatorCollector::add(const KinetoRecording& recording, const RecordedRank& rank,
                            std::size_t stage) {
  for (std::size_t i = 0; i < kModelOperators; ++i) rows_[i].predicted_s += stages_[stage][i];
  const std::vector<RecordedOperator> operators = recorded_operators(recording, products_);
  for (std::size_t e = 0; e < operators.size(); ++e) {
    const KinetoRecording::GpuEvent& event = recording.gpu[e];
    const RecordedPart part = recorded_part(recording, event);
    if (part != RecordedPart::product && part != RecordedPart::memory) continue;
    const double seconds = rank.event_seconds[e];
    const RecordedOperator& own = operators[e];
    DiagnosedOperator& row = own.of ? rows_[static_cast<std::size_t>(*own.of)] : rows_.back();
    row.recorded_s += seconds;
    row.kernels += 1;
    if (own.by_place) row.placed_s += seconds;
    if (own.sized) sized_s_ += seconds;
    if (own.of_other_job) of_other_job_s_ += seconds;
    if (own.of) continue;
    unassigned_[recording.names[event.name]] += seconds;
    if (own.of_several) several_s_ += seconds;
    if (event.launcher == KinetoRecording::kNoLauncher) unlaunched_s_ += seconds;
  }
  steps_s_ += rank.step_s;
  ++ranks_;
}

std::vector<DiagnosedOperator> OperatorCollector::rows() const {
  std::vector<DiagnosedOperator> out;
  for (const DiagnosedOperator& sum : rows_) {
    const bool is_last = &sum == &rows_.back();
    if (!is_last && sum.predicted_s == 0 && sum.kernels == 0) continue;
    DiagnosedOperator& row = out.emplace_back(sum);
    row.predicted_s *= each();
    row.recorded_s *= each();
    row.placed_s *= each();
    row.kernels *= each();
  }
  return out;
}

std::optional<double> OperatorCollector::other_products_share() const {
  if (sized_s_ <= 0) return std::nullopt;
  return of_other_job_s_ / sized_s_;
}

std::vector<std::string> OperatorCollector::notes() const {
  const double seconds = rows_.back().recorded_s;
  if (seconds <= kWorthSaying * steps_s_) return {};
  const auto longest =
      std::ranges::max_element(unassigned_, {}, [](const auto& kernel) { return kernel.second; });
  std::vector<std::string> out{fmt::format(
      "{} of the recorded step is in kernels of which nothing tells the operator, most of it in "
      "{}: a row of its own",
      percent_text(seconds / steps_s_), short_name(longest->first))};
  if (several_s_ > kWorthSaying * steps_s_) {
    out.push_back(fmt::format("{} of the step is in compiled kernels of several operators at once",
                              percent_text(several_s_ / steps_s_)));
  }
  if (unlaunched_s_ > kWorthSaying * steps_s_) {
    out.push_back(fmt::format(
        "{} of the step is in kernels without a name that tells, whose operators were not recorded",
        percent_text(unlaunched_s_ / steps_s_)));
  }
  return out;
}

}  // namespace lockstep
