import pytest

from helpers.paths import ROOT
from zerogap.config import load
from zerogap.data import gsm8k_format
from zerogap.pipeline import report_sources
from zerogap.pipeline.commands import snakemake_command
from zerogap.reporting.catalog import TABLES
from zerogap.reporting.sources import READERS


@pytest.fixture
def config(monkeypatch):
    monkeypatch.chdir(ROOT)
    return load(["config.yaml"])


def test_table_4_lists_railcap_by_its_n_among_the_ablation_and_bans_last(config):
    rows = report_sources.source_value(config, "labels")["configurations"]
    assert list(rows.values()) == ["n=1", "n=3", "n=4", "n=5", "n=7", "n=4, ban"]
    assert rows["railcap"] == "n=4"


def test_the_papers_configuration_has_the_papers_protocol(config):
    for source in ("protocol_differences", "primary_protocol_differences"):
        assert READERS[source](report_sources.source_value(config, source)) == ()


def test_questions_of_local_files_are_compared_with_gsm8k(config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    entries = [{"question": "How many?", "answer": "Two and two.\n#### 4"}]
    folder = tmp_path / "results/paper/data/gsm8k"
    folder.mkdir(parents=True)
    for split in ("train", "test"):
        gsm8k_format.write(folder / f"{split}.jsonl", entries)
    questions = config.benchmarks["gsm8k"].questions
    original = gsm8k_format.fingerprint({"train": entries, "test": entries})
    for digest, differences in (
        (original, ()),
        (questions.hub.sha256, ("questions of other files, not GSM8K's",)),
    ):
        local = questions.model_copy(
            update={
                "source": "files",
                "hub": questions.hub.model_copy(update={"sha256": digest}),
            }
        )
        benchmark = config.benchmarks["gsm8k"].model_copy(update={"questions": local})
        changed = config.model_copy(update={"benchmarks": config.benchmarks | {"gsm8k": benchmark}})
        value = report_sources.source_value(changed, "protocol_differences")
        assert READERS["protocol_differences"](value) == differences


@pytest.mark.parametrize(
    ("changes", "differences"),
    [
        (
            {"repository": "me/my-questions", "sha256": None},
            ("questions of me/my-questions, not GSM8K's",),
        ),
        ({"repository": "mirror/gsm8k"}, ()),  # the hash says that they are GSM8K's
    ],
)
def test_other_questions_of_the_hub_differ_from_the_paper(config, changes, differences):
    questions = config.benchmarks["gsm8k"].questions
    hub = questions.hub.model_copy(update=changes)
    benchmark = config.benchmarks["gsm8k"].model_copy(
        update={"questions": questions.model_copy(update={"hub": hub})}
    )
    changed = config.model_copy(update={"benchmarks": config.benchmarks | {"gsm8k": benchmark}})
    value = report_sources.source_value(changed, "protocol_differences")
    assert READERS["protocol_differences"](value) == differences


def test_a_lost_timing_does_not_make_the_cost_table_again(config):
    files = report_sources.entry_files(config, TABLES["cost"])
    assert "results/paper/llama2/gsm8k/cells/railcap/samples.parquet" in files
    assert not any("timings" in path for path in files)


def test_the_scale_sentence_counts_questions_samples_and_models(config):
    sentence = report_sources.scale_sentence(config)
    assert "GSM8K with N = 1319 questions (660 leaked) and 8 shots" in sentence
    assert "m = 50 samples per question, B = 50 strata" in sentence
    assert "3 models: Llama2 from meta-llama/Llama-2-7b-hf" in sentence


def test_jobs_get_paths_as_strings(config):
    clean = report_sources.source_value(config, "clean")
    assert clean == {
        "questions": "results/paper/data/gsm8k/questions.parquet",
        "solve": "results/paper/llama2/clean_gsm8k/cells/batch1/solve.parquet",
    }


def test_the_nested_call_keeps_overlays_and_values(monkeypatch):
    monkeypatch.chdir(ROOT)
    command = snakemake_command(ROOT / "Snakefile", ["my overlay.yaml"], ["seed=1"])
    assert command == (
        "python -m snakemake --nolock --snakefile Snakefile"
        " --configfile 'my overlay.yaml' --config seed=1"
    )
    assert snakemake_command("Snakefile", [], []).endswith("--snakefile Snakefile")
