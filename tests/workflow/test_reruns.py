"""What an edit reruns, by dry runs on a finished run.

The files of the run are empty and its timings are missing, but Snakemake recorded every job as
done, as it does after a real run. Dry runs judge by those records and the times of the files. The
same questions are asked about a real run in tests/end_to_end.
"""

import shutil
from collections import Counter
from pathlib import Path

import pytest

from helpers.dry_runs import ROOT, jobs, snakemake

SCALE = (
    *("--profile", "profiles/quick"),
    *("--configfile", "profiles/quick/quick.yaml", "micro.yaml", "changed.yaml"),
)
# Models and responses: hours at the paper's scale.
MODEL_RULES = {
    "decode_greedy", "fetch_base", "localise_neurons", "measure_recovery", "merge_lora",
    "merge_shards", "rank_clean_tokens", "sample_responses", "train_lora",
    "write_training_data",
}  # fmt: skip
DATA_RULES = {
    "fetch_questions", "paraphrase_questions", "prepare_exemplars", "prepare_instructions",
    "split_questions", "write_questions",
}  # fmt: skip
METRIC_RULES = {
    "compute_metrics", "compute_ablation_metrics", "filter_responses", "make_all_zero",
    "measure_overlap", "replay_rail",
}  # fmt: skip


def summary(run: Path) -> list[tuple[str, str, bool]]:
    """Every file of the run, the rule that makes it, and whether it would be remade."""
    process = snakemake(*SCALE, "--summary", "--", "write_report", workdir=run)
    rows = [line.split("\t") for line in process.stdout.splitlines()[1:]]
    return [(row[0], row[2], row[5] == "update pending") for row in rows]


