/// Commands as the program runs them, on the document of a subject of laws.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/laws/law.hpp"
#include "tools/console/console.hpp"
#include "tools/laws/scratch_folder.hpp"

namespace lockstep {

/// Twelve digits are printed of each number.
inline constexpr double kPrinted = 1e-11;

/// What a command said.
struct Said {
  Exit exit = Exit::ok;
  std::string out, err;

  [[nodiscard]] nlohmann::ordered_json json() const { return nlohmann::ordered_json::parse(out); }
  /// Its first line of complaint.
  [[nodiscard]] std::string complaint() const { return err.substr(0, err.find('\n')); }
};

/// A subject's document as a file, and commands that take it.
class Commands {
 public:
  using Json = nlohmann::ordered_json;

  /// The subject outlives this, and so do the folders that --presets gave.
  template <class Subject>
  Commands(Subject& subject, const std::vector<std::string>& presets)
      : from_(subject.file()), presets_(presets), count_([&subject] { subject.count(); }) {
    file_ = write("job.json", subject.document());
  }

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] std::string path(std::string_view name) const { return folder_.path(name); }
  /// Paths in the document start from where the subject's file lies.
  [[nodiscard]] std::string write(std::string_view name, Json document) const;
  [[nodiscard]] std::string write_text(std::string_view name, const Json& document) const;
  /// Throws LawsStopped where somebody stopped it.
  [[nodiscard]] Said run(std::vector<std::string> words) const;

 private:
  std::string from_;
  const std::vector<std::string>& presets_;
  std::function<void()> count_;
  ScratchFolder folder_;
  std::string file_;
};

/// A command has to answer: an error is a break of the law.
bool answered(std::string_view who, const Said& said, LawBook& book);

}  // namespace lockstep
