"""The scripts of the report on a synthetic run: every table and figure, claims and pages."""

import json
import os
import shutil
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

import check_claims
import compute_metrics
import make_figure
import make_table
import write_index
import write_provenance
from helpers import synthetic_run
from helpers.configurations import QUICK, overlaid
from helpers.paths import ROOT
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.pipeline import targets
from zerogap.pipeline.report import sources
from zerogap.pipeline.report.figures import FIGURES, FIRST_PAGE
from zerogap.pipeline.report.tables import TABLES
from zerogap.reporting.claims import CANNOT_TELL, SUPPORTED


def quick(**overlay):
    """The quick scale without some models, benchmarks or strategies."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return overlaid(QUICK, overlay)


@pytest.fixture(scope="session")
def config():
    return quick()


@pytest.fixture(scope="session")
def finished_run(config, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        synthetic_run.write_run(config)
        synthetic_run.write_timings(config)
    return folder


@pytest.fixture
def in_run(finished_run, monkeypatch):
    monkeypatch.chdir(finished_run)


@pytest.fixture
def in_copy(finished_run, tmp_path, monkeypatch):
    """In a copy of the run, to be edited."""
    shutil.copytree(finished_run / "results", tmp_path / "results")
    monkeypatch.chdir(tmp_path)


def job(wildcards=(), inputs=(), **params):
    options = {"scale": "A tiny run.", "scale_note": "A toy.", "metadata": {"run": "quick"}}
    return SimpleNamespace(
        wildcards=SimpleNamespace(**dict(wildcards)),
        input=SimpleNamespace(**dict(inputs)),
        params=SimpleNamespace(**options | params),
    )


@pytest.fixture
def make(tmp_path):
    """Makes a table or figure; its files without their suffix."""

    def make_one(config, kind, name):
        script, entries = {"table": (make_table, TABLES), "figure": (make_figure, FIGURES)}[kind]
        source, prefix = entries[name].source.locate(config), str(tmp_path / name)
        script.main(job({kind: name}, source=source, prefix=prefix))
        return tmp_path / name

    return make_one


@pytest.mark.usefixtures("in_run")
@pytest.mark.parametrize(
    ("kind", "name"), [*(("table", t) for t in TABLES), *(("figure", f) for f in FIGURES)]
)
def test_everything_is_made_from_the_inputs_of_its_rule(kind, name, config, make):
    entry = TABLES[name] if kind == "table" else FIGURES[name]
    files = entry.source.files(config)
    assert files
    assert all(Path(path).exists() for path in files)
    made = make(config, kind, name)
    suffixes = (".csv", ".tex", ".html") if kind == "table" else (".pdf", ".png", ".svg")
    for suffix in suffixes:
        assert made.with_suffix(suffix).stat().st_size > 100
    if kind == "table":
        text = made.with_suffix(".md").read_text()
        assert text.startswith(f"**{entry.title('Table')}**")
        assert "A tiny run." in text
        assert "A toy." in text
        assert "<!-- run quick · zerogap" in text
        assert made.with_suffix(".tex").read_text().startswith("% run quick · zerogap")
        assert "<footer>run quick · zerogap" in made.with_suffix(".html").read_text()


@pytest.mark.usefixtures("in_run")
@pytest.mark.parametrize(
    "overlay",
    [
        {"models": {"gemma": None, "pythia": None}, "benchmarks": {"pq": None}},
        {"strategies": {"ted": None}, "ablation": {"ted_unfiltered": None}},
    ],
)
def test_a_restricted_run_has_every_table(overlay, make):
    config = quick(**overlay)
    for name in TABLES:
        text = make(config, "table", name).with_suffix(".md").read_text()
        assert "pythia" in config.models or "Pythia" not in text or name == "cost"


@pytest.mark.usefixtures("in_copy")
def test_the_first_page_is_made_from_the_main_table_the_claims_and_two_figures(
    config, make, tmp_path
):
    figures = [f"{make(config, 'figure', name)}.png" for name in FIRST_PAGE]
    claims = tmp_path / "claims.csv"
    claims.write_text(
        "claim,about,place,text,verdict\nbest,the metric,Table 3,RailCap is best.,cannot tell\n"
    )
    first, second, third, *_ = targets.code_of_responses(config)
    of_first, of_third = map(parquet.provenance, (first, third))
    of_first["code_digest"] = "today's"
    of_third["shards"] = [of_third | {"code_digest": each} for each in ("today's", "older")]
    for path, made_by in ((first, of_first), (third, of_third)):
        parquet.write(path, parquet.read(path, "samples"), "samples", made_by)
    page = job(
        inputs={"claims": str(claims), "figures": figures},
        source=TABLES["main"].source.locate(config),
        code_of_responses=dict.fromkeys((first, second, third), "today's"),
    )
    page.output = SimpleNamespace(index=tmp_path / "index.html", fragment=tmp_path / "part.html")
    write_index.main(page)
    fragment, index = page.output.fragment.read_text(), page.output.index.read_text()
    assert fragment in index
    assert "older than the code: 2<" in fragment
    assert second in fragment
    for shown in ("A toy.", "A tiny run.", "Table 3: SA-PPG", "RailCap is best.", "Noise floor"):
        assert shown in fragment
    assert all(f'href="tables/{name}.html"' in index for name in TABLES)
    assert all(f'href="figures/{name}.png"' in index for name in FIGURES)


@pytest.mark.usefixtures("in_copy")
def test_cost_adds_up_the_shards_of_a_cell(config, make):
    sampling = config.sampling.model_copy(update={"num_shards": 2})
    sharded = config.model_copy(update={"sampling": sampling})
    synthetic_run.write_timings(sharded)
    Path("results/quick/timings/llama2/gsm8k/cells/identity.shard-1-of-2.tsv").unlink()
    cost = make(sharded, "table", "cost")
    rows = pd.read_csv(cost.with_suffix(".csv")).set_index("key")
    columns = ["responses", "tokens", "tokens_per_response", "seconds", "tokens_per_second"]
    assert rows.loc["llama2/gsm8k/railcap", columns].tolist() == [100, 300, 3, 3, 100]
    assert rows.loc["llama2/gsm8k/train_lora", columns].isna().tolist() == [1, 1, 1, 0, 1]
    # A cell without the timing of one shard counts its tokens, and no seconds.
    assert rows.loc["llama2/gsm8k/identity", ["tokens", "seconds"]].isna().tolist() == [0, 1]
    assert "1 job(s) have no timing" in cost.with_suffix(".md").read_text()


@pytest.mark.usefixtures("in_run")
def test_claims_are_checked_from_the_files_of_the_run(tmp_path):
    config = quick(benchmarks={"pq": None})
    source = sources.RESULTS.locate(config)
    check_claims.main(job(source=source, prefix=str(tmp_path / "sheet")))
    rows = pd.read_csv(tmp_path / "sheet.csv").set_index("claim")
    collapse = rows.loc["collapse"]
    unleaked = collapse[collapse["evidence"].str.contains("ROUGE-L, unleaked")]
    assert set(unleaked["evidence_verdict"]) == {SUPPORTED}
    path = "results/quick/llama2/clean_gsm8k/cells/batch1/solve.parquet"
    never_solved = (parquet.read(path, "solve").n_correct == 0).mean()
    assert f"{never_solved:.3f} [" in rows.loc["never_solved", "evidence"]
    # Without the metrics of PQ, there is no evidence for or against the claims about it.
    about_pq = ["lne_worse_on_pq", "shortcut_lead_narrows"]
    assert (rows.loc[about_pq, "verdict"] == CANNOT_TELL).all()
    assert rows.drop(index=about_pq)["evidence"].notna().all()
    assert "A toy. A tiny run." in (tmp_path / "sheet.md").read_text()


RUN = "results/quick"
SETTING = f"{RUN}/llama2/gsm8k"


def compute_metrics_of(config, tmp_path):
    tables = targets.solve_tables(config, "llama2", "gsm8k")
    inputs = {
        "clean": f"{RUN}/llama2/clean_gsm8k/cells/batch1/solve.parquet",
        "strategies": list(tables.values()),
        "questions": f"{RUN}/data/gsm8k/questions.parquet",
    }
    task = job({"model": "llama2", "benchmark": "gsm8k"}, inputs, strategies=list(tables), only=[])
    task.params.options = {"n_resamples": 10}
    task.output = [tmp_path / "metrics.parquet"]
    compute_metrics.main(task)


@pytest.mark.usefixtures("in_copy")
@pytest.mark.parametrize(
    ("first", "second", "reader"),
    [
        ("cells/railcap/solve", "cells/identity/solve", "compute_metrics"),
        ("metrics", "../pq/metrics", "main"),
        ("overlap", "../../gemma/gsm8k/overlap", "memorisation"),
        ("../../data/gsm8k/questions", "../../data/pq/questions", "scatter"),
        ("cells/railcap/samples", "cells/ted/samples", "extraction_agreement"),
    ],
)
def test_exchanged_files_are_an_error(first, second, reader, config, make, tmp_path):
    paths = [Path(os.path.normpath(f"{SETTING}/{name}.parquet")) for name in (first, second)]
    paths[0].rename("kept")
    paths[1].rename(paths[0])
    Path("kept").rename(paths[1])
    read = partial(make, config, "table" if reader in TABLES else "figure", reader)
    if reader == "compute_metrics":
        read = partial(compute_metrics_of, config, tmp_path)
    with pytest.raises(InputError, match=r"\.parquet: was made for run quick, .*; move it back"):
        read()


@pytest.mark.usefixtures("in_copy")
def test_a_file_without_provenance_is_an_error(config, tmp_path):
    compute_metrics_of(config, tmp_path)
    edited = f"{SETTING}/cells/railcap/solve.parquet"
    pd.read_parquet(edited).to_parquet(edited)
    with pytest.raises(InputError, match=r"railcap/solve\.parquet: has no provenance"):
        compute_metrics_of(config, tmp_path)


@pytest.mark.usefixtures("in_run")
def test_provenance_lists_the_versions_recorded_in_the_files(config, tmp_path):
    questions = pd.DataFrame(
        [("7", "How many?", "One.", "1", False, None)], columns=parquet.CONTRACTS["questions"].names
    )
    made = {"left_out": ["7"], "served_models": ["m, fp-7"]}
    parquet.write(tmp_path / "questions.parquet", questions, "questions", made)
    inputs = {
        "responses": sources.SAMPLES.files(config),
        "metrics": sources.METRICS.files(config),
        "questions": [tmp_path / "questions.parquet"],
    }
    values = config.model_dump(mode="json", by_alias=True)
    prefix = str(tmp_path / "provenance")
    write_provenance.main(job((), inputs, config=values, benchmarks=["PQ"], prefix=prefix))
    page = json.loads((tmp_path / "provenance.json").read_text())
    assert page["config"] == values
    assert page["software"]["Responses"] == {"commit": "abc", "torch": "1"}
    assert page["software"]["Report"]["python"]
    assert page["left_out"] == {"PQ": ["7"]}
    assert page["software"]["Chat model"] == {"paraphrases of PQ": "m, fp-7"}
    assert "abc" in (tmp_path / "provenance.html").read_text()
