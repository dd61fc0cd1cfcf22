/// Questions to a person, one line each, with an answer to begin with.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>

namespace lockstep {

class Questions {
 public:
  Questions(std::istream& in, std::ostream& out) : in_(&in), out_(&out) {}

  /// Asks until `mistake` finds none (it returns the line that says one); an empty line is
  /// `otherwise`. Throws UsageError where the answers end.
  std::string ask(const std::string& question, const std::string& otherwise,
                  const std::function<std::string(const std::string&)>& mistake);

 private:
  std::istream* in_;
  std::ostream* out_;
};

}  // namespace lockstep
