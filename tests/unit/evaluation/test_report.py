"""The files of an evaluation for a reader, from responses whose values can be counted by hand."""

import json
from types import SimpleNamespace

import pytest

from helpers.evaluations import evaluated
from zerogap.evaluation import report
from zerogap.io import parquet
from zerogap.io.provenance import provenance

SAMPLING = {"temperature": 0.7, "top_p": 1.0, "max_new_tokens": 256, "num_samples": 4}
RIGHT = {"identity": [4, 2, 0], "railcap": [1, 1, 0], "clean": [2, 2, 0]}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of an evaluation with RailCap and a clean model, without its plot."""
    monkeypatch.setattr(report, "_plot", lambda *_: None)
    questions, greedy, samples = evaluated(RIGHT)
    samples = {name: table.assign(answer="1") for name, table in samples.items()}
    drawn = provenance(model="meta/Llama", engine="zerogap", sampling=SAMPLING)
    files = {name: tmp_path / f"{name}.parquet" for name in RIGHT}
    for name, path in files.items():
        counts = questions[["question_id"]].assign(leaked=False, n_correct=RIGHT[name], n_samples=4)
        counts["first_correct"] = counts.n_correct == 4
        parquet.write(path, counts, "solve", drawn)
    (tmp_path / "settings.json").write_text("{}")
    del samples["clean"]
    asked = SimpleNamespace(questions=questions, name="gsm8k", repository="openai/gsm8k")
    request = SimpleNamespace(
        question_set=asked, model="meta/Llama", num_samples=4, output=tmp_path, clean="meta/clean"
    )
    greedy = greedy.assign(answer="1")
    report.write_report(request, SimpleNamespace(greedy=greedy, samples=samples, files=files))
    return tmp_path


def test_the_record_has_one_result_per_strategy_and_number_of_its_tables(folder):
    record = json.loads((folder / "every_eval_ever.json").read_text())
    scores = {
        result["evaluation_result_id"]: result["score_details"]["score"]
        for result in record["evaluation_results"]
    }
    assert len(scores) == len(record["evaluation_results"])
    assert scores["all/identity/solve_mean"] == 0.5
    assert scores["all/railcap/drop"] == pytest.approx(1 / 3)
    assert scores["all/identity/sa_ppg"] == pytest.approx((0.5 / 2 + 0) / 2)
    assert "all/identity/drop" not in scores
    assert record["model_info"]["id"] == "meta/Llama"


def test_the_summary_is_a_section_for_a_model_card(folder):
    section = (folder / "summary.md").read_text()
    assert section.startswith("## Signs of memorisation: Llama on gsm8k\n")
    assert "Note: 3 questions are too few for intervals" in section
    assert "### Verdict" in section
    assert "questions.csv has all" not in section  # a card does not come with the file
    assert "temperature 0.7 · top_p 1.0 · max_tokens 256" in section.splitlines()[-1]
