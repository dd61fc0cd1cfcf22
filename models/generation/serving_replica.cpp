#include "models/generation/serving_replica.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace lockstep {
namespace {

constexpr double kHalfBytes = 2;       // bytes of a 16-bit number
constexpr double kSkewedExperts = 32;  // that KernelLaws::skew is of
constexpr double kSmallRate = 0.8;     // share of HBM's rate that small kernels reach (assumed)
constexpr double kNormBytes = 16;      // of a hidden element: two norms, each with the residual
constexpr double kActivationBytes = 6;
// DeepEP's low-latency kernels on eight H100, 1 to 128 tokens of 7,168 elements to 8 of 256
// experts: 13 to 37 us there, 14 to 67 us back (read from `wideep_deepep_ll`).
constexpr Seconds kDispatch = microseconds(13), kCombine = microseconds(14);
constexpr double kDispatchRate = 0.65;  // of NVLink, one direction

double expert_weights(const TransformerShape& m) {
  return (m.gated ? 3.0 : 2.0) * m.experts.width(m.hidden) * m.experts.ffn;
}

}  // namespace

ServingPass& ServingPass::operator+=(const ServingPass& o) {
  prompts += o.prompts;
  products += o.products;
  attention += o.attention;
  exchange += o.exchange;
  host += o.host;
  drawn += o.drawn;
  return *this;
}

ServingPass operator*(double k, const ServingPass& pass) {
  return {.prompts = k * pass.prompts,
          .products = k * pass.products,
          .attention = k * pass.attention,
          .exchange = k * pass.exchange,
          .host = k * pass.host,
          .drawn = k * pass.drawn};
}

std::string_view serving_kind(const TransformerShape& model) {
  if (model.latent.key_value_rank > 0) return "latent";
  return model.experts.count > 0 ? "experts" : "dense";
}

const KernelLaws& laws_for(const ServingEngine& engine, const std::string& architecture,
                           std::string* assumption) {
  assert(!engine.kernels.empty());
  const auto of = [&](std::string_view name) {
    return std::ranges::find(engine.kernels, name, &KernelLaws::architecture);
  };
  const auto exact = of(architecture);
  if (exact != engine.kernels.end()) return *exact;
  const bool older = architecture == "ada" || architecture == "volta";
  auto near = of(older ? "ampere" : architecture.starts_with("blackwell") ? "blackwell" : "hopper");
  if (near == engine.kernels.end()) near = engine.kernels.begin();
  if (assumption != nullptr) {
    *assumption = "kernels of " + architecture + ": those of " + near->architecture;
  }
  return *near;
}

ServingReplica::ServingReplica(ServingReplicaSpec spec)
    : spec_(std::move(spec)), laws_(laws_for(spec_.engine, spec_.node.gpu.architecture)) {
  laws_.host.slow(spec_.node.host_slowed());
  if (spec_.attention_data > 1 && laws_.wide_experts) laws_.experts = *laws_.wide_experts;
  // Decoding keeps its rate under a cap of half the limit (Splitwise, arXiv:2311.18677, and its 58
  // rows): clocks fall, and memory is read as fast.
  spec_.node.gpu.hbm_bandwidth *= 1 / spec_.node.gpu.capped_streaming;
  spec_.model.predicted_tokens = 0;
  for (const auto& [kind, count] : layer_kinds(spec_.model)) {
    kinds_.push_back(kind_of(kind, count));
    const bool drafts = spec_.speculation.drafts > 0;
    if (drafts && kind == spec_.model.kind(spec_.model.layers - 1)) kinds_.back().drafting = 1;
    if (kinds_.back().experts) expert_layers_ += count;
    if (kinds_.back().latent) latent_layers_ += count;
  }
}

