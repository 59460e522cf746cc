"""The start of a run: what it prints, its checks, mistakes, and names with shell code."""

import re
import shutil

import pytest
import yaml

from helpers.configurations import nested
from helpers.dry_runs import environment, job_counts, link_checkout, snakemake
from helpers.paths import ROOT
from helpers.scripts import python

SPLIT = "results/quick/data/gsm8k/split.parquet"
INSTRUCTIONS = "results/quick/data/instructions.jsonl"
ON_HUB = ("--config", "models={llama2: {base: nobody/nothing}}")  # at an offline scale
FAILURE = "FAILED   hub, models.llama2: 'nobody/nothing'"


@pytest.fixture
def quick(tmp_path):
    """Snakemake at the quick scale in a folder of its own; its exit status and output."""
    link_checkout(tmp_path)

    def run(*arguments: str) -> tuple[int, str]:
        process = snakemake("--profile", "profiles/quick", *arguments, workdir=tmp_path)
        return process.returncode, process.stdout + process.stderr

    return run


def test_a_run_that_would_fail_starts_no_job_and_the_checks_rerun_none(quick, tmp_path):
    code, text = quick(SPLIT, *ON_HUB)
    assert code != 0
    assert FAILURE in text
    assert "Traceback" not in text
    assert not (tmp_path / "results").exists()

    assert quick("-n", SPLIT, *ON_HUB)[0] == 0  # a dry run checks nothing
    assert quick("--no-hooks", SPLIT, *ON_HUB)[0] == 0  # the way around the checks
    times = {path: path.stat().st_mtime_ns for path in tmp_path.glob("results/**/*.parquet")}
    assert times

    code, text = quick(SPLIT, INSTRUCTIONS)
    assert code == 0, text
    assert (tmp_path / INSTRUCTIONS).exists()
    results = (tmp_path / "results/quick/preflight.txt").read_text()
    assert re.match(r"(?s)ok       .*ok       GPU memory", results)
    assert times == {path: path.stat().st_mtime_ns for path in times}


def test_the_checks_can_be_run_alone(quick):
    code, text = quick("--no-hooks", "check_preflight")
    assert code == 0, text
    assert "ok       tokenizer of pythia: ends responses with '<|endoftext|>'" in text
    assert re.search(r"ok       disk space: .*0\.\d GB.* results/quick", text)


RULES = sorted((ROOT / "workflow/rules").glob("*.smk"))
SHELL = re.compile(r'^    (?:    )?shell:\n((?:\s+f?"[^\n]*"\n)+)', re.MULTILINE)
NEEDS_QUOTES = re.compile(r"\{(?:input|output|log)(?:\.\w+)?\}")
INJECTION = "b;touch pwned;x y"


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_every_path_in_a_shell_command_is_quoted(path) -> None:
    text = path.read_text()
    blocks = SHELL.findall(text)
    assert len(blocks) == len(re.findall(r"^\s+shell:$", text, re.MULTILINE))
    assert not [found for block in blocks for found in NEEDS_QUOTES.findall(block)]


def test_names_with_shell_code_are_names(tmp_path) -> None:
    folder = link_checkout(tmp_path / f"a {INJECTION}")
    shutil.copytree(ROOT / "workflow/resources/bases/llama2", folder / INJECTION)
    overlay = {
        "run": "quoted",
        "models.llama2.base": INJECTION,
        "models.llama2.label": INJECTION,
        "benchmarks.gsm8k.label": INJECTION + "1",
        "strategies.railcap.label": INJECTION,
        "benchmarks.gsm8k.stop": [INJECTION],
    }
    (folder / "overlay.yaml").write_text(yaml.safe_dump(nested(overlay)))
    process = snakemake(
        *("--profile", "profiles/quick", "--no-hooks"),
        *("--configfile", "profiles/quick/quick.yaml"),
        *("overlay.yaml", "--", "results/quoted/llama2/clean_gsm8k/training/data"),
        workdir=folder,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert (folder / "results/quoted/llama2/clean_gsm8k/training/data").is_dir()
    assert not list(tmp_path.rglob("pwned"))


def test_unlikely_values_are_warnings_and_the_run_continues(tmp_path):
    (tmp_path / "overlay.yaml").write_text("metrics: { bins: 60 }")
    resources = ("decode_greedy:runtime=2-0", "train_lora:runtime=2d", "merge_shards:runtime=5")
    process = snakemake(
        *("-n", "--profile", "profiles/quick", "--configfile", "profiles/quick/quick.yaml"),
        *(tmp_path / "overlay.yaml", "--set-resources", *resources, "sample_response:runtime=9h"),
        *("--", "table_main"),
    )
    assert process.returncode == 0
    text = process.stdout + process.stderr
    for warning in (
        "metrics.bins is 60, more than sampling.num_samples (20)",
        "set-resources: the runtime 2-0 of decode_greedy is 2 min, too short for a job on a GPU",
        "set-resources: there is no rule 'sample_response'; did you mean sample_responses",
    ):
        assert text.count(warning) == 1
    assert text.count("set-resources: ") == 2


def test_a_rule_with_wildcards_is_not_a_target_which_is_said_in_one_line():
    process = snakemake("-n", "sample_responses", "--profile", "profiles/quick")
    assert process.returncode == 1
    text = process.stdout + process.stderr
    message = "error: 'sample_responses' is not a target; "
    assert text.splitlines()[-1].startswith(message)
    assert "Exception" not in text
    assert "Traceback" not in text


def test_a_dry_run_of_everything_fits_a_screen():
    process = snakemake("-n", "--forceall", "--profile", "profiles/quick")
    text = process.stdout + process.stderr
    assert text.count("Job stats") == 1
    assert len(text.splitlines()) <= 45


def test_zerogap_run_adds_an_overlay_to_the_profile(tmp_path):
    root = link_checkout(tmp_path / "zerogap")
    folder = root / "overlays"
    folder.mkdir()
    (folder / "mine.yaml").write_text("run: mine\nmodels: { gemma: null, pythia: null }")
    words = ["table_main", "--profile", "quick", "--with", "mine.yaml", "--dry-run"]
    process = python("-m", "zerogap", "run", *words, cwd=folder, env=environment(root))
    text = process.stdout + process.stderr
    assert process.returncode == 0, text
    assert job_counts(text)["train_lora"] == 3  # one toy model: clean, and contaminated with two
    assert "--configfile profiles/quick/quick.yaml overlays/mine.yaml" in text