def complete(folder: Path) -> None:
    """Make the files of the run that are missing, and record every job as done."""
    for name, _, _ in summary(folder):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch() if path.suffix else path.mkdir(exist_ok=True)
    process = snakemake(*SCALE, "--touch", "--forceall", "--", "write_report", workdir=folder)
    assert process.returncode == 0, process.stderr


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A checkout with a finished run in it."""
    folder = tmp_path_factory.mktemp("finished")
    for name in ("Snakefile", "config.yaml", "workflow", "profiles", "envs"):
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "resources")
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy2(ROOT / name, folder / name)
    (folder / "workflow/resources").symlink_to(ROOT / "workflow/resources")
    shutil.copy2(ROOT / "tests/end_to_end/micro.yaml", folder)
    (folder / "changed.yaml").write_text("{}")
    complete(folder)
    return folder


@pytest.fixture
def run(finished, tmp_path) -> Path:
    """A copy of the finished run, to be edited."""
    return Path(shutil.copytree(finished, tmp_path / "run", symlinks=True))


def planned(run: Path, *targets: str, overlay: str = "") -> Counter[str]:
    """Rule → number of jobs, under a configuration changed by an overlay."""
    (run / "changed.yaml").write_text(overlay or "{}")
    return jobs(*SCALE, "--", *targets, workdir=run)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def add_comment(*paths: Path) -> None:
    assert len(paths) > 1
    for path in paths:
        path.write_text(path.read_text() + "\n# A comment.\n")


def model_jobs(plan: Counter[str]) -> dict[str, int]:
    """The planned jobs on data, models and responses."""
    return {name: plan[name] for name in plan.keys() & (MODEL_RULES | DATA_RULES)}


def test_a_file_is_a_target(run):
    paths = "reports/micro/tables/main.csv", "results/micro/llama2/pq/cells/railcap/solve.parquet"
    for path in paths:
        (run / path).unlink()
    assert planned(run, paths[1]) == {"sample_responses": 1}


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("workflow/zerogap/metrics/bootstrap.py", "\nfrom ", "\nEDITED = 1\nfrom "),
        ("workflow/rules/metrics.smk", "options=CONFIG", "edited=1, options=CONFIG"),
    ],
    ids=["package", "rule"],
)
def test_a_changed_metric_reruns_tables_and_no_model_job(run, path, old, new):
    edit(run / path, old, new)
    plan = planned(run, "all")
    assert plan["compute_metrics"] == 2
    assert plan["make_table"] > 4
    assert not model_jobs(plan)
    assert not plan.keys() & {"filter_responses", "measure_overlap"}


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("reporting/render.py", {"compute_metrics": 0, "make_all_zero": 0, "measure_overlap": 0}),
        ("analysis/strata.py", {"compute_metrics": 0, "filter_responses": 0}),
        ("strategies/ted.py", {"filter_responses": 3, "compute_metrics": 2}),
        ("strategies/railcap.py", {"sample_responses": 2 + 2, "train_lora": 0}),
        ("engine/drawing.py", {"sample_responses": 2 * 4 + 3 + 2, "train_lora": 0}),
        ("training/llamafactory.py", {"train_lora": 3, "merge_lora": 3, "fetch_questions": 0}),
        ("data/question_sources.py", {"train_lora": 3, "fetch_questions": 1}),
    ],
)
def test_an_edit_of_code_reruns_the_jobs_that_run_it(run, module, expected):
    path = run / "workflow/zerogap" / module
    path.write_text(path.read_text() + "\nEDITED = 1\n")
    plan = planned(run, "all")
    assert {rule: plan[rule] for rule in expected} == expected
    assert plan["make_table"] + plan["make_figure"] >= 4
    if not expected.keys() & (MODEL_RULES | DATA_RULES):
        assert not model_jobs(plan)


METRICS = "compute_metrics"
N9 = "{ label: n=9, class: railcap, parameters: { n: 9, suppression: cap } }"


@pytest.mark.parametrize(
    ("overlay", "expected"),
    [
        ("strategies: { railcap: { parameters: { n: 6 } } }", {"sample_responses": 2, METRICS: 2}),
        ("strategies: { ted: { parameters: { tau: 3 } } }", {"filter_responses": 2, METRICS: 2}),
        (f"ablation: {{ railcap_n9: {N9} }}", {"sample_responses": 1}),
        # The neurons are localised again, and the cells that patch them are sampled again.
        (
            "neuron_localisation: { fraction: 0.02 }",
            {"localise_neurons": 2, "sample_responses": 2, METRICS: 2},
        ),
    ],
    ids=["railcap", "ted", "new", "shortcut"],
)
def test_a_changed_value_reruns_what_depends_on_it_only(run, overlay, expected):
    plan = planned(run, "all", overlay=overlay)
    others = {name: plan[name] for name in plan.keys() & {"filter_responses", METRICS}}
    assert model_jobs(plan) | others == expected
    assert plan["compute_ablation_metrics"] == 1


def test_a_key_stated_again_reruns_nothing(run):
    """Wherever an overlay puts it: keys have the order of config.yaml."""
    overlay = """
    metrics: { confidence_level: 0.95 }
    strategies: { railcap: { class: railcap, parameters: { suppression: cap } } }
    sampling: { temperature: 0.7 }
    training: { lora: { alpha: 128 }, warmup_ratio: 0.1 }
    benchmarks: { gsm8k: { stop: ["Q:"] } }
    """
    assert not planned(run, "write_report", overlay=overlay)


def test_a_comment_anywhere_reruns_no_job_that_takes_long(run):
    package = run / "workflow/zerogap"
    add_comment(
        *package.rglob("*.py"),
        *(run / f"workflow/scripts/{rule}.py" for rule in MODEL_RULES | DATA_RULES),
        *(run / "workflow/rules").glob("*.smk"),
    )
    plan = planned(run, "all")
    assert not model_jobs(plan)
    assert not plan.keys() & METRIC_RULES


def test_how_a_job_is_run_reruns_nothing_but_the_record_of_the_configuration(run):
    overlay = "sampling: { batch_size: 7 }\ntraining: { save_steps: epoch }\nmax_runtime: 100000"
    assert planned(run, "all", overlay=overlay).keys() <= {"write_provenance", "all"}


def test_another_number_of_shards_reruns_nothing_once_the_run_is_marked_as_up_to_date(run):
    metrics, overlay = "results/micro/llama2/pq/metrics.parquet", "sampling: { num_shards: 2 }"
    assert planned(run, metrics, overlay=overlay)["sample_responses"] == 2 * (2 + 4)
    shutil.rmtree(run / "results/micro/llama2/pq/cells/railcap")
    (run / metrics).unlink()
    snakemake(*SCALE, "--touch", "--", metrics, workdir=run)
    assert model_jobs(planned(run, metrics, overlay=overlay)) == {
        "sample_responses": 2,
        "merge_shards": 1,
    }


def test_a_fresh_checkout_reruns_no_model_job(run):
    """Git gives every file that it writes the current time."""
    for path in (run / "workflow").rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.touch()
    assert not model_jobs(planned(run, "all"))


def test_a_new_copy_of_the_same_questions_reruns_nothing(run):
    """GSM8K's training file has 4 MB; by default Snakemake compares the content of up to 1 MB."""
    questions = run / "results/micro/data/gsm8k/train.jsonl"
    questions.write_text("0123456789abcde\n" * 2**18)
    snakemake(*SCALE, "--touch", "--forceall", "--", "all", workdir=run)
    questions.touch()
    assert not model_jobs(planned(run, "all"))
    questions.write_text("0123456789abcdef" * 2**18)
    assert planned(run, "all")["split_questions"] == 1


def test_a_changed_caption_rewrites_the_report_only(run):
    caption = run / "workflow/report/claims.rst"
    caption.write_text(caption.read_text() + "\nMore.\n")
    assert planned(run, "write_report") == {"write_report": 1}
