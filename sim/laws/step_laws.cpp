// Laws of a replay that no answer shows: they look at its flows, links and passes.
#include <fmt/format.h>

#include "sim/laws/law_subject.hpp"
#include "sim/laws/law_tables.hpp"
#include "sim/laws/step_books.hpp"

namespace lockstep {
namespace {

/// Each replica is looked at on its own, with every flow and pass kept.
constexpr int kMostGpusOfBooks = 1024, kMostGpusOfBooksDeep = 16'384;

template <void (*kHold)(const Scenario&, LawBook&)>
void hold_inside(LawSubject& subject, LawBook& book) {
  const Scenario* const job = subject.job();
  if (job == nullptr) return book.does_not_apply("not one training job");
  const int most = subject.deep() ? kMostGpusOfBooksDeep : kMostGpusOfBooks;
  if (job->gpus() > most) {
    return book.does_not_apply(fmt::format("{} GPUs unfolded take long: at most {}{}", job->gpus(),
                                           most, subject.deep() ? "" : " without --deep"));
  }
  subject.count();
  kHold(*job, book);
  if (book.comparisons() == 0) book.does_not_apply("nothing is sent");
}

}  // namespace

std::vector<Law> step_laws() {
  constexpr LawFamily kFamily = LawFamily::conservation;
  return {
      {"bytes", kFamily,
       "Flows move what the plan sends, links carry what flows put on them, within their capacity.",
       hold_inside<hold_bytes>},
      {"work", kFamily, "All of the model's FLOP are done, and each pass once.",
       hold_inside<hold_work>},
  };
}

}  // namespace lockstep
