/// A claim of a scenario, held against the answer, for people.
#pragma once

#include <string>
#include <vector>

#include "sim/answer/claim_check.hpp"
#include "sim/answer/step_answer.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// Its sentences, for whatever shows them.
struct ClaimWords {
  std::string title;                  ///< "Claim"; "Expected" where there are only bounds
  std::string source;                 ///< where it is from; may be empty
  std::string verdict{};              ///< "... This does not hold."; empty where nothing is claimed
  std::string explanation;            ///< may be empty
  std::vector<std::string> bounds{};  ///< each with the answer's figure, both as figure_text() says
  /// The same for pages: the figure in words, and its name beside them.
  struct Titled {
    std::string sentence, field;
  };
  std::vector<Titled> titled{};
};
ClaimWords claim_words(const ClaimCheck& check);

/// What the scenario says was measured, against the answer, a sentence for each value.
std::vector<std::string> expectation_sentences(const RunResult& result);

/// Of the terminal: below the answer. Empty for null.
std::string claim_text(const ClaimCheck* check, const TextStyle& style);

}  // namespace lockstep
