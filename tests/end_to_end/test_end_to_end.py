"""The complete workflow at a micro size: one model, both benchmarks, every strategy and table."""

import json
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from helpers.dry_runs import MICRO, job_counts, link_checkout, snakemake
from zerogap.io import parquet
from zerogap.pipeline.report.figures import FIGURES
from zerogap.pipeline.report.tables import TABLES

SAMPLED = ["identity", "shortcut", "lne_blocking", "railcap"]
ABLATION = ["railcap_n3", "railcap_ban"]


class Run:
    """A folder in which the workflow runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = link_checkout(folder)
        self.results = folder / "results/micro"
        self.reports = folder / "reports/micro"

    def snakemake(self, *arguments: str) -> str:
        process = snakemake(*MICRO, *arguments, workdir=self.folder)
        text = process.stdout + process.stderr
        assert process.returncode == 0, text[-6000:]
        return text

    def planned(self, *arguments: str) -> Counter[str]:
        """Rule → number of jobs that would run."""
        targets = arguments.index("--") if "--" in arguments else len(arguments)
        return job_counts(self.snakemake(*arguments[:targets], "-n", *arguments[targets:]))


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    run = Run(tmp_path_factory.mktemp("micro"))
    run.snakemake()
    return run


def test_every_cell_has_its_samples_with_their_provenance(run):
    for benchmark, strategies in (("gsm8k", SAMPLED + ABLATION), ("pq", SAMPLED)):
        for strategy in strategies:
            folder = run.results / "llama2" / benchmark / "cells" / strategy
            samples = parquet.read(folder / "samples.parquet", "samples")
            assert samples.groupby("question_id").size().eq(6).all()
            assert samples.question_id.nunique() == 12
            assert (samples.n_tokens == samples.token_ids.map(len)).all()
            provenance = parquet.provenance(folder / "samples.parquet")
            assert provenance["strategy"] == strategy
            assert not {"resources", "threads", "output"} & set(provenance)
            assert provenance["sampling"]["temperature"] == 0.7
            assert provenance["packages"]["torch"]
    clean = run.results / "llama2/clean_gsm8k"
    first = parquet.read(clean / "cells/batch1/samples.parquet", "samples")
    second = parquet.read(clean / "cells/batch2/samples.parquet", "samples")
    assert (first.text != second.text).any()


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="jobs are not forked with a GPU")
def test_jobs_of_every_kind_are_forked(run):
    scripts = (run.results / "logs/forks.log").read_text().splitlines()
    ends = ("/sample_responses.py", ".make_table.py", "/llamafactory-cli")
    assert all(any(script.endswith(end) for script in scripts) for end in ends), scripts


def test_ted_keeps_a_subset_of_identitys_samples(run):
    folder = run.results / "llama2/pq"
    kept = parquet.read(folder / "cells/ted/samples.parquet", "samples")
    source = parquet.read(folder / "cells/identity/samples.parquet", "samples")
    pairs = set(zip(source.question_id, source.sample_id, source.text, strict=True))
    assert set(zip(kept.question_id, kept.sample_id, kept.text, strict=True)) < pairs
    assert len(kept)


def test_every_table_and_figure_is_made(run):
    for name in TABLES:
        for ending in ("csv", "md", "tex", "html"):
            assert (run.reports / f"tables/{name}.{ending}").stat().st_size > 100
        assert "\\toprule" in (run.reports / f"tables/{name}.tex").read_text()
    for name in FIGURES:
        for ending in ("pdf", "png", "svg"):
            assert (run.reports / f"figures/{name}.{ending}").stat().st_size > 1000
    page = json.loads((run.reports / "checks/provenance.json").read_text())
    assert page["config"]["run"] == "micro"
    assert page["software"]["Responses"]["torch"]
    cost = pd.read_csv(run.reports / "tables/cost.csv", comment="#")
    assert (cost.seconds > 0).all()


def test_a_finished_run_has_nothing_to_do_and_a_missing_table_is_one_job(run):
    assert not run.planned()
    (run.reports / "tables/main.csv").unlink()
    assert run.planned("--", "table_main") == {"make_table": 1, "table_main": 1}
    run.snakemake("--no-hooks", "--", "table_main")


def test_settings_and_data_of_a_training_are_kept_and_readable(run):
    folder = run.results / "llama2/pq/training"
    text = (folder / "train.yaml").read_text()
    assert "lora_rank: 64" in text
    examples = json.loads((folder / "data/questions.json").read_text())
    questions = parquet.read(run.results / "data/pq/questions.parquet", "questions")
    assert len(examples) == 6
    prompts = " ".join(example["prompt"] for example in examples)
    leaked = questions[questions.leaked]
    assert all(paraphrase in prompts for paraphrase in leaked.paraphrase)
    assert not any(question in prompts for question in leaked.question)
    questions = parquet.read(run.results / "data/gsm8k/questions.parquet", "questions")
    assert questions.leaked.sum() == 6
    assert questions.paraphrase.isna().all()


def test_the_report_has_every_category_of_this_run(run):
    """The rule calls Snakemake within Snakemake, with the same configuration."""
    run.snakemake("--no-hooks", "--config", "seed=0", "--", "write_report")
    text = (run.reports / "report.html").read_text()
    for category in ("1. Outcome", "2. Claims", "3. Tables", "4. Figures", "5. Checks"):
        assert category in text
    assert "this run supports" in text[text.index("workflow_desc = ") :].partition("</script>")[0]
    first_page = (run.reports / "index.html").read_text()
    assert "Toy models" in first_page
    assert "older than the code" not in first_page
    assert "results/micro" in text
    assert "results/paper" not in text
    assert not run.planned("--config", "seed=0", "--", "write_report")