ServingReplica::Kind ServingReplica::kind_of(LayerKind kind, int count) const {
  const double tensor = spec_.tensor;
  const KindShape shape = shape_of(spec_.model, kind);
  Kind out{.count = count,
           .sums = kind.sums(),
           .latent = kind.mixer == Mixer::attention && shape.latent,
           .keys = {},
           .products = {},
           .cache = LayerCache(spec_.model, kind, tensor)};
  out.attends = out.cache.attends();
  const Layer layer = declare_layer(spec_.model, kind);
  out.small_bytes = kNormBytes * spec_.model.hidden;
  for_each_product(layer, [&](const Product& p) {
    if (p.of_experts()) {
      out.experts = true;
      return;
    }
    const double ranks = p.ways == Ways::tensor ? tensor : 1;
    const bool shared = p.matrices > 1;
    out.products.push_back({.in = p.in.on(shared ? 1 : ranks),
                            .out = p.out.on(shared ? 1 : ranks),
                            .matrices = shared ? std::max(1.0, p.matrices / ranks) : 1,
                            .format = p.half ? WeightFormat::bf16 : spec_.weights});
    if (p.names[0] == "mlp_down") out.small_bytes += kActivationBytes * p.in.on(ranks);
  });
  for (const Row& row : layer.rows) {
    if (const auto* core = std::get_if<Core>(&row)) {
      out.key_heads = std::max(1.0, core->kv_heads / tensor);
      out.flops_per_pair += core->flops_per_key() / tensor;
      out.keys = core->keys;
    }
    if (const auto* scan = std::get_if<Scan>(&row)) out.scan_bytes += scan->bytes / tensor;
  }
  return out;
}

Bytes ServingReplica::weights() const {
  const TransformerShape& m = spec_.model;
  double bytes = 0;
  for (const Kind& kind : kinds_) {
    double each = 0;
    for (const Shape& p : kind.products) {
      each += kWeightBytes[static_cast<std::size_t>(p.format)] * p.matrices * p.in * p.out;
    }
    if (kind.experts) {
      each += kWeightBytes[static_cast<std::size_t>(spec_.experts)] * m.experts.count *
              expert_weights(m) / spec_.ranks();
    }
    bytes += kind.held() * each / spec_.pipeline;
  }
  const double ends = end_parameters(m) / spec_.tensor;
  return Bytes{bytes + kHalfBytes * ends / std::min(spec_.pipeline, 2)};
}

Bytes ServingReplica::cache_per_token() const {
  double elements = 0;
  for (const Kind& kind : kinds_) elements += kind.held() * kind.cache.elements();
  return Bytes{spec_.cache_bytes * elements / spec_.pipeline};
}

Bytes ServingReplica::moved_per_token() const {
  double elements = 0;
  for (const auto& [kind, count] : layer_kinds(spec_.model)) {
    elements += count * LayerCache(spec_.model, kind, 1).elements();
  }
  return Bytes{spec_.cache_bytes * elements};
}

Bytes ServingReplica::state_per_sequence() const {
  double elements = 0;
  for (const Kind& kind : kinds_) elements += kind.held() * kind.cache.state();
  return Bytes{kHalfBytes * elements / spec_.pipeline};
}

double ServingReplica::cache_tokens(Bytes resident) const {
  const ServingEngine& e = spec_.engine;
  const Bytes free =
      e.memory_fraction * spec_.node.gpu.hbm_capacity - weights() - e.workspace - resident;
  constexpr double kWithoutCache = 1e15;  // a model without attention: its states alone count
  if (free <= Bytes{}) return 0;
  const Bytes token = cache_per_token();
  if (token <= Bytes{}) return kWithoutCache;
  return static_cast<double>(free / token) * spec_.attention_data;
}

Seconds ServingReplica::products_of(const Kind& kind, double rows) const {
  Seconds time = (rows * Bytes{kind.small_bytes}) / (kSmallRate * spec_.node.gpu.hbm_bandwidth);
  for (const Shape& p : kind.products) {
    const Seconds one =
        product_time(laws_, spec_.node.gpu, p.format, rows, p.in, p.out * p.matrices);
    time += one - (1 - laws_.launch) * laws_.products[static_cast<std::size_t>(p.format)].launch;
  }
  return time;
}

ExpertsCall ServingReplica::experts_call(double all_rows, double fullest) const {
  const TransformerShape& m = spec_.model;
  const double count = m.experts.count;
  const double spread = spec_.expert, cut = static_cast<double>(spec_.ranks()) / spread;
  const double met =
      experts_met(count, m.experts.per_token, all_rows, spec_.engine.popularity) / spread;
  return {.met = std::min(met * fullest, count / spread),
          .copies = all_rows * m.experts.per_token / spread * fullest,
          .weights = expert_weights(m) / cut,
          .hidden = m.experts.width(m.hidden),
          .ffn = m.experts.ffn / cut};
}

Seconds ServingReplica::experts_of(double all_rows) const {
  // Experts are liked independently: what a rank has beyond the mean goes with one over the root of
  // how many it has.
  const double held = static_cast<double>(spec_.model.experts.count) / spec_.expert;
  const double fullest = spec_.expert > 1 ? 1 + laws_.skew * std::sqrt(kSkewedExperts / held) : 1;
  const Seconds time =
      experts_time(laws_, spec_.node.gpu, spec_.experts, experts_call(all_rows, fullest));
  return time - (1 - laws_.launch) * laws_.experts[static_cast<std::size_t>(spec_.experts)].launch;
}

