// Every command that takes a scenario takes it from a pipe, and from standard input.
#include <atomic>
#include <chrono>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "models/base/text_file.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

constexpr const char* kConfig = R"({"model_type": "llama", "hidden_size": 2048,
  "_name_or_path": "someone/Small-1B", "intermediate_size": 8192, "num_hidden_layers": 16,
  "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
  "tie_word_embeddings": true})";

constexpr const char* kSmallStep = R"({
  "model": "llama2_7b",
  "cluster": {"node": "dgx_h100", "nodes": 1, "fabric": "ideal"},
  "parallelism": {"tensor": 2, "pipeline": 2, "data": 2},
  "batch": {"sequences": 8, "micro": 1, "tokens": 2048}
})";

/// Runs the words with a text in a pipe: "PIPE" is its path.
test::Ran run_with_pipe(std::vector<std::string> words, const std::string& text, bool as_standard) {
  const test::TemporaryFolder folder;
  const std::string pipe = folder.path() + "/pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  for (std::string& word : words) {
    if (word == "PIPE") word = as_standard ? kStandardInput : pipe;
  }
  std::atomic<bool> over = false;  // a command that fails early opens nothing
  std::thread writer([&] {
    int out = -1;
    while (out < 0 && !over) {
      out = open(pipe.c_str(), O_WRONLY | O_NONBLOCK);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (out < 0) return;
    CHECK(write(out, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    close(out);
  });
  const int kept = dup(STDIN_FILENO);
  if (as_standard) {
    const int in = open(pipe.c_str(), O_RDONLY);
    dup2(in, STDIN_FILENO);
    close(in);
  }
  test::Ran ran = test::lockstep_with(words);
  dup2(kept, STDIN_FILENO);
  close(kept);
  over = true;
  writer.join();
  return ran;
}

}  // namespace

TEST_CASE("commands: a scenario from a pipe or standard input is that of a file") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("step.json", kSmallStep);
  const std::string source = LOCKSTEP_SOURCE_DIR "/scenarios/";
  struct PipedCommand {
    std::vector<std::string> words;
    std::string text;
  };
  const std::vector<PipedCommand> all{
      {{"run", "PIPE", "--format", "json"}, kSmallStep},
      {{"tune", "PIPE", "--format", "json"}, kSmallStep},
      {{"compare", file, "PIPE", "--format", "json"}, kSmallStep},
      {{"comm", "PIPE", "--format", "json"},
       read_text_file(source + "comm/allreduce-dgxh100.json")},
      {{"sweep", "PIPE", "-o", folder.path() + "/points.db"},
       R"({"scenario": ")" + file +
           R"(", "axes": [{"at": "/batch/sequences", "values": [8, 16]}]})"},
      {{"replay", "PIPE", "--node", "dgx_h100"}, "num_ranks 1\nrank 0 { calc 5 }\n"}};
  for (const PipedCommand& command : all) {
    CAPTURE(command.words.front());
    for (const bool as_standard : {false, true}) {
      std::filesystem::remove(folder.path() + "/points.db");
      const test::Ran ran = run_with_pipe(command.words, command.text, as_standard);
      CHECK_MESSAGE(ran.exit == Exit::ok, ran.err);
      CHECK_FALSE(ran.out.empty());
    }
  }
}

TEST_CASE("commands: --model takes a config.json from a pipe or standard input") {
  const test::TemporaryFolder folder;
  const std::string asked = folder.path() + "/asked.json";
  const std::vector<std::vector<std::string>> all{
      {"run", "--model", "PIPE", "--node", "dgx_h100", "-o", asked},
      {"tune", "--model", "PIPE", "--node", "dgx_h100"},
      {"plan", "--model", "PIPE", "--node", "dgx_h100", "--training", "1B", "--gpus", "8", "--time",
       "9d"},
      {"new", "weeks", "--model", "PIPE", "--nodes", "2"},
      {"new", "serving", "--model", "PIPE", "--nodes", "2"},
      {"import", "job",
       folder.write("train.sh",
                    "torchrun --nproc_per_node 8 pretrain_gpt.py "
                    "--micro-batch-size 1 --global-batch-size 8 "
                    "--seq-length 2048 --bf16\n"),
       "--model", "PIPE"}};
  for (const std::vector<std::string>& words : all) {
    CAPTURE(words.front());
    for (const bool as_standard : {false, true}) {
      const test::Ran ran = run_with_pipe(words, kConfig, as_standard);
      CHECK_MESSAGE(ran.exit == Exit::ok, ran.err);
      CHECK_FALSE(ran.out.empty());
    }
  }
  // What was asked is written out, so that it can be run again.
  const test::Ran again = test::lockstep_with({"run", asked});
  CHECK(again.exit == Exit::ok);
  CHECK(again.out.find("Small-1B") != std::string::npos);

  const auto error_of = [](const std::string& text) {
    return run_with_pipe({"run", "--model", "PIPE", "--node", "dgx_h100"}, text, true).err;
  };
  CHECK(error_of("[1]") == "-: found an array; allowed: an object\n");
  std::string wrong = kConfig;
  wrong.replace(wrong.find("2048"), 4, "-1");
  CHECK(error_of(wrong).find("#/model/huggingface/hidden_size: found -1; allowed: ") !=
        std::string::npos);
}

}  // namespace lockstep
