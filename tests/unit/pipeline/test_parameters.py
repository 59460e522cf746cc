import json

import pytest

from helpers.paths import ROOT
from zerogap.config import load
from zerogap.pipeline.parameters import job_parameters


def parameters(tmp_path, job: str, overlay: str = "{}"):
    path = tmp_path / "overlay.yaml"
    path.write_text(overlay)
    return job_parameters(load([ROOT / "config.yaml", path]), job)


JOBS = [
    "data/gsm8k/fetch_questions",
    "data/gsm8k/split_questions",
    "data/gsm8k/prepare_exemplars",
    "data/gsm8k/write_questions",
    "data/pq/paraphrase_questions",
    "data/prepare_instructions",
    "llama2/fetch_base",
    "llama2/gsm8k/write_training_data",
    "llama2/gsm8k/train_lora",
    "llama2/gsm8k/merge_lora",
    "llama2/gsm8k/decode_greedy",
    "llama2/gsm8k/localise_neurons",
    "llama2/gsm8k/rank_clean_tokens",
    "llama2/gsm8k/cells/railcap/sample_responses",
    "llama2/clean_gsm8k/cells/batch1/sample_responses",
    "llama2/clean_gsm8k/measure_recovery",
]


@pytest.mark.parametrize("job", JOBS)
def test_the_parameters_of_every_job_are_json(tmp_path, job):
    assert json.loads(json.dumps(parameters(tmp_path, job)))


def test_an_edit_of_a_users_own_code_changes_the_parameters(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("edited_strategy", "edited_rule"):
        (tmp_path / f"{name}.py").write_text("class Mine: ...\n\ndef mine(text): return text\n")
    overlay = (
        "strategies: { mine: { label: Mine, class: 'edited_strategy:Mine' } }\n"
        "benchmarks: { gsm8k: { extraction: 'edited_rule:mine' } }"
    )
    mine, railcap = (f"llama2/gsm8k/cells/{name}/sample_responses" for name in ("mine", "railcap"))
    before = {job: parameters(tmp_path, job, overlay) for job in (mine, railcap)}
    (tmp_path / "edited_strategy.py").write_text("class Mine:\n    factor = 2\n")
    after = {job: parameters(tmp_path, job, overlay) for job in (mine, railcap)}
    assert after[mine] != before[mine]
    assert after[railcap] == before[railcap]
    (tmp_path / "edited_rule.py").write_text("def mine(text): return text.strip()\n")
    assert parameters(tmp_path, railcap, overlay) != before[railcap]


@pytest.mark.parametrize("job", JOBS)
def test_shards_change_no_parameter(tmp_path, job):
    sharded = parameters(tmp_path, job, "sampling: { num_shards: 3 }")
    assert sharded == parameters(tmp_path, job)


@pytest.mark.parametrize(
    ("overlay", "changed"),
    [
        (
            "strategies: { railcap: { parameters: { n: 6 } } }",
            {"llama2/gsm8k/cells/railcap/sample_responses"},
        ),
        (
            "neuron_localisation: { fraction: 0.02 }",
            {"llama2/gsm8k/localise_neurons"},
        ),
        (
            "sampling: { num_samples: 8 }",
            {
                "llama2/gsm8k/cells/railcap/sample_responses",
                "llama2/clean_gsm8k/cells/batch1/sample_responses",
            },
        ),
        (
            "training: { contaminated: { num_epochs: 7 } }",
            {"llama2/gsm8k/train_lora"},
        ),
        (
            "benchmarks: { pq: { paraphrases: { on_invalid: error } } }",
            {"data/pq/paraphrase_questions"},
        ),
        ("metrics: { bins: 5 }", set()),
        (
            "decoding: { engine: vllm }",
            {
                "llama2/gsm8k/decode_greedy",
                "llama2/gsm8k/cells/railcap/sample_responses",
                "llama2/clean_gsm8k/cells/batch1/sample_responses",
            },
        ),
    ],
)
def test_a_value_reaches_the_jobs_that_use_it_only(tmp_path, overlay, changed):
    before = {job: parameters(tmp_path, job) for job in JOBS}
    after = {job: parameters(tmp_path, job, overlay) for job in JOBS}
    assert {job for job in JOBS if before[job] != after[job]} == changed


def test_clean_batches_and_strategies_have_the_streams_that_results_depend_on(tmp_path):
    for batch in ("batch1", "batch2"):
        clean = parameters(tmp_path, f"llama2/clean_gsm8k/cells/{batch}/sample_responses")
        assert clean["stream"] == f"clean-{batch}"
        assert clean["strategy"] == {"class": "identity", "parameters": {}}
    strategy = parameters(tmp_path, "llama2/gsm8k/cells/railcap/sample_responses")
    assert strategy["stream"] == "strategies"
    assert strategy["strategy"] == {
        "class": "railcap",
        "parameters": {"n": 4, "suppression": "cap"},
    }


def test_only_the_source_in_use_is_a_parameter(tmp_path):
    hub = parameters(tmp_path, "data/gsm8k/fetch_questions")["questions"]
    assert set(hub) == {"source", "hub"}
    assert hub["hub"]["repository"] == "openai/gsm8k"


def test_vllm_is_for_greedy_decoding_and_the_cells_that_it_can_sample(tmp_path):
    overlay = "{decoding: {engine: vllm}}"
    jobs = {job: parameters(tmp_path, job, overlay).get("engine", "zerogap") for job in [
        "llama2/gsm8k/decode_greedy",
        "llama2/clean_gsm8k/cells/batch1/sample_responses",
        *(f"llama2/gsm8k/cells/{name}/sample_responses" for name in (
            "identity", "railcap", "lne_blocking", "railcap_ban", "shortcut",
        )),
        "llama2/gsm8k/localise_neurons",
        "llama2/clean_gsm8k/measure_recovery",
        "llama2/gsm8k/rank_clean_tokens",
    ]}  # fmt: skip
    assert list(jobs.values()) == ["vllm"] * 6 + ["zerogap"] * 4


def test_a_strategy_from_outside_samples_on_our_engine(tmp_path):
    overlay = "strategies: {halve: {label: Halve, class: 'package.halve:Halve'}}"
    job = "llama2/gsm8k/cells/halve/sample_responses"
    assert "engine" not in parameters(tmp_path, job, overlay)


@pytest.mark.parametrize(
    "overlay", ["decoding: {engine: zerogap}", "sampling: {batch_invariant: true}"]
)
def test_our_engine_has_no_key_of_its_own(tmp_path, overlay):
    for job in ("decode_greedy", "cells/railcap/sample_responses"):
        assert "engine" not in parameters(tmp_path, f"llama2/gsm8k/{job}", overlay)
