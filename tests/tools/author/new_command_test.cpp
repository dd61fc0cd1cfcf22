// lockstep new: each kind is complete, says what it says, and is read with its comments.
#include <array>
#include <doctest/doctest.h>
#include <filesystem>
#include <regex>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/json_text.hpp"
#include "models/base/text_file.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"
#include "tools/author/commented_json.hpp"
#include "tools/author/new_scenario.hpp"
#include "tools/author/questions.hpp"

namespace lockstep::test {

TEST_CASE("new: every kind is written, has comments, and runs as it stands") {
  const TemporaryFolder folder;
  for (const NewKind& kind : new_kinds()) {
    CAPTURE(kind.name);
    const std::string file = folder.path() + "/" + std::string(kind.name) + ".json";
    std::vector<std::string> args{"new", std::string(kind.name), "-o", file};
    // The first of the kinds is a step.
    if (kind.name == "sweep") {
      args.insert(args.end(), {"--scenario", "step.json"});
    } else {
      args.insert(args.end(), {"--nodes", "2"});
    }
    const Ran made = lockstep_with(args);
    CAPTURE(made.err);
    REQUIRE(made.exit == Exit::ok);
    CHECK(made.out.empty());
    const std::string text = read_text_file(file);
    CHECK(text.starts_with("// lockstep " + std::string(kind.command) + " THIS"));
    CHECK(text.find("\n  // ") != std::string::npos);
    std::vector<std::string> run{std::string(kind.command), file};
    if (kind.name == "sweep") run.insert(run.end(), {"-o", folder.path() + "/results.db"});
    const Ran ran = lockstep_with(run);
    CAPTURE(ran.err);
    CHECK(ran.exit == Exit::ok);
  }
}

TEST_CASE("new: a config.json of this folder is found from the folder of the new file, any kind") {
  const TemporaryFolder folder;
  const std::string config = std::filesystem::proximate(folder.write("config.json", R"({
      "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048,
      "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
      "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": true})"))
                                 .generic_string();
  folder.write("sub/README", "so that the folder is there");
  for (const std::string kind : {"step", "weeks", "jobs", "serving", "plan"}) {
    CAPTURE(kind);
    const std::string file = folder.path() + "/sub/" + kind + ".json";
    const Ran made = lockstep_with({"new", kind, "--model", config, "--nodes", "2", "-o", file});
    CAPTURE(made.err);
    REQUIRE(made.exit == Exit::ok);
    CHECK(read_text_file(file).find(R"("model": {"huggingface": "../config.json"})") !=
          std::string::npos);
    const Ran ran = lockstep_with({kind == "plan" ? "plan" : "run", file});
    CAPTURE(ran.err);
    CHECK(ran.exit == Exit::ok);
  }
  CHECK(lockstep_with({"new", "serving", "--model", "llama3_7b"})
            .err.starts_with("--model: found \"llama3_7b\"; allowed: "));
}

TEST_CASE("new: the trace that the comment of a queue shows is one that runs") {
  const TemporaryFolder folder;
  const std::string text = lockstep_with({"new", "queue"}).out;
  const std::size_t begin = text.find("{\"trace\":"), end = text.find("}}}", begin);
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  const std::string shown =
      std::regex_replace(text.substr(begin, end + 3 - begin), std::regex("\n *// "), " ");
  nlohmann::ordered_json scenario = parse_json_text("new", text);
  scenario["queue"]["jobs"] = nlohmann::ordered_json::array({nlohmann::ordered_json::parse(shown)});
  folder.write("jobs.csv", "submit_s,run_s,gpus\n0,600,8\n60,600,16\n");
  const Ran ran = lockstep_with({"run", folder.write("queue.json", scenario.dump())});
  CAPTURE(ran.err);
  CHECK(ran.exit == Exit::ok);
}

TEST_CASE("new: a plan has the same nodes in reserve as a run of weeks") {
  const auto made = [](const char* kind) {
    return parse_json_text("new", lockstep_with({"new", kind, "--nodes", "2"}).out);
  };
  const nlohmann::ordered_json weeks = made("weeks"), plan = made("plan");
  CHECK(weeks["run"]["spares"]["hot"] == 1);
  CHECK(plan["scenario"]["run"]["spares"] == weeks["run"]["spares"]);
}

TEST_CASE("new: a sweep of an installed scenario names its file") {
  const Ran made = lockstep_with({"new", "sweep", "--scenario", "llama3-8b-b200"});
  REQUIRE(made.exit == Exit::ok);
  const std::string file = parse_json_text("new", made.out)["scenario"].get<std::string>();
  CHECK(file.ends_with("/scenarios/llama3-8b-b200.json"));
  CHECK_FALSE(read_text_file(file).empty());
}

TEST_CASE("new: what options say is in the file, and mistakes are one line") {
  const Ran made = lockstep_with({"new", "weeks", "--model", "llama3_70b", "--node", "dgx_b200"});
  REQUIRE(made.exit == Exit::ok);
  const nlohmann::ordered_json scenario = parse_json_text("new", made.out);
  CHECK(scenario["model"] == "llama3_70b");
  CHECK(scenario["cluster"]["node"] == "dgx_b200");
  CHECK(scenario["cluster"]["nodes"] == 4);
  CHECK(scenario["run"]["reliability"] == "llama3_54_days");
  const auto error_of = [](std::vector<std::string> args) {
    args.insert(args.begin(), "new");
    const Ran ran = lockstep_with(args);
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.out.empty());
    return ran.err;
  };
  CHECK(error_of({}) ==
        "lockstep new: found no kind; allowed: step, weeks, jobs, serving, queue, plan, sweep\n");
  CHECK(error_of({"week"}).ends_with(". Did you mean weeks?\n"));
  CHECK(error_of({"step", "--node", "dgx_h10"}).ends_with(". Did you mean dgx_h100?\n"));
  CHECK(error_of({"step", "--model", "llama3_7b"}).find("llama3_7b") != std::string::npos);
  CHECK(error_of({"step", "--nodes", "0"}) ==
        "--nodes: found \"0\"; allowed: a whole number from 1 to 100000\n");
  CHECK(error_of({"sweep"}).starts_with("lockstep new sweep: --scenario is missing; "));
  CHECK(
      error_of({"sweep", "--scenario", "none.json"}).starts_with("none.json: found no such file"));
  CHECK(error_of({"sweep", "--scenario", "llama3-8b-b20"})
            .ends_with("Did you mean \"llama3-8b-b200\"?\n"));
  CHECK(error_of({"step", "--model", "none.json"}) ==
        "--model: found \"none.json\"; allowed: a file that is there, or the name of a preset\n");
  CHECK(error_of({"step", "--scenario", "a.json"}).starts_with("--scenario: found \"a.json\""));
}

