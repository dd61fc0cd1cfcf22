#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep::hugging_face {
namespace {

/// Which layers look back over a window only, where "layer_types" doesn't say.
enum class Windowed : std::uint8_t { all, alternate, behind, alternate_before, but_every_nth };
/// Families whose code has windows. Sources: configuration_*.py of each family in
/// https://github.com/huggingface/transformers.
struct WindowFamily {
  std::string_view type;
  /// behind, alternate_before: the first "max_window_layers"; but_every_nth: all but each
  /// "sliding_window_pattern"-th.
  Windowed layers;
  int window;          ///< where "sliding_window" is missing; 0: none
  bool only_if_asked;  ///< by "use_sliding_window"
};
constexpr std::array kWindowFamilies{
    WindowFamily{"mistral", Windowed::all, 4096, false},
    WindowFamily{"mixtral", Windowed::all, 0, false},
    WindowFamily{"phi3", Windowed::all, 0, false},
    WindowFamily{"phimoe", Windowed::all, 0, false},
    WindowFamily{"gemma2", Windowed::alternate, 4096, false},
    WindowFamily{"gpt_oss", Windowed::alternate, 128, false},
    WindowFamily{"qwen2", Windowed::behind, 4096, true},
    WindowFamily{"qwen3", Windowed::behind, 4096, true},
    WindowFamily{"qwen2_moe", Windowed::alternate_before, 4096, true},
    WindowFamily{"qwen3_moe", Windowed::all, 4096, true},
    WindowFamily{"cohere2", Windowed::but_every_nth, 4096, false},
};

std::vector<bool> by_family(const JsonCursor& config, Windowed which, int layers) {
  constexpr int kDefaultLayers = 28;  // of Qwen2Config, Qwen2MoeConfig and Qwen3Config
  const int bound = integer_or(config, "max_window_layers", 0, kMostLayers, kDefaultLayers);
  constexpr int kDefaultPattern = 4;  // of Cohere2Config
  const int n = integer_or(config, "sliding_window_pattern", 1, kMostLayers, kDefaultPattern);
  std::vector<bool> windowed;
  for (int i = 0; i < layers; ++i) {
    const bool even = i % 2 == 0;
    windowed.push_back(which == Windowed::all || (which == Windowed::alternate && even) ||
                       (which == Windowed::behind && i >= bound) ||
                       (which == Windowed::alternate_before && even && i < bound) ||
                       (which == Windowed::but_every_nth && (i + 1) % n != 0));
  }
  return windowed;
}

std::vector<bool> by_name(const JsonCursor& types, int layers,
                          std::string_view bounded = "sliding_attention") {
  const std::array<std::string_view, 2> names{"full_attention", bounded};
  const std::vector<JsonCursor> elements = types.elements(kMostLayers);
  if (elements.size() != static_cast<std::size_t>(layers)) {
    types.fail("an array of " + std::to_string(layers) + " (num_hidden_layers)");
  }
  std::vector<bool> windowed;
  windowed.reserve(elements.size());
  for (const JsonCursor& element : elements) windowed.push_back(element.choice(names) == 1);
  return windowed;
}

/// The first `layers` of every `interval` layers.
struct WindowPattern {
  int interval, layers;
};
/// How windows recur, where the first layers of every so many have one; else nothing.
std::optional<WindowPattern> pattern_of(const std::vector<bool>& windowed) {
  if (windowed.empty() || !windowed.front()) return std::nullopt;
  const auto whole = std::ranges::find(windowed, false);
  if (whole == windowed.end()) return WindowPattern{1, 1};
  const auto again = std::find(whole, windowed.end(), true);
  const auto n = static_cast<std::size_t>(again - windowed.begin());
  const auto k = static_cast<std::size_t>(whole - windowed.begin());
  for (std::size_t i = 0; i < windowed.size(); ++i) {
    if (windowed[i] != (i % n < k)) return std::nullopt;
  }
  return WindowPattern{static_cast<int>(n), static_cast<int>(k)};
}

void note(std::string_view what, int tokens, std::vector<std::string>& assumptions) {
  assumptions.push_back("attention: over all earlier tokens; the model's " + std::string(what) +
                        " of " + std::to_string(tokens) + " tokens is left out");
}

void set_windows(const std::vector<bool>& windowed, int window, std::string_view what,
                 TransformerShape& shape, std::vector<std::string>& assumptions) {
  const std::optional<WindowPattern> pattern = pattern_of(windowed);
  if (!pattern) return note(what, window, assumptions);
  shape.window = window;
  shape.window_interval = pattern->interval;
  shape.window_layers = pattern->layers;
}

/// Llama 4: layers with positions attend inside chunks, those without to all tokens before. Which
/// have positions is a list, or every so many have none.
std::vector<bool> chunked_layers(const JsonCursor& config, int layers) {
  constexpr int kDefaultInterval = 4;  // of Llama4TextConfig
  const std::optional<JsonCursor> types = config.find("layer_types");
  if (types && !types->is_null()) return by_name(*types, layers, "chunked_attention");
  std::vector<bool> chunked;
  const std::optional<JsonCursor> list = config.find("no_rope_layers");
  if (list && list->is_array() && !list->elements(kMostLayers).empty()) {
    for (const JsonCursor& one : list->elements(kMostLayers)) {
      chunked.push_back(one.integer(0, 1) == 1);
    }
    if (std::ssize(chunked) != layers) {
      list->fail("an array of " + std::to_string(layers) + " (num_hidden_layers)");
    }
    return chunked;
  }
  const int n = integer_or(config, "no_rope_layer_interval", 1, kMostLayers, kDefaultInterval);
  for (int i = 0; i < layers; ++i) chunked.push_back((i + 1) % n != 0);
  return chunked;
}

void read_chunks(const JsonCursor& config, TransformerShape& shape,
                 std::vector<std::string>& assumptions) {
  constexpr int kChunk = 8192;  // of Llama4TextConfig
  const std::optional<JsonCursor> size = config.find("attention_chunk_size");
  if (size && size->is_null()) return;
  const int chunk = integer_or(config, "attention_chunk_size", 1, kMostTokens, kChunk);
  const std::vector<bool> chunked = chunked_layers(config, shape.layers);
  if (std::ranges::find(chunked, true) == chunked.end()) return;
  set_windows(chunked, chunk, "chunk", shape, assumptions);
  shape.chunked = shape.window > 0;
}

}  // namespace

void read_window(const JsonCursor& config, std::string_view type, TransformerShape& shape,
                 std::vector<std::string>& assumptions) {
  if (type.starts_with("llama4")) return read_chunks(config, shape, assumptions);
  const auto* family = std::ranges::find(kWindowFamilies, type, &WindowFamily::type);
  const bool known = family != kWindowFamilies.end();
  if (!flag_or(config, "use_sliding_window", !known || !family->only_if_asked)) return;
  const std::optional<JsonCursor> written = config.find("sliding_window");
  if (written && written->is_null()) return;
  const int window =
      integer_or(config, "sliding_window", 1, kMostTokens, known ? family->window : 0);
  if (window == 0) return;
  if (!known) {
    note("sliding window", window, assumptions);
    return;
  }
  const std::optional<JsonCursor> types = config.find("layer_types");
  const std::vector<bool> windowed = types && !types->is_null()
                                         ? by_name(*types, shape.layers)
                                         : by_family(config, family->layers, shape.layers);
  if (std::ranges::find(windowed, true) == windowed.end()) return;
  set_windows(windowed, window, "sliding window", shape, assumptions);
}

}  // namespace lockstep::hugging_face
