#include "models/base/input_error.hpp"

#include <algorithm>
#include <cstddef>
#include <doctest/doctest.h>
#include <string>
#include <vector>

namespace lockstep {

TEST_CASE("InputError: one line with place, find, rule and the nearest name") {
  const InputError error({"plan.json", "/cluster/nodes", "0", "1 to 9", "nodes"});
  CHECK(std::string(error.what()) ==
        "plan.json#/cluster/nodes: found 0; allowed: 1 to 9. Did you mean \"nodes\"?");
  CHECK(std::string(InputError({"plan.json", "", "a directory", "a file", ""}).what()) ==
        "plan.json: found a directory; allowed: a file");
}

TEST_CASE("InputError: stays one line of text whatever the names hold") {
  const InputError error({"a\nb.json", "/x\x01", "\xFF", "caf\xC3\xA9", ""});
  CHECK(std::string(error.what()) == "a\\x0ab.json#/x\\x01: found \\xff; allowed: caf\xC3\xA9");
}

TEST_CASE("InputError: a line for each of several mistakes, 20 of many, each told anew") {
  const InputProblem first{"a.json", "/x", "1", "2", ""};
  const InputError two(first, {{"a.json", "/y", "3", "4", "five"}});
  CHECK(std::string(two.what()) ==
        "a.json#/x: found 1; allowed: 2\na.json#/y: found 3; allowed: 4. Did you mean \"five\"?");
  CHECK(two.first_line() == "a.json#/x: found 1; allowed: 2");
  const InputError moved = retold(two, [](InputProblem& p) { p.pointer.insert(0, "/in"); });
  CHECK(moved.problem().pointer == "/in/x");
  CHECK(moved.also().front().pointer == "/in/y");
  const auto lines_of = [&](std::size_t also) {
    const InputError error(first, std::vector<InputProblem>(also, first));
    return std::string(error.what());
  };
  CHECK(lines_of(19).ends_with("allowed: 2"));
  CHECK(lines_of(20).ends_with("allowed: 2\nand 1 more"));
  CHECK(std::ranges::count(lines_of(100), '\n') == 20);
  CHECK(lines_of(kMostMistakes - 2).ends_with("\nand 979 more"));
  CHECK(lines_of(kMostMistakes - 1).ends_with("\nand at least 980 more"));
}

TEST_CASE("InputError: unknown keys beside the first are told anew at their own places") {
  InputProblem problem{"a.json", "/x", "the unknown key \"x\"", "levels", ""};
  problem.unknown_too = {{"/b/levles", "levels"}, {"/y", ""}};
  CHECK(std::string(InputError(problem).what()) ==
        "a.json#/x: found the unknown key \"x\", and also /b/levles (\"levels\"?), /y; allowed: "
        "levels");
  const InputError moved = retold(InputError(problem), [](InputProblem& p) {
    p.pointer.insert(0, p.pointer == "/y" ? "/own" : "/shared");
  });
  CHECK(std::string(moved.what()) ==
        "a.json#/shared/x: found the unknown key \"x\", and also /shared/b/levles (\"levels\"?), "
        "/own/y; allowed: levels");
  problem.unknown_too.assign(25, {"/y", ""});
  CHECK(problem.all_found().ends_with(", /y and 6 more"));
}

TEST_CASE("InputError: a pointer of a megabyte is cut") {
  const InputError error({"a.json", "/" + std::string(1'000'000, 'k'), "1", "2", ""});
  CHECK(std::string(error.what()).size() < 300);
}

TEST_CASE("in_quotes: cuts long text between letters") {
  CHECK(in_quotes("short") == "\"short\"");
  // 59 letters, then one of two bytes that ends behind the limit of 60.
  const std::string text = std::string(59, 'a') + "\xC3\xA9 and more";
  CHECK(in_quotes(text) == "\"" + std::string(59, 'a') + "...\"");
}

TEST_CASE("nearest_name: misspelt, swapped, cut short, in capitals, and nothing where nothing is") {
  const std::vector<std::string> names{"fat_tree", "rail_optimised", "ideal", "h100_sxm5_80gb"};
  CHECK(nearest_name("fattree", names) == "fat_tree");
  CHECK(nearest_name("idela", names) == "ideal");
  CHECK(nearest_name("IDEAL", names) == "ideal");
  CHECK(nearest_name("rail", names) == "rail_optimised");
  CHECK(nearest_name("sxm5", names) == "h100_sxm5_80gb");
  const std::vector<std::string> nodes{"azure_nd96isr_h100_v5", "dgx_h100", "grand_teton_h100"};
  CHECK(nearest_name("h100", nodes) == "dgx_h100");
  const std::vector<std::string> models{"llama2_70b", "llama3_405b", "llama3_70b", "llama3_8b"};
  CHECK(nearest_name("meta-llama/Llama-3.1-70B", models) == "llama3_70b");
  CHECK(nearest_name("meta-llama/Meta-Llama-3-8B", models) == "llama3_8b");
  CHECK(nearest_name("mistralai/Mistral-Large", models).empty());
  CHECK(nearest_name("torus", names).empty());
  CHECK(nearest_name("", names).empty());
  CHECK(nearest_name(std::string(100'000, 'i'), names).empty());
}

TEST_CASE("nearest_name: what the word begins comes before what it is a misspelling of") {
  // One letter from dgx_h100, which is another machine.
  const std::vector<std::string> nodes{"dgx_a100_40gb", "dgx_a100_80gb", "dgx_h100"};
  CHECK(nearest_name("dgx_a100", nodes) == "dgx_a100_40gb");
  CHECK(nearest_name("DGX_A100", nodes) == "dgx_a100_40gb");
  CHECK(nearest_name("dgx_a10", nodes) == "dgx_a100_40gb");
  CHECK(nearest_name("dgx_h10", nodes) == "dgx_h100");
  const std::vector<std::string> options{"--set", "--sequences-of-all", "--sequences", "--help"};
  CHECK(nearest_name("--seq", options) == "--sequences");
  CHECK(nearest_name("--ste", options) == "--set");
  // Two letters begin too many names.
  CHECK(nearest_name("dg", nodes).empty());
}

TEST_CASE("nearest_name: a framework's word, only where ours is among the names") {
  const std::vector<std::string> formats{"fp16", "bf16", "fp8"};
  CHECK(nearest_name("bfloat16", formats) == "bf16");
  CHECK(nearest_name("Float16", formats) == "fp16");
  CHECK(nearest_name("half", formats) == "fp16");
  CHECK(nearest_name("fsdp", formats).empty());
  const std::vector<std::string> shardings{"none", "zero1", "zero2", "zero3"};
  CHECK(nearest_name("FSDP", shardings) == "zero3");
  CHECK(nearest_name("full_shard", shardings) == "zero3");
  CHECK(nearest_name("shard_grad_op", shardings) == "zero3");
  CHECK(nearest_name("half", shardings).empty());
  const std::vector<std::string> weights{"bf16", "fp8", "fp4", "int4"};
  CHECK(nearest_name("nvfp4", weights) == "fp4");
  CHECK(nearest_name("MXFP4", weights) == "fp4");
  CHECK(nearest_name("mxfp8", weights) == "fp8");
  CHECK(nearest_name("awq", weights) == "int4");
  CHECK(nearest_name("gptq", weights) == "int4");
}

TEST_CASE("listed: forty names, then how many more") {
  const std::vector<std::string> forty(40, "x");
  const std::vector<std::string> more(42, "x");
  CHECK(listed(forty).find("more") == std::string::npos);
  CHECK(listed(more) == listed(forty) + ", and 2 more");
}

}  // namespace lockstep
