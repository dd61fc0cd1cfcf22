#include "tools/author/questions.hpp"

#include <istream>
#include <ostream>

#include "tools/console/options.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

std::string Questions::ask(const std::string& question, const std::string& otherwise,
                           const std::function<std::string(const std::string&)>& mistake) {
  while (true) {
    *out_ << question << " [" << otherwise << "] " << std::flush;
    std::string answer;
    if (!std::getline(*in_, answer)) {
      throw UsageError("lockstep new: the answers ended before the questions");
    }
    if (answer.empty()) answer = otherwise;
    const std::string line = mistake(answer);
    if (line.empty()) return answer;
    *out_ << terminal_text(line) << "\n";
  }
}

}  // namespace lockstep
