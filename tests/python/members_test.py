"""Members of what tune, plan, comm, learn, replay and validate answer: each that the program writes
is declared with its type, and each that is declared is written, or says when it is."""

import doctest
import json
import re
import unittest

import lockstep
from lockstep import answers
from lockstep.native import _lockstep
from support import JOB, SHARE, InFolder, program

DECLARED = _lockstep.command_fields()
# Kinds of answers that functions of the package give.
OFFERED = {kind: command for command, kinds in answers.COMMANDS.items() for kind in kinds}
# A member without a type holds what has its form from elsewhere: a scenario's parallelism, a
# preset, and constants of one.
WITHOUT_TYPE = {"parallelism", "preset", "constants"}
# What a sentence says of a member that is not always there.
WHEN = re.compile(r"\b(where|absent|null|none|with --|of --)", re.IGNORECASE)

TYPES = {
    "number": (int, float),
    "integer": (int,),
    "flag": (bool,),
    "text": (str,),
    "texts": (list,),
    "numbers": (list,),
    "named_numbers": (dict,),
    "object": (dict,),
    "objects": (list,),
    "named_objects": (dict,),
}
ELEMENTS = {"texts": str, "numbers": (int, float), "named_numbers": (int, float)}

REFERENCE = SHARE / "reference"
PLANS = SHARE / "scenarios/plans"
COMM = SHARE / "scenarios/comm"
SHORT_TUNE = ["--set=serving.load.requests=100", "--tensor=4", "--pass-tokens=8192",
              "--sequences=256", "--pools=one"]  # fmt: skip
SHORT_PLAN = ["--set=scenario.serving.load.requests=100", "--samples=5"]


# A rank that computes for 100 us and reduces 1 MB with another, as Chakra's JSON has it.
RANK = [
    {"version": "0.0.4"},
    {"id": "0", "name": "n0", "type": "METADATA_NODE",
     "inputs": {"values": """['[{"pg_name": "7", "ranks": [0, 1]}]']"""}},
    {"id": "1", "name": "n1", "type": "COMP_NODE", "durationMicros": "100",
     "attr": [{"name": "is_cpu_op", "boolVal": False}]},
    {"id": "2", "name": "n2", "type": "COMM_COLL_NODE", "dataDeps": ["1"],
     "attr": [{"name": "comm_type", "int64Val": "0"}, {"name": "comm_size", "int64Val": "1000000"},
              {"name": "pg_name", "stringVal": "7"}]},
]  # fmt: skip


