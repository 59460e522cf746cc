"""Benchmarks as YAML files: overlays, several in one run, shared questions."""

import json
from pathlib import Path

import pytest
import yaml

from helpers.configurations import PAPER, QUICK, overlaid
from helpers.paths import ROOT
from zerogap.config import load
from zerogap.errors import InputError
from zerogap.pipeline import targets

OTHER = {
    "label": "Other",
    "contamination": "verbatim",
    "questions": {"source": "generated", "generated": {"num_train": 5, "num_test": 20}},
    "num_test": 20,
    "num_leaked": 10,
    "num_train": 5,
    "prompt": {
        "template": "Question: {question}\nAnswer:",
        "target": " {rationale} So {answer}.",
        "separator": "\n---\n",
        "num_shots": 1,
        "exemplars": "toy",
    },
    "extraction": "flexible-extract",
    "stop": ["Question:", "\n---"],
}


@pytest.fixture
def other(tmp_path):
    path = tmp_path / "other.yaml"
    path.write_text(yaml.safe_dump(OTHER))
    return str(path)


def test_a_benchmark_is_one_file_and_one_line(other):
    config = overlaid(QUICK, {"benchmarks.other.file": other})
    assert list(config.benchmarks) == ["gsm8k", "pq", "other"]
    benchmark = config.benchmarks["other"]
    assert benchmark.prompt.template == "Question: {question}\nAnswer:"
    assert benchmark.stop == ("Question:", "\n---")
    assert benchmark.extraction == "flexible-extract"
    assert config.benchmarks["gsm8k"] == load(QUICK).benchmarks["gsm8k"]


def test_each_owner_of_questions_has_a_clean_variant_of_its_own(other):
    config = overlaid(QUICK, {"benchmarks.other.file": other})
    assert config.question_owners == ["gsm8k", "other"]
    assert config.variants == ["clean_gsm8k", "clean_other", "gsm8k", "pq", "other"]
    assert [config.clean_variant(name) for name in config.benchmarks] == [
        "clean_gsm8k",
        "clean_gsm8k",
        "clean_other",
    ]
    assert [config.benchmark_of(variant) for variant in config.variants] == [
        "gsm8k",
        "other",
        "gsm8k",
        "pq",
        "other",
    ]
    clean, contaminated = config.training.clean, config.training.contaminated
    assert config.training_for("clean_other") == clean
    assert config.training_for("other") == contaminated
    assert clean != contaminated


def test_keys_of_an_entry_override_those_of_its_file(other):
    entry = {"file": other, "num_leaked": 3, "prompt": {"num_shots": 2}}
    benchmark = overlaid(QUICK, {"benchmarks.other": entry}).benchmarks["other"]
    assert benchmark.num_leaked == 3
    assert benchmark.prompt.num_shots == 2
    assert benchmark.prompt.separator == "\n---\n"
    assert benchmark.num_test == 20


def test_an_entry_needs_no_file():
    config = overlaid(QUICK, {"benchmarks.other": OTHER})
    assert config.benchmarks["other"].label == "Other"


def test_an_overlay_may_give_a_benchmark_another_file(other):
    config = overlaid(QUICK, {"benchmarks.gsm8k.file": other})
    assert config.benchmarks["gsm8k"].label == "Other"
    assert config.benchmarks["pq"].num_test == 20


def test_a_benchmark_may_state_its_own_exemplars(other):
    exemplars = [{"question": "How many is 1 + 1?", "target": "It is 2. So 2."}]
    benchmark = overlaid(
        QUICK, {"benchmarks.other": {"file": other, "prompt": {"exemplars": exemplars}}}
    ).benchmarks["other"]
    assert benchmark.prompt.model_dump()["exemplars"] == tuple(exemplars)


def test_a_benchmark_may_name_a_file_of_exemplars(other):
    config = overlaid(
        QUICK, {"benchmarks.other": {"file": other, "prompt": {"exemplars": "mine.jsonl"}}}
    )
    assert targets.exemplar_files(config, "other") == ["mine.jsonl"]
    assert targets.exemplar_files(config, "gsm8k") == []


@pytest.mark.parametrize(
    ("exemplars", "message"),
    [
        ("own", r"exemplars must be 'lm_eval' or 'toy' or be a .jsonl file or be a valid list"),
        ([{"question": "Q"}], "exemplars.0.target is missing: The response, without"),
        ([{"question": "Q", "answer": "2"}], "exemplars.0.answer: unknown key; .*question, target"),
    ],
)
def test_a_mistake_in_the_exemplars_is_reported_with_its_key(other, exemplars, message):
    with pytest.raises(InputError, match=f"overlay.yaml: benchmarks.other.prompt.{message}"):
        overlaid(QUICK, {"benchmarks.other": {"file": other, "prompt": {"exemplars": exemplars}}})


