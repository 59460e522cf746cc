"""What an edit makes anew, by dry runs upon a finished run.

The run's files are empty and its benchmarks lost, but Snakemake recorded every job as done, as it
does after a real one: what it would do again it judges by those records and the files' times. The
same is asked of really computed files in tests/end_to_end.
"""

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from helpers.dry_runs import ROOT, jobs, snakemake

SCALE = (
    *("--profile", "profiles/quick"),
    *("--configfile", "profiles/quick/quick.yaml", "micro.yaml", "changed.yaml"),
)
# Model, training and decoding: hours at the paper's scale.
GPU = {"base_model", "lora_data", "adapter", "model", "greedy_trajectories", "clean_samples",
       "samples", "merged_samples", "neurons", "ranks"}  # fmt: skip
TABLES = {"table_main", "table_reversal", "table_decomposition", "table_ablation"}
TARGETS = [*sorted(TABLES), "figure_mechanism", "figure_readout"]


def summary(run: Path) -> list[tuple[str, str, bool]]:
    """Every file of the run, the rule that makes it, and whether it would be made anew."""
    done = snakemake(*SCALE, "--summary", "--", "report", workdir=run)
    rows = [line.split("\t") for line in done.stdout.splitlines()[1:]]
    return [(row[0], row[2], row[5] == "update pending") for row in rows]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A checkout with a finished run in it."""
    folder = tmp_path_factory.mktemp("finished")
    for name in ("Snakefile", "config.yaml", "workflow", "profiles", "envs"):
        if (ROOT / name).is_dir():
            unwanted = shutil.ignore_patterns("__pycache__", "resources")
            shutil.copytree(ROOT / name, folder / name, ignore=unwanted)
        else:
            shutil.copy2(ROOT / name, folder / name)
    (folder / "workflow/resources").symlink_to(ROOT / "workflow/resources")
    shutil.copy2(ROOT / "tests/end_to_end/micro.yaml", folder)
    (folder / "changed.yaml").write_text("{}")
    for path, _, _ in summary(folder):
        path = folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch() if path.suffix else path.mkdir(exist_ok=True)
    done = snakemake(*SCALE, "--touch", "--forceall", "--", "report", workdir=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def run(finished, tmp_path) -> Path:
    """A copy of it, to be edited."""
    return Path(shutil.copytree(finished, tmp_path / "run", symlinks=True))


def planned(run: Path, *targets: str, overlay: str = "") -> Counter[str]:
    """Rule → number of jobs, under a configuration changed by an overlay."""
    (run / "changed.yaml").write_text(overlay or "{}")
    return jobs(*SCALE, "--", *targets, workdir=run)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_what_is_done_is_not_done_again(finished):
    assert not planned(finished, "report")


@pytest.mark.parametrize("target", TARGETS)
def test_a_lost_target_is_one_job(run, target):
    kind, name = target.split("_")
    (run / f"reports/micro/{kind}s/{name}.{'csv' if kind == 'table' else 'png'}").unlink()
    assert planned(run, target) == {target: 1}


def test_a_file_is_a_target(run):
    path = "reports/micro/tables/main.csv"
    (run / path).unlink()
    assert planned(run, path) == {"table_main": 1}
    lost = "results/micro/llama2/pq/railcap/samples.parquet"
    (run / lost).unlink()
    assert planned(run, lost) == {"samples": 1}


def test_a_table_needs_its_own_jobs_only(run):
    for made in ("results", "reports", ".snakemake"):
        shutil.rmtree(run / made)
    main = planned(run, "table_main")
    assert main["metrics"] == 2
    assert main["samples"] == 2 * 4 + 5  # the ablation belongs to its setting's readings
    assert not main.keys() & {"ranks", "overlap", "claims"}
    assert {name for name in main if name.startswith(("table", "figure"))} == {"table_main"}
    mechanism = planned(run, "figure_mechanism")
    assert mechanism["samples"] == mechanism["overlap"] == mechanism["ranks"] == 1
    assert not mechanism.keys() & {"clean_samples", "metrics", "neurons"}
    readout = planned(run, "figure_readout")
    assert readout["clean_samples"] == 2
    assert readout["adapter"] == 1
    assert "samples" not in readout


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("workflow/zerogap/metrics/gaps.py", '"""', '"""Edited. '),
        ("workflow/scripts/compute_metrics.py", '"""', '"""Edited. '),
        ("workflow/rules/metrics.smk", '"{params.script} --model', '"{params.script}  --model'),
    ],
    ids=["package", "script", "rule"],
)
def test_a_changed_metric_makes_tables_anew_and_no_gpu_result(run, path, old, new):
    edit(run / path, old, new)
    again = planned(run, "all")
    assert again["metrics"] == 2
    assert again.keys() >= TABLES
    assert not again.keys() & (GPU | {"filtered_samples", "overlap"})


def test_another_number_of_strata_makes_readings_anew_and_no_gpu_result(run):
    again = planned(run, "all", overlay="metrics: { bins: 5 }")
    assert again["metrics"] == 2
    assert again.keys() >= TABLES
    assert not again.keys() & (GPU | {"filtered_samples", "overlap", "all_zero"})


def test_an_edit_of_the_reporting_makes_what_is_read_anew(run):
    edit(run / "workflow/zerogap/reporting/tables.py", '"""', '"""Edited. ')
    again = planned(run, "all")
    assert again.keys() >= TABLES
    assert not again.keys() & (GPU | {"metrics", "filtered_samples", "overlap", "all_zero"})


@pytest.mark.parametrize(
    ("part", "cells"),
    [
        ("strategies: { railcap: { parameters: { n: 6 } } }", {"samples": 2}),
        ("strategies: { lne_blocking: { parameters: { beta: 3.0 } } }", {"samples": 2}),
        ("strategies: { ted: { parameters: { tau: 3 } } }", {"filtered_samples": 2}),
        ("ablation: { railcap_n3: { parameters: { n: 2 } } }", {"samples": 1}),
        # Its neurons are found anew, and its own cells sampled with them.
        ("localisation: { share: 0.02 }", {"neurons": 2, "samples": 2}),
    ],
    ids=["railcap", "lne_blocking", "ted", "ablation", "shortcut"],
)
def test_a_changed_strategy_parameter_makes_its_own_cells_anew(run, part, cells):
    again = planned(run, "all", overlay=part)
    of_models = again.keys() & (GPU | {"filtered_samples"})
    assert {name: again[name] for name in of_models} == cells
    assert again["metrics"] == (1 if "ablation" in part else 2)


def test_the_cells_made_anew_are_those_of_the_changed_strategy(run):
    (run / "changed.yaml").write_text("strategies: { railcap: { parameters: { n: 6 } } }")
    again = {path for path, rule, pending in summary(run) if rule in GPU and pending}
    assert again == {
        f"results/micro/llama2/{benchmark}/railcap/{table}.parquet"
        for benchmark in ("gsm8k", "pq")
        for table in ("samples", "solve")
    }


def test_a_key_that_is_stated_again_makes_nothing_anew(run):
    """Wherever an overlay puts it: the order of keys is the one of config.yaml."""
    overlay = """
    metrics: { level: 0.95 }
    strategies: { railcap: { class: railcap, parameters: { suppression: cap } } }
    decoding: { stop: ["Q:"], temperature: 0.7 }
    training: { lora: { alpha: 128 }, epochs: 5 }
    """
    assert not planned(run, "report", overlay=overlay)


def test_a_new_strategy_is_its_own_cells_alone(run):
    entry = "{ label: n=9, class: railcap, parameters: { n: 9, suppression: cap } }"
    again = planned(run, "all", overlay=f"ablation: {{ railcap_n9: {entry} }}")
    assert {name: again[name] for name in again.keys() & GPU} == {"samples": 1}


def commented(*paths: Path) -> None:
    assert len(paths) > 1
    for path in paths:
        path.write_text(path.read_text() + "\n# A comment.\n")


def test_a_comment_in_what_trains_and_decodes_makes_nothing_anew(run):
    package, scripts = run / "workflow/zerogap", run / "workflow/scripts"
    commented(
        *package.glob("*.py"),
        *package.glob("training/*.py"),
        *package.glob("decoding/*.py"),
        *(scripts / f"{name}.py" for name in ("sample", "greedy", "train_lora", "merge_lora")),
        *(run / "workflow/rules").glob("*.smk"),
    )
    assert not planned(run, "report")


def test_a_comment_anywhere_makes_no_gpu_result_anew(run):
    commented(*(run / "workflow").rglob("*.py"), *(run / "workflow/rules").glob("*.smk"))
    again = planned(run, "all")
    assert again.keys() >= TABLES
    assert not again.keys() & GPU


@pytest.mark.parametrize(
    ("stage", "models", "samples"), [("training", 3, 2 * 4 + 5), ("decoding", 0, 2 * 4 + 5)]
)
def test_a_raised_version_makes_what_it_is_of_anew(run, stage, models, samples):
    rules = run / "workflow/rules/common.smk"
    number = int(re.search(rf'"{stage}": (\d+)', rules.read_text())[1])
    edit(rules, f'"{stage}": {number}', f'"{stage}": {number + 1}')
    again = planned(run, "all")
    assert again["adapter"] == again["model"] == models
    assert again["samples"] == samples
    assert again["clean_samples"] == again["neurons"] == 2


def test_a_changed_caption_is_a_report_alone(run):
    caption = run / "workflow/report/table_main.rst"
    caption.write_text(caption.read_text() + "\nMore.\n")
    assert planned(run, "report") == {"report": 1}
