#include "models/base/yaml_documents.hpp"

#include <sstream>
#include <string>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

namespace lockstep {
namespace {

/// Sees to it that every document begins behind the one before it.
class Advances : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (mark.pos <= last_) throw YAML::ParserException(mark, "what is here begins no document");
    last_ = mark.pos;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

 private:
  int last_ = -1;
};

}  // namespace

std::vector<YAML::Node> yaml_documents(std::string_view text) {
  const std::string all(text);
  std::istringstream stream(all);
  YAML::Parser parser(stream);
  Advances advances;
  while (parser.HandleNextDocument(advances)) {
  }
  return YAML::LoadAll(all);
}

}  // namespace lockstep
