"""The scripts of the report on a synthetic run: every table and figure of the catalogue."""

import json
import shutil
from types import SimpleNamespace

import pandas as pd
import pytest

import check_claims
import check_memorisation
import make_figure
import make_table
import write_index
import write_provenance
from helpers import synthetic_run
from helpers.paths import ROOT
from zerogap.config import load
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.pipeline import report_sources
from zerogap.reporting.catalog import FIGURES, TABLES
from zerogap.reporting.claims.verdict import CANNOT_TELL, SUPPORTED

SCALE = ("config.yaml", "profiles/quick/quick.yaml", "tests/end_to_end/micro.yaml")


@pytest.fixture(scope="module")
def config():
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return load(SCALE)


@pytest.fixture(scope="module")
def finished_run(config, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        synthetic_run.write_run(config)
        synthetic_run.write_timings(config)
    return folder


@pytest.fixture
def run_folder(finished_run, monkeypatch):
    monkeypatch.chdir(finished_run)
    return finished_run


def job(wildcards=None, inputs=None, **params):
    """What Snakemake hands to a script."""
    return SimpleNamespace(
        wildcards=SimpleNamespace(**(wildcards or {})),
        input=SimpleNamespace(**(inputs or {})),
        params=SimpleNamespace(metadata={"run": "micro"}, **params),
    )


def make_one_table(config, name, prefix):
    sources = report_sources.entry_values(config, TABLES[name])
    params = {"sources": sources, "prefix": str(prefix)}
    make_table.main(job({"table": name}, **params, scale="A tiny run.", scale_note="A toy."))
    return prefix.with_suffix(".md").read_text()


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_made_from_the_inputs_of_its_rule(name, config, run_folder, tmp_path):
    files = report_sources.entry_files(config, TABLES[name])
    assert files
    assert all((run_folder / path).exists() for path in files)
    text = make_one_table(config, name, tmp_path / name)
    assert text.startswith(f"**{TABLES[name].title}**")
    assert "A tiny run." in text
    assert "A toy." in text
    for suffix in (".csv", ".tex", ".html", ".json"):
        assert (tmp_path / name).with_suffix(suffix).stat().st_size > 100


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_made_from_the_inputs_of_its_rule(name, config, run_folder, tmp_path):
    files = report_sources.entry_files(config, FIGURES[name])
    assert files
    assert all((run_folder / path).exists() for path in files)
    values = report_sources.entry_values(config, FIGURES[name])
    make_figure.main(job({"figure": name}, sources=values, prefix=str(tmp_path / name)))
    for suffix in (".pdf", ".png", ".svg"):
        assert (tmp_path / name).with_suffix(suffix).stat().st_size > 1000


def test_a_table_only_reads_its_own_setting(config):
    assert report_sources.entry_files(config, TABLES["reversal"]) == [
        "results/micro/llama2/gsm8k/metrics.parquet"
    ]
    assert report_sources.entry_files(config, TABLES["ablation"]) == [
        "results/micro/llama2/gsm8k/metrics.parquet",
        "results/micro/llama2/gsm8k/ablation_metrics.parquet",
    ]


def test_vs_paper_lists_what_differs_from_the_papers_protocol(config, run_folder, tmp_path):
    text = make_one_table(config, "main_vs_paper", tmp_path / "main_vs_paper")
    assert "questions generated, not GSM8K's" in text
    assert "test questions 12, not 1319" in text
    assert "difference |" not in text


def test_the_first_page_is_made_from_the_main_table_the_claims_and_two_figures(
    config, run_folder, tmp_path
):
    figures = []
    for name in write_index.FIRST_PAGE_FIGURES:
        values = report_sources.entry_values(config, FIGURES[name])
        make_figure.main(job({"figure": name}, sources=values, prefix=str(tmp_path / name)))
        figures.append(str(tmp_path / f"{name}.png"))
    claims = tmp_path / "claims.csv"
    claims.write_text("claim,place,text,verdict\nbest,Table 3,RailCap is best.,cannot tell\n")
    page = job(
        inputs={"claims": str(claims), "figures": figures},
        sources=report_sources.entry_values(config, TABLES["main"]),
        scale="A tiny run.",
        scale_note="A toy.",
    )
    page.output = SimpleNamespace(index=tmp_path / "index.html", fragment=tmp_path / "part.html")
    write_index.main(page)
    fragment = page.output.fragment.read_text()
    assert fragment in page.output.index.read_text()
    for shown in ("A toy.", "A tiny run.", "Table 3: SA-PPG", "RailCap is best.", "Noise floor"):
        assert shown in fragment


def test_cost_adds_up_the_shards_of_a_cell(config, run_folder, tmp_path):
    sampling = config.sampling.model_copy(update={"num_shards": 2})
    sharded = config.model_copy(update={"sampling": sampling})
    synthetic_run.write_timings(sharded)
    lost = run_folder / "results/micro/timings/llama2/gsm8k/cells/identity.shard-1-of-2.tsv"
    kept = shutil.move(lost, tmp_path / "lost.tsv")
    make_one_table(sharded, "cost", tmp_path / "cost")
    shutil.move(kept, lost)
    rows = pd.read_csv(tmp_path / "cost.csv").set_index("key")
    columns = ["responses", "tokens", "tokens_per_response", "seconds", "tokens_per_second"]
    assert rows.loc["llama2/gsm8k/railcap", columns].tolist() == [100, 300, 3, 3, 100]
    assert rows.loc["llama2/gsm8k/train_lora", columns].isna().tolist() == [1, 1, 1, 0, 1]
    # A cell without the timing of one shard counts its tokens, and no seconds.
    assert rows.loc["llama2/gsm8k/identity", ["tokens", "seconds"]].isna().tolist() == [0, 1]
    assert "1 job(s) have no timing" in (tmp_path / "cost.md").read_text()


def test_a_missing_loss_curve_is_a_one_line_error(config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = report_sources.entry_values(config, FIGURES["loss"])
    with pytest.raises(InputError, match=r"loss\.tsv: does not exist or is not readable"):
        make_figure.main(job({"figure": "loss"}, sources=values, prefix=str(tmp_path / "loss")))


def test_claims_are_checked_from_the_files_of_other_rules(config, run_folder, tmp_path):
    make_one_table(config, "inline_numbers", tmp_path / "inline_numbers")
    labels = report_sources.source_value(config, "labels")
    checks = report_sources.source_value(config, "memorisation")
    prefix = str(tmp_path / "memorisation")
    options = {"scale_note": "Toy models.", "scale": "Tiny."}
    check_memorisation.main(job(checks=checks, labels=labels, prefix=prefix, **options))
    inputs = {
        "metrics": report_sources.source_files(config, "primary_metrics_with_ablation"),
        "inline_numbers": str(tmp_path / "inline_numbers.csv"),
        "memorisation": str(tmp_path / "memorisation.csv"),
    }
    params = {
        "setting": ["llama2", "gsm8k"],
        "labels": labels,
        "scale": "Tiny.",
        "paraphrase_of": config.paraphrase_of,
        "rail_n": 4,
    }
    check_claims.main(job(None, inputs, **params, prefix=str(tmp_path / "sheet")))
    rows = pd.read_csv(tmp_path / "sheet.csv").set_index("claim")
    collapse = rows.loc["collapse"]
    unleaked = collapse[collapse["evidence"].str.contains("ROUGE-L, unleaked")]
    assert set(unleaked["evidence_verdict"]) == {SUPPORTED}
    path = "results/micro/llama2/clean_gsm8k/cells/batch1/solve.parquet"
    never_solved = (parquet.read(path, "solve").n_correct == 0).mean()
    assert f"{never_solved:.3f} [" in rows.loc["never_solved", "evidence"]
    # Without the metrics of PQ, there is no evidence for or against the claims about it.
    about_pq = ["lne_worse_on_pq", "shortcut_lead_narrows"]
    assert (rows.loc[about_pq, "verdict"] == CANNOT_TELL).all()
    assert rows.drop(index=about_pq)["evidence"].notna().all()


def test_a_csv_without_the_column_is_a_one_line_error(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("key,other\na,1\n")
    with pytest.raises(InputError, match=r"table\.csv: must be a table with the columns key, "):
        check_claims.read_column(path, "value")


def test_provenance_lists_the_versions_recorded_in_the_files(config, run_folder, tmp_path):
    questions = pd.DataFrame(
        [("7", "How many?", "One.", "1", False, None)],
        columns=parquet.CONTRACTS["questions"].names,
    )
    parquet.write(tmp_path / "questions.parquet", questions, "questions", {"left_out": ["7"]})
    inputs = {
        "responses": report_sources.source_files(config, "samples"),
        "metrics": report_sources.source_files(config, "metrics"),
        "questions": [tmp_path / "questions.parquet"],
    }
    params = {
        "config": config.model_dump(mode="json", by_alias=True),
        "scale": "Tiny.",
        "benchmarks": ["PQ"],
    }
    write_provenance.main(job(None, inputs, **params, prefix=str(tmp_path / "provenance")))
    page = json.loads((tmp_path / "provenance.json").read_text())
    assert page["config"] == params["config"]
    assert page["software"]["Responses"] == {"commit": "abc", "torch": "1"}
    assert page["software"]["Report"]["python"]
    assert page["left_out"] == {"PQ": ["7"]}
    assert "abc" in (tmp_path / "provenance.html").read_text()