Bytes ServingReplica::summed(double rows) const {
  return Bytes{kHalfBytes * rows * spec_.model.hidden};
}

/// TensorRT-LLM, fused_moe_wide_ep.py, select_alltoall_method_type: sends to single ranks only over
/// NVLink that joins servers, and only where there are more ranks than a token has experts.
bool ServingReplica::gathers() const {
  const NodeSpec& node = spec_.node;
  return spec_.engine.expert_exchange == ExpertExchange::gather &&
         (node.nvlink_domain <= node.gpus || spec_.expert <= spec_.model.experts.per_token);
}

/// What all ranks have for the experts, and what they get back.
ServingReplica::Gathered ServingReplica::gathered(double rows) const {
  const TransformerShape& m = spec_.model;
  const double elements = rows * spec_.attention_data * m.experts.width(m.hidden);
  return {.there = Bytes{operand_bytes(spec_.experts) * elements},
          .back = Bytes{kHalfBytes * elements}};
}

/// Bytes that a rank sends. To the ranks of its tokens' experts: there in 8 bit, back in 16.
Bytes ServingReplica::dispatched(double rows) const {
  const TransformerShape& m = spec_.model;
  if (gathers()) {
    const Gathered all = gathered(rows);
    return (1 - 1.0 / spec_.attention_data) * (all.there + all.back);
  }
  const double copies = std::min<double>(m.experts.per_token, spec_.ranks() - 1);
  return Bytes{3 * rows * copies * m.experts.width(m.hidden)};
}

Bytes ServingReplica::states(const Kind& kind, double sequences) const {
  return 2 * kHalfBytes * sequences * Bytes{kind.cache.state()};
}

/// A sum over the tensor-parallel ranks of what so many rows hold.
Seconds ServingReplica::sum_of(double rows) const {
  const NodeSpec& node = spec_.node;
  const Bytes bytes = summed(rows);
  const int near = std::min(spec_.tensor, node.nvlink_domain);
  const Seconds library = collective_time({CollectiveOp::all_reduce, bytes, spec_.tensor, near},
                                          node.gpu, spec_.transport, nic_share(node));
  const bool joined = near == spec_.tensor && node.gpu.nvlink_bandwidth > BytesPerSecond{};
  return joined ? std::min(library, sum_time(laws_, node.gpu, bytes, spec_.tensor)) : library;
}

/// Tokens of a rank to the experts of all ranks, and back.
Seconds ServingReplica::dispatch_of(double rows) const {
  const NodeSpec& node = spec_.node;
  if (gathers()) {
    const int n = spec_.attention_data;
    const int near_ranks = std::clamp(node.nvlink_domain / spec_.tensor, 1, n);
    const Gathered all = gathered(rows);
    const auto library = [&](CollectiveOp op, Bytes payload) {
      return collective_time({op, payload, n, near_ranks}, node.gpu, spec_.transport,
                             nic_share(node));
    };
    return library(CollectiveOp::all_gather, all.there) +
           library(CollectiveOp::reduce_scatter, all.back);
  }
  const double ranks = spec_.ranks();
  const Bytes bytes = dispatched(rows);
  const double near = std::min<double>(ranks, node.nvlink_domain);
  const BytesPerSecond link = node.gpu.nvlink_bandwidth > BytesPerSecond{}
                                  ? node.gpu.nvlink_bandwidth
                                  : node.gpu.pcie_bandwidth;
  const double away = 1 - near / ranks;
  const BytesPerSecond nics = 1.0 / node.gpus * payload_bandwidth(node, spec_.transport);
  const Seconds inside = (1 - away) * bytes / (kDispatchRate * link);
  const Seconds outside = away > 0 ? away * bytes / nics : Seconds{};
  return kDispatch + kCombine + std::max(inside, outside);
}

Seconds ServingReplica::head_of(double rows) const {
  const TransformerShape& m = spec_.model;
  return product_time(laws_, spec_.node.gpu, WeightFormat::bf16, rows, embedding_width(m),
                      1.0 * m.vocabulary / spec_.tensor);
}

