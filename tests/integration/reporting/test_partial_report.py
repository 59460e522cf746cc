"""Tables and figures of runs that are restricted, unfinished, or in which something failed."""

import json
import re
import shutil
from types import SimpleNamespace

import pandas as pd
import pytest

import make_partial_report
import make_table
from helpers import synthetic_run
from helpers.paths import ROOT
from zerogap.config import load
from zerogap.errors import InputError
from zerogap.pipeline import report_sources
from zerogap.reporting.catalog import FIGURES, TABLES
from zerogap.reporting.partial import uses_metrics

SCALE = ("config.yaml", "profiles/quick/quick.yaml")
BENCHMARKS = ("Word", "Paraphrased")
RUN = "results/quick"
OPTIONS = {"bins": 5, "n_resamples": 40}  # those of the synthetic metrics


def load_scale(*overlays):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return load([*SCALE, *overlays])


@pytest.fixture(scope="module")
def config():
    return load_scale()


@pytest.fixture(scope="module")
def finished_run(config, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        synthetic_run.write_run(config)
        synthetic_run.write_timings(config)
    return folder


@pytest.fixture
def run_folder(finished_run, tmp_path, monkeypatch):
    """A copy of a finished run, from which a test removes something."""
    shutil.copytree(finished_run, tmp_path / "run")
    monkeypatch.chdir(tmp_path / "run")
    return tmp_path / "run"


def make_report(config, folder, figures=("loss",)):
    """What the rule `make_partial_report` hands to its script; it makes some of the figures."""
    params = SimpleNamespace(
        folder=f"reports/{config.run}/partial",
        settings=report_sources.setting_files(config),
        setting=report_sources.source_value(config, "primary_setting"),
        options=OPTIONS,
        sources=report_sources.all_values(config, [*TABLES.values(), *FIGURES.values()]),
        table_files=report_sources.files_by_entry(config, TABLES),
        figure_files=report_sources.files_by_entry(config, {n: FIGURES[n] for n in figures}),
        scale="Tiny.",
        scale_note="Toys.",
        metadata={"run": config.run},
    )
    make_partial_report.main(SimpleNamespace(params=params, log=[str(folder / "log.txt")]))
    return folder / params.folder


def rows(partial, name):
    return pd.read_csv(partial / f"tables/{name}.csv").set_index("key")


def test_a_complete_run_has_the_tables_of_the_complete_report(config, run_folder, capsys):
    partial = make_report(config, run_folder)
    assert "0 of " in (partial / "missing.txt").read_text()
    assert {path.stem for path in (partial / "tables").glob("*.md")} == set(TABLES)
    sources = report_sources.entry_values(config, TABLES["main"])
    params = {
        "sources": sources,
        "scale": "Tiny.",
        "scale_note": "Toys.",
        "prefix": str(run_folder / "main"),
    }
    params |= {"metadata": {"run": config.run}}
    wildcards = SimpleNamespace(table="main")
    make_table.main(SimpleNamespace(wildcards=wildcards, params=SimpleNamespace(**params)))
    for suffix in ("csv", "tex"):
        complete = (run_folder / f"main.{suffix}").read_text().split("\n", 1)[1]
        assert (partial / f"tables/main.{suffix}").read_text().split("\n", 1)[1] == complete


def test_a_failed_model_leaves_dashes_and_every_table(config, run_folder, capsys):
    shutil.rmtree(f"{RUN}/pythia")
    partial = make_report(config, run_folder)
    main = rows(partial, "main")
    assert main["gsm8k/pythia"].isna().all()
    assert main[["gsm8k/llama2", "pq/llama2", "gsm8k/gemma", "pq/gemma"]].notna().all().all()
    text = (partial / "tables/main.md").read_text()
    assert "\n\nPartial table of an unfinished run. " in text
    assert "– |" in text
    missing = [f"Pythia, 1M toy × {name} problems (every strategy)" for name in BENCHMARKS]
    assert f"shown as –: {'; '.join(missing)}." in text
    for name, entry in TABLES.items():
        expected = uses_metrics(entry) or name == "inline_numbers"
        assert (partial / f"tables/{name}.md").exists() == expected
    # The tables of the primary setting lack nothing, and say so.
    assert "Partial" not in (partial / "tables/reversal.md").read_text()
    assert "Pythia, 1M toy × Word problems" in (partial / "tables/intervals.html").read_text()


def test_figures_need_the_files_that_they_show(config, run_folder, capsys):
    shutil.rmtree(f"{RUN}/pythia")
    partial = make_report(config, run_folder, FIGURES)
    # These two show all models, the others the primary setting.
    made = {path.stem for path in (partial / "figures").glob("*.svg")}
    assert made == set(FIGURES) - {"loss", "diagnostics"}
    lines = (partial / "missing.txt").read_text().splitlines()
    assert (
        f"figure loss: not made; {RUN}/pythia/clean_gsm8k/loss.tsv and 2 other(s) do not exist"
        in lines
    )


def test_claims_are_for_complete_runs(config, run_folder, capsys):
    assert "claims" not in (make_report(config, run_folder) / "missing.txt").read_text()
    shutil.rmtree(f"{RUN}/pythia")
    partial = make_report(config, run_folder)
    assert (partial / "missing.txt").read_text().endswith(f"{make_partial_report.CLAIMS}\n")
    assert not list(partial.rglob("*claims*"))


def test_a_failed_cell_leaves_one_dash(config, run_folder, capsys):
    complete = rows(make_report(config, run_folder), "main")
    (run_folder / f"{RUN}/llama2/gsm8k/metrics.parquet").unlink()
    (run_folder / f"{RUN}/llama2/gsm8k/cells/ted/solve.parquet").unlink()
    partial = make_report(config, run_folder)
    main = rows(partial, "main")
    assert pd.isna(main.loc["ted", "gsm8k/llama2"])
    assert main[[column for column in main if "_ci_" not in column]].isna().sum().sum() == 1
    pairs = (partial / "tables/pairs.md").read_text()
    assert re.search(r"\| Identity − TED +\| +– \| +– \|", pairs)
    assert re.search(r"\| TED − RailCap +\| +– \| +– \|", pairs)
    # The others are evaluated from their solve counts, and have the values of the metrics file.
    complete.loc["ted", [column for column in main if "gsm8k/llama2" in column]] = float("nan")
    pd.testing.assert_frame_equal(main, complete)
    assert (
        "missing, and shown as –: Llama, 1M toy × Word problems (TED)."
        in (partial / "tables/reversal.md").read_text()
    )
    assert "Partial" in json.loads((partial / "tables/main.json").read_text())["caption"]


def test_a_missing_variant_of_the_ablation_leaves_the_main_tables_complete(
    config, run_folder, capsys
):
    path = f"{RUN}/llama2/gsm8k/cells/railcap_n3/solve.parquet"
    complete = rows(make_report(config, run_folder), "ablation")
    (run_folder / f"{RUN}/llama2/gsm8k/ablation_metrics.parquet").unlink()
    (run_folder / path).unlink()
    partial = make_report(config, run_folder)
    assert (
        f"llama2/gsm8k/railcap_n3: {path} does not exist" in (partial / "missing.txt").read_text()
    )
    partial_tables = {
        name for name in TABLES if "Partial" in (partial / f"tables/{name}.json").read_text()
    }
    assert partial_tables == {"ablation", "ablation_vs_paper", "variants", "intervals", "subsets"}
    # The other variants are evaluated from their solve counts.
    pd.testing.assert_frame_equal(
        rows(partial, "ablation").drop(index="railcap_n3"), complete.drop(index="railcap_n3")
    )


def test_missing_cells_are_listed_in_a_file_and_on_standard_error(config, run_folder, capsys):
    path = f"{RUN}/llama2/gsm8k/cells/ted/solve.parquet"
    (run_folder / f"{RUN}/llama2/gsm8k/metrics.parquet").unlink()
    (run_folder / path).unlink()
    (run_folder / f"{RUN}/llama2/gsm8k/ranks.parquet").unlink()
    partial = make_report(config, run_folder)
    text = (partial / "missing.txt").read_text()
    assert capsys.readouterr().err == text == (run_folder / "log.txt").read_text()
    first, *lines = text.splitlines()
    assert first.startswith("partial report in reports/quick/partial: 1 of ")
    assert lines == [
        f"llama2/gsm8k/ted: {path} does not exist",
        f"table inline_numbers: not made; {path} and 1 other(s) do not exist",
        f"table cost: not made; {RUN}/llama2/gsm8k/ranks.parquet does not exist",
        make_partial_report.CLAIMS,
    ]


def test_a_strategy_that_is_newer_than_the_metrics_is_missing(config, run_folder, capsys):
    settings = report_sources.setting_files(config)
    settings[0]["strategies"]["new"] = settings[0]["strategies"]["ted"]
    unfinished = make_partial_report.read_unfinished(
        settings, {}, ("llama2", "gsm8k"), make_partial_report.Labels()
    )
    (line,) = unfinished.missing_lines()
    path = f"{RUN}/llama2/gsm8k/metrics.parquet"
    assert line == f"llama2/gsm8k/new: not in {path}, which is older than the strategy"


def test_complete_tables_are_never_overwritten(config, run_folder, capsys):
    complete = run_folder / "reports/quick/tables/main.md"
    complete.parent.mkdir(parents=True)
    complete.write_text("complete")
    shutil.rmtree(f"{RUN}/pythia")
    partial = make_report(config, run_folder)
    assert complete.read_text() == "complete"
    # Tables of an earlier state of the run do not stay.
    (partial / "tables/old.md").touch()
    make_report(config, run_folder)
    assert not (partial / "tables/old.md").exists()


def test_a_run_without_any_metric_value_is_a_one_line_error(config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"no metric values yet: results/quick/data/gsm8k/") as e:
        make_report(config, tmp_path)
    assert "\n" not in str(e.value)
    assert not (tmp_path / "reports").exists()


@pytest.mark.parametrize(
    "overlay",
    ["models: { pythia: null }", "models: { gemma: null, pythia: null }\nbenchmarks: { pq: null }"],
)
@pytest.mark.parametrize("name", TABLES)
def test_a_restricted_run_has_every_table(name, overlay, finished_run, tmp_path, monkeypatch):
    (tmp_path / "overlay.yaml").write_text(overlay)
    config = load_scale(tmp_path / "overlay.yaml")
    monkeypatch.chdir(finished_run)
    sources = report_sources.entry_values(config, TABLES[name])
    params = {
        "sources": sources,
        "scale": "Tiny.",
        "scale_note": "Toys.",
        "prefix": str(tmp_path / name),
    }
    params |= {"metadata": {"run": config.run}}
    wildcards = SimpleNamespace(table=name)
    make_table.main(SimpleNamespace(wildcards=wildcards, params=SimpleNamespace(**params)))
    text = (tmp_path / f"{name}.md").read_text()
    assert "Partial" not in text
    assert "Pythia" not in text or name == "cost"
