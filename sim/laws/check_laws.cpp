#include "sim/laws/check_laws.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "models/base/input_error.hpp"
#include "sim/laws/law_tables.hpp"

namespace lockstep {

std::size_t Certificate::count(LawVerdict verdict) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      laws, [&](const LawResult& law) { return law.book.verdict() == verdict; }));
}

std::vector<Law> product_laws() {
  std::vector<Law> out;
  for (auto* table :
       {conservation_laws, step_laws, run_laws, exactness_laws, hardware_laws, closed_form_laws}) {
    std::ranges::move(table(), std::back_inserter(out));
  }
  std::ranges::stable_sort(out, {}, &Law::family);
  return out;
}

Certificate check_laws(LawSubject& subject, const std::vector<Law>& laws,
                       const std::function<void(std::size_t, std::size_t)>& done) {
  Certificate out;
  out.file = subject.file();
  out.kind = subject.kind();
  out.deep = subject.deep();
  std::size_t tried = 0;
  for (const Law& law : laws) {
    LawResult result{law.name, law.family, law.sentence, {}};
    try {
      if (law.deep && !subject.deep()) {
        result.book.does_not_apply("tried with --deep alone");
      } else {
        law.hold(subject, result.book);
      }
    } catch (const LawsStopped&) {
      out.stopped = true;
      break;
    } catch (const InputError&) {
      throw;
    } catch (const std::logic_error& error) {
      // No scenario may lead to one, whatever the law was about.
      result.book.same_text("an error of the program itself", error.what(), "none");
    }
    out.laws.push_back(std::move(result));
    if (done) done(++tried, laws.size());
  }
  out.simulations = subject.simulations();
  return out;
}

}  // namespace lockstep
