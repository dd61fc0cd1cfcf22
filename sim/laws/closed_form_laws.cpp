// What can be said of an answer without a simulation: bounds, and counts by hand.
#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/laws/law_subject.hpp"
#include "sim/laws/law_tables.hpp"
#include "sim/search/bounds.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// Ticks of picoseconds, of passes that are rounded one by one.
constexpr double kTicks = 1e-9;

/// The job of a step on one kind of node, or null.
const Scenario* even_step(const LawSubject& subject, LawBook& book) {
  if (subject.kind() != AnswerKind::step) {
    book.does_not_apply("not one training step");
    return nullptr;
  }
  if (subject.job()->unequal()) {
    book.does_not_apply("nodes of several kinds, or replicas with unequal work");
    return nullptr;
  }
  return subject.job();
}

void hold_bounds(LawSubject& subject, LawBook& book) {
  const Scenario* const job = even_step(subject, book);
  if (job == nullptr) return;
  const double step = subject.answer().at("step_s").get<double>();
  ComputeBound compute(*job);
  book.at_most("compute without a pause", compute(*job).base_units(), step, kTicks);
  subject.count();
  book.at_most("the step with every link for itself", uncontended_step(*job).base_units(), step,
               kTicks);
}

/// A stage cannot begin before the first micro batch has come through those before it, and what it
/// leaves goes back through them: Narayanan et al. 2021, arXiv:2104.04473, section 2.2.
void hold_pipeline(LawSubject& subject, LawBook& book) {
  const Scenario* const job = even_step(subject, book);
  if (job == nullptr) return;
  const Parallelism& cut = job->job.parallelism;
  if (cut.pipeline == 1 || cut.virtual_stages > 1 ||
      (cut.schedule != Schedule::one_f_one_b && cut.schedule != Schedule::gpipe)) {
    return book.does_not_apply("no pipeline of whole passes, a stage a rank");
  }
  const Json& answer = subject.answer();
  const double micro = job->job.micro_batches();
  double through = 0;
  for (const Json& stage : answer.at("stages")) {
    const double both = stage.at("forward_s").get<double>() + stage.at("backward_s").get<double>();
    book.at_most(
        fmt::format("passes of stage {}, and the way there and back", stage.at("stage").get<int>()),
        through + micro * both, answer.at("step_s").get<double>(), kTicks);
    through += both;
  }
}

/// Twice the sequences: twice the tokens and FLOP, no shorter a step, and no longer than two.
void hold_twice_the_batch(LawSubject& subject, LawBook& book) {
  const Scenario* const job = even_step(subject, book);
  if (job == nullptr) return;
  const Json& once = subject.answer();
  const Json* const twice =
      subject.changed({fmt::format("batch.sequences={}", 2 * job->job.batch.sequences)});
  if (twice == nullptr) return book.does_not_apply("twice the sequences break a rule");
  const auto of = [](const Json& answer, const char* key) { return answer.at(key).get<double>(); };
  const auto flops = [&](const Json& answer) {
    return of(answer, "tflops_per_gpu") * of(answer, "gpus") * of(answer, "step_s");
  };
  book.same("tokens of twice the sequences", of(*twice, "tokens_per_step"),
            2 * of(once, "tokens_per_step"), 0);
  book.same("FLOP of twice the sequences", flops(*twice), 2 * flops(once), 1e-10);
  book.at_most("the step against one of twice the sequences", of(once, "step_s"),
               of(*twice, "step_s"), kTicks);
}

/// FLOP of the model are the same whatever is recomputed, which HFU alone counts.
void hold_recomputation(LawSubject& subject, LawBook& book) {
  const Scenario* const job = even_step(subject, book);
  if (job == nullptr) return;
  const Json& answer = subject.answer();
  const auto flops = [](const Json& of) {
    return of.at("tflops_per_gpu").get<double>() * of.at("step_s").get<double>();
  };
  const auto all = [](const Json& of) {
    return of.at("hfu").get<double>() * of.at("step_s").get<double>();
  };
  const Json* const none = subject.changed({"recompute=none"});
  const Json* const full = subject.changed({"recompute=full"});
  for (const Json* const other : {none, full}) {
    if (other == nullptr) continue;
    book.same("FLOP of the model with another recomputation", flops(*other), flops(answer), 1e-10);
  }
  if (none != nullptr && full != nullptr) {
    book.at_most("FLOP without recomputation, against all of it", all(*none), all(*full), 1e-10);
    book.at_most("FLOP told, against full recomputation", all(answer), all(*full), 1e-10);
  }
  if (book.comparisons() == 0) book.does_not_apply("no other recomputation can be asked for");
}

void hold_queue_bounds(const Json& answer, LawBook& book) {
  const auto of = [&](const char* key) { return answer.at(key).get<double>(); };
  if (of("ended") == of("jobs")) {
    const double work = answer.at("waterfall").at("useful").at("gpu_hours").get<double>() * 3600;
    book.at_most("useful GPU time over all GPUs", work / of("gpus"), of("makespan_s"), kTicks);
    book.at_most("mean wait against mean completion", of("wait_mean_s"), of("completion_mean_s"),
                 kTicks);
  }
  if (of("ended") == 0) return book.does_not_apply("no job has ended");
  book.at_most("1 against the mean slowdown", 1, of("slowdown_mean"), 0);
}

void hold_serving_bounds(const Json& answer, LawBook& book) {
  const double span = answer.at("span_s").get<double>();
  for (const Json& pool : answer.at("pools")) {
    const auto name = pool.at("name").get<std::string>();
    book.at_most(name + ": time in passes, against replicas times the span",
                 pool.at("busy_s").get<double>(), pool.at("replicas").get<double>() * span, kTicks);
    book.at_most(name + ": share of the cache", pool.at("cache_most_share").get<double>(), 1, 0);
  }
}

void hold_many(LawSubject& subject, LawBook& book) {
  if (subject.kind() == AnswerKind::queue) return hold_queue_bounds(subject.answer(), book);
  if (subject.kind() == AnswerKind::serving) return hold_serving_bounds(subject.answer(), book);
  book.does_not_apply("no queue of jobs, and no requests");
}

}  // namespace

std::vector<Law> closed_form_laws() {
  constexpr LawFamily kFamily = LawFamily::closed_form;
  return {
      {"bounds", kFamily, "A step takes no less than its compute, and than with links to itself.",
       hold_bounds},
      {"pipeline", kFamily, "A stage waits until the first micro batch has come, and for the last.",
       hold_pipeline},
      {"batch", kFamily, "Twice the sequences are twice the tokens and FLOP, in no shorter a step.",
       hold_twice_the_batch},
      {"recomputation", kFamily, "What is recomputed counts in HFU and never in the model's FLOP.",
       hold_recomputation},
      {"capacity", kFamily,
       "No cluster does more work than its GPUs have time, no cache holds more.", hold_many},
  };
}

}  // namespace lockstep
