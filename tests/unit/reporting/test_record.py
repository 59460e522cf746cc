"""Records of Every Eval Ever; the fields and types are those of its eval.schema.json, 0.3.0."""

import json
import math

import pandas as pd
import pytest

from zerogap.reporting.record import Evaluation, generation_config, write_record

SAMPLING = {"temperature": 0.7, "top_p": 1.0, "max_new_tokens": 256, "num_samples": 50, "seed": 3}
DRAWN = {"model": "meta/Llama", "engine": "zerogap", "sampling": SAMPLING, "strategy": "RailCap()"}
REQUIRED = """
    schema_version evaluation_id retrieved_timestamp source_metadata.source_type
    source_metadata.source_organization_name source_metadata.evaluator_relationship
    eval_library.name eval_library.version model_info.name model_info.id
    model_info.additional_details.deployment_type model_info.additional_details.model_availability
"""
REQUIRED_OF_A_RESULT = """
    evaluation_result_id evaluation_name source_data.dataset_name source_data.source_type
    metric_config.lower_is_better metric_config.min_score metric_config.max_score
    score_details.score
"""
VALUES = [  # strategy, metric, value, low, high
    ("identity", "solve_mean", 0.8, 0.7, 0.9),
    ("identity", "peakedness", math.nan, math.nan, math.nan),
    ("railcap", "solve_mean", 0.4, 0.3, 0.5),
    ("railcap", "drop", -0.1, -0.2, 0.0),
    ("railcap", "rouge_l", 0.6, math.nan, math.nan),
    ("railcap", "sa_ppg", 0.2, 0.1, 0.3),
    ("railcap", "sa_ppg_vs_identity", -0.2, -0.3, -0.1),
    ("clean", "solve_mean", 0.5, 0.4, 0.6),
    ("clean_batch2", "sa_ppg", 0.1, 0.0, 0.2),
]


VALUE_COLUMNS = ["strategy", "metric", "value", "ci_low", "ci_high"]


def record(folder, values=None, **changed):
    values = pd.DataFrame(VALUES, columns=VALUE_COLUMNS) if values is None else values
    values = values.assign(subset="all", n_questions=24, label="X")
    evaluation = {
        "benchmark": "gsm8k",
        "made_by": {"identity": DRAWN, "railcap": DRAWN},
        "num_responses": {"identity": 240, "railcap": 239},
        "reference": "clean.jsonl",
    }
    write_record(folder / "record.json", values, Evaluation(**evaluation | changed))
    return json.loads((folder / "record.json").read_text())


def results(folder, **changed):
    return {r["evaluation_result_id"]: r for r in record(folder, **changed)["evaluation_results"]}


def test_the_clean_models_second_batch_is_not_the_model_of_the_record(tmp_path):
    made_by = {"identity": DRAWN, "clean_batch2": DRAWN | {"model": "someone/clean"}}
    name = record(tmp_path, made_by=made_by | {"railcap": DRAWN})["model_info"]["name"]
    assert name == record(tmp_path)["model_info"]["name"] != "unknown"


@pytest.mark.parametrize("digest", [{}, {"model_digest": "d"}])
def test_a_corrected_name_of_the_same_model_is_kept(digest, tmp_path):
    drawn = DRAWN | digest
    made_by = {"identity": drawn, "railcap": drawn}
    filed = record(tmp_path, made_by=made_by)
    filed["model_info"] |= {"name": "Someone/Model", "id": "Someone/Model"}
    filed["source_metadata"]["evaluator_relationship"] = "first_party"
    (tmp_path / "record.json").write_text(json.dumps(filed))
    again = record(tmp_path, made_by=made_by)
    assert again["model_info"]["id"] == "Someone/Model"
    assert again["evaluation_id"].split("/")[1:3] == ["Someone", "Model"]
    assert again["source_metadata"] == filed["source_metadata"]
    other = DRAWN | {"model": "someone/other"} | dict.fromkeys(digest, "e")
    again = record(tmp_path, made_by={"identity": other, "railcap": other})
    assert again["model_info"]["id"] == "someone/other"
    assert again["source_metadata"] != filed["source_metadata"]


def test_an_inflation_may_exceed_1_less_that_of_references(tmp_path):
    values = pd.DataFrame([("identity", "inflation", 1.1, 1.0, 1.2)], columns=VALUE_COLUMNS)
    config = record(tmp_path, values=values)["evaluation_results"][0]["metric_config"]
    assert (config["min_score"], config["max_score"]) == (-2, 2)


