// The same question in other words has the same answer, byte for byte.
#include <cmath>
#include <fmt/format.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/write_json.hpp"
#include "sim/laws/law_subject.hpp"
#include "sim/laws/law_tables.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// What was asked is part of the answer; without it the rest has to be the same.
std::string without_question(const Json& answer) {
  Json out = answer;
  out.erase("scenario");
  return write_json(out);
}

void hold_asked_twice(LawSubject& subject, LawBook& book) {
  book.same_text("the answer", write_json(subject.ask(subject.document())),
                 write_json(subject.answer()));
}

/// Not said twice where an order means something: assumptions are listed as keys are read.
void hold_key_order(LawSubject& subject, LawBook& book) {
  Json turned = subject.ask(with_keys_reversed(subject.document()));
  Json straight = subject.answer();
  turned.erase("assumptions");
  straight.erase("assumptions");
  book.same_text("the answer", without_question(turned), without_question(straight));
}

void hold_as_written(LawSubject& subject, LawBook& book) {
  const Json& answer = subject.answer();
  book.same_text("the answer to its own \"scenario\"",
                 write_json(subject.ask(answer.at("scenario"))), write_json(answer));
}

void hold_threads(LawSubject& subject, LawBook& book) {
  if (subject.kind() != AnswerKind::run) {
    return book.does_not_apply("one simulation runs on one thread");
  }
  for (const int threads : subject.deep() ? std::vector{2, 3, 8} : std::vector{3}) {
    book.same_text(fmt::format("the answer on {} threads", threads),
                   write_json(subject.ask(subject.document(), {.jobs = threads})),
                   write_json(subject.answer()));
  }
}

/// Two samples of the same run: their means differ by chance, five standard errors at most in one
/// of two million.
void hold_seeds(LawSubject& subject, LawBook& book) {
  if (subject.kind() != AnswerKind::run) return book.does_not_apply("nothing is drawn at random");
  const Json& answer = subject.answer();
  const auto half_width = [](const Json& of) {
    return of.at("goodput_half_width_95").get<double>();
  };
  constexpr double kErrors = 5.0 / 1.96;
  constexpr int kLeastRuns = 20;  // whose spread is known well enough
  if (answer.at("trajectories").get<double>() < kLeastRuns || half_width(answer) == 0) {
    return book.does_not_apply("too few random runs to know their spread");
  }
  for (const int seed : {4711, 90125}) {
    const Json* const other = subject.changed({fmt::format("run.seed={}", seed)});
    if (other == nullptr) continue;
    const double goodput = answer.at("goodput").get<double>();
    book.same_of(fmt::format("goodput with seed {}", seed), other->at("goodput").get<double>(),
                 goodput, goodput,
                 kErrors * std::hypot(half_width(answer), half_width(*other)) / goodput);
  }
}

/// Folded as far as that is exact: the step of every replica on its own, bit for bit; where a
/// sample was simulated, its band holds it.
void hold_unfolded(LawSubject& subject, LawBook& book) {
  if (subject.kind() != AnswerKind::step) return book.does_not_apply("not one training step");
  const Scenario& job = *subject.job();
  constexpr int kMostGpus = 4096, kMostGpusDeep = 131'072;
  const int most = subject.deep() ? kMostGpusDeep : kMostGpus;
  if (job.gpus() > most) {
    return book.does_not_apply(fmt::format("{} GPUs unfolded take long: at most {}{}", job.gpus(),
                                           most, subject.deep() ? "" : " without --deep"));
  }
  const Json& answer = subject.answer();
  const Json unfolded =
      subject.ask(subject.document(), {.folding = Folding::unfolded, .full_fabric = false});
  const double step = unfolded.at("step_s").get<double>();
  const double low = answer.at("exact_low_s").get<double>();
  const double high = answer.at("exact_high_s").get<double>();
  if (low == high) {
    book.same("step unfolded", step, answer.at("step_s").get<double>(), 0);
    for (std::size_t i = 0; i < answer.at("waterfall").size(); ++i) {
      const Json &whole = unfolded.at("waterfall")[i], &folded = answer.at("waterfall")[i];
      book.same_of(whole.at("bucket").get<std::string>() + " unfolded",
                   whole.at("seconds").get<double>(), folded.at("seconds").get<double>(), step,
                   1e-11);
    }
  }
  book.at_most("lower end of the band", low, step, 1e-11);
  book.at_most("step unfolded against the band", step, high, 1e-11);
}

}  // namespace

std::vector<Law> exactness_laws() {
  constexpr LawFamily kFamily = LawFamily::exactness;
  return {
      {"asked_twice", kFamily, "The same question has the same answer, byte for byte.",
       hold_asked_twice},
      {"key_order", kFamily, "The order of keys in a file changes nothing.", hold_key_order},
      {"as_written", kFamily, "An answer's \"scenario\" gives this answer again.", hold_as_written},
      {"unfolded", kFamily, "Every replica on its own takes the step that was told, or its band.",
       hold_unfolded},
      {"threads", kFamily, "The answer does not depend on the number of threads.", hold_threads},
      {"seeds", kFamily, "Another seed gives a mean within the errors of both.", hold_seeds},
  };
}

}  // namespace lockstep
