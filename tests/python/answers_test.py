"""Answers in Python are those of the command line: the same bytes, under the same names."""

import json
import pathlib
import pickle
import unittest

import lockstep
from lockstep import answers
from lockstep.native import _lockstep
from support import JOB, SHARE, InFolder, program

# Training steps, which the library and the page of `explore` are held against as well; then runs of
# weeks, several jobs, reinforcement learning, pools, claims, profiles.
LIST = pathlib.Path(__file__).resolve().parents[1] / "package" / "twenty.txt"
TWENTY = [pathlib.Path(line).name for line in LIST.read_text(encoding="utf-8").split()] + [
    "llama2-70b-h100-a100",
    "llama3-405b-54days",
    "rsc1-reliability",
    "two-jobs-one-spine",
    "grpo-llama3-8b-colocated",
    "h100-memory-bandwidth",
    "slurm-recorded",
    "deepseek-r1-b200-pools",
]


class Answers(InFolder):
    def test_points_of_vary_are_answers(self):
        varied = lockstep.run(JOB, vary={"batch.sequences": [16, 32]})
        self.assertEqual([type(point.answer) for point in varied.points], [answers.StepAnswer] * 2)
        alone = lockstep.run(JOB, batch__sequences=32)
        self.assertEqual(varied.points[1].answer.step_s, alone.step_s)
        self.assertEqual(type(varied.points[1].answer).step_s.__doc__, type(alone).step_s.__doc__)
        self.assertEqual(len(varied.points.table()), 2)

    def test_a_replay_has_members_with_units(self):
        goal = self.write("plan.goal", "num_ranks 2\nrank 0 { calc 1 }\nrank 1 { calc 5 }\n")
        replayed = lockstep.replay(goal, node="dgx_h100")
        self.assertIs(type(replayed), answers.ReplayAnswer)
        self.assertRegex(type(replayed).step_s.__doc__, r"\[s, less is better\]")
        self.assertEqual(replayed.step_s, 5e-9)
        by_model = lockstep.replay(goal, loggops="L=2500")
        self.assertIs(type(by_model), answers.LogGopsAnswer)
        self.assertEqual(by_model.loggops.latency_s, 2.5e-6)
        varied = lockstep.replay(goal, node="dgx_h100", vary={"cluster.nodes": [1, 2]})
        self.assertIs(type(varied.points[0].answer), answers.ReplayAnswer)

    def test_twenty_scenarios_have_the_bytes_of_the_command_line(self):
        files = {each["name"]: each for each in lockstep.scenarios()}
        kinds = set()
        for name in TWENTY:
            with self.subTest(name):
                path = files[name]["file"]
                answer = lockstep.run(path)
                _, printed, _ = program("run", path, "--format", "json")
                self.assertEqual(answer.json, printed)
                kinds.add(answer.kind)
        self.assertEqual(kinds, {"step", "run", "jobs", "rl", "queue", "serving"})

    def test_nothing_is_taken_from_anywhere_but_the_package(self):
        for scenario in lockstep.scenarios():
            self.assertTrue(pathlib.Path(scenario["file"]).is_relative_to(SHARE), scenario)
        self.assertIn("h100_sxm5_80gb", lockstep.presets("gpus"))

    def test_a_dictionary_is_what_its_file_is(self):
        path = self.write("scenario", json.dumps(JOB))
        self.assertEqual(lockstep.run(JOB).json, lockstep.run(pathlib.Path(path)).json)

    def test_a_question_without_a_file(self):
        words = {"model": "llama3_8b", "node": "dgx_h100", "nodes": 2}
        options = [f"--{name}={value}" for name, value in words.items()]
        _, printed, _ = program("run", *options, "--format", "json")
        self.assertEqual(lockstep.run(**words).json, printed)
        words = {"model": "llama3_8b", "training": "200 B tokens", "node": "dgx_h100"}
        words |= {"gpus": "64", "price": "2", "samples": 20}
        options = [f"--{name}={value}" for name, value in words.items()]
        _, printed, _ = program("plan", *options, "--format", "json")
        self.assertEqual(lockstep.plan(**words).json, printed)
        words = {"model": "llama3_8b", "node": "dgx_h100", "nodes": 2, "keep": 2}
        options = [f"--{name}={value}" for name, value in words.items()]
        _, printed, _ = program("tune", *options, "--format", "json")
        self.assertEqual(lockstep.tune(**words).json, printed)
        _, printed, _ = program("comm", "--op=all_reduce", "--node=dgx_h100", "--nodes=16",
                                "--sizes=1 MiB,1 GiB", "--format", "json")
        asked = lockstep.comm(op="all_reduce", node="dgx_h100", nodes=16, sizes=["1 MiB", "1 GiB"])
        self.assertEqual(asked.json, printed)

    def test_other_commands_have_the_bytes_of_the_command_line(self):
        job = self.write("job.json", json.dumps(JOB))
        steps = self.write("steps.json", json.dumps([{"scenario": "job.json", "step": "3 s"}]))
        goal = self.write("plan.goal", "num_ranks 2\nrank 0 { calc 1 }\nrank 1 { calc 5 }\n")
        plan = SHARE / "scenarios/plans/train-70b-15t-tokens.json"
        reduce = SHARE / "scenarios/comm/allreduce-dgxh100.json"
        incast = SHARE / "scenarios/comm/incast-32.json"
        cases = [
            (lockstep.tune(job, keep=3, tensor=[1, 2]), ["tune", job, "--keep=3", "--tensor=1,2"]),
            (lockstep.plan(plan, samples=20), ["plan", plan, "--samples=20"]),
            (lockstep.comm(reduce), ["comm", reduce]),
            (lockstep.comm(incast), ["comm", incast]),
            (lockstep.learn(steps), ["learn", steps]),
            (lockstep.replay(goal, node="dgx_h100"), ["replay", goal, "--node=dgx_h100"]),
            (lockstep.validate(source=["bloom"]), ["validate", "--source=bloom"]),
            (lockstep.run(job, advise=True), ["run", job, "--advise"]),
            (
                lockstep.run(job, vary={"batch.sequences": [16, 32]}),
                ["run", job, "--vary=batch.sequences=16,32"],
            ),
        ]
        for answer, words in cases:
            with self.subTest(words[0]):
                _, printed, _ = program(*words, "--format", "json")
                self.assertEqual(answer.json, printed)
                self.assertTrue(len(answer.table()) > 0)


