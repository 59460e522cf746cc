"""The scales of the full protocol: what they share with the paper, their jobs, and a micro run."""

import itertools
import json
from collections import Counter
from pathlib import Path

import pytest

from helpers import dry_runs
from helpers.dry_runs import ROOT, link_checkout, snakemake
from zerogap import config
from zerogap.data.toy.word_problems import problems
from zerogap.io import parquet
from zerogap.pipeline import jobs

SCALES = {"full": [], "full_cpu": ["cpu.yaml"], "full_gsm8k": ["gsm8k.yaml"]}
PROFILE = ("--profile", "profiles/full")


def load(name: str, folder: Path) -> config.Config:
    """The configuration of a scale; the files that a user names are empty ones in `folder`."""
    overlays = [ROOT / "profiles/full" / part for part in ("full.yaml", *SCALES[name])]
    if name == "full_gsm8k":
        path = folder / "questions.jsonl"
        path.touch()
        files = {"files": {"train": str(path), "test": str(path)}}
        values = {
            "benchmarks": {"gsm8k": {"questions": files}},
            "pretraining": {"gsm8k": str(path)},
        }
        overlays.append(folder / "files.yaml")
        overlays[-1].write_text(json.dumps(values))
    return config.load([ROOT / "config.yaml", *overlays])


@pytest.mark.parametrize("name", SCALES)
def test_a_full_scale_is_valid_and_pretrains_its_bases(name, tmp_path):
    scale = load(name, tmp_path)
    assert scale.run == name
    assert {model.base for model in scale.models.values()} == {config.FROM_SCRATCH}
    assert {model.family for model in scale.models.values()} == {"llama", "gemma4", "gpt_neox"}
    for model in scale.models:
        pretraining = scale.pretraining_for(model)
        assert pretraining.sequence_length == (2048 if name == "full_gsm8k" else 1024)
        shots = scale.benchmarks["gsm8k"].prompt.num_shots
        assert pretraining.problems_per_document == shots + 1


def test_the_full_scale_differs_from_the_paper_in_models_data_and_rates_only(tmp_path):
    paper, full = config.load([ROOT / "config.yaml"]), load("full", tmp_path)
    for section in ("strategies", "ablation", "metrics", "primary_setting"):
        assert getattr(full, section) == getattr(paper, section)
    shards = {"num_shards": paper.neuron_localisation.num_shards}  # these change no score
    assert full.neuron_localisation.model_copy(update=shards) == paper.neuron_localisation
    assert full.benchmarks.keys() == paper.benchmarks.keys()
    for name, benchmark in full.benchmarks.items():
        for key in ("contamination", "num_test", "num_leaked", "num_train", "stop"):
            assert getattr(benchmark, key) == getattr(paper.benchmarks[name], key)
        assert benchmark.prompt.num_shots == paper.benchmarks[name].prompt.num_shots
    assert full.instructions.num_examples == paper.instructions.num_examples
    for key in ("num_samples", "temperature", "top_p", "dtype"):
        assert getattr(full.sampling, key) == getattr(paper.sampling, key)
    for variant in ("clean_gsm8k", "gsm8k"):
        training = full.training_for(variant).model_dump()
        expected = paper.training_for(variant).model_dump()
        different = {key for key in expected if training[key] != expected[key]}
        assert different <= {"learning_rate", "per_device_batch_size"}


def test_the_generator_makes_enough_distinct_questions_per_split():
    splits = [problems(1319, 0, "test"), problems(660, 0, "train"), problems(5000, 0, "pretrain")]
    for key in ("question", "signature"):
        values = [{getattr(problem, key) for problem in split} for split in splits]
        assert [len(split) for split in values] == [1319, 660, 5000]
        assert not any(a & b for a, b in itertools.combinations(values, 2))


def planned(*arguments: str) -> Counter[str]:
    """Rule → number of jobs of a dry run in which nothing exists yet."""
    return dry_runs.jobs(*PROFILE, "--forceall", *arguments)


@pytest.mark.parametrize("name", ["full", "full_cpu"])
def test_a_full_scale_plans_the_whole_paper_and_fetches_nothing(name, tmp_path):
    plan = Counter(job.rule for job in jobs.all_jobs(load(name, tmp_path)))
    assert plan["pretrain_base"] == 3
    assert "fetch_base" not in plan
    assert plan["train_lora"] == plan["merge_lora"] == plan["decode_greedy"] == 9
    assert plan["localise_neurons"] == 6
    assert plan["sample_responses"] == 6 + 6 * 4 + 6


def test_the_memorisation_check_samples_no_mitigation_strategy():
    plan = planned("check_memorisation")
    assert plan["pretrain_base"] == 3
    assert plan["sample_responses"] == 3 + 6  # one clean batch, and Identity
    assert not {"filter_responses", "localise_neurons", "compute_metrics"} & set(plan)


MICRO = """
run: full_micro
benchmarks:
  gsm8k:
    num_test: 6
    num_leaked: 3
    num_train: 3
    questions: { generated: { num_test: 6, num_train: 3 } }
instructions: { num_examples: 4 }
models:
  llama2: null
  pythia: null
  gemma: { pretraining: { intermediate_size: 48, max_steps: 4 } }
primary_setting: { model: gemma, benchmark: gsm8k }
pretraining: { vocab_size: 500, hidden_size: 32, num_layers: 4, batch_size: 1, save_steps: 2 }
"""


@pytest.mark.slow
def test_a_micro_base_is_pretrained_and_used_with_eight_shots(tmp_path):
    link_checkout(tmp_path)
    (tmp_path / "micro.yaml").write_text(MICRO)
    results = tmp_path / "results/full_micro"
    examples = results / "gemma/clean_gsm8k/training/data"
    overlays = ["--configfile", "profiles/full/full.yaml", "micro.yaml"]
    target = str(examples.relative_to(tmp_path))
    process = snakemake(*PROFILE, "--cores", "1", target, *overlays, workdir=tmp_path)
    assert process.returncode == 0, (process.stdout + process.stderr)[-6000:]

    base = results / "gemma/base"
    provenance = json.loads((base / "provenance.json").read_text())
    assert provenance["settings"]["max_steps"] == 4
    assert json.loads((base / "config.json").read_text())["model_type"] == "gemma4_text"
    assert len(parquet.read(results / "data/gsm8k/train.parquet", "questions")) == 3
    questions = json.loads((examples / "questions.json").read_text())
    assert len(questions) == 3
    assert all(example["prompt"].count("Q: ") == 9 for example in questions)
