"""The full protocol's scales: what they keep of the paper, what they plan, and a micro run."""

import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from helpers.paths import ROOT
from zerogap import config
from zerogap.data.toy.word_problems import problems
from zerogap.io import parquet

SNAKEMAKE = Path(sys.executable).with_name("snakemake")
SCALES = {"full": [], "full_cpu": ["cpu.yaml"], "full_gsm8k": ["gsm8k.yaml"]}


def merged(base: dict, overlay: dict) -> dict:
    """A configuration with an overlay on it, as Snakemake lays it."""
    return base | {
        key: merged(base[key], value)
        if isinstance(value, dict) and isinstance(base.get(key), dict)
        else value
        for key, value in overlay.items()
    }


def scale(name: str, files: Path | None = None) -> dict:
    made = yaml.safe_load((ROOT / "config.yaml").read_text())
    for overlay in ["full.yaml", *SCALES[name]]:
        made = merged(made, yaml.safe_load((ROOT / "profiles/full" / overlay).read_text()))
    if made["data"]["source"] == "files":
        made["data"]["files"] = dict.fromkeys(("train", "test"), str(files))
        made["pretraining"]["gsm8k"] = str(files)
    return made


@pytest.mark.parametrize("name", SCALES)
def test_the_scale_is_valid_and_has_bases_of_its_own(name, tmp_path):
    (tmp_path / "questions.jsonl").touch()
    made = scale(name, tmp_path / "questions.jsonl")
    config.validate(made)
    assert made["run"] == name
    assert {model["base"] for model in made["models"].values()} == {"pretrained"}
    assert {model["family"] for model in made["models"].values()} == {"llama", "gemma4", "gpt_neox"}
    for model in made["models"]:
        sizes = config.pretraining(made, model)
        longest = 1024 if name != "full_gsm8k" else 2048
        assert sizes["sequence_length"] == longest
        assert sizes["problems"] == made["prompt"]["shots"] + 1


def test_the_full_scale_is_the_papers_but_for_models_data_and_rates():
    paper = yaml.safe_load((ROOT / "config.yaml").read_text())
    full = scale("full")
    for part in ("benchmarks", "strategies", "ablation", "metrics", "setting", "localisation"):
        assert full[part] == paper[part]
    for key in ("n_test", "n_leaked", "n_train"):
        assert full["data"][key] == paper["data"][key]
    assert full["data"]["instructions"]["n"] == paper["data"]["instructions"]["n"]
    assert full["prompt"]["shots"] == paper["prompt"]["shots"]
    for key in ("samples", "temperature", "top_p", "dtype", "stop"):
        assert full["decoding"][key] == paper["decoding"][key]
    for kind in ("clean", "gsm8k"):
        found, wanted = config.stage(full, kind), config.stage(paper, kind)
        different = {key for key in wanted if found[key] != wanted[key]}
        assert different <= {"learning_rate", "per_device_batch_size"}


def test_the_generator_has_the_questions_and_keeps_the_splits_apart():
    splits = [problems(1319, 0, "test"), problems(660, 0, "train"), problems(5000, 0, "pretrain")]
    for key in ("question", "signature"):
        found = [{getattr(problem, key) for problem in split} for split in splits]
        assert [len(one) for one in found] == [1319, 660, 5000]
        assert not any(a & b for a, b in itertools.combinations(found, 2))


def run(*arguments: str, folder: Path = ROOT) -> str:
    done = subprocess.run(
        [SNAKEMAKE, "--profile", "profiles/full", *arguments],
        cwd=folder,
        env=os.environ | {"PATH": f"{SNAKEMAKE.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return done.stdout + done.stderr


def planned(*arguments: str) -> dict[str, int]:
    """Rule → number of jobs of a dry run in which nothing exists yet."""
    text = run("-n", "--forceall", *arguments).split("Job stats:")[1].split("total")[0]
    return {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", text, re.M)}


@pytest.mark.parametrize("name", ["full", "full_cpu"])
def test_it_plans_the_whole_paper_from_the_bases_on(name):
    overlays = [f"profiles/full/{part}" for part in ("full.yaml", *SCALES[name])]
    jobs = planned("--configfile", *overlays)
    assert jobs["pretrained_base"] == 3
    assert "base_model" not in jobs  # nothing is fetched
    assert jobs["adapter"] == jobs["model"] == jobs["greedy_trajectories"] == 9
    assert jobs["neurons"] == 6
    assert jobs["clean_samples"] + jobs["samples"] == 6 + 6 * 4 + 5
    assert jobs["memorisation"] == jobs["claims"] == 1


def test_the_pilot_samples_no_mitigation():
    jobs = planned("memorisation")
    assert jobs["pretrained_base"] == 3
    assert jobs["clean_samples"] == 3
    assert jobs["samples"] == 6  # Identity
    assert not {"filtered_samples", "neurons", "metrics"} & set(jobs)


MICRO = """
run: full_micro
data: { n_test: 6, n_leaked: 3, n_train: 3, instructions: { n: 4 } }
models: { llama2: null, pythia: null, gemma: { pretraining: { feed_forward: 48, steps: 4 } } }
setting: { model: gemma, benchmark: gsm8k }
pretraining: { vocabulary: 500, width: 32, layers: 4, batch_size: 1, checkpoints: 2 }
"""


@pytest.mark.slow
def test_a_micro_base_is_pretrained_and_read_behind_eight_shots(tmp_path):
    for name in ("Snakefile", "config.yaml", "workflow", "profiles", "envs"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "micro.yaml").write_text(MICRO)
    results = tmp_path / "results/full_micro"
    examples = results / "gemma/clean/training/data"
    overlays = ["--configfile", "profiles/full/full.yaml", "micro.yaml"]
    run("--cores", "1", str(examples.relative_to(tmp_path)), *overlays, folder=tmp_path)

    base = results / "gemma/base"
    made = json.loads((base / "provenance.json").read_text())
    assert made["settings"]["steps"] == 4
    assert json.loads((base / "config.json").read_text())["model_type"] == "gemma4_text"
    assert len(parquet.read(results / "data/train.parquet", "questions")) == 3
    written = json.loads((examples / "questions.json").read_text())
    assert len(written) == 3
    assert all(example["prompt"].count("Q: ") == 9 for example in written)