ServingReplica::HeadCost ServingReplica::head(double rows) {
  const auto at = static_cast<std::size_t>(rows);
  const bool whole = static_cast<double>(at) == rows;
  if (whole && at < heads_.size() && heads_[at].known) return heads_[at];
  const HeadCost cost{
      .known = true, .time = head_of(rows), .drawn = above_fixed(work_of_head(rows))};
  if (!whole) return cost;
  if (heads_.size() <= at) heads_.resize(at + 1);
  return heads_[at] = cost;
}

const ServingReplica::RowCost& ServingReplica::dense(int rows) {
  const auto at = static_cast<std::size_t>(rows);
  if (dense_.size() <= at) dense_.resize(at + 1);
  RowCost& cost = dense_[at];
  if (cost.known) return cost;
  cost.known = true;
  cost.drawn = above_fixed(work_of_dense(rows));
  for (const Kind& kind : kinds_) {
    Seconds gaps = laws_.layer_gap;
    if (kind.latent) gaps += laws_.latent_gap;
    if (kind.experts) gaps += laws_.experts_gap;
    cost.products += kind.count * (products_of(kind, rows) + gaps);
    if (spec_.tensor == 1 && spec_.ranks() == 1) continue;
    const bool dispatched = kind.experts && spec_.attention_data > 1;
    const int sums = spec_.tensor > 1 ? kind.sums - (dispatched ? 1 : 0) : 0;
    if (sums > 0) cost.exchange += static_cast<double>(kind.count * sums) * sum_of(rows);
    if (dispatched) cost.exchange += static_cast<double>(kind.count) * dispatch_of(rows);
  }
  return cost;
}

const ServingReplica::RowCost& ServingReplica::routed(int all_rows) {
  const auto at = static_cast<std::size_t>(all_rows);
  if (routed_.size() <= at) routed_.resize(at + 1);
  RowCost& cost = routed_[at];
  if (!cost.known) {
    cost.known = true;
    if (expert_layers_ > 0) {
      cost.products = static_cast<double>(expert_layers_) * experts_of(all_rows);
      cost.drawn = above_fixed(work_of_routed(all_rows));
    }
  }
  return cost;
}

Seconds ServingReplica::attention_of(double sequences, double context) const {
  const GpuSpec& gpu = spec_.node.gpu;
  const double mean = context / sequences;
  Seconds time;
  for (const Kind& kind : kinds_) {
    if (kind.attends) {
      const Bytes bytes{spec_.cache_bytes * sequences * kind.cache.read(mean)};
      const Seconds one = kind.latent
                              ? latent_time(laws_.latent, gpu, bytes,
                                            Flops{sequences * kind.cache.flops(mean)}, sequences)
                              : cache_time(laws_.attention, gpu, bytes, sequences * kind.key_heads);
      const Seconds launch = kind.latent ? laws_.latent.launch : laws_.attention.launch;
      time += kind.count * (one - (1 - laws_.launch) * launch);
    }
    // States of recurrent layers are read and written whole.
    if (kind.cache.state() > 0) {
      time += kind.count * (states(kind, sequences) / (kSmallRate * gpu.hbm_bandwidth));
    }
  }
  return time;
}

/// Of a prompt's query with so many tokens before it.
double ServingReplica::keys_seen(const Kind& kind, double before) const {
  double seen = 0;
  for (const Keys& keys : kind.keys) {
    seen += keys.limit > 0 ? std::min(keys.limit, before / keys.ratio) : before / keys.ratio;
  }
  return seen;
}

Seconds ServingReplica::prompts_of(const PassLoad& on_rank) const {
  const GpuSpec& gpu = spec_.node.gpu;
  const double tokens = on_rank.prompt_tokens;
  const double each = tokens / std::max(1, on_rank.prompts);
  const double before = on_rank.prompt_pairs / tokens;
  Seconds time;
  for (const Kind& kind : kinds_) {
    if (kind.attends) {
      const Flops flops{tokens * keys_seen(kind, before) * kind.flops_per_pair};
      time += kind.count *
              prompt_time(kind.latent ? laws_.latent_prompt : laws_.prompt, gpu, flops, each);
    }
    time += kind.count * ((tokens * Bytes{kind.scan_bytes}) / (kSmallRate * gpu.hbm_bandwidth));
  }
  return time;
}

/// Least time in which the host launches the layers of a pass with prompts.
Seconds ServingReplica::launching() const {
  return static_cast<double>(spec_.model.layers) * laws_.host.prompt_layer +
         static_cast<double>(latent_layers_) * laws_.host.prompt_latent;
}

