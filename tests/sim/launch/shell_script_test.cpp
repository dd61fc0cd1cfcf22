#include "sim/launch/shell_script.hpp"

#include <array>
#include <doctest/doctest.h>
#include <optional>
#include <string>
#include <vector>

#include "models/base/input_error.hpp"
#include "sim/launch/arithmetic.hpp"

namespace lockstep {
namespace {

using Words = std::vector<std::string>;

/// The words of the last command of a script.
Words last_command(std::string_view text,
                   const std::vector<std::array<std::string, 2>>& fixed = {}) {
  ShellVariables variables("run.sh");
  for (const auto& [name, value] : fixed) variables.fix(name, value);
  const ShellScript script = read_shell_script("run.sh", text, variables);
  return script.commands.empty() ? Words{} : script.commands.back();
}

}  // namespace

TEST_CASE("shell: variables, defaults, arithmetic and continued lines are filled in") {
  CHECK(last_command("N=2; G=${GPUS:-8}\ntrain --nodes $N \\\n  --world $(($N*G)) ${X:-a b}") ==
        Words{"train", "--nodes", "2", "--world", "16", "a", "b"});
  CHECK(last_command("export A='x y'\nrun \"$A\" $A") == Words{"run", "x y", "x", "y"});
  CHECK(last_command("A=1 # a 'comment\nrun $A#2 \"${B}\"") == Words{"run", "1#2", "${B}"});
  CHECK(last_command("P=a.b.c; run ${P%.*} ${P%%.*} ${P#*.} ${P##*.} ${P/./-} ${#P} ${P:2:3}") ==
        Words{"run", "a.b", "a", "b.c", "c", "a-b.c", "5", "b.c"});
  CHECK(last_command("L=3; run $(expr $L + 1) $(echo \"$L * 2\" | bc) $(nproc)") ==
        Words{"run", "4", "6", "$(nproc)"});
}

TEST_CASE("shell: what a script sources runs where it says so") {
  const auto last = [](std::string_view text, const std::string& sourced) {
    ShellVariables variables("run.sh");
    const ShellScript script =
        read_shell_script("run.sh", text, variables, [&](const std::string& path) {
          return path == "env.sh" ? std::optional(sourced) : std::nullopt;
        });
    return script.commands.empty() ? Words{} : script.commands.back();
  };
  CHECK(last("N=1\nsource env.sh\nrun $N $M", "N=2; M=3\n") == Words{"run", "2", "3"});
  CHECK(last("if true; then . env.sh; fi\nrun $M", "M=3") == Words{"run", "3"});
  CHECK(last("false && source env.sh\nrun $M", "M=3") == Words{"run", "${M}"});
  CHECK(last("source env.sh\ngo 4", "go() { run $1 $M; }\nM=3") == Words{"run", "4", "3"});
  CHECK(last("f() { source env.sh; }\nf\nrun $M\n", "M=3\nfi\n)\nM=4") == Words{"run", "3"});
  CHECK(last("source other.sh\nrun $M", "M=3") == Words{"run", "${M}"});
  CHECK(last("source env.sh\nrun done", "source env.sh") == Words{"run", "done"});
}

TEST_CASE("shell: arrays keep words apart, grow, and may hold comments") {
  CHECK(last_command("A=(--x 1 # one\n  \"b c\"\n)\nA+=(--y)\nrun \"${A[@]}\" ${#A[@]} ${A[1]}") ==
        Words{"run", "--x", "1", "b c", "--y", "4", "1"});
  CHECK(last_command("A=(1 2)\nT=\"go ${A[@]}\"\nrun $T") == Words{"run", "go", "1", "2"});
}

TEST_CASE("shell: a quoted list is one word, and names of an associative array have values") {
  CHECK(last_command("A=(1 2)\nrun \"a ${A[*]} b\" ${A[*]}") == Words{"run", "a 1 2 b", "1", "2"});
  CHECK(last_command("declare -A C=([x]=1 [y z]=2)\nC[w]=3\nrun ${C[x]} ${C[w]} ${C[no]}") ==
        Words{"run", "1", "3", "${C}"});
  CHECK(last_command("C=(4 5)\nrun ${C[1]} ${C[2]}") == Words{"run", "5", "${C}"});
}

TEST_CASE("shell: conditions, cases and functions take the branch that bash would") {
  constexpr std::string_view kIf =
      "D=fp8\nif [[ \"$D\" == \"fp8\" ]] && [ -z \"$UNSET\" ]; then A=1; elif true; then A=2; else "
      "A=3; fi\nrun $A";
  CHECK(last_command(kIf) == Words{"run", "1"});
  CHECK(last_command("if [ $N -gt 4 ]; then A=big; else A=small; fi; run $A", {{"N", "8"}}) ==
        Words{"run", "big"});
  CHECK(
      last_command("S=8B\ncase \"${S}\" in\n \"800M\") T=1;;\n 8B|9B)\n T=4\n ;;\n *) T=0;;\nesac\n"
                   "run $T") == Words{"run", "4"});
  CHECK(last_command("f() {\n local X=$1\n run $X \"$@\"\n}\nf 5 6") ==
        Words{"run", "5", "5", "6"});
  CHECK(last_command("[ -n \"$U\" ] || U=4\nfor i in 7 8; do run $i $U; done") ==
        Words{"run", "7", "4"});
  CHECK(last_command("if ((2 > 1)); then run yes; fi") == Words{"run", "yes"});
}

TEST_CASE("shell: a fixed variable keeps its value whatever the script says") {
  CHECK(last_command("NODES=1\nrun $NODES", {{"NODES", "16"}}) == Words{"run", "16"});
}

TEST_CASE("shell: a here-document that read takes is a variable's value") {
  CHECK(
      last_command("N=2\nread -r -d '' ARGS <<EOF\ntrain.py \\\n  --x $N\n  --y\nEOF\nrun $ARGS") ==
      Words{"run", "train.py", "--x", "2", "--y"});
}

TEST_CASE("shell: here-documents are files, or scripts that run") {
  ShellVariables variables("run.sh");
  const ShellScript script = read_shell_script(
      "run.sh",
      "Z=3\ncat <<EOT > $DS.json\n{\"stage\": $Z}\nEOT\nsbatch <<EOF\n#SBATCH --nodes=4\n"
      "srun bash -c \"train --z $Z\"\nEOF\n",
      variables);
  CHECK(script.written.at("${DS}.json") == "{\"stage\": 3}\n");
  CHECK(script.scheduler == Words{"--nodes=4"});
  CHECK(script.commands.at(1) == Words{"train", "--z", "3"});
}

TEST_CASE("shell: text that bash would refuse is read to its end") {
  for (const std::string_view text : {"\"open",    "$(",
                                      "${",        "A=(",
                                      "if",        "fi",
                                      "case x in", "f() {",
                                      "((",        "<<",
                                      "))",        "}",
                                      "! ! !",     "f() { f; }; f",
                                      "`",         "$((",
                                      "[[ a",      "${X:-${X:-${X:-",
                                      ";;",        "&& ||",
                                      "A+=("}) {
    CAPTURE(text);
    ShellVariables variables("run.sh");
    CHECK_NOTHROW(read_shell_script("run.sh", text, variables));
  }
}

TEST_CASE("shell: a variable that doubles itself ends in an error, not in all memory") {
  std::string text = "A=0123456789\n";
  for (int i = 0; i < 64; ++i) text += "A=$A$A\n";
  ShellVariables variables("run.sh");
  CHECK_THROWS_WITH_AS(read_shell_script("run.sh", text, variables),
                       "run.sh: found variables whose values grow beyond 64 MiB; allowed: a script "
                       "that starts a training",
                       InputError);
}

TEST_CASE("arithmetic: signs bind as in C, and what is not known has no worth") {
  const auto name = [](std::string_view word) {
    return word == "A" ? std::optional<std::int64_t>(6) : std::nullopt;
  };
  CHECK(arithmetic("2 + A * 3", name) == 20);
  CHECK(arithmetic("(2 + $A) / 3 % 2", name) == 0);
  CHECK(arithmetic("2 ** 3 ** 2", name) == 512);
  CHECK(arithmetic("A > 5 ? ${A} : 0", name) == 6);
  CHECK(arithmetic("-A + 1 == -5 && !0", name) == 1);
  for (const char* const text : {"B + 1", "1 / 0", "1 +", "(1", "1 2", "9223372036854775807 * 2",
                                 "99999999999999999999", ""}) {
    CAPTURE(text);
    CHECK_FALSE(arithmetic(text, name).has_value());
  }
}

}  // namespace lockstep