def words_of_cases(folder):
    """Words of the command line, which answers of every kind have."""
    job = folder.write("job.json", json.dumps(JOB))
    broken = {**JOB, "parallelism": {"tensor": 3}}
    steps = [{"scenario": JOB, "step": "1.9 s"}]
    goal = folder.write("plan.goal", "num_ranks 2\nrank 0 { calc 1 }\nrank 1 { calc 5 }\n")
    ranks = [
        folder.write(f"rank{r}.json", "\n".join(json.dumps(node) for node in RANK))
        for r in range(2)
    ]
    collective = ["comm", "--op=all_reduce", "--node=dgx_h100", "--nodes=16", "--sizes=1 MiB,1 GiB"]
    return {
        "collectives": [
            ["comm", COMM / "allreduce-dgxh100.json"],
            ["comm", COMM / "allreduce-nvl72-2-racks.json"],
            [*collective, "--fabric=fat_tree_ecmp", "--hash-seeds=2"],
        ],
        "traffic": [
            ["comm", COMM / "incast-32.json"],
            ["comm", COMM / "checkpoint-beside-rings.json"],
            ["comm", COMM / "all-to-all-256.json", "--hash-seeds=2"],
        ],
        "tune": [
            ["tune", job, "--keep=2"],
            ["tune", SHARE / "scenarios/bloom-176b.json", "--keep=2"],
            ["tune", folder.write("broken.json", json.dumps(broken)), "--keep=1"],
        ],
        "tune_serving": [
            ["tune", SHARE / "scenarios/serving/llama3-70b-h100-chat.json", *SHORT_TUNE],
            ["tune", SHARE / "scenarios/serving/llama3-70b-h100-chat.json", *SHORT_TUNE,
             "--objective=throughput"],
        ],
        "plan": [
            ["plan", PLANS / "train-70b-15t-tokens.json", "--samples=5"],
            ["plan", PLANS / "train-70b-three-regions.json", "--samples=5"],
            ["plan", PLANS / "own-lots-then-refine.json", "--samples=5"],
            ["plan", PLANS / "train-70b-demand-charge.json", "--samples=5"],
        ],
        "plan_serving": [["plan", PLANS / "serve-70b.json"]],
        "learn": [["learn", folder.write("steps.json", json.dumps(steps))]],
        "loggops": [["replay", goal, "--loggops=L=2500"]],
        "replay": [["replay", *ranks, "--from=chakra-json", "--node=dgx_h100"]],
        "validate_rows": [["validate", "--source=bloom"], ["validate", "--source=llama3"]],
        "validate_points": [
            *(["validate", f"--{kind}={REFERENCE / kind}.json"]
              for kind in ("gemm", "attention", "nccl", "power", "rl", "serving")),
            ["validate", f"--memory={REFERENCE / 'memory_kernels.json'}"],
            ["validate", "--profile=h100_sxm5_published"],
        ],
        "validate_intervals": [["validate", "--intervals"]],
        "validate_fit": [["validate", "--profile=h100_sxm5_published", "--fit"]],
    }  # fmt: skip


class Walk:
    """Holds values against declarations: what is wrong, and the paths that were met."""

    def __init__(self):
        self.wrong, self.met = set(), set()

    def members(self, value, fields, path):
        declared = {field["name"]: field for field in fields}
        for name, each in value.items():
            field = declared.get(name, declared.get("*"))
            at = f"{path}.{name}" if name in declared else f"{path}.*"
            if field is None:
                self.wrong.add(f"{at}: no declaration")
                continue
            self.met.add(at)
            self.value(each, field, at)
        for name, field in declared.items():
            if field["always"] and name not in value:
                self.wrong.add(f"{path}.{name}: is declared as always there")

    def value(self, value, field, path):
        kind = field["kind"]
        if value is None:
            if not field["nullable"]:
                self.wrong.add(f"{path}: null")
        elif kind == "any":
            if field["name"] not in WITHOUT_TYPE:
                self.wrong.add(f"{path}: no type")
        elif not isinstance(value, TYPES[kind]) or (kind != "flag" and isinstance(value, bool)):
            self.wrong.add(f"{path}: {value!r} is no {kind}")
        elif kind in ELEMENTS:
            elements = value.values() if isinstance(value, dict) else value
            if not all(isinstance(each, ELEMENTS[kind]) for each in elements):
                self.wrong.add(f"{path}: elements of {value!r}")
        elif kind == "object":
            self.members(value, field["members"], path)
        elif field["members"]:
            for each in value.values() if isinstance(value, dict) else value:
                self.members(each, field["members"], path)


def paths(fields, before):
    for field in fields:
        path = f"{before}.{field['name']}"
        yield path, field
        yield from paths(field["members"], path)


