"""The workflow without running it: dry runs of every profile and target, and its conventions."""

import os
import re
import subprocess
import sys

import pytest
import yaml

from helpers import dry_runs
from helpers.dry_runs import ROOT, snakemake
from zerogap.reporting.catalog import FIGURES, TABLES


def jobs(*arguments: str) -> dict[str, int]:
    """Rule → number of jobs of a dry run in which nothing exists yet."""
    return dry_runs.jobs("--forceall", *arguments)


@pytest.mark.parametrize("profile", ["profiles/quick", "slurm", "profiles/workstation"])
def test_every_profile_plans_the_whole_paper(profile):
    planned = jobs("--profile", profile)
    assert planned["adapter"] == planned["model"] == planned["greedy_trajectories"] == 9
    assert planned["clean_samples"] == 6  # three models, two batches
    assert planned["samples"] == 6 * 4 + 5  # four sampled strategies, and the ablation once
    assert planned["filtered_samples"] == planned["all_zero"] == planned["metrics"] == 6
    for target in ("table_main", "table_reversal", "table_decomposition", "table_ablation"):
        assert planned[target] == 1
    for target in ("figure_mechanism", "figure_readout_variance", "claims", "memorisation"):
        assert planned[target] == 1


def test_every_target_can_be_asked_for():
    targets = [
        *(f"table_{name}" for name in TABLES),
        *(f"figure_{name}" for name in FIGURES),
        *("tables", "figures", "check_claims", "check_memorisation", "write_provenance"),
        *("write_report", "pretrain_all_bases"),
    ]
    planned = jobs("--profile", "profiles/quick", "--", *targets)
    assert {target: planned[target] for target in targets} == dict.fromkeys(targets, 1)
    assert planned["make_table"] == len(TABLES)
    assert planned["make_figure"] == len(FIGURES)


def test_one_table_needs_one_setting():
    planned = jobs("table_ablation", "--profile", "profiles/quick")
    assert planned["samples"] == 4 + 5
    assert planned["adapter"] == 2


def test_a_cell_can_be_shared_by_several_jobs(tmp_path):
    (tmp_path / "shards.yaml").write_text("decoding: { shards: 3 }")
    planned = jobs("table_ablation", "--profile", "slurm", "--configfile", tmp_path / "shards.yaml")
    assert planned["samples"] == 3 * (4 + 5)
    assert planned["clean_samples"] == 3 * 2
    assert planned["merged_samples"] == 4 + 5 + 2


SUBMITTED = {
    "adapter", "clean_samples", "filtered_samples", "greedy_trajectories", "lora_data",
    "merged_samples", "metrics", "model", "neurons", "overlap", "pretrained_base", "ranks",
    "samples",
}  # fmt: skip


def test_all_but_the_heavy_rules_run_where_snakemake_runs():
    """`use rule … with` passes `localrule` on to no derived rule: the Snakefile has to name it."""
    texts = [path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk")]
    blocks = [
        block
        for text in [*texts, (ROOT / "Snakefile").read_text()]
        for block in re.split(r"(?m)^ *(?=rule |use rule )", text)
    ]
    named = {}
    for block in blocks:
        if found := re.match(r"(?:use rule \w+ as|rule) (\w+)", block):
            named[found.group(1)] = block
    listed = re.search(r"(?m)^localrules:\n((?: .*\n)+)", (ROOT / "Snakefile").read_text())
    local = set(re.findall(r"\w+", listed.group(1)))
    local |= {name for name, block in named.items() if "localrule:" in block}
    collecting = {name for name, block in named.items() if not re.search("shell:|use rule", block)}
    assert local <= set(named)
    assert set(named) - local - collecting == SUBMITTED


def test_the_commented_values_of_the_slurm_profile_are_valid(tmp_path):
    """What a user uncomments: every GPU rule in a partition of its own."""
    text = (ROOT / "profiles/slurm/config.yaml").read_text()
    text = re.sub(r"(?m)^( *)# ( *[\w-]+:)", r"\1\2", text)
    (tmp_path / "config.yaml").write_text(text)
    asking = {name for name, block in rules().items() if "gpu=" in block}
    wanted = {"slurm_partition": "gpu", "gpu_model": "a100"}
    assert {"slurm_account", "slurm_partition"} <= set(yaml.safe_load(text)["default-resources"])
    assert yaml.safe_load(text)["set-resources"] == dict.fromkeys(asking, wanted)
    jobs("table_main", "--profile", tmp_path)


def test_a_base_can_be_pretrained_in_the_dag(tmp_path):
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text(
        "models: { llama2: { base: pretrained, pretraining: { gsm8k: config.yaml } } }"
    )
    planned = jobs(
        "results/quick/llama2/clean/model",
        *("--profile", "profiles/quick"),
        *("--configfile", "profiles/quick/quick.yaml", str(overlay)),
    )
    assert planned["pretrained_base"] == planned["split"] == planned["adapter"] == 1
    assert "base_model" not in planned


def test_pretraining_needs_to_be_configured():
    done = snakemake("-n", "pretrain_bases")
    assert done.returncode != 0
    assert "pretraining is missing" in done.stdout + done.stderr


def test_linter():
    done = snakemake("--lint")
    assert done.returncode == 0, done.stdout + done.stderr


def rules() -> dict[str, str]:
    """Rule → its text, of those that run something."""
    found = {}
    for path in (ROOT / "workflow/rules").glob("*.smk"):
        for block in re.split(r"(?m)^(?=rule |use rule )", path.read_text())[1:]:
            if "shell:" in block:
                found[re.match(r"rule (\w+)", block).group(1)] = block
    return found


@pytest.mark.parametrize("name", rules())
def test_every_rule_logs_says_what_it_makes_and_asks_for_resources(name):
    text = rules()[name]
    for part in ("message:", "log:", "resources:", "mem_mb=", "runtime=", "conda:", "> {log} 2>&1"):
        assert part in text, f"rule {name} lacks {part}"
    if "gpu=" in text:
        assert "benchmark:" in text


def test_every_figure_and_table_has_a_caption():
    text = (ROOT / "workflow/rules/report.smk").read_text()
    for caption in re.findall(r'caption="\.\./report/(\w+\.rst)"', text):
        assert (ROOT / "workflow/report" / caption).read_text().strip()


def test_no_profile_is_called_default():
    """It would be loaded on top of every other and win."""
    assert not (ROOT / "profiles/default").exists()
    assert (ROOT / "slurm").resolve() == ROOT / "profiles/slurm"


def test_no_metric_loads_torch():
    code = (
        "import sys, zerogap.metrics, zerogap.metrics.evaluate; assert 'torch' not in sys.modules"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT / "workflow")}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "profiles").glob("*/config.yaml")), ids=lambda path: path.parent.name
)
def test_profiles_name_rules_that_exist_and_comment_every_entry(path):
    text = path.read_text()
    profile = yaml.safe_load(text)
    for part in ("set-threads", "set-resources"):
        assert set(profile.get(part, {})) <= set(rules())
    for name in profile:
        place = text.index(f"\n{name}:")
        line = text[place + 1 :].split("\n")[0]
        above = text[:place].split("\n")[-1]
        assert "#" in line or above.lstrip().startswith("#"), f"{path}: {name} has no comment"
