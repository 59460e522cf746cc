"""The jobs that each scale plans: by hand, by a dry run, by `zerogap plan`; SmolLM2's scales."""

import json
import re
from collections import Counter

import pytest

from helpers import dry_runs
from helpers.paths import ROOT
from zerogap import config
from zerogap.pipeline import jobs, parameters, targets
from zerogap.pipeline.report.figures import FIGURES
from zerogap.pipeline.report.sources import JOB_COSTS
from zerogap.pipeline.report.tables import TABLES

COSTLY = {
    "fetch_base", "convert_gguf", "train_preparation", "merge_preparation", "train_lora",
    "merge_lora", "decode_greedy", "sample_responses", "localise_neurons", "rank_clean_tokens",
    "measure_recovery",
}  # fmt: skip
REPORT = {
    "make_table": len(TABLES), "make_figure": len(FIGURES), "check_claims": 1,
    "write_provenance": 1, "write_index": 1,
}  # fmt: skip
# Three clean models with two batches, four sampled strategies per setting, the ablation once.
PAPER = REPORT | {
    **dict.fromkeys(("train_lora", "merge_lora", "decode_greedy"), 9),
    "sample_responses": 3 * 2 + 6 * 4 + 7, "filter_responses": 6 + 1, "measure_recovery": 3,
    **dict.fromkeys(("compute_metrics", "make_all_zero", "replay_rail"), 6),
    "compute_ablation_metrics": 1,
}  # fmt: skip
SMOLLM2 = REPORT | {
    **dict.fromkeys(("convert_gguf", "train_preparation", "merge_preparation"), 1),
    "train_lora": 3,  # clean, contaminated, paraphrased
}
PQ_ALONE = """
benchmarks:
  gsm8k: null
  pq:
    file: workflow/benchmarks/toy_gsm8k.yaml
    label: PQ
    questions_of: null
    contamination: paraphrase
    paraphrases: { method: rules, on_invalid: error }
primary_setting: { benchmark: pq }
"""
TWO_OWNERS = """
benchmarks:
  riddles: { file: workflow/benchmarks/toy_gsm8k.yaml, label: Riddles, num_leaked: 10 }
  riddles_pq: { file: workflow/benchmarks/toy_pq.yaml, label: Riddles PQ, questions_of: riddles }
  pq: null
models: { gemma: null, pythia: null }
sampling: { num_shards: 3 }
"""
QUICK, SMOLLM2_FILE = "profiles/quick/quick.yaml", "profiles/smollm2/smollm2.yaml"
# name → profile, its overlays, a further one, and the number of jobs of some rules
SCALES = {
    "slurm": ("slurm", [], "{}", PAPER),
    "quick": ("quick", [QUICK], "{}", PAPER | {"paraphrase_questions": 1}),
    "workstation": ("workstation", ["profiles/workstation/workstation.yaml"], "{}", PAPER),
    "smollm2": (
        "smollm2", [SMOLLM2_FILE, "profiles/smollm2/gsm_symbolic.yaml"], "{}",
        SMOLLM2,
    ),
    "PQ alone": (
        "quick", [QUICK], PQ_ALONE,
        REPORT | {
            "train_lora": 3 * 2, "compute_metrics": 3, "paraphrase_questions": 1,
            "sample_responses": 3 * (2 + 4) + 7,
        },
    ),
    # Data and clean models of their own; a contaminated model per benchmark.
    "two owners, in shards": (
        "quick", [QUICK], TWO_OWNERS,
        {
            **dict.fromkeys(("fetch_questions", "split_questions", "prepare_exemplars"), 2),
            "prepare_instructions": 1, "write_questions": 3, "paraphrase_questions": 1,
            "train_lora": 2 + 3, "sample_responses": 3 * (2 * 2 + 3 * 4 + 7),
            "merge_shards": 2 * 2 + 3 * 4 + 7, "compute_metrics": 3,
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCALES)
def test_the_plan_counts_the_jobs_that_snakemake_plans(name, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    profile, overlays, further, expected = SCALES[name]
    path = tmp_path / "overlay.yaml"
    path.write_text(further)
    files = [*overlays, path]
    arguments = [] if name in ("slurm", "quick") else ["--configfile", *files]
    planned = dry_runs.jobs("--forceall", "--profile", f"profiles/{profile}", *arguments)
    assert {rule: planned[rule] for rule in expected} == expected
    counts = Counter(job.rule for job in jobs.costly_jobs(config.load(["config.yaml", *files])))
    assert counts == {rule: count for rule, count in planned.items() if rule in COSTLY}


PROFILE = ROOT / "profiles/smollm2"


@pytest.fixture
def scales(tmp_path):
    """Name of the source → overlays of the scale; GSM8K's files are empty ones."""
    path = tmp_path / "questions.jsonl"
    path.touch()
    files = {"files": {"train": str(path), "test": str(path)}}
    overlay = tmp_path / "files.json"
    overlay.write_text(json.dumps({"benchmarks": {"gsm8k": {"questions": files}}}))
    shared = PROFILE / "smollm2.yaml"
    return {
        "gsm_symbolic": [shared, PROFILE / "gsm_symbolic.yaml"],
        "gsm8k": [shared, PROFILE / "gsm8k.yaml", overlay],
    }


@pytest.mark.parametrize("source", ["gsm_symbolic", "gsm8k"])
def test_the_clean_model_and_shortcut_start_from_the_prepared_base(scales, source):
    scale = config.load([ROOT / "config.yaml", *scales[source]])
    [owner] = scale.question_owners
    prepared = targets.base_model(scale, "smollm2")
    assert re.fullmatch(rf"results/bases/smollm2/{source}-[0-9a-f]{{8}}/model", prepared)
    assert targets.starting_model(scale, "smollm2", f"clean_{owner}") == prepared
    shortcut = targets.strategy_inputs(scale, "smollm2", owner, "shortcut")
    assert shortcut["base_model"] == prepared


def test_a_base_that_is_no_gguf_file_is_not_converted(scales, tmp_path):
    overlay = tmp_path / "other.yaml"
    base = {"label": "Other", "base": "workflow/resources/bases/llama2", "revision": None}
    overlay.write_text(json.dumps({"models": {"other": base}}))
    scale = config.load([ROOT / "config.yaml", *scales["gsm_symbolic"], overlay])
    for model, status in (("smollm2", 0), ("other", 1)):
        folder = f"results/bases/{model}/{parameters.converted_folder(scale, 'smollm2')}"
        files = ("--configfile", *scales["gsm_symbolic"], overlay, "--", folder)
        process = dry_runs.snakemake("--cores", "1", "-n", *files)
        assert process.returncode == status, process.stderr
    assert "No rule to produce results/bases/other" in process.stdout


def test_strategies_and_lora_are_those_of_the_paper(scales):
    paper = config.load([ROOT / "config.yaml"])
    for overlays in scales.values():
        scale = config.load([ROOT / "config.yaml", *overlays])
        for section in ("strategies", "metrics"):
            assert getattr(scale, section) == getattr(paper, section)
        assert paper.ablation.items() <= scale.ablation.items()
        for key in ("num_samples", "temperature", "top_p", "dtype"):
            assert getattr(scale.sampling, key) == getattr(paper.sampling, key)
        for kind in ("clean", "contaminated"):
            training, published = (getattr(c.training, kind) for c in (scale, paper))
            for key in ("lora", "learning_rate", "lr_scheduler", "warmup_ratio", "bf16"):
                assert getattr(training, key) == getattr(published, key)


def test_the_preparation_counts_in_the_cost_of_a_run(scales):
    scale = config.load([ROOT / "config.yaml", *scales["gsm8k"]])
    job, training, *_ = JOB_COSTS.locate(scale)
    assert [job["name"], training["name"]] == ["train_preparation", "train_lora"]
    assert (job["model"], job["variant"]) == ("smollm2", "")
    folder = parameters.preparation_folder(scale, "smollm2")
    assert job["timings"] == [f"results/bases/timings/smollm2/{folder}/train_preparation.tsv"]