TEST_CASE("new: a service has replicas that hold its model, and runs") {
  struct Case {
    std::vector<std::string> args;
    int replicas, tensor, pipeline;  // 0: not written
    bool narrow;
  };
  // Weights of 16 bits of 671 B parameters take 1.34 TB, of 405 B 0.81 TB; a node has 0.64 TB.
  const std::array cases{
      Case{{"--model", "llama3_70b", "--nodes", "2"}, 2, 8, 0, false},
      Case{{"--model", "llama3_405b", "--nodes", "4"}, 2, 8, 2, false},
      Case{{"--model", "llama3_405b", "--nodes", "1"}, 1, 8, 0, true},
      Case{{"--model", "deepseek_v3", "--nodes", "3"}, 1, 8, 3, false},
      Case{{"--model", "deepseek_v3", "--nodes", "2"}, 1, 8, 2, true},
  };
  const TemporaryFolder folder;
  for (const Case& each : cases) {
    std::vector<std::string> args{"new", "serving", "-o", folder.path() + "/s.json"};
    args.insert(args.end(), each.args.begin(), each.args.end());
    CAPTURE(each.args[1]);
    REQUIRE(lockstep_with(args).exit == Exit::ok);
    const nlohmann::ordered_json serving =
        parse_json_text("new", read_text_file(folder.path() + "/s.json"))["serving"];
    const nlohmann::ordered_json& both = serving["pools"]["both"];
    CHECK(both["replicas"] == each.replicas);
    CHECK(both["tensor"] == each.tensor);
    CHECK(both.value("pipeline", 0) == each.pipeline);
    CHECK(serving.value("weights", "") == (each.narrow ? "fp8" : ""));
    const Ran ran =
        lockstep_with({"run", folder.path() + "/s.json", "--set", "serving.load.requests=20"});
    CAPTURE(ran.err);
    CHECK(ran.exit == Exit::ok);
  }
}

