#include "sim/launch/primus_file.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "sim/launch/named_files.hpp"
#include "sim/launch/tree_text.hpp"

namespace lockstep {
namespace primus_rows {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrimusModules = "modules.", kFramework = ".framework";
constexpr int kMostFolders = 8, kMostFiles = 32;

/// "${PRIMUS_TP:1}" is 1 where nobody says another (primus/core/utils/yaml_utils.py).
std::string with_default(std::string value) {
  for (std::size_t at = value.find("${"); at != std::string::npos; at = value.find("${", at + 1)) {
    const std::size_t end = value.find('}', at), colon = value.find(':', at);
    if (end == std::string::npos) break;
    if (colon == std::string::npos || colon > end) continue;
    value = value.substr(0, at) + value.substr(colon + 1, end - colon - 1) + value.substr(end + 1);
  }
  return value;
}

Setting filled_in(Setting one) {
  for (std::string& value : one.values) value = with_default(std::move(value));
  return one;
}

/// A later value of a key replaces the earlier one.
void put_key(std::vector<Setting>& settings, Setting one) {
  const auto known = std::ranges::find(settings, one.key, &Setting::key);
  if (known == settings.end()) {
    settings.push_back(std::move(one));
  } else {
    *known = std::move(one);
  }
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

/// Reads presets of Primus and what they extend.
class PrimusPresets {
 public:
  PrimusPresets(const std::string& file, PrimusJob& job) : file_(file), job_(job) {}

  /// False: it is nowhere.
  bool add(std::string_view kind, const std::string& name) {
    const std::string path = find(kind, name);
    if (path.empty()) return false;
    add_file(path);
    job_.remarks.push_back(
        fmt::format("{}: read, as {} names it", name, fs::path(file_).filename().string()));
    return true;
  }

 private:
  [[nodiscard]] std::string find(std::string_view kind, const std::string& name) const {
    const fs::path asked(name);
    const bool leaves =
        asked.is_absolute() || std::ranges::find(asked, fs::path("..")) != asked.end();
    if (leaves || name.empty()) return {};
    std::error_code error;
    fs::path folder = fs::absolute(file_, error).parent_path();
    if (is_file(folder / asked)) return (fs::path(file_).parent_path() / asked).string();
    for (int up = 0; up < kMostFolders && !folder.empty(); ++up) {
      const fs::path preset = folder / "primus" / "configs" / kind / job_.framework / asked;
      if (is_file(preset)) return preset.string();
      if (folder == folder.root_path()) break;
      folder = folder.parent_path();
    }
    return {};
  }

  void add_file(const std::string& path) {
    const std::string name = fs::path(path).lexically_normal().string();
    if (!read_.insert(name).second) return;
    if (read_.size() > kMostFiles) {
      throw InputError({.file = path,
                        .pointer = {},
                        .found = fmt::format("more than {} files in each other", kMostFiles),
                        .allowed = "fewer in \"extends\"",
                        .nearest = {}});
    }
    const std::string text = read_text_file(path, kMostLaunchBytes);
    job_.texts += text + "\n";
    const std::vector<Setting> settings = read_yaml_settings(path, text);
    constexpr std::array<std::string_view, 3> kBefore{"extends", "includes", "bases"};
    const auto goes_before = [&](const Setting& one) {
      return std::ranges::find(kBefore, std::string_view(one.key)) != kBefore.end();
    };
    for (const Setting& one : settings) {
      if (!goes_before(one)) continue;
      for (const std::string& other : one.values) {
        const fs::path beside = fs::path(path).parent_path() / other;
        if (is_file(beside)) {
          add_file(beside.string());
        } else {
          job_.remarks.push_back(
              fmt::format("{}: not there, and {} extends it: its keys are unknown", other,
                          fs::path(path).filename().string()));
        }
      }
    }
    for (const Setting& one : settings) {
      if (!goes_before(one)) put_key(job_.settings, filled_in(one));
    }
  }

  const std::string& file_;
  PrimusJob& job_;
  std::set<std::string> read_;
};

void take_primus_model(JobSketch& job, const Setting& from) {
  job.model.name = fs::path(from.text()).replace_extension().string();
  if (!from.text().ends_with(".yaml")) job.model.name = from.text();
}

constexpr const char* kTurbo =
    "Primus-Turbo's kernels: lockstep learn corrects the stack by a measured step";
constexpr std::array kRows{
    KeyRow{"modules.*.model", KeyFate::used, take_primus_model},
    KeyRow{"work_group user_name exp_name workspace platform.* modules.* trainable sink_level "
           "file_sink_level stderr_sink_level log_avg_skip_iterations log_avg_reset_interval "
           "disable_wandb disable_tensorboard disable_compile_dependencies disable_mlflow mlflow_* "
           "wandb_* auto_continue_train disable_last_saving mock_data train_data_path "
           "valid_data_path test_data_path eod_mask_loss moe_router_force_load_balancing "
           "moe_use_legacy_grouped_gemm moe_use_fused_router_with_aux_score num_shared_experts "
           "check_for_nan_in_loss_and_grad manual_gc manual_gc_interval pp_warmup "
           "use_rocm_mem_info use_rocm_mem_info_iters dump_pp_data final_logit_softcapping "
           "router_logit_softcapping patch_* no_fp8_weight_transpose_cache experimental "
           "patch_primus_pipeline"},
    KeyRow{"enable_primus_turbo use_turbo_* enable_turbo_* primus_turbo.* moe_use_turbo_*",
           KeyFate::unmodelled, nullptr, kTurbo},
};

}  // namespace
}  // namespace primus_rows

bool is_primus(const std::vector<Setting>& settings) {
  return std::ranges::any_of(settings, [](const Setting& one) {
    return one.key.starts_with(primus_rows::kPrimusModules) &&
           one.key.ends_with(primus_rows::kFramework);
  });
}

PrimusJob read_primus(const std::string& file, const std::vector<Setting>& settings) {
  using namespace primus_rows;
  PrimusJob out;
  std::string module;  // "modules.pre_trainer."
  for (const Setting& one : settings) {
    if (!one.key.starts_with(kPrimusModules) || !one.key.ends_with(kFramework)) continue;
    const bool trains = one.key.find("trainer") != std::string::npos || module.empty();
    if (!trains) continue;
    module = one.key.substr(0, one.key.size() - kFramework.size()) + ".";
    out.framework = lower(with_default(one.text()));
  }
  constexpr std::array<std::string_view, 5> kFrameworks{"megatron", "light_megatron", "torchtitan",
                                                        "maxtext", "megatron_bridge"};
  if (std::ranges::find(kFrameworks, std::string_view(out.framework)) == kFrameworks.end()) {
    throw InputError({.file = file,
                      .pointer = module + "framework",
                      .found = in_quotes(out.framework),
                      .allowed = "megatron, light_megatron, torchtitan, maxtext or megatron_bridge",
                      .nearest = {}});
  }
  PrimusPresets presets(file, out);
  const std::string overrides = module + "overrides.";
  const auto named = [&](const char* key) {
    const auto found = std::ranges::find(settings, module + key, &Setting::key);
    return found == settings.end() ? std::string() : with_default(found->text());
  };
  if (const std::string name = named("config"); !name.empty() && !presets.add("modules", name)) {
    const bool own = name == "pre_trainer.yaml" && out.framework == "megatron";
    if (own) {
      for (const char* const key : {"bf16", "use_distributed_optimizer", "use_flash_attn"}) {
        put_key(out.settings, {key, {"true"}, name});
      }
    }
    out.remarks.push_back(fmt::format(
        "{}: not beside the file or in primus/configs above it: {}", name,
        own ? "bf16, the distributed optimiser and flash attention as Primus's own has them, the "
              "rest as Megatron-LM"
            : fmt::format("what it sets is as {} has it", out.framework)));
  }
  const std::string model = named("model");
  const bool has_model = !model.empty() && presets.add("models", model);
  for (const Setting& one : settings) {
    Setting plain = filled_in(one);
    if (plain.key.starts_with(overrides)) {
      plain.key.erase(0, overrides.size());
    } else if (plain.key == module + "model" && has_model) {
      continue;  // its sizes are known
    }
    put_key(out.settings, std::move(plain));
  }
  return out;
}

std::span<const KeyRow> primus_keys() { return primus_rows::kRows; }

}  // namespace lockstep