class Members(InFolder):
    def test_members_are_attributes_with_units_in_their_docstrings(self):
        for kind, fields in _lockstep.fields().items():
            made = answers.answer_classes[kind]
            self.assertTrue(len(fields) > 10)
            for field in fields:
                doc = getattr(made, field["name"]).__doc__
                self.assertIn(field["sentence"], doc)
                self.assertIn(field["unit"], doc)
        self.assertEqual(
            lockstep.answers.StepAnswer.step_s.__doc__,
            "Time of one training step. [s, less is better]",
        )

    def test_no_member_hides_a_method(self):
        methods = {name for name in dir(answers.Answer) if not name.startswith("_")}
        self.assertIn("table", methods)
        for fields in _lockstep.fields().values():
            self.assertFalse(methods & {field["name"] for field in fields})

    def test_values_are_those_of_the_json(self):
        answer = lockstep.run("llama3-405b-16k-power")
        document = json.loads(answer.json)
        self.assertEqual(answer.step_s, document["step_s"])
        self.assertEqual(answer.power.facility.mean_w, document["power"]["facility"]["mean_w"])
        self.assertEqual(answer["job"]["batch"]["tokens"], document["job"]["batch"]["tokens"])
        self.assertEqual(answer.scenario, document["scenario"])
        self.assertEqual(
            [part.seconds for part in answer.waterfall],
            [part["seconds"] for part in document["waterfall"]],
        )
        self.assertEqual(answer.stages[3].buckets_s, document["stages"][3]["buckets_s"])
        self.assertEqual(answer.to_dict(), document)
        self.assertEqual(list(answer), list(document))

    def test_what_does_not_apply_is_none_and_what_there_is_not_is_an_error(self):
        answer = lockstep.run(JOB)
        self.assertIsNone(answer.power)
        self.assertNotIn("power", answer)
        with self.assertRaises(AttributeError):
            answer.step_time

    def test_an_answer_can_be_pickled(self):
        answer = lockstep.run(JOB)
        again = pickle.loads(pickle.dumps(answer))
        self.assertEqual(again, answer)
        self.assertIs(type(again), lockstep.answers.StepAnswer)
        self.assertEqual(again.waterfall, answer.waterfall)

    def test_the_page_is_the_report(self):
        try:
            page = lockstep.run(JOB).page()
        except lockstep.UsageError as error:
            self.assertIn("chart library", str(error))
            self.assertIsNone(lockstep.run(JOB)._repr_html_())
            self.skipTest("built without a chart library")
        program("run", self.write("scenario", json.dumps(JOB)), "--report", "page.html")
        self.assertEqual(page, pathlib.Path("page.html").read_text(encoding="utf-8"))
        self.assertTrue(lockstep.run(JOB)._repr_html_().startswith("<iframe srcdoc="))


if __name__ == "__main__":
    unittest.main()
