#include "models/spec/checkpoint_format.hpp"

#include <doctest/doctest.h>
#include <optional>
#include <string>

#include "models/base/input_error.hpp"

namespace lockstep {
namespace {

/// "weights/experts", "-" where the file says nothing of a format.
std::string formats(const std::string& quantisation) {
  const std::string text =
      R"({"model_type": "llama", "quantization_config": )" + quantisation + "}";
  const std::optional<CheckpointFormat> found =
      checkpoint_format(JsonCursor::parse("config.json", text));
  if (!found) return "-";
  return found->weights + "/" + found->experts;
}

}  // namespace

TEST_CASE("checkpoint_format: what quantization_config says of weights and experts") {
  CHECK(formats("null") == "-");
  CHECK(formats(R"({"quant_method": "fp8", "fmt": "e4m3"})") == "fp8/fp8");
  CHECK(formats(R"({"quant_method": "awq", "bits": 4})") == "int4/int4");
  CHECK(formats(R"({"quant_method": "gptq", "bits": 4})") == "int4/int4");
  CHECK(formats(R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})") == "fp4/fp4");
  CHECK(formats(R"({"quant_algo": "FP8", "kv_cache_scheme": "FP8"})") == "fp8/fp8");
  // Modules that are left out keep 16 bits: of attention, but not that of a vision tower.
  CHECK(formats(R"({"quant_method": "mxfp4",
                    "modules_to_not_convert": ["model.layers.*.self_attn"]})") == "bf16/fp4");
  CHECK(formats(R"({"quant_algo": "NVFP4", "ignore": ["model.visual.blocks.0.attn.qkv"]})") ==
        "fp4/fp4");
  CHECK(formats(R"({"quant_method": "fp8", "quant_algo": "MIXED_PRECISION",
                    "moe_quant_algo": "NVFP4"})") == "fp8/fp4");
  const std::string group = R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
      "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": )";
  CHECK(formats(group + R"("int"}}}})") == "int4/int4");
  CHECK(formats(group + R"("int"}}}, "ignore": ["re:.*self_attn.*"]})") == "bf16/int4");
  CHECK(formats(group + R"("float"}}}})") == "fp4/fp4");
}

TEST_CASE("checkpoint_format: formats without a law are said, and a malformed one is no format") {
  CHECK(formats(R"({"quant_method": "gptq", "bits": 8})") == "/");
  CHECK(formats(R"({"quant_method": "bitsandbytes", "load_in_4bit": true})") == "/");
  CHECK(formats(R"({"quant_method": 8, "config_groups": {"a": 3}, "ignore": [7]})") == "/");
  CHECK(formats("[]") == "-");
  const auto of_text = checkpoint_format(JsonCursor::parse(
      "config.json", R"({"text_config": {"quantization_config": {"quant_method": "fp8"}}})"));
  REQUIRE(of_text);
  CHECK(of_text->weights == "fp8");
  CHECK(of_text->said == "fp8");
}

TEST_CASE("checkpoint_format: bits that decide are a whole number") {
  const auto complaint = [](const std::string& quantisation) {
    try {
      return formats(quantisation);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
  };
  CHECK(complaint(R"({"quant_method": "gptq", "bits": 4.65})")
            .starts_with("config.json#/quantization_config/bits: found 4.65; "));
  CHECK(complaint(R"({"quant_method": "awq", "bits": "four"})")
            .starts_with("config.json#/quantization_config/bits: found \"four\"; "));
  CHECK(complaint(R"({"quant_method": "compressed-tensors",
                      "config_groups": {"g": {"weights": {"num_bits": 3.5, "type": "int"}}}})")
            .starts_with("config.json#/quantization_config/config_groups/g/weights/num_bits: "));
  CHECK(complaint(R"({"quant_method": "gptq", "bits": null})") == "/");
  // Of a method that nobody knows they decide nothing.
  CHECK(complaint(R"({"quant_method": "exl2", "bits": 4.65})") == "/");
}

}  // namespace lockstep
