"""Dry runs of every profile and target, and the conventions of the rules."""

import re
from collections import Counter

import pytest
import yaml

from helpers import dry_runs
from helpers.dry_runs import ROOT, snakemake
from helpers.workflow_rules import derived_rule_texts, rule_texts
from zerogap.pipeline.report.figures import FIGURES
from zerogap.pipeline.report.tables import TABLES

QUICK = ("--profile", "profiles/quick")


def jobs(*arguments: str) -> Counter[str]:
    """Rule → number of jobs of a dry run in which nothing exists yet."""
    return dry_runs.jobs("--forceall", *map(str, arguments))


@pytest.mark.parametrize("profile", ["profiles/quick", "slurm", "profiles/workstation"])
def test_every_profile_plans_the_whole_paper(profile):
    planned = jobs("--profile", profile)
    assert planned["train_lora"] == planned["merge_lora"] == planned["decode_greedy"] == 9
    # Three clean models with two batches, four sampled strategies per setting, the ablation once.
    assert planned["sample_responses"] == 3 * 2 + 6 * 4 + 7
    assert planned["filter_responses"] == 6 + 1
    assert planned["compute_metrics"] == planned["make_all_zero"] == planned["replay_rail"] == 6
    assert planned["compute_ablation_metrics"] == 1
    assert planned["measure_recovery"] == 3
    assert planned["make_table"] == len(TABLES)
    assert planned["make_figure"] == len(FIGURES)
    assert planned["check_claims"] == 1


CHECKS = ("check_claims", "write_provenance", "write_index")
COLLECTIONS = ("tables", "figures", "write_report")


def test_every_target_can_be_requested():
    targets = [
        *(f"table_{name}" for name in TABLES),
        *(f"figure_{name}" for name in FIGURES),
        *CHECKS,
        *COLLECTIONS,
    ]
    planned = jobs(*targets, *QUICK)
    assert {target: planned[target] for target in targets} == dict.fromkeys(targets, 1)


def test_table_3_does_not_wait_for_the_ablation():
    process = snakemake("-n", "--forceall", *QUICK, "--quiet", "host", "--", "table_main")
    planned = process.stdout + process.stderr
    sampled = re.findall(r"Responses of \w+/\w+, (\w+)", planned)
    filtered = re.findall(r"Responses of \S+ that pass (\w+)", planned)
    contaminated = {"identity", "shortcut", "lne_blocking", "railcap"}
    assert set(sampled) == contaminated | {"batch1", "batch2"}
    assert set(filtered) == {"ted"}
    assert "Metrics of the ablation" not in planned


