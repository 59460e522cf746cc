"""The values of jobs, and the digests of their code: what reruns them."""

import json
import os
import re
from pathlib import Path

import pytest
import yaml

from helpers.configurations import PAPER, overlaid
from helpers.paths import ROOT
from zerogap.io import meaning
from zerogap.pipeline import parameters as parameters_module
from zerogap.pipeline import targets
from zerogap.pipeline.parameters import job_parameters, preparation_folder, unrecorded

CONTAMINATED = {"model": "llama2", "variant": "gsm8k"}
CLEAN = {"model": "llama2", "variant": "clean_gsm8k"}
RAILCAP = "sample_responses railcap"
BATCH1 = "sample_responses batch1"
PREPARATION = {"model": "llama2", "preparation": "warm"}
JOBS = {
    "fetch_questions": {"owner": "gsm8k"},
    "split_questions": {"owner": "gsm8k"},
    "prepare_exemplars": {"owner": "gsm8k"},
    "write_questions": {"benchmark": "gsm8k"},
    "paraphrase_questions": {"benchmark": "pq"},
    "prepare_instructions": {},
    "fetch_base": {"model": "llama2"},
    **dict.fromkeys(
        ("draw_questions", "write_preparation_data", "train_preparation", "merge_preparation"),
        PREPARATION,
    ),
    **dict.fromkeys(
        ("write_training_data", "train_lora", "merge_lora", "decode_greedy", "localise_neurons"),
        CONTAMINATED,
    ),
    "write_training_data pq": CONTAMINATED | {"variant": "pq"},
    "write_training_data clean": CLEAN,
    "rank_clean_tokens": CONTAMINATED,
    "measure_recovery": CLEAN,
    RAILCAP: CONTAMINATED | {"cell": "railcap"},
    BATCH1: CLEAN | {"cell": "batch1"},
}
PREPARED = {  # the run's seed is not that of the preparation, which runs share
    "seed": 7,
    "benchmarks.gsm8k.num_preparation": 900,
    "models.llama2.preparation": {
        "name": "warm",
        "benchmark": "gsm8k",
        "training": {"bf16": False},
    },
}
GOLDEN = Path(__file__).with_name("job_parameters.yaml")
DECODING = {"decode_greedy", RAILCAP, BATCH1}
USING_STOP = DECODING | {"localise_neurons", "rank_clean_tokens", "measure_recovery"}
VLLM = {"decoding.engine": "vllm", "strategies.shortcut": None}


def cell(name):
    return CONTAMINATED | {"cell": name}


def parameters(rule, place, overlay=None):
    return json.loads(job_parameters(overlaid(PAPER, overlay or {}), rule.split()[0], place))


def all_parameters(overlay=None):
    config = overlaid(PAPER, PREPARED | (overlay or {}))
    return {job: job_parameters(config, job.split()[0], place) for job, place in JOBS.items()}


def test_every_job_has_the_values_of_the_golden_file():
    golden = yaml.safe_load(GOLDEN.read_text())
    found = {job: json.loads(values) for job, values in all_parameters().items()}
    assert all(values.pop("code") for values in found.values())
    assert found == {job: golden[job] for job in golden if not job.startswith(".")}


def test_an_edit_of_a_users_own_code_changes_the_jobs_that_run_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("edited_strategy", "edited_rule"):
        (tmp_path / f"{name}.py").write_text("class Mine: ...\n\ndef mine(text): return text\n")
    overlay = {
        "strategies.mine": {"label": "Mine", "class": "edited_strategy:Mine"},
        "benchmarks.gsm8k.extraction": "edited_rule:mine",
    }

    def cells():
        for cached in (meaning.digest, meaning._file):
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


def test_weights_overwritten_in_place_change_all_jobs_on_their_base(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    weights = tmp_path / "base/model.safetensors"
    weights.parent.mkdir()
    overlay = {"models.llama2.base": "base"}

    def overwritten(content):
        weights.write_bytes(content)
        os.utime(weights, (0, 0))
        parameters_module._base_digest.cache_clear()
        return all_parameters(overlay)

    before, same, after = map(overwritten, (b"weights", b"weights", b"Weights"))
    assert before == same
    changed = {job for job in JOBS if before[job] != after[job]}
    assert changed == {job for job, place in JOBS.items() if place.get("model") == "llama2"}
    assert len(changed) >= 8
    assert Path(".snakemake/zerogap/digests.json").is_file()


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
        ({"sampling.batch_size": 8, "training.save_steps": 10}, set()),
        ({"benchmarks.gsm8k.stop": ["Q:", "Question:"]}, USING_STOP),
        ({"benchmarks.pq.paraphrases.chat": {"concurrency": 4, "api_key_env": "KEY"}}, set()),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_value_reaches_the_jobs_that_use_it_only(overlay, changed):
    before, after = all_parameters(), all_parameters(overlay)
    assert {job for job in JOBS if before[job] != after[job]} == changed


def test_values_that_are_not_recorded_are_passed_by_the_rules_whose_jobs_have_some():
    config = overlaid(PAPER, PREPARED)
    having = {
        rule
        for rule, place in ((job.split()[0], place) for job, place in JOBS.items())
        if json.loads(unrecorded(config, rule, place))
    }
    rules = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    assert set(re.findall(r'unrecorded=unrecorded\("(\w+)"\)', rules)) == having


def test_a_prepared_base_has_a_folder_per_base_and_values_and_for_all_seeds():
    def folder(change):
        return preparation_folder(overlaid(PAPER, PREPARED | change), "llama2")

    changes = {
        "models.llama2.base": "mine/other",
        "models.llama2.revision": "other",
        "models.llama2.preparation.training.num_epochs": 7,
        "benchmarks.gsm8k.num_preparation": 800,
    }
    folders = [folder({}), *(folder({key: value}) for key, value in changes.items())]
    assert len(set(folders)) == 1 + len(changes)
    assert folder({"seed": 8}) == folders[0]
    # Its own base is a file of the run, unless it is a folder.
    local = {"models.llama2.base": str(ROOT / "workflow/resources/bases/llama2")}
    assert folder({"run": "other"}) != folders[0]
    assert folder(local | {"run": "other"}) == folder(local)


def test_a_converted_base_depends_on_its_file_and_a_fetched_one_on_its_name():
    gguf = {"package": "some-package", "file": ["a.part0", "a.part1"], "end_token": "</s>"}
    overlay, place = {"models.llama2.gguf": gguf}, {"model": "llama2"}
    assert gguf.items() <= parameters("convert_gguf", place, overlay).items()
    changes = [{}, {"file": "b"}, {"package": "other"}, {"end_token": "<eos>"}]
    configs = [overlaid(PAPER, PREPARED | {"models.llama2.gguf": gguf | new}) for new in changes]
    for folder in (targets.unprepared_base, targets.base_model):
        folders = {folder(config, "llama2") for config in configs}
        assert len(folders) == len(changes)
        assert folder(configs[0].model_copy(update={"run": "other"}), "llama2") in folders
    fetched = parameters("fetch_base", place, {"models.llama2.revision": "abc"})
    assert (fetched["repository"], fetched["revision"]) == ("meta-llama/Llama-2-7b-hf", "abc")
