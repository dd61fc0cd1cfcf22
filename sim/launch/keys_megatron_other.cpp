// Keys of Megatron-LM's arguments that no scenario says: those that change nothing of a step, and
// those that do and that the simulator has no word for.
#include <array>

#include "sim/launch/key_table.hpp"

namespace lockstep {
namespace megatron_other_file {
namespace {

constexpr KeyFate kMatters = KeyFate::unmodelled;

constexpr std::array kOtherRows{
    // What is learnt, and how well.
    KeyRow{"lr lr_* min_lr decoupled_lr decoupled_min_lr adam_* sgd_* weight_decay* start_weight_* "
           "end_weight_* clip_grad init_method* seed loss_scale initial_loss_scale min_loss_scale "
           "loss_scale_window hysteresis override_opt_param_scheduler override_opt_* "
           "use_checkpoint_opt_* attention_dropout hidden_dropout dropout ffn_dropout "
           "norm_epsilon layernorm_epsilon warmup use_checkpoint_args "
           "apply_layernorm_1p layernorm_zero_centered_gamma normalization rmsnorm rotary_base "
           "rotary_percent rotary_seq_len_interpolation_factor rotary_scaling_factor "
           "rotary_interleaved "
           "use_rope_scaling rope_scaling_factor rope_type no_rope_freq mscale mscale_all_dim "
           "original_max_position_embeddings beta_fast beta_slow qk_clip* muon_* "
           "no_query_key_layer_scaling "
           "attention_softmax_in_fp32 apply_query_key_layer_scaling no_persist_layer_norm "
           "apply_residual_connection_post_layernorm no_position_embedding relu squared_relu "
           "openai_gelu quick_geglu onnx_safe bert_* embedding_init_method_std "
           "mtp_loss_scaling_factor softmax_scale use_fused_weighted_squared_relu sgd_momentum "
           "no_weight_decay_cond_type "
           "output_bert_embeddings classes_fraction rotary_dtype no_masked_softmax_fusion "
           "masked_softmax_fusion transformer_engine_precision_aware_optimizer_dtype"},
    // Which steps are done, and on what.
    KeyRow{"train_iters train_samples skip_train exit_* eval_* iters_to_skip full_validation "
           "multiple_validation_sets test_mode train_tokens "
           "data_path data_args_path data_cache_path train_data_path valid_data_path "
           "test_data_path split mock_data tokenizer_* merge_file vocab_extra_ids "
           "special_tokens extra_vocab_size max_padding_length train_mode dataset tiktoken_* "
           "null_tokenizer_* num_workers dataloader_type reset_* "
           "eod_mask_loss "
           "no_create_attention_mask_in_dataloader no_mmap_bin_files mmap* data_impl "
           "create_attention_mask_in_dataloader dataset_* per_split_data_args_path "
           "per_dataset_* num_dataset_builder_threads data_parallel_random_init short_seq_prob "
           "object_storage_cache_path mid_level_dataset_surplus sft sft_* legacy_tokenizer "
           "trust_remote_code defer_npy_index_mmap fim_* "
           "blend* s3_cache_path data_sharding no_data_sharding"},
    // Files and words for people.
    KeyRow{"save* load* no_save_* no_load_* finetune pretrained_checkpoint ckpt_* dist_ckpt_* "
           "auto_detect_ckpt_format use_dist_ckpt use_dist_ckpt_* ckpt async_save async_* "
           "use_persistent_ckpt_worker no_ckpt_* non_persistent_* strict_fsdp_dtensor_load "
           "retro_* replication* rerun_mode error_injection_* replication "
           "log_* tensorboard_* wandb_* one_logger_* logging_level timing_log_* no_log_* "
           "enable_one_logger no_one_logger app_tag_run_* no_barrier_with_level_1_timing "
           "barrier_with_L1_time mlflow_* comet_* record_memory_history memory_snapshot_path "
           "deepspeed deepspeed_activation_checkpointing ds_* "
           "profile profile_* use_pytorch_profiler nvtx_ranges print_* "
           "no_check_for_nan_in_loss_and_grad "
           "check_for_nan_in_loss_and_grad check_for_spiky_loss check_for_large_grads "
           "check_weight_hash_across_dp_replicas_interval "
           "config_logger_dir enable_ft_package calc_ft_timeouts heartbeat* straggler_* "
           "use_mcore_models enable_experimental inprocess_* ft_* "
           "spec use_legacy_models yaml_cfg local_rank lazy_mpu_init "
           "account_for_* is_hybrid_model export_* deprecated_use_mcore_models no_te* "
           "distributed_backend distributed_timeout* high_priority_stream_groups "
           "use_cpu_initialization init_model_with_meta_device dist_url "
           "no_initialization perform_initialization "
           "nccl_communicator_config_path use_tp_pp_dp_mapping use_ring_exchange_p2p "
           "manual_gc manual_gc_* no_manual_gc_eval gc_interval gc_interval_* "
           "disable_straggler_on_startup adlr_autoresume adlr_autoresume_interval "
           "max_tokens_to_oom num_layers_at_* deterministic_mode "
           "calculate_per_token_loss no_async_tensor_model_parallel_allreduce "
           "average_in_collective check_optimizer_step_success "
           "te_rng_tracker inference_* encoder_num_layers decoder_num_layers "
           "exp_name job_name_prefix "
           "bias_activation_fusion bias_dropout_add_fusion bias_dropout_fusion "
           "persist_layer_norm "
           "bias_gelu_fusion no_bias_gelu_fusion swiglu_fusion "
           "use_ring_exchange enable_msc disable_msc enable_gloo_process_groups "
           "disable_gloo_process_groups "
           "ddp_impl use_te use_contiguous_parameters_in_local_ddp kill_switch_path "
           "abort_on_unmet_fused_kernel_constraints valid_num_workers dataloader_save valid_path "
           "result_rejected_tracker_filename decrease_batch_size_if_needed add_qkv_bias "
           "use_mp_args_from_checkpoint_args ddp_average_in_collective sharp_enabled_group "
           "disable_bf16_reduced_precision_matmul retriever_* sample_rate mask_prob ict_head_size "
           "biencoder_* run_workload_inspector_server use_legacy_static_engine fp4_recipe "
           "apply_wd_to_qk_layernorm head_lr_mult count_zeros_in_grad cache_mla_latents "
           "phase_transition_iterations normalize_attention_scores hf_tokenizer refit_method "
           "mamba_training_chunk_size activation_func_clamp_value glu_linear_offset "
           "mrope_section use_spmd_parallel use_fused_kernels prompt_path "
           "*_weighted_split_paths_path allow_missing_* skip_train_iteration_range"},
    // Routing: tokens are taken to fall evenly on experts.
    KeyRow{
        "moe_aux_loss_coeff moe_z_loss_coeff moe_router_load_balancing_type moe_input_jitter_eps "
        "moe_router_score_function moe_router_topk_scaling_factor moe_router_enable_expert_bias "
        "moe_router_bias_update_rate moe_router_pre_softmax moe_router_dtype moe_grouped_gemm "
        "moe_permute_fusion moe_mlp_glu_interleave_size moe_router_fusion "
        "moe_router_force_load_balancing "
        "moe_token_drop_policy moe_per_layer_logging moe_use_legacy_grouped_gemm "
        "moe_upcycling_granularity moe_use_upcycling moe_use_device_initiated_grouped_gemm "
        "moe_router_padding_for_fp8 moe_pad_experts_for_cuda_graph_inference "
        "moe_deepep_num_sms moe_hybridep_num_sms moe_flex_dispatcher_backend "
        "moe_expert_rank_capacity_factor "
        "moe_router_padding_for_quantization moe_router_num_groups num_shared_experts "
        "enable_shared_expert attention_sink_k"},
    // Formats of number, beside the one that products have.
    KeyRow{"fp8_margin fp8_interval fp8_amax_history_len fp8_amax_compute_algo fp8_wgrad "
           "fp8_hybrid fp8_e4m3 reduce_amax fp8_quantizer_factory autocast_dtype native_amp_* "
           "transformer_engine fp16_lm_cross_entropy pipeline_dtype params_dtype autocast_enabled "
           "enable_autocast no_fp8_weight_transpose_cache grad_scale_func "
           "keep_fp8_weight_transpose_cache"},
    // Memory of the process, not of the step.
    KeyRow{
        "empty_unused_memory_level "
        "delay_grad_reduce delay_param_gather align_grad_reduce align_param_gather "
        "no_align_* ddp_num_buckets use_nccl_ub nccl_ub fsdp_double_buffer "
        "no_contiguous_buffers_in_local_ddp suggested_communication_unit_size "
        "gradient_reduce_div_fusion no_gradient_reduce_div_fusion "
        "disable_symmetric_registration fsdp_manual_registration outer_dp_sharding_strategy_none "
        "distribute_saved_activations distribute_checkpointed_activations "
        "tp_comm_bootstrap_backend tp_comm_overlap_cfg "
        "tp_comm_split_ag tp_comm_split_rs tp_comm_bulk_dgrad tp_comm_bulk_wgrad "
        "tp_comm_overlap_ag tp_comm_overlap_rs disable_tp_comm_* ub_tp_comm_overlap_cfg "
        "ub_tp_comm_bootstrap_backend cross_entropy_fusion_impl batch_p2p_comm "
        "use_te_activation_func use_transformer_engine_op_fuser batch_p2p_communication"},

    KeyRow{"hybrid_attention_ratio hybrid_mlp_ratio", kMatters, nullptr,
           "layers of a hybrid model: write its pattern (hybrid_layer_pattern)"},
    KeyRow{"first_last_layers_bf16 num_layers_at_start_in_bf16 num_layers_at_end_in_bf16 "
           "fp8_num_layers_at_*",
           kMatters, nullptr, "some layers stay in 16 bits"},
    KeyRow{"fp8_dot_product_attention fp8_multi_head_attention", kMatters, nullptr,
           "attention in 8 bits"},
    KeyRow{"muon_num_ns_steps", kMatters, nullptr, kOtherOptimiser},
    KeyRow{"qk_layernorm qk_l2_norm", kMatters, nullptr,
           "norms of queries and keys add a small kernel to each layer"},
    KeyRow{
        "moe_router_group_topk", kMatters, nullptr,
        "tokens go to experts of a few groups only, which makes exchanges between nodes smaller"},
    KeyRow{"moe_shared_expert_overlap", kMatters, nullptr,
           "shared experts run beside the exchange of tokens"},
    KeyRow{"moe_shared_expert_gate", kMatters, nullptr, "a gate of one column"},
    KeyRow{"moe_extended_tp", kMatters, nullptr, "experts are cut by both widths"},
    KeyRow{"moe_layer_recompute", kMatters, nullptr, "experts run again in the backward pass"},
    KeyRow{"delay_wgrad_compute defer_embedding_wgrad_compute wgrad_deferral_limit", kMatters,
           nullptr, "gradients of weights are made later"},
    KeyRow{"microbatch_group_size_per_virtual_pipeline_stage "
           "microbatch_group_size_per_vp_stage",
           kMatters, nullptr, "order of passes of the interleaved schedule"},
    KeyRow{"num_micro_batches_with_partial_activation_checkpoints "
           "activations_checkpoint_layers_per_pipeline recompute_vocab",
           kMatters, nullptr, "some layers or micro batches alone are recomputed"},
    KeyRow{"overlap_p2p_communication_warmup_flush defer_* pipeline_model_parallel_comm_backend",
           kMatters, nullptr, "messages beside compute at the ends of a pipeline"},
    KeyRow{"hierarchical_context_parallel_sizes context_parallel_algo hybrid_context_parallel "
           "max_seqlen_per_dp_cp_rank cp_partition_mode",
           kMatters, nullptr, "context parallelism in two levels or by sample"},
    KeyRow{"megatron_fsdp_grad_comm_dtype megatron_fsdp_main_grads_dtype grad_sync_dtype "
           "megatron_fsdp_main_params_dtype fsdp_grad_reduce_dtype main_grads_dtype "
           "main_params_dtype exp_avg_dtype exp_avg_sq_dtype use_precision_aware_optimizer "
           "megatron_amp_o2 fp8_param_gather fp8_param fp8_params fp8_primary_params "
           "reuse_grad_buf_for_mxfp8_param_ag fp4_param_gather fp4_param "
           "store_param_remainders",
           kMatters, nullptr,
           "format of gradients, weights or optimiser states: set the stack's gradients, "
           "reduced_format, optimiser_states"},
    KeyRow{"enable_cuda_graph external_cuda_graph use_cuda_graphs cuda_graph_impl "
           "cuda_graph_scope enable_cuda_graph_* cuda_graph_*",
           kMatters, nullptr, "CUDA graphs: set stack.cuda_graphs"},
    KeyRow{"ddp_bucket_size bucket_cap_mb grad_allreduce_chunk_size_mb "
           "ddp_pad_buckets_for_high_nccl_busbw",
           kMatters, nullptr,
           "size of gradient buckets: set stack.communication.bucket_parameters"},
    KeyRow{"overlap_cpu_optimizer_d2h_h2d use_torch_optimizer_for_cpu_offload "
           "no_pin_cpu_grads no_pin_cpu_params fine_grained_activation_offloading offload_modules "
           "cpu_offloading cpu_offloading_weights cpu_offloading_activations "
           "min_offloaded_tensor_size offload_optimizer_states moe_paged_stash*",
           kMatters, nullptr, "how what lives on the host moves"},
    KeyRow{"fp32_residual_connection", kMatters, nullptr, "residuals of 32 bits"},
    KeyRow{"tp_only_amax_red tp_comm_atomic_ag tp_comm_atomic_rs tp_comm_overlap_rs_dgrad",
           kMatters, nullptr, "how tensor-parallel ranks exchange"},
    KeyRow{"encoder_tensor_model_parallel_size encoder_pipeline_model_parallel_size "
           "pipeline_model_parallel_split_rank decoder_seq_length",
           kMatters, nullptr, "a layout of its own for an encoder"},
    KeyRow{"enable_full_sharding_in_hsdp outer_dp_sharding_strategy", kMatters, nullptr,
           "what the copies of hybrid sharding share: set parallelism.shard_group"},
    KeyRow{"no_scatter_gather_tensors_in_pipeline", kMatters, nullptr,
           "every tensor-parallel rank sends whole tensors: set "
           "stack.communication.scatter_gather_pipeline"},
    KeyRow{"no_fp8_wgrad", kMatters, nullptr, "gradients of weights come of products of 16 bits"},
    KeyRow{"keep_fp8_transpose_cache keep_fp8_transpose_cache_when_using_custom_fsdp "
           "no_clone_scatter_output_in_embedding no_cpu_offloading_activations",
           kMatters, nullptr, "memory of weights or activations beside those counted"},
    KeyRow{"moe_apply_probs_on_input use_kitchen use_kitchen_attention kitchen_* use_sonicmoe "
           "disable_mamba_mem_eff_path use_mamba_mem_eff_path mtp_use_repeated_layer "
           "batch_invariant_mode",
           kMatters, nullptr, "kernels of its own: no stack has them"},
    KeyRow{"perform_rl_step rl_* grpo_* advantage_estimator colocate rollout_* "
           "n_samples_per_prompt over_sampling_batch_size dynamic_sampling_filter_path num_rollout "
           "sglang_* use_kl_loss kl_loss_* kl_coef use_tis eps_clip eps_clip_high entropy_coef "
           "num_steps_per_rollout balance_data offload_train offload_rollout",
           kMatters, nullptr, "a step of reinforcement learning: write it under rl"},
    KeyRow{"use_dynamic_batch_size max_tokens_per_gpu log_probs_max_tokens_per_gpu", kMatters,
           nullptr,
           "a micro batch holds a number of tokens, not of sequences: set batch.micro and "
           "batch.tokens"},
    KeyRow{"hf_checkpoint ref_load prompt_data input_key label_key apply_chat_template rm_type "
           "address runtime_env_json working_dir"},
    KeyRow{"softmax_type linear_attention_* experimental_attention_variant dsa_* "
           "attention_output_gate window_attn_skip_freq heterogeneous_layers_config_* "
           "linear_*_dim linear_num_*",
           kMatters, nullptr, "attention of another kind: name the model (--model)"},
    KeyRow{"img_h img_w patch_dim img_embedding_idx vision_model_type max_num_tiles use_tiling "
           "use_thumbnail pixel_shuffle use_tile_tags use_image_tag image_tag_type "
           "disable_vision_class_token use_area_weighted_aspect_ratio num_frames "
           "num_channels class_token_len use_vision_backbone_fp8_arch",
           kMatters, nullptr, "a vision tower and its tokens: name a model that has one (--model)"},
    KeyRow{"embed_layernorm", kMatters, nullptr, "a norm behind the embedding: a small kernel"},
    KeyRow{"pp_partition_method", kMatters, nullptr,
           "how layers are dealt to stages: write parallelism.layers_per_stage, or embedding and "
           "output"},
    KeyRow{"mtp_standalone untie_mtp", kMatters, nullptr,
           "layers that predict further tokens stand on a stage of their own"},
    KeyRow{"freeze_* lora_* peft peft_* dora_*", kMatters, nullptr,
           "a part is not trained: say so under lora or frozen"},
};

}  // namespace
}  // namespace megatron_other_file

std::span<const KeyRow> megatron_other_keys() { return megatron_other_file::kOtherRows; }

}  // namespace lockstep
