#include "sim/launch/export_job.hpp"

#include <array>

namespace lockstep {
namespace {

constexpr std::array kExportFormats{
    ExportFormat{"megatron", "a shell script with Megatron-LM's arguments", export_megatron},
    ExportFormat{"nemo", "NeMo 1 YAML", export_nemo},
    ExportFormat{"bridge", "Megatron-Bridge YAML", export_bridge},
    ExportFormat{"torchtitan", "TorchTitan TOML", export_torchtitan},
    ExportFormat{"deepspeed", "DeepSpeed JSON", export_deepspeed},
    ExportFormat{"accelerate", "Accelerate YAML", export_accelerate}};

}  // namespace

std::span<const ExportFormat> export_formats() { return kExportFormats; }

}  // namespace lockstep