def test_a_record_has_the_required_fields(tmp_path):
    filed = record(tmp_path)
    values = [(filed, path) for path in REQUIRED.split()]
    for result in filed["evaluation_results"]:
        values += [(result, path) for path in REQUIRED_OF_A_RESULT.split()]
    for value, path in values:
        kind = bool if "lower" in path else float if "score" in path else str
        for name in path.split("."):
            value = value[name]
        assert isinstance(value, kind), path
    assert filed["evaluation_id"] == f"gsm8k/meta/Llama/{filed['retrieved_timestamp']}"


def test_each_known_value_of_the_model_is_a_result_and_none_of_the_clean_model_is(tmp_path):
    assert list(results(tmp_path)) == [
        "all/identity/solve_mean",
        *(f"all/railcap/{name}" for name in ("solve_mean", "drop", "rouge_l", "sa_ppg")),
        "all/railcap/sa_ppg_vs_identity",
    ]


def test_every_metric_is_continuous_within_bounds_that_hold_its_score(tmp_path):
    for name, result in results(tmp_path).items():
        metric, score = result["metric_config"], result["score_details"]["score"]
        assert metric["score_type"] == "continuous"
        assert metric["min_score"] <= score <= metric["max_score"]
        assert metric["lower_is_better"] == (not name.endswith("solve_mean"))
    assert result["metric_config"]["min_score"] == -1
    assert metric["metric_parameters"] == {"clean_model": "clean.jsonl", "bins": 50}


def test_an_interval_says_how_it_was_made(tmp_path):
    filed = results(tmp_path, n_resamples=100, confidence_level=0.8, drawn="samples")
    assert filed["all/railcap/sa_ppg"]["score_details"]["uncertainty"] == {
        "confidence_interval": {
            "lower": 0.1,
            "upper": 0.3,
            "confidence_level": 0.8,
            "method": "bootstrap over samples",
        },
        "num_samples": 24,
        "num_bootstrap_samples": 100,
    }
    assert filed["all/railcap/sa_ppg"]["score_details"]["details"]["num_responses"] == "239"
    assert "uncertainty" not in filed["all/railcap/rouge_l"]["score_details"]


@pytest.mark.parametrize(
    "made_by",
    [
        DRAWN,
        {"strategy": "RailCap()", "source": {**DRAWN, "strategy": "Identity()"}},  # it filters
        {**DRAWN, "shards": [DRAWN, {**DRAWN, "commit": "other"}]},
    ],
)
def test_generation_settings_are_those_of_the_draws(made_by):
    config = generation_config(made_by)
    arguments = {"temperature": 0.7, "top_p": 1.0, "max_tokens": 256}
    assert config["generation_args"] == arguments
    details = {"engine": "zerogap", "strategy": "RailCap()", "num_samples": "50", "seed": "3"}
    assert config["additional_details"] == details


def test_what_the_files_do_not_say_is_unknown(tmp_path):
    filed = record(tmp_path, made_by={"identity": {}, "railcap": {}})
    assert filed["model_info"]["id"] == filed["model_info"]["name"] == "unknown"
    assert filed["model_info"]["inference_engine"] == {"name": "unknown"}
    config = filed["evaluation_results"][0]["generation_config"]
    assert config == {"generation_args": {}, "additional_details": {}}


def test_files_of_two_models_name_neither(tmp_path):
    made_by = {"identity": DRAWN, "railcap": {**DRAWN, "model": "meta/other"}}
    assert record(tmp_path, made_by=made_by)["model_info"]["id"] == "unknown"


def test_no_folder_of_this_machine_is_published(tmp_path):
    drawn = {**DRAWN, "model": str(tmp_path / "mine")}
    made_by = {"identity": drawn, "railcap": drawn}
    names = {"benchmark": str(tmp_path / "own.jsonl"), "reference": str(tmp_path / "clean.jsonl")}
    filed = record(tmp_path, made_by=made_by, **names)
    assert filed["model_info"]["id"] == "mine"
    assert filed["evaluation_results"][0]["source_data"]["dataset_name"] == "own.jsonl"
    assert str(tmp_path) not in json.dumps(filed)


def test_a_data_set_of_the_hub_is_named(tmp_path):
    source = results(tmp_path, repository="openai/gsm8k")["all/identity/solve_mean"]["source_data"]
    assert (source["source_type"], source["hf_repo"]) == ("hf_dataset", "openai/gsm8k")


def test_what_a_reader_has_filled_in_is_kept(tmp_path):
    filed = record(tmp_path)
    filed["source_metadata"]["source_organization_name"] = "My Lab"
    filed["model_info"]["additional_details"]["model_availability"] = "open"
    (tmp_path / "record.json").write_text(json.dumps(filed))
    again = record(tmp_path)
    assert again["source_metadata"] == filed["source_metadata"]
    assert again["model_info"] == filed["model_info"]
