// What starts the processes: torchrun, srun and sbatch, deepspeed, accelerate launch.
#include <array>

#include "sim/launch/key_table.hpp"

namespace lockstep {
namespace launcher_file {
namespace {

constexpr KeyFate kUsed = KeyFate::used, kHarmless = KeyFate::harmless;

/// "2", or "1:4" of an elastic job, whose most counts.
void take_launched_nodes(JobSketch& job, const Setting& from) {
  Setting most = from;
  if (most.values.size() == 1) {
    most.values[0] = most.values[0].substr(most.values[0].rfind(':') + 1);
    most.values[0] = most.values[0].substr(most.values[0].rfind('-') + 1);
  }
  job.nodes = most.count();
}

void take_processes_per_node(JobSketch& job, const Setting& from) {
  if (from.text() == "gpu" || from.text() == "auto") {
    job.remarks.push_back(from.key + " " + from.text() + ": as many as the node has GPUs");
    return;
  }
  job.node_gpus = from.count();
}

/// "gpu:h100:8", "gpu:8", "8".
void take_gres(JobSketch& job, const Setting& from) {
  Setting number = from;
  const std::string text = from.text();
  if (text.find("gpu") == std::string::npos && text.find(':') != std::string::npos) return;
  number.values = {text.substr(text.rfind(':') + 1)};
  job.node_gpus = number.count();
}

/// The tasks of a job: processes, each with a GPU.
void take_processes(JobSketch& job, const Setting& from) { job.gpus = from.count(); }

/// One task a node starts torchrun, which starts the processes.
void take_tasks_per_node(JobSketch& job, const Setting& from) {
  const int tasks = from.count();
  if (tasks > 1 && !job.node_gpus) job.node_gpus = tasks;
}

/// It goes before that of Accelerate's file.
void take_launch_precision(JobSketch& job, const Setting& from) {
  if (from.is_off()) {
    job.accelerate_precision = "no";
  } else {
    job.precision = lower(from.text());
  }
}

void take_accelerate_file(JobSketch& job, const Setting& from) { job.settings_file = from.text(); }
/// What Accelerate has where nothing says more.
void take_use_fsdp(JobSketch& job, const Setting& from) {
  if (!from.flag()) return;
  if (job.sharding.empty()) job.sharding = "zero3";
  if (!job.fsdp_version) job.fsdp_version = 1;
}
void take_use_deepspeed(JobSketch& job, const Setting& from) {
  if (from.flag() && !job.zero_stage) job.zero_stage = 2;
}

constexpr std::array kLauncherRows{
    KeyRow{"nnodes num_nodes num_machines nodes n_nodes", kUsed, take_launched_nodes},
    KeyRow{"nproc_per_node num_gpus nprocs_per_node gpus_per_node", kUsed, take_processes_per_node},
    KeyRow{"gres gpus", kUsed, take_gres},
    KeyRow{"ntasks_per_node npernode tasks_per_node", kUsed, take_tasks_per_node},
    KeyRow{"num_processes np", kUsed, take_processes},
    KeyRow{"mixed_precision", kUsed, take_launch_precision},
    KeyRow{
        "master_* rdzv_* node_rank main_process_* machine_rank hostfile include exclude "
        "ssh_port launcher launcher_args max_restarts monitor_interval standalone local_addr "
        "role tee redirects log_dir log_line_prefix_template start_method no_python "
        "run_path enable_each_rank_log module m local_ranks_filter local_rank_filter force_multi "
        "no_ssh no_local_rank bind_cores_to_rank bind_core_list enable_elastic_training "
        "min_elastic_nodes max_elastic_nodes save_pid slurm_comment autotuning",
        kHarmless},
    KeyRow{"job_name partition account time output error exclusive dependency cpus_per_task mem "
           "mem_per_gpu qos mail_type mail_user chdir requeue signal open_mode export reservation "
           "constraint container_* mpi ntasks cpu_bind kill_on_bad_exit label unbuffered wait "
           "no_container_* distribution jobid overlap hint comment nodelist gpu_bind "
           "mem_bind l j p a t o e n c w u host bind_to map_by x mca genv env allow_run_as_root "
           "hosts oversubscribe get_user_env licenses switches segment network threads_per_core "
           "gpus_per_task accel_bind verbose v multi_prog no_kill quiet q input i",
           kHarmless},
    KeyRow{"config_file", kUsed, take_accelerate_file},
    KeyRow{"use_fsdp", kUsed, take_use_fsdp},
    KeyRow{"use_deepspeed", kUsed, take_use_deepspeed},
    KeyRow{"num_cpu_threads_per_process main_training_function dynamo_* "
           "same_network use_cpu deepspeed_multinode_launcher multi_gpu "
           "cpu quiet debug gpu_ids enable_cpu_affinity tpu rdzv_conf y",
           kHarmless},
};

}  // namespace
}  // namespace launcher_file

std::span<const KeyRow> launcher_keys() { return launcher_file::kLauncherRows; }

}  // namespace lockstep
