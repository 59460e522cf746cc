"""The values of jobs, and the digests of their code: what reruns them."""

import json

import pytest

from helpers.configurations import PAPER, overlaid
from zerogap.io import meaning
from zerogap.pipeline.parameters import job_parameters

CONTAMINATED = {"model": "llama2", "variant": "gsm8k"}
CLEAN = {"model": "llama2", "variant": "clean_gsm8k"}
RAILCAP = "sample_responses railcap"
BATCH1 = "sample_responses batch1"
JOBS = {
    "fetch_questions": {"owner": "gsm8k"},
    "split_questions": {"owner": "gsm8k"},
    "prepare_exemplars": {"owner": "gsm8k"},
    "write_questions": {"benchmark": "gsm8k"},
    "paraphrase_questions": {"benchmark": "pq"},
    "prepare_instructions": {},
    "fetch_base": {"model": "llama2"},
    **dict.fromkeys(
        ("write_training_data", "train_lora", "merge_lora", "decode_greedy", "localise_neurons"),
        CONTAMINATED,
    ),
    "rank_clean_tokens": CONTAMINATED,
    "measure_recovery": CLEAN,
    RAILCAP: CONTAMINATED | {"cell": "railcap"},
    BATCH1: CLEAN | {"cell": "batch1"},
}
DECODING = {"decode_greedy", RAILCAP, BATCH1}
VLLM = {"decoding.engine": "vllm", "strategies.shortcut": None}


def cell(name):
    return CONTAMINATED | {"cell": name}


def parameters(rule, place, overlay=None):
    return json.loads(job_parameters(overlaid(PAPER, overlay or {}), rule.split()[0], place))


def all_parameters(overlay=None):
    config = overlaid(PAPER, overlay or {})
    return {job: job_parameters(config, job.split()[0], place) for job, place in JOBS.items()}


def test_an_edit_of_a_users_own_code_changes_the_jobs_that_run_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("edited_strategy", "edited_rule"):
        (tmp_path / f"{name}.py").write_text("class Mine: ...\n\ndef mine(text): return text\n")
    overlay = {
        "strategies.mine": {"label": "Mine", "class": "edited_strategy:Mine"},
        "benchmarks.gsm8k.extraction": "edited_rule:mine",
    }

    def cells():
        for cached in (meaning.digest, meaning._read):
            cached.cache_clear()
        return [
            parameters("sample_responses", cell(name), overlay)["code"]
            for name in ("mine", "railcap")
        ]

    mine, railcap = cells()
    (tmp_path / "edited_strategy.py").write_text("class Mine:\n    factor = 2\n")
    edited, same = cells()
    assert edited != mine
    assert same == railcap
    (tmp_path / "edited_rule.py").write_text("def mine(text): return text.strip()\n")
    assert cells()[1] != railcap


@pytest.mark.parametrize(
    ("overlay", "changed"),
    [
        ({"strategies.railcap.parameters.n": 6}, {RAILCAP}),
        ({"neuron_localisation.fraction": 0.02}, {"localise_neurons"}),
        ({"sampling.num_samples": 8}, {RAILCAP, BATCH1}),
        ({"training.contaminated": {"num_epochs": 7}}, {"train_lora"}),
        ({"benchmarks.pq.paraphrases.on_invalid": "error"}, {"paraphrase_questions"}),
        (VLLM, DECODING),
        ({"metrics.bins": 5}, set()),
        ({"sampling.num_shards": 3, "neuron_localisation.num_shards": 2}, set()),
        ({"sampling.batch_size": 8}, set()),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_value_reaches_the_jobs_that_use_it_only(overlay, changed):
    before, after = all_parameters(), all_parameters(overlay)
    assert {job for job in JOBS if before[job] != after[job]} == changed


def test_clean_batches_and_strategies_have_the_streams_that_results_depend_on():
    for batch in ("batch1", "batch2"):
        clean = parameters("sample_responses", CLEAN | {"cell": batch})
        assert clean["stream"] == f"clean-{batch}"
        assert clean["strategy"] == {"class": "identity", "parameters": {}}
    strategy = parameters("sample_responses", cell("railcap"))
    assert strategy["stream"] == "strategies"
    assert strategy["strategy"] == {
        "class": "railcap",
        "parameters": {"n": 4, "suppression": "cap"},
    }


def test_only_the_source_in_use_is_a_parameter():
    hub = parameters("fetch_questions", {"owner": "gsm8k"})["questions"]
    assert set(hub) == {"source", "hub"}
    assert hub["hub"]["repository"] == "openai/gsm8k"


def test_only_the_jobs_that_decode_have_an_engine_if_it_is_not_ours():
    for job, place in JOBS.items():
        expected = "vllm" if job in DECODING else None
        if job != "localise_neurons":
            assert parameters(job, place, VLLM).get("engine") == expected, job
        assert "engine" not in parameters(job, place, {"decoding.engine": "zerogap"})
