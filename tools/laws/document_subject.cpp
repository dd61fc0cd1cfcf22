#include "tools/laws/document_subject.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/write_json.hpp"

namespace lockstep {

DocumentSubject::DocumentSubject(DocumentQuestion question, const PresetStore& presets)
    : question_(std::move(question)), presets_(presets) {
  const JsonCursor root =
      JsonCursor::parse(question_.file, question_.text, JsonStyle::plain, question_.set);
  document_ = std::make_unique<const Json>(root.json());
}

DocumentSubject::~DocumentSubject() = default;

void DocumentSubject::count(std::size_t simulations) {
  if (question_.go_on && !question_.go_on()) throw LawsStopped();
  simulations_ += simulations;
}

const DocumentSubject::Json& DocumentSubject::answer() {
  if (!answer_) answer_ = std::make_unique<const Json>(ask(*document_));
  return *answer_;
}

DocumentSubject::Json DocumentSubject::ask(const Json& document) {
  count();
  Json answer = question_.answer(question_.file, write_json(document));
  if (question_.plant) question_.plant(answer, answers_++);
  return answer;
}

const DocumentSubject::Json* DocumentSubject::changed(const std::vector<std::string>& sets) {
  const auto known = changed_.find(sets);
  if (known != changed_.end()) return known->second.get();
  std::unique_ptr<const Json> answer;
  try {
    const JsonCursor root =
        JsonCursor::parse(question_.file, write_json(*document_), JsonStyle::plain, sets);
    answer = std::make_unique<const Json>(ask(root.json()));
  } catch (const InputError&) {
    answer.reset();  // a value beyond its bounds, or a rule: there is nothing to compare
  }
  return changed_.emplace(sets, std::move(answer)).first->second.get();
}

}  // namespace lockstep
