#include "sim/scenario/read_schedule.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "models/base/json_cursor.hpp"
#include "models/base/text_file.hpp"
#include "models/pipeline/order_check.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostRanks = 4096;
constexpr std::size_t kMostPasses = 1'000'000;  // of a rank
constexpr std::uint32_t kMostMicroBatches = 1 << 16;
constexpr std::uint32_t kMostChunks = 1024;

/// A number at the start of `text`, which is cut off; -1 where there is none up to `most`.
std::int64_t take_number(std::string_view& text, std::uint32_t most) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value > most) return -1;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// A pass at the start of `text`, which is cut off; false where there is none.
bool take_pass(std::string_view& text, WorkItem& out) {
  constexpr std::string_view kLetters = "FBW";
  constexpr std::array kPasses{Pass::forward, Pass::backward, Pass::backward_weight};
  const std::size_t letter = text.empty() ? std::string_view::npos : kLetters.find(text.front());
  if (letter == std::string_view::npos) return false;
  text.remove_prefix(1);
  const std::int64_t micro_batch = take_number(text, kMostMicroBatches - 1);
  std::int64_t chunk = 0;
  if (text.starts_with('@')) {
    text.remove_prefix(1);
    chunk = take_number(text, kMostChunks - 1);
  }
  if (micro_batch < 0 || chunk < 0) return false;
  out = {kPasses[letter], false, static_cast<std::uint16_t>(chunk),
         static_cast<std::uint32_t>(micro_batch)};
  return true;
}

/// The order of a rank, and for each pass the element that said it.
struct WrittenRank {
  std::vector<WorkItem> order;
  std::vector<std::size_t> element;
};

/// Adds what an element says; what is allowed where it says no such thing.
std::string_view add_passes(std::string_view text, std::vector<WorkItem>& order) {
  constexpr std::string_view kPass = R"(a pass such as "F0", "B3@1", "W2" or a pair "F3+B1@1")";
  const auto add = [&] {
    WorkItem item{};
    if (!take_pass(text, item)) return false;
    order.push_back(item);
    return true;
  };
  if (!add()) return kPass;
  if (text.starts_with('+')) {
    if (!is_forward(order.back().pass)) return "a pair that begins with a forward pass";
    order.back().pairs = true;
    text.remove_prefix(1);
    if (!add()) return kPass;
  }
  return text.empty() ? std::string_view() : "one pass, or a pair of them with + in between";
}

WrittenRank read_rank(const JsonCursor& from) {
  WrittenRank out;
  std::size_t number = 0;
  for (const JsonCursor& element : from.elements(kMostPasses)) {
    const std::string_view rule = add_passes(element.string(), out.order);
    if (!rule.empty()) element.fail(std::string(rule));
    out.element.resize(out.order.size(), number);
    ++number;
  }
  return out;
}

/// A backward pass whose weights' gradients are listed apart makes those of inputs alone.
void split_backward(std::vector<WorkItem>& order) {
  std::vector<std::pair<std::uint16_t, std::uint32_t>> apart;
  for (const WorkItem& item : order) {
    if (item.pass == Pass::backward_weight) apart.emplace_back(item.chunk, item.micro_batch);
  }
  std::ranges::sort(apart);
  for (WorkItem& item : order) {
    if (item.pass != Pass::backward) continue;
    if (std::ranges::binary_search(apart, std::pair(item.chunk, item.micro_batch))) {
      item.pass = Pass::backward_input;
    }
  }
}

/// Chunks and micro batches, as far as the passes go.
void measure(FixedOrder& out) {
  std::uint32_t chunks = 1, micro_batches = 1;
  for (const auto& order : out.ranks) {
    for (const WorkItem& item : order) {
      chunks = std::max(chunks, item.chunk + 1U);
      micro_batches = std::max(micro_batches, item.micro_batch + 1);
    }
  }
  const bool two_way = out.shape.layout == ChunkLayout::two_way;
  out.shape.chunks = two_way ? 2 : static_cast<int>(chunks);
  out.micro_batches = static_cast<int>(two_way ? 2 * micro_batches : micro_batches);
}

std::shared_ptr<const FixedOrder> read_schedule(const JsonCursor& root) {
  auto out = std::make_shared<FixedOrder>();
  out->file = root.file();
  for (const std::string_view key : {"$schema", "about"}) {
    if (const auto text = root.find(key)) (void)text->string();
  }
  if (const auto layout = root.find("layout")) {
    out->shape.layout = static_cast<ChunkLayout>(layout->choice(kChunkLayoutNames));
  }
  const JsonCursor ranks = root.at("ranks");
  std::vector<std::vector<std::size_t>> elements;
  const std::vector<JsonCursor> lists = ranks.elements(kMostRanks);
  for (const JsonCursor& list : lists) {
    WrittenRank rank = read_rank(list);
    split_backward(rank.order);
    out->ranks.push_back(std::move(rank.order));
    elements.push_back(std::move(rank.element));
  }
  if (out->ranks.empty()) ranks.fail("the passes of every rank");
  root.finish();
  out->shape.ranks = static_cast<int>(out->ranks.size());
  measure(*out);
  const auto problem = check_orders(out->shape, out->micro_batches, out->ranks);
  if (!problem) return out;
  const auto rank = static_cast<std::size_t>(problem->rank);
  if (problem->place == elements[rank].size()) {
    throw InputError({.file = out->file,
                      .pointer = lists[rank].pointer(),
                      .found = "no more passes",
                      .allowed = problem->rule,
                      .nearest = {}});
  }
  const std::vector<JsonCursor> passes = lists[rank].elements(kMostPasses);
  passes[elements[rank][problem->place]].fail(problem->rule);
}

}  // namespace

std::vector<WorkItem> order_of_texts(std::span<const std::string> texts) {
  std::vector<WorkItem> order;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string_view rule = add_passes(texts[i], order);
    if (rule.empty()) continue;
    throw std::invalid_argument(
        fmt::format("pass {}: found {}; allowed: {}", i, in_quotes(texts[i]), rule));
  }
  split_backward(order);
  return order;
}

std::shared_ptr<const FixedOrder> read_schedule_file(const std::filesystem::path& file) {
  const JsonCursor root = JsonCursor::parse(file.string(), read_text_file(file.string()));
  return root.read_whole([&] { return read_schedule(root); });
}

}  // namespace lockstep