TEST_CASE("new: what cannot be served, or has too few nodes, is one line") {
  const auto error_of = [](std::vector<std::string> args) {
    args.insert(args.begin(), "new");
    const Ran ran = lockstep_with(args);
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.out.empty());
    return ran.err;
  };
  CHECK(error_of({"serving", "--model", "deepseek_v3", "--nodes", "1"}) ==
        "--nodes: found \"1\"; allowed: at least 2 of dgx_h100, which hold deepseek_v3 with "
        "weights of 8 bits\n");
  for (const char* model : {"flux1_dev", "sdxl", "dit_xl_2", "bert_large", "t5_v1_1_xxl"}) {
    CHECK(error_of({"serving", "--model", model})
              .ends_with("allowed: a decoder alone, which answers token by token\n"));
  }
  CHECK(error_of({"jobs", "--nodes", "1"}) ==
        "--nodes: found \"1\"; allowed: at least 2: one for each of the two jobs\n");
  const nlohmann::ordered_json odd =
      parse_json_text("new", lockstep_with({"new", "jobs", "--nodes", "3"}).out);
  CHECK(odd["cluster"]["nodes"] == 3);
  CHECK(odd["about"] == "llama3_8b on 3 nodes of dgx_h100: two trainings of 1 node each.");
}

TEST_CASE("new: each price of a plan is called an example") {
  const std::string text = lockstep_with({"new", "plan"}).out;
  for (const char* price : {"\"cost\": {", "\"price\": {"}) {
    for (std::size_t at = text.find(price); at != std::string::npos;
         at = text.find(price, at + 1)) {
      const std::size_t line = text.rfind('\n', text.rfind('\n', at) - 1) + 1;
      CAPTURE(text.substr(line, at - line));
      CHECK(text.substr(line, at - line).find("// Example") +
                text.substr(line, at - line).find("// An example") !=
            2 * std::string::npos);
    }
  }
}

TEST_CASE("new: a comment stands above its member, and the text reads back as the document") {
  const nlohmann::ordered_json document = nlohmann::ordered_json::parse(
      R"({"a": 1, "b": {"c": [1, 2], "d": "// no comment"}, "e": [{"f": 2}]})");
  constexpr std::array comments{JsonComment{"/a", "first"}, JsonComment{"/b/d", "second"},
                                JsonComment{"/e/*/f", "third"}};
  const std::string text = commented_json(document, comments);
  CHECK(text == R"({
  // first
  "a": 1,
  "b": {
    "c": [1, 2],
    // second
    "d": "// no comment"
  },
  "e": [
    {
      // third
      "f": 2
    }
  ]
}
)");
  CHECK(parse_json_text("text", text) == document);
}

TEST_CASE("new: questions come again until an answer will do, and an empty line is the default") {
  std::istringstream in("x\n\n7\n");
  std::ostringstream out;
  Questions questions(in, out);
  const auto digit = [](const std::string& answer) {
    return answer == "x" ? std::string("found \"x\"; allowed: a digit") : std::string();
  };
  CHECK(questions.ask("One?", "4", digit) == "4");
  CHECK(questions.ask("Two?", "4", digit) == "7");
  CHECK(out.str() == "One? [4] found \"x\"; allowed: a digit\nOne? [4] Two? [4] ");
  CHECK_THROWS_WITH(questions.ask("Three?", "4", digit),
                    "lockstep new: the answers ended before the questions");
}

}  // namespace lockstep::test