def test_a_file_is_relative_to_the_working_directory_or_the_project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load(PAPER).benchmarks["gsm8k"].label == "GSM8K"
    Path("mine.yaml").write_text(yaml.safe_dump(OTHER))
    config = overlaid(QUICK, {"benchmarks.mine.file": "mine.yaml"})
    assert config.benchmarks["mine"].label == "Other"


def test_questions_of_shares_everything_but_label_and_contamination():
    for base in (PAPER, QUICK):
        benchmarks = load(base).benchmarks
        shared = {"label", "contamination", "questions_of", "paraphrases"}
        assert benchmarks["pq"].model_dump(exclude=shared) == benchmarks["gsm8k"].model_dump(
            exclude=shared
        )
        assert benchmarks["pq"].questions_of == "gsm8k"
        assert benchmarks["gsm8k"].paraphrases is None


def test_what_an_overlay_changes_in_the_owner_holds_for_those_that_share_it():
    config = overlaid(QUICK, {"benchmarks.gsm8k.num_leaked": 7, "benchmarks.gsm8k.stop": ["\n"]})
    assert config.benchmarks["pq"].num_leaked == 7
    assert config.benchmarks["pq"].stop == ("\n",)


def test_two_benchmarks_may_share_the_questions_of_a_third(other):
    entry = {
        "label": "Rules",
        "contamination": "paraphrase",
        "questions_of": "gsm8k",
        "paraphrases": {"method": "rules", "on_invalid": "skip"},
    }
    config = overlaid(PAPER, {"benchmarks.rules": entry})
    assert config.variants == ["clean_gsm8k", "gsm8k", "pq", "rules"]
    assert config.owner_of("rules") == config.owner_of("pq") == "gsm8k"
    entry["questions_of"] = "pq"
    with pytest.raises(
        InputError, match=r"rules.questions_of is 'pq'; it must name a benchmark .*(gsm8k)"
    ):
        overlaid(PAPER, {"benchmarks.rules": entry})


def test_a_paraphrase_benchmark_may_own_its_questions():
    config = overlaid(
        QUICK,
        {
            "benchmarks.gsm8k": None,
            "benchmarks.pq": None,
            "benchmarks.only": OTHER
            | {
                "contamination": "paraphrase",
                "paraphrases": {"method": "rules", "on_invalid": "error"},
            },
            "primary_setting.benchmark": "only",
        },
    )
    assert config.variants == ["clean_only", "only"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_tests": 3}, "benchmarks.other.num_tests: unknown key; the keys here are contam"),
        ({"stop": "Q:"}, "benchmarks.other.stop must be a valid list"),
        (
            {
                "questions": {
                    "source": "generated",
                    "generated": {"num_train": 5, "num_test": 20, "step_weights": [0, 0]},
                }
            },
            "other.questions.generated.step_weights has no weight above 0",
        ),
        ({"num_leaked": 20}, "other.num_leaked is 20; it must be below benchmarks.other.num_test"),
        ({"questions": {"source": "generated"}}, "other.questions.generated is missing"),
        (
            {"questions": {"source": "generated", "generated": {"num_train": 5, "num_test": 9}}},
            "other.questions.generated.num_test is 9, fewer than benchmarks.other.num_test",
        ),
        ({"label": None}, "benchmarks.other.label must be a valid string"),
    ],
)
def test_a_mistake_in_a_file_is_reported_with_the_key_of_its_entry(tmp_path, change, message):
    path = tmp_path / "other.yaml"
    path.write_text(json.dumps(OTHER | change))
    with pytest.raises(InputError, match=f"overlay.yaml: .*{message}"):
        overlaid(QUICK, {"benchmarks.other.file": str(path)})


def test_a_duplicate_key_in_a_benchmarks_file_is_named_with_its_line(tmp_path):
    path = tmp_path / "other.yaml"
    path.write_text("label: A\nlabel: B\n")
    with pytest.raises(InputError, match=r"other.yaml, line 2: duplicate key label"):
        overlaid(QUICK, {"benchmarks.other.file": str(path)})


def test_shipped_benchmark_files_are_all_used_by_a_scale():
    files = {path.name for path in (ROOT / "workflow/benchmarks").glob("*.yaml")}
    scales = [ROOT / "config.yaml", *(ROOT / "profiles").glob("*/*.yaml")]
    text = "".join(path.read_text() for path in scales)
    assert {name for name in files if f"workflow/benchmarks/{name}" in text} == files
