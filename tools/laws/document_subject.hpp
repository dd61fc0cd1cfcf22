/// A document of another command than `lockstep run` that laws are tried on: asks it, or it with
/// changes, and counts the answers.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/laws/law_subject.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// A document as it was written, and who answers it.
struct DocumentQuestion {
  using Json = nlohmann::ordered_json;

  std::string file;  ///< how messages call it; paths in the text start from its folder
  std::string text;
  std::vector<std::string> set{};  ///< "cluster.nodes=16"
  bool deep = false;
  std::function<bool()> go_on{};  ///< asked before each answer; false stops
  std::string about;              ///< "traffic", "collective"
  /// The answer to a text under a file's name. Throws InputError about it.
  std::function<Json(const std::string& file, const std::string& text)> answer;
  /// Sees every answer before laws do, with the number of answers before it: tests plant mistakes
  /// here.
  std::function<void(Json& answer, std::size_t number)> plant{};
};

class DocumentSubject {
 public:
  using Json = nlohmann::ordered_json;

  /// Throws InputError for text that is no JSON.
  DocumentSubject(DocumentQuestion question, const PresetStore& presets);
  ~DocumentSubject();
  DocumentSubject(const DocumentSubject&) = delete;
  DocumentSubject& operator=(const DocumentSubject&) = delete;

  [[nodiscard]] const std::string& file() const { return question_.file; }
  [[nodiscard]] bool deep() const { return question_.deep; }
  [[nodiscard]] const std::string& about() const { return question_.about; }
  [[nodiscard]] const PresetStore& presets() const { return presets_; }
  /// As it was written, with what DocumentQuestion::set changed.
  [[nodiscard]] const Json& document() const { return *document_; }

  /// Its answer; asked once.
  const Json& answer();
  /// The answer to another document under the same file's name. Throws InputError about it.
  Json ask(const Json& document);
  /// The answer with values changed; nothing where such a document is refused. The same changes are
  /// asked once.
  const Json* changed(const std::vector<std::string>& sets);

  /// Says that a law simulates by itself. Throws LawsStopped.
  void count(std::size_t simulations = 1);
  [[nodiscard]] std::size_t simulations() const { return simulations_; }

 private:
  DocumentQuestion question_;
  const PresetStore& presets_;
  std::unique_ptr<const Json> document_, answer_;
  std::map<std::vector<std::string>, std::unique_ptr<const Json>> changed_;
  std::size_t simulations_ = 0, answers_ = 0;
};

}  // namespace lockstep