class Members(InFolder):
    def walked(self, kind, cases):
        walk = Walk()
        for words in cases:
            status, printed, error = program(*words, "--format=json")
            self.assertEqual(status, 0, f"{words}: {error}")
            document = json.loads(printed)
            del document["lockstep_version"]  # of every answer, and of no kind's declaration
            walk.members(document, DECLARED[kind], kind)
        return walk

    def test_what_is_written_is_declared_and_what_is_declared_is_written(self):
        cases = words_of_cases(self)
        self.assertEqual(set(cases), set(OFFERED))
        for kind in cases:
            with self.subTest(kind):
                walk = self.walked(kind, cases[kind])
                self.assertEqual(sorted(walk.wrong), [])
                unmet = {
                    path: field["sentence"]
                    for path, field in paths(DECLARED[kind], kind)
                    if path not in walk.met and not any(
                        path.startswith(each + ".") for each in self.parts_with_a_when(kind)
                    )
                }
                silent = {path: said for path, said in unmet.items() if not WHEN.search(said)}
                self.assertEqual(silent, {})

    def parts_with_a_when(self, kind):
        """Objects that are not always there, and say when: what is in them need not say it again."""
        return [
            path
            for path, field in paths(DECLARED[kind], kind)
            if field["members"] and not field["always"] and WHEN.search(field["sentence"])
        ]

    def test_every_member_has_a_sentence_and_times_have_units(self):
        for kind in OFFERED:
            for path, field in paths(DECLARED[kind], kind):
                self.assertRegex(field["sentence"], r"\S[.]$", path)
                if path.endswith("_s") and field["kind"] in TYPES and "number" in field["kind"]:
                    self.assertTrue(field["unit"], path)

    def test_answers_have_the_class_of_their_kind(self):
        for kind, cases in words_of_cases(self).items():
            if kind not in ("collectives", "traffic", "tune", "learn", "validate_intervals"):
                continue  # as slow as the test above
            command, *words = map(str, cases[0])
            given = [word for word in words if not word.startswith("--")]
            keywords = dict(word[2:].split("=") for word in words if "=" in word)
            if "--intervals" in words:
                keywords["intervals"] = True
            answer = getattr(lockstep, command)(*given, **keywords)
            with self.subTest(kind):
                self.assertIs(type(answer), answers.command_classes[kind])
                self.assertTrue(len(answer.table()) > 0)
                for field in DECLARED[kind]:
                    doc = getattr(type(answer), field["name"]).__doc__
                    self.assertIn(field["sentence"], doc)
                    self.assertIn(field["unit"], doc)

    def test_members_of_members_are_attributes(self):
        tuned = lockstep.tune(JOB, keep=2)
        self.assertEqual(tuned.best[0].step_s, tuned.step_s)
        self.assertEqual(type(tuned.best[0]).step_s.__doc__,
                         "Time of one training step. [s, less is better]")
        self.assertIsInstance(tuned.best[0].parallelism, dict)
        plan = lockstep.plan(model="llama3_8b", training="200 B tokens", node="dgx_h100",
                             gpus=64, price="2", samples=5)  # fmt: skip
        self.assertIs(type(plan), answers.PlanAnswer)
        chosen = plan.candidates[0]
        self.assertEqual(chosen.time_s.point, plan.choice_time_s)
        self.assertEqual(type(chosen.time_s).p95.__doc__,
                         "1 of 20 samples is above. [s, less is better]")
        rows = lockstep.validate(source="bloom")
        self.assertIs(type(rows), answers.RowsAnswer)
        self.assertEqual(rows.summary.by_source["bloom"].n, rows.summary.overall.n)
        points = lockstep.validate(rl=REFERENCE / "rl.json")
        self.assertEqual(points.summary["all"].n, len(points.points))
        self.assertIsNone(points.points[0].measured_us)

    def test_no_member_hides_a_method(self):
        methods = {name for name in dir(answers.Result) if not name.startswith("_")}
        methods -= {"lockstep_version"}
        for kind in OFFERED:
            self.assertFalse(methods & {field["name"] for field in DECLARED[kind]}, kind)

    def test_examples_in_docstrings_give_what_they_show(self):
        runner = doctest.DocTestRunner()
        for function in (lockstep.learn, lockstep.validate):
            test = doctest.DocTestParser().get_doctest(
                function.__doc__, {"lockstep": lockstep}, function.__name__, None, 0
            )
            self.assertTrue(len(test.examples) >= 3)
            self.assertEqual(runner.run(test).failed, 0)


if __name__ == "__main__":
    unittest.main()