ServingPass ServingReplica::decode_part(const PassLoad& load) {
  if (load.sequences == 0) return {};
  const int ways = spec_.attention_data * spec_.pipeline;
  const int drafts = spec_.speculation.drafts;
  const int sequences = (load.sequences + ways - 1) / ways;
  const int rows = sequences * (1 + drafts);
  const int all = (load.sequences * (1 + drafts) + spec_.pipeline - 1) / spec_.pipeline;
  const RowCost own = dense(rows);
  const HeadCost last = head(rows);
  ServingPass out;
  out.products = own.products + routed(all).products + last.time;
  out.exchange = own.exchange;
  out.attention = attention_of(sequences, load.context / load.sequences * sequences);
  if (powered()) {
    out.drawn =
        own.drawn + routed(all).drawn + last.drawn +
        above_fixed(work_of_attention(sequences, load.context / load.sequences * sequences));
  }
  if (drafts > 0) add_drafts(sequences, load.sequences, out);
  return out;
}

/// Drafts of as many sequences on a rank, and of all.
void ServingReplica::add_drafts(int sequences, int all, ServingPass& out) {
  const double drafts = spec_.speculation.drafts, layer = 1.0 / spec_.model.layers;
  const Seconds body = dense(sequences).products + routed(all).products;
  const HeadCost last = head(sequences);
  out.products += drafts * (layer * body + last.time);
  const Joules drawn = dense(sequences).drawn + routed(all).drawn;
  out.drawn += drafts * (layer * drawn + last.drawn);
}

ServingReplica::PromptShare ServingReplica::share_of(const PassLoad& load) const {
  const int ways = spec_.attention_data * spec_.pipeline;
  const double parts = std::min(load.prompts * spec_.pipeline, ways);
  const double decoded = 1.0 * load.sequences * (1 + spec_.speculation.drafts);
  PromptShare out{.parts = parts,
                  .ways = 1.0 * ways,
                  .decoded = decoded,
                  .rows = std::ceil(decoded / ways) + load.prompt_tokens / parts,
                  .all = (decoded + load.prompt_tokens) / spec_.pipeline,
                  .on_rank = load};
  out.on_rank.prompts = std::max(1, static_cast<int>(load.prompts / parts));
  out.on_rank.prompt_tokens = load.prompt_tokens / parts;
  out.on_rank.prompt_pairs = load.prompt_pairs / parts;
  return out;
}

ServingPass ServingReplica::pass(const PassLoad& load) {
  ServingPass out = decode_part(load);
  // Each stage begins a pass of its own for every part of the batch. Every attention rank has a
  // process of its own on the host, for its own sequences.
  const int own_sequences = (load.sequences + spec_.attention_data - 1) / spec_.attention_data;
  const Seconds stage = spec_.pipeline > 1 ? laws_.host.stage : Seconds{};
  out.host = static_cast<double>(spec_.pipeline) * (laws_.host.step + stage) +
             static_cast<double>(own_sequences) * laws_.host.sequence;
  const Seconds decode = out.products + out.attention + out.exchange;
  if (load.prompts == 0) {
    if (!spec_.engine.graphs) out.host += std::max(Seconds{}, launching() - decode);
    if (powered()) draw(out.drawn, out);
    return out;
  }
  const PromptShare share = share_of(load);
  const RowCost& own = dense(static_cast<int>(std::ceil(share.rows)));
  const RowCost& experts = routed(static_cast<int>(std::ceil(share.all)));
  const HeadCost last = head(share.decoded / share.ways + load.prompts);
  const Seconds whole = own.products + own.exchange + experts.products + last.time + out.attention +
                        prompts_of(share.on_rank);
  const bool captured = share.rows <= spec_.engine.captured_tokens;
  const Seconds least = captured ? Seconds{} : launching();
  out.prompts = std::max(Seconds{}, std::max(whole, least) - decode);
  if (!captured) out.host += laws_.host.prompt;
  if (powered()) {
    // Of the mean rank: some may have no piece of a prompt.
    const double busy = share.parts / share.ways;
    Joules above =
        own.drawn + experts.drawn + last.drawn + above_fixed(work_of_prompts(share.on_rank));
    if (busy < 1) above = busy * above + (1 - busy) * out.drawn;
    if (load.sequences > 0) {
      const int ways = spec_.attention_data * spec_.pipeline;
      const int sequences = (load.sequences + ways - 1) / ways;
      above += busy *
               above_fixed(work_of_attention(sequences, load.context / load.sequences * sequences));
    }
    draw(above, out);
  }
  return out;
}

}  // namespace lockstep
