// Lockstep in a page: what explore.js asks, answered without a server. The page gives the scenario
// once, then questions as its address has them; answers are the bytes that `lockstep explore`
// sends.
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/scenario/preset_store.hpp"
#include "tools/console/failure.hpp"
#include "tools/console/interrupt.hpp"
#include "tools/console/written.hpp"
#include "tools/explore/address.hpp"
#include "tools/explore/explorer.hpp"

namespace lockstep {

bool InterruptGuard::interrupted() { return false; }  // a page has no signals

namespace {

const PresetStore& presets() {
  static const PresetStore store;
  return store;
}

std::unique_ptr<Explorer>& explorer() {
  static std::unique_ptr<Explorer> of_page;
  return of_page;
}

std::string& answer() {
  static std::string last;
  return last;
}

template <class Work>
std::size_t told(const Work& work) {
  try {
    answer() = work();
  } catch (const std::exception&) {
    answer() = JsonText(failure_json(current_failure())).str();
  }
  return answer().size();
}

}  // namespace
}  // namespace lockstep

#define LOCKSTEP_EXPORT(name) extern "C" __attribute__((export_name(#name)))

/// Room for a text of so many bytes, which the next call that takes it frees.
LOCKSTEP_EXPORT(room) char* room(std::size_t bytes) {
  return static_cast<char*>(std::malloc(bytes));
}
/// The last answer, of as many bytes as the call returned.
LOCKSTEP_EXPORT(said) const char* said() { return lockstep::answer().data(); }

/// Begins with a scenario's text. The answer is empty, or {"error": ...}.
LOCKSTEP_EXPORT(begin) std::size_t begin(char* text, std::size_t size) {
  const std::string scenario(text, size);
  std::free(text);
  return lockstep::told([&] {
    lockstep::explorer() =
        std::make_unique<lockstep::Explorer>(std::string(lockstep::kExploredFile), scenario,
                                             std::vector<std::string>(), lockstep::presets());
    return std::string();
  });
}

/// "answer?cluster.nodes=64": what the page's server would be asked.
LOCKSTEP_EXPORT(ask) std::size_t ask(char* text, std::size_t size) {
  const std::string question(text, size);
  std::free(text);
  const std::size_t mark = question.find('?');
  return lockstep::told([&] {
    const std::string_view query = mark == std::string::npos
                                       ? std::string_view()
                                       : std::string_view(question).substr(mark + 1);
    return lockstep::explorer()
        ->asked(std::string_view(question).substr(0, mark), lockstep::decoded_query(query))
        .value_or("{}");
  });
}
