"""Dry runs of every profile and target, and the conventions of the rules and their scripts."""

import re
from collections import Counter

import pytest
import yaml

from helpers import dry_runs
from helpers.paths import ROOT
from helpers.scripts import python
from helpers.workflow_rules import derived_rule_texts, rule_texts
from zerogap.pipeline.report.figures import FIGURES
from zerogap.pipeline.report.tables import TABLES

QUICK = ("--profile", "profiles/quick")


def jobs(*arguments: str) -> Counter[str]:
    """Rule → number of jobs of a dry run in which nothing exists yet."""
    return dry_runs.jobs("--forceall", *map(str, arguments))


def test_every_target_and_every_documented_one_can_be_requested():
    page = (ROOT / "docs/workflow.md").read_text()
    documented = page.partition("\n## Targets\n")[2].partition("\n\nA table needs")[0]
    targets = {
        *(f"table_{name}" for name in TABLES),
        *(f"figure_{name}" for name in FIGURES),
        *re.findall(r"`([a-z_]+)`", documented),
    }
    assert len(targets) > len(TABLES) + len(FIGURES)
    planned = jobs(*targets, *QUICK)
    assert {target: planned[target] for target in targets} == dict.fromkeys(targets, 1)


@pytest.mark.parametrize(
    ("target", "some", "none"),
    [
        # Not the ablation.
        (
            "table_main",
            {"sample_responses": 3 * 2 + 6 * 4, "filter_responses": 6, "compute_metrics": 6},
            ["compute_ablation_metrics", "rank_clean_tokens", "measure_overlap", "make_figure"],
        ),
        # That of one setting.
        ("table_ablation", {"sample_responses": 4 + 7 + 2, "train_lora": 2}, []),
        (
            "figure_mechanism",
            {"sample_responses": 1, "measure_overlap": 1, "rank_clean_tokens": 1},
            ["compute_metrics", "localise_neurons"],
        ),
        ("figure_readout_variance", {"sample_responses": 2, "train_lora": 1}, []),
        # The verbatim benchmark waits for no paraphrases, and a clean model for no benchmark.
        (
            "results/quick/llama2/gsm8k/model",
            {"train_lora": 2, "write_questions": 1},
            ["paraphrase_questions"],
        ),
        (
            "results/quick/llama2/clean_gsm8k/cells/batch1/samples.parquet",
            {"sample_responses": 1},
            ["paraphrase_questions", "write_questions"],
        ),
    ],
)
def test_a_target_needs_its_own_jobs_only(target, some, none):
    planned = jobs(target, *QUICK)
    assert {name: planned[name] for name in some} == some
    assert not planned.keys() & set(none)


SUBMITTED = {
    "compute_metrics", "convert_gguf", "decode_greedy", "filter_responses", "localise_neurons",
    "measure_overlap",
    "measure_recovery", "merge_lora", "merge_neurons", "merge_shards",
    "rank_clean_tokens", "replay_rail", "sample_responses", "train_lora",
    "write_training_data",
}  # fmt: skip


def test_all_but_the_heavy_rules_run_where_snakemake_runs():
    local = {name for name, text in rule_texts().items() if "localrule: True" in text}
    assert rule_texts().keys() - local == SUBMITTED


def test_the_commented_values_of_the_slurm_profile_are_valid(tmp_path):
    """What a user uncomments: a partition for every GPU rule."""
    text = (ROOT / "profiles/slurm/config.yaml").read_text()
    text = re.sub(r"(?m)^( *)# ( *[\w-]+:)", r"\1\2", text)
    (tmp_path / "config.yaml").write_text(text)
    gpu_rules = {
        name for name, block in (rule_texts() | derived_rule_texts()).items() if "gpu=" in block
    }
    values = {"slurm_partition": "gpu", "gpu_model": "a100"}
    profile = yaml.safe_load(text)
    assert {"slurm_account", "slurm_partition"} <= set(profile["default-resources"])
    assert profile["set-resources"] == dict.fromkeys(gpu_rules, values)
    jobs("table_main", "--profile", str(tmp_path))


@pytest.mark.parametrize("name", rule_texts())
def test_every_rule_has_the_name_of_its_script_a_log_a_message_and_resources(name):
    text = rule_texts()[name]
    assert name == "write_report" or set(re.findall(r"scripts/(\w+)\.py", text)) == {name}
    assert re.findall(r"runtime=(\w+)", text) in (["minutes"], [])  # up to max_runtime
    assert "message:" in text
    assert "log:" in text
    assert "conda:" in text
    if "localrule: True" not in text:  # the others are submitted to a cluster
        assert re.search(r"(?s)resources:.*mem_mb=.*runtime=", text)
    assert "> {log:q} 2>&1" in text or "script:" in text
    if "gpu=" in text:
        assert "benchmark:" in text
    assert ("nodes=1" in text) == ("num_gpus_used" in text)


def test_everything_up_to_the_trajectories_runs_first():
    files = ("data", "bases", "preparation", "train")
    text = "".join((ROOT / f"workflow/rules/{name}.smk").read_text() for name in files)
    first = {name for name, rule in rule_texts().items() if "priority: TRAJECTORIES_FIRST" in rule}
    assert first == {"decode_greedy", *(n for n in rule_texts() if f"rule {n}:" in text)}


@pytest.mark.parametrize(
    "path", sorted((ROOT / "profiles").glob("*/config.yaml")), ids=lambda path: path.parent.name
)
def test_profiles_name_existing_rules(path):
    profile = yaml.safe_load(path.read_text())
    for part in ("set-threads", "set-resources"):
        assert set(profile.get(part, {})) <= {*rule_texts(), *derived_rule_texts()}


GPU_SCRIPTS = sorted(
    path.stem
    for path in (ROOT / "workflow/scripts").glob("*.py")
    if re.search(r"gpus\.claim\(|on_gpu=True", path.read_text()) and path.stem != "script_helpers"
)


def test_exactly_the_rules_with_gpus_run_scripts_that_claim_them():
    scripts = {
        re.search(r"scripts/(\w+)\.py", rule).group(1)
        for rule in rule_texts().values()
        if "gpu=" in rule
    }
    assert scripts == set(GPU_SCRIPTS)


def test_importing_a_script_does_not_initialise_cuda():
    """CUDA would not read CUDA_VISIBLE_DEVICES again."""
    code = f"""
import torch
def refuse(*_): raise AssertionError("CUDA is initialised at import")
torch.cuda.is_available = torch.cuda.device_count = torch.cuda._lazy_init = refuse
import {", ".join(GPU_SCRIPTS)}
"""
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
