"""Tables and figures of unfinished runs."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

import make_partial_report
import make_table
from zerogap.pipeline.report import sources
from zerogap.pipeline.report.figures import FIGURES
from zerogap.pipeline.report.tables import TABLES

RUN = "results/quick"
OPTIONS = {"bins": 5, "n_resamples": 40}  # those of the synthetic metrics


@pytest.fixture
def run_folder(finished_run, tmp_path, monkeypatch):
    """A copy of a finished run, from which a test removes something."""
    shutil.copytree(finished_run, tmp_path / "run")
    monkeypatch.chdir(tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def make_report(config, run_folder, job, monkeypatch):
    """Makes a partial report with the given figures; its folder."""

    def make(*figures):
        monkeypatch.setattr(make_partial_report, "FIGURES", {n: FIGURES[n] for n in figures})
        folder = run_folder / "reports/quick/partial"
        one = job(
            folder=str(folder),
            settings=sources.metrics_inputs(config),
            options=OPTIONS,
            tables={name: entry.source.located(config) for name, entry in TABLES.items()},
            figures={name: entry.source.located(config) for name, entry in FIGURES.items()},
        )
        one.log = [str(run_folder / "log.txt")]
        make_partial_report.main(one)
        return folder

    return make


def rows(partial, name):
    return pd.read_csv(partial / f"tables/{name}.csv").set_index("key")


def partial_tables(partial):
    texts = {path.stem: path.read_text() for path in partial.glob("tables/*.json")}
    return {name for name, text in texts.items() if "Partial table" in json.loads(text)["caption"]}


def test_a_complete_run_has_the_tables_of_the_complete_report(config, make_report, job, tmp_path):
    partial = make_report()
    assert len((partial / "missing.txt").read_text().splitlines()) == 1
    assert {path.stem for path in partial.glob("tables/*.md")} == set(TABLES)
    assert not partial_tables(partial)
    source = TABLES["main"].source.located(config)
    make_table.main(job({"table": "main"}, source=source, prefix=str(tmp_path / "main")))
    for suffix in ("csv", "tex"):
        complete = (tmp_path / f"main.{suffix}").read_text().split("\n", 1)[1]
        assert (partial / f"tables/main.{suffix}").read_text().split("\n", 1)[1] == complete


def test_a_failed_model_is_left_out_of_every_table(make_report):
    shutil.rmtree(f"{RUN}/pythia")
    partial = make_report("loss", "mechanism")
    assert list(rows(partial, "main").filter(regex="/[a-z0-9]+$")) == [
        "gsm8k/llama2", "gsm8k/gemma", "pq/llama2", "pq/gemma",
    ]  # fmt: skip
    missing = (partial / "missing.txt").read_text()
    assert f"{RUN}/pythia/gsm8k/cells/ted/solve.parquet: does not exist" in missing
    for name in ("table memorisation", "table diagnostics", "table cost", "figure loss"):
        assert f"{name}: not made; {RUN}/pythia/" in missing
    assert {path.stem for path in partial.glob("figures/*.svg")} == {"mechanism"}
    # The tables of the primary setting lack nothing.
    assert "main" in partial_tables(partial)
    assert not {"reversal", "ablation", "inline_numbers"} & partial_tables(partial)


def test_a_missing_strategy_is_a_dash_and_the_others_are_evaluated(make_report, capsys):
    path = f"{RUN}/llama2/gsm8k/cells/ted/solve.parquet"
    complete = rows(make_report(), "main")
    for name in ("cells/ted/solve.parquet", "metrics.parquet", "ranks.parquet"):
        Path(f"{RUN}/llama2/gsm8k/{name}").unlink()
    partial = make_report()
    main = rows(partial, "main")
    ted = main.index == "ted"
    assert main.loc["ted", ["gsm8k/llama2", "gsm8k/gemma"]].isna().tolist() == [True, False]
    pd.testing.assert_frame_equal(main[~ted], complete[~ted])
    text = (partial / "missing.txt").read_text()
    assert f"{path}: does not exist" in text
    assert "table inline_numbers: not made; " in text
    assert capsys.readouterr().err.endswith(text)


def test_a_missing_variant_of_the_ablation_leaves_the_main_tables_complete(make_report, run_folder):
    complete = rows(make_report(), "ablation")
    folder = run_folder / RUN / "llama2/gsm8k"
    (folder / "ablation_metrics.parquet").unlink()
    (folder / "cells/railcap_n3/solve.parquet").unlink()
    partial = make_report()
    assert partial_tables(partial) == {
        "ablation", "ablation_vs_paper", "variants", "intervals", "subsets",
    }  # fmt: skip
    pd.testing.assert_frame_equal(rows(partial, "ablation"), complete.drop(index="railcap_n3"))


def test_complete_tables_are_never_overwritten_and_old_partial_ones_go(make_report, run_folder):
    complete = run_folder / "reports/quick/tables/main.md"
    complete.parent.mkdir(parents=True)
    complete.write_text("complete")
    partial = make_report()
    assert complete.read_text() == "complete"
    (partial / "tables/old.md").touch()
    make_report()
    assert not (partial / "tables/old.md").exists()


def test_a_run_without_any_metric_value_lists_what_is_missing(make_report, run_folder):
    shutil.rmtree(RUN)
    partial = make_report()
    assert not list(partial.glob("tables/*"))
    assert (
        "table main: not made; there are no metric values yet"
        in (partial / "missing.txt").read_text()
    )
