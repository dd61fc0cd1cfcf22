/// For tests that hold a JSON Schema to what readers declare.
#pragma once

#include <doctest/doctest.h>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/write_json.hpp"

namespace lockstep::test {

/// Says where two schemas differ, by pointer.
inline void check_same_schema(const std::string& pointer, const nlohmann::ordered_json& declared,
                              const nlohmann::ordered_json& written) {
  CAPTURE(pointer);
  if (!declared.is_object() || !written.is_object()) {
    CHECK(nlohmann::json(declared) == nlohmann::json(written));
    return;
  }
  for (const auto& [key, value] : written.items()) {
    if (!declared.contains(key)) {
      CHECK_MESSAGE(false, pointer, " has ", key, ", which no reader declares");
    }
  }
  for (const auto& [key, value] : declared.items()) {
    if (!written.contains(key)) {
      CHECK_MESSAGE(false, pointer, " lacks ", key, ": ", write_json(value));
    } else {
      check_same_schema(pointer + "/" + key, value, written.at(key));
    }
  }
}

}  // namespace lockstep::test