@pytest.mark.parametrize(
    ("target", "some", "none"),
    [
        # That of one setting.
        ("table_ablation", {"sample_responses": 4 + 7 + 2, "train_lora": 2}, []),
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


@pytest.mark.parametrize(
    ("selection", "models", "benchmarks"),
    [
        ("models={pythia: null}", 2, 2),
        ("models={llama2: null}", 2, 2),
        ("benchmarks={pq: null}", 3, 1),
        ("benchmarks={gsm8k: null}", 3, 1),
    ],
)
def test_a_run_of_some_models_or_benchmarks_makes_everything(
    selection, models, benchmarks, tmp_path
):
    """The primary setting and, for PQ alone, the questions have to be named."""
    overlay = {"models={llama2: null}": "primary_setting: { model: gemma }"}
    overlay["benchmarks={gsm8k: null}"] = PQ_ALONE
    (tmp_path / "overlay.yaml").write_text(overlay.get(selection, "{}"))
    files = ("--configfile", "profiles/quick/quick.yaml", tmp_path / "overlay.yaml")
    planned = jobs(*QUICK, *files, "--config", selection)
    assert planned["make_table"] == len(TABLES)
    assert planned["make_figure"] == len(FIGURES)
    assert all(planned[check] == 1 for check in CHECKS)
    assert planned["train_lora"] == models * (1 + benchmarks)
    assert planned["compute_metrics"] == models * benchmarks
    assert planned["sample_responses"] == models * (2 + 4 * benchmarks) + 7
    assert planned["paraphrase_questions"] == ("pq: null" not in selection)


PQ_ALONE = """
benchmarks:
  pq:
    file: workflow/benchmarks/toy_gsm8k.yaml
    label: PQ
    questions_of: null
    contamination: paraphrase
    paraphrases: { method: rules, on_invalid: error }
primary_setting: { benchmark: pq }
"""


TWO_BENCHMARKS = """
benchmarks:
  riddles: { file: workflow/benchmarks/toy_gsm8k.yaml, label: Riddles, num_leaked: 10 }
  riddles_pq: { file: workflow/benchmarks/toy_pq.yaml, label: Riddles PQ, questions_of: riddles }
  pq: null
models: { gemma: null, pythia: null }
"""


def test_independent_benchmarks_have_their_own_data_and_clean_models(tmp_path):
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text(TWO_BENCHMARKS)
    arguments = ["--configfile", "profiles/quick/quick.yaml", overlay, "--", "tables"]
    planned = jobs(*QUICK, *arguments)
    assert planned["fetch_questions"] == planned["split_questions"] == 2
    assert planned["prepare_exemplars"] == 2
    assert planned["prepare_instructions"] == 1
    assert planned["write_questions"] == 3
    assert planned["paraphrase_questions"] == 1
    # Two clean models, and a contaminated one per benchmark.
    assert planned["train_lora"] == 2 + 3
    assert planned["sample_responses"] == 2 * 2 + 3 * 4 + 7
    assert planned["compute_metrics"] == 3

    process = snakemake("-n", "-p", "--forceall", "--cores", "1", *arguments)
    trainings = re.findall(
        r"train_lora\.py .*--base (\S+) .*--adapter results/quick/llama2/(\w+)/training",
        process.stdout + process.stderr,
    )
    assert {variant: base for base, variant in trainings} == {
        "clean_gsm8k": "workflow/resources/bases/llama2",
        "clean_riddles": "workflow/resources/bases/llama2",
        "gsm8k": "results/quick/llama2/clean_gsm8k/model",
        "riddles": "results/quick/llama2/clean_riddles/model",
        "riddles_pq": "results/quick/llama2/clean_riddles/model",
    }


def test_a_cell_can_be_split_into_shards(tmp_path):
    (tmp_path / "shards.yaml").write_text("sampling: { num_shards: 3 }")
    overlay = tmp_path / "shards.yaml"
    planned = jobs("table_ablation", "--profile", "slurm", "--configfile", overlay)
    assert planned["sample_responses"] == 3 * (4 + 7 + 2)
    assert planned["merge_shards"] == 4 + 7 + 2


SUBMITTED = {
    "compute_metrics", "convert_gguf", "decode_greedy", "filter_responses", "localise_neurons",
    "measure_overlap",
    "measure_recovery", "merge_lora", "merge_neurons", "merge_shards",
    "rank_clean_tokens", "replay_rail", "sample_responses", "screen_questions", "train_lora",
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
def test_every_rule_has_a_log_a_message_and_resources(name):
    text = rule_texts()[name]
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


@pytest.mark.parametrize("name", rule_texts())
def test_no_rule_asks_for_more_time_than_max_runtime(name):
    assert re.findall(r"runtime=(\w+)", rule_texts()[name]) in (["minutes"], [])


@pytest.mark.parametrize("name", rule_texts())
def test_every_rule_is_named_like_its_script(name):
    scripts = set(re.findall(r"scripts/(\w+)\.py", rule_texts()[name]))
    expected = {"write_report": set()}
    assert scripts == expected.get(name, {name})


def test_every_caption_has_text():
    text = (ROOT / "workflow/rules/report.smk").read_text()
    captions = re.findall(r'caption="\.\./report/(\w+\.rst)"', text)
    for caption in captions:
        assert (ROOT / "workflow/report" / caption).read_text().strip()
    for entry in (*TABLES.values(), *FIGURES.values()):
        assert entry.text


def test_no_profile_is_called_default():
    """Snakemake would load it on top of every other profile."""
    assert not (ROOT / "profiles/default").exists()
    assert (ROOT / "slurm").resolve() == ROOT / "profiles/slurm"


@pytest.mark.parametrize(
    "path", sorted((ROOT / "profiles").glob("*/config.yaml")), ids=lambda path: path.parent.name
)
def test_profiles_name_existing_rules_and_comment_every_entry(path):
    text = path.read_text()
    profile = yaml.safe_load(text)
    for part in ("set-threads", "set-resources"):
        assert set(profile.get(part, {})) <= {*rule_texts(), *derived_rule_texts()}
    for name in profile:
        start = text.index(f"\n{name}:")
        line = text[start + 1 :].split("\n")[0]
        previous = text[:start].split("\n")[-1]
        assert "#" in line or previous.lstrip().startswith("#"), f"{path}: {name} has no comment"
