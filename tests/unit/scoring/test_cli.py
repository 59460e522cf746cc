import csv
import io
import json
import re
import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest

import zerogap
from helpers.response_files import json_lines, record, text
from helpers.synthetic_run import solve_tables
from zerogap.cli import main
from zerogap.io import parquet
from zerogap.metrics import sa_ppg
from zerogap.metrics.evaluate import evaluate
from zerogap.scoring import inputs
from zerogap.scoring import score as scoring

FAST = ["--resamples", "100"]
TED = ["--clean", "clean.parquet", "ted.parquet"]  # files of the fixture `tables`


@pytest.fixture
def tables():
    """`solve` tables as Parquet: the clean model's two batches, TED's and RailCap's."""
    clean, strategies = solve_tables(n=30, m=20)
    tables = {"clean": clean, **{k: strategies[k] for k in ("ted", "railcap", "clean_batch2")}}
    for name, table in tables.items():
        parquet.write(f"{name}.parquet", table, "solve", provenance={})
    return tables


def score(capsys, *arguments):
    """The exit status, stdout and stderr of `zerogap score`, quick bootstrap."""
    status = main(["score", *FAST, *map(str, arguments)])
    return status, *capsys.readouterr()


def rejected(capsys, *arguments):
    status, out, err = score(capsys, *arguments)
    assert (status, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err


def counts(path, n_questions, n_correct, n_samples=10, num_leaked=0):
    """A file of the same counts for every question, of which the first ones leaked."""
    row = {"n_correct": n_correct, "n_samples": n_samples}
    leaks = [{"leaked": k < num_leaked} if num_leaked else {} for k in range(n_questions)]
    return json_lines(path, [{"id": k, **row, **leak} for k, leak in enumerate(leaks)])


@pytest.mark.parametrize("resample", ["questions", "samples"])
def test_values_equal_evaluate_on_the_same_tables(resample, tables, capsys):
    paths = [*TED, "custom=railcap.parquet", "--clean-batch2", "clean_batch2.parquet"]
    paths += ["--resample", resample]
    options = ["--bins", "10", "--seed", "3", "--confidence-level", "0.8"]
    status, out, _ = score(capsys, *paths, *options, "--format", "json")
    assert status == 0
    table = pd.DataFrame(json.loads(out)["metrics"])
    names = {"ted": "ted", "custom": "railcap", "clean_batch2": "clean_batch2"}
    strategies = {name: tables[key] for name, key in names.items()}
    expected = evaluate(
        "responses", "clean.parquet", tables["clean"], strategies, bins=10, n_resamples=100,
        confidence_level=0.8, seed=3, resample=resample,
    )  # fmt: skip
    pd.testing.assert_frame_equal(table.astype({"ci_low": float, "ci_high": float}), expected)
    assert f"intervals over {resample}" in score(capsys, *paths)[1]


def test_a_strategy_is_named_after_its_file_without_gz_and_after_its_whole_folder(tables, capsys):
    frame = tables["ted"].drop(columns="leaked")
    frame.to_csv("identity.csv.gz", index=False)
    Path("T0.7").mkdir()
    frame.to_csv("T0.7/counts.csv", index=False)
    paths = ["--clean", "clean.parquet", "identity.csv.gz", "T0.7"]
    out = json.loads(score(capsys, *paths, "--format", "json")[1])
    assert {row["strategy"] for row in out["metrics"]} >= {"identity", "T0.7"}


def test_every_format_shows_the_same_values(tables, capsys):
    columns = ["n_correct", "n_samples"]
    value = sa_ppg(*(tables[name][c] for name in ("ted", "clean") for c in columns))
    for form in ("table", "md", "tex"):
        status, out, _ = score(capsys, *TED, "--format", form)
        assert status == 0, form
        assert f"{value:.3f} " in out.replace("\n", " "), form
        for subset in ("all (30)", "leaked (15)", "unleaked (15)"):
            assert subset in out
    _, out, _ = score(capsys, *TED, "--format", "csv")
    (row, *_) = csv.DictReader(io.StringIO(out))
    assert row["key"] == "ted"
    assert float(row["sa_ppg"]) == pytest.approx(value)
    assert float(row["sa_ppg_ci_low"]) < value < float(row["sa_ppg_ci_high"])


def test_output_contains_all_values_and_the_options_and_is_a_file_of_its_own(tables, capsys):
    for name in ("m.parquet", "m.csv"):
        assert score(capsys, *TED, "--output", name)[0] == 0
    table = parquet.read("m.parquet", "metrics")
    pd.testing.assert_frame_equal(pd.read_csv("m.csv"), table)
    assert parquet.provenance("m.parquet")["files"]["ted"] == "ted.parquet"
    assert "ted.parquet" in rejected(capsys, *TED, "--output", "ted.parquet/m.csv")
    outputs = ["--html", "page.html", "--plot", "plot.png"]
    Path("page.html").touch()
    Path("plot.png").symlink_to("page.html")
    assert "is the same file as" in rejected(capsys, *TED, *outputs)


def test_a_plot_without_matplotlib_is_one_line_before_anything_is_written(
    tables, monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    error = rejected(capsys, *TED, "--output", "m.csv", "--plot", "plot.png")
    assert error.startswith("error: --plot needs matplotlib, which is not installed; ")
    assert not Path("m.csv").exists()


def test_a_record_has_the_printed_values(tables, capsys):
    status, out, _ = score(capsys, *TED, "--record", "r.json", "--format", "csv")
    assert status == 0
    printed = next(row for row in csv.DictReader(io.StringIO(out)) if row["key"] == "ted")
    filed = json.loads(Path("r.json").read_text())["evaluation_results"]
    of_all = [result for result in filed if result["evaluation_result_id"].startswith("all/ted/")]
    assert {"sa_ppg", "solve_mean"} <= {each["evaluation_result_id"][8:] for each in of_all}
    for result in of_all:
        column = result["evaluation_result_id"].removeprefix("all/ted/")
        details = result["score_details"]
        assert details["score"] == pytest.approx(float(printed[column]))
        interval = details["uncertainty"]["confidence_interval"]
        assert interval["lower"] == pytest.approx(float(printed[f"{column}_ci_low"]))
        assert details["details"]["num_responses"] == str(tables["ted"]["n_samples"].sum())


def test_markdown_is_a_section_with_notes_assumption_and_settings(capsys):
    clean, ted = (counts(name, 6, 3) for name in ("clean", "ted"))
    _, out, _ = score(capsys, "--clean", clean, ted, "--seed", "7", "--format", "md")
    parts = out.split("\n\n")
    assert parts[0].startswith("## ")
    assert "Note: 6 questions are too few for intervals" in out
    assert parts[-2].startswith("What this assumes: ")
    assert f"zerogap {zerogap.__version__}" in parts[-1]
    assert "seed 7" in parts[-1]


def test_subsets_are_given_only_where_the_leaked_questions_are_known(capsys):
    clean, other = (counts(name, 5, 2) for name in ("clean", "custom"))
    ids = text("leaked.txt", "1", "3")

    def subsets(*more):
        _, out, _ = score(capsys, "--clean", clean, other, "--format", "json", *more)
        return {row["subset"] for row in json.loads(out)["metrics"]}

    assert subsets() == {"all"}
    assert subsets("--leaked", ids) == {"all", "leaked", "unleaked"}
    text(ids, "1", "9")
    assert "leaked: 1 question (9) not in" in rejected(
        capsys, "--clean", clean, other, "--leaked", ids
    )
    counts(other, 5, 2, num_leaked=2)
    assert subsets() == {"all", "leaked", "unleaked"}
    counts(clean, 5, 2, num_leaked=1)
    assert "leaked differs from" in rejected(capsys, "--clean", clean, other)


def test_g_ap_is_left_out_where_first_responses_are_unknown(capsys):
    rows = [{"id": k, "n_correct": k, "n_samples": 4} for k in range(5)]
    with_first = [row | {"first_correct": row["n_correct"] > 0} for row in rows]
    known, again = (json_lines(f"{name}.jsonl", with_first) for name in "ac")
    blind = json_lines("b.jsonl", rows)

    def with_g_ap(clean, *others):
        _, out, err = score(capsys, "--clean", clean, *others, "--format", "json")
        assert ("G-AP, which needs one response" in err) == (blind in (clean, *others))
        table = pd.DataFrame(json.loads(out)["metrics"])
        return set(table[table["metric"].str.fullmatch("g_ap(_vs_.*)?")]["strategy"])

    assert with_g_ap(known, again) == with_g_ap(known, again, blind) == {"c"}
    assert with_g_ap(blind, again) == set()


def test_questions_must_equal_those_of_the_clean_file(capsys):
    clean, fewer, more = (counts(str(n), n, 0) for n in (12, 9, 13))
    none = counts("none", 12, 0, n_samples=0)
    other = json_lines("abc", [{"id": k, "n_correct": 0, "n_samples": 4} for k in "abc"])
    for file, message in (
        (fewer, f"{fewer}: 3 questions (9, 10, 11) of {clean} missing; "),
        (more, f"{more}: 1 question (12) not in {clean}; "),
        (other, f"has no question in common with {clean} (here 3 questions (a, b, c)"),
        (other, "12 questions (0, 1, 2, 3, 4, …)"),
    ):
        assert message in rejected(capsys, "--clean", clean, file)
    assert score(capsys, "--clean", clean, none)[0] == 0  # a filter may leave nothing
    assert "needs at least one for every question" in rejected(
        capsys, "--clean", none, f"custom={clean}"
    )


def test_tables_are_aligned_with_the_clean_table():
    clean, custom = (
        inputs.load(json_lines(name, [{"id": k, "correct": k == 1} for k in ids]))
        for name, ids in (("clean.jsonl", [0, 1, 2]), ("custom.jsonl", [2, 1, 0]))
    )
    aligned = scoring.align(clean, {"custom": custom}, leaked=["2"])
    pd.testing.assert_frame_equal(aligned.strategies["custom"], aligned.clean)
    assert aligned.clean["question_id"].tolist() == ["0", "1", "2"]
    assert aligned.clean["leaked"].tolist() == [False, False, True]


def test_questions_with_a_cluster_are_drawn_in_clusters(capsys):
    rows = [{"id": k, "n_correct": 1 + k % 2, "n_samples": 4} for k in range(40)]
    clean, custom, other = (
        json_lines(name, [row | {"cluster": row["id"] // size} for row in rows])
        for name, size in (("clean", 10), ("custom", 10), ("other", 20))
    )
    _, out, err = score(capsys, "--clean", clean, custom)
    assert "bootstrap intervals over clusters of questions" in out
    assert "note: 4 clusters of questions are too few for intervals" in err
    assert f"{other}: cluster differs from {clean} for 30 questions (10, " in rejected(
        capsys, "--clean", clean, other
    )


def test_the_lowest_sa_ppg_is_bold_and_identity_does_not_compete(tables, capsys):
    names = ("identity=railcap.parquet", "custom=ted.parquet")
    _, out, _ = score(capsys, *TED, *names, "--format", "md")
    rows = re.findall(r"^\| (?:ted|identity|custom) .*", out, re.MULTILINE)
    assert [("**" in row) for row in rows] == [True, False, True] * 3
    assert "Bold: the lowest value of a strategy, a point estimate" in out
    beaten = "Identity, the model without mitigation, has a lower value than every strategy"
    assert f"{beaten} in: all, leaked, unleaked." in out
    files = (*TED[:2], "identity=ted.parquet", "railcap.parquet")
    assert beaten not in score(capsys, *files, "--format", "md")[1]


def test_differing_documents_are_noted(capsys):
    one, two, older = (
        json_lines(str(k), [record(q, ["18", "1"], doc_hash=hashed[k]) for q in "01"])
        for k, hashed in enumerate([["d", "e", None]] * 3)
    )
    assert "2 questions (0, 1) with a different document" in score(capsys, "--clean", one, two)[2]
    for clean, custom in ((one, one), (older, older), (older, one), (one, older)):
        assert "doc_hash" not in score(capsys, "--clean", clean, f"again={custom}")[2]


def test_an_equals_sign_may_be_part_of_a_files_name(tables, capsys):
    odd = Path("ted.parquet").rename("n=4.parquet")
    assert "n=4" in score(capsys, "--clean", "clean.parquet", odd)[1]


ALONE = [(k, 10) for k in range(10)]  # ten questions in as many strata
EIGHT = [(1, 9), (3, 9)] * 12
NOTES = [  # (correct, sampled) of the questions in the clean file and in the other one
    ([(0, 4)] * 2, [(0, 2), (0, 1)], "1 to 2 responses per question"),
    ([(0, 4)] * 2, [(0, 2), (0, 1)], "differs between the files (medians: clean 4, custom 1)"),
    ([(0, 10)] * 40, [(0, 1)] * 40, "one response per question, so a solve probability is 0 or 1"),
    ([(1, 10)] * 19, [(1, 10)] * 19, "19 questions are too few for intervals"),
    ([(1, 10)] * 20, [(2, 10)] * 20, None),
    ([(1, 10)] * 20, [(1, 10)] * 20, "custom: has the counts of clean; is it a copy?"),
    ([(0, 10)] * 20, [(1, 10)] * 20, "THE CLEAN MODEL SOLVES NONE of the questions"),
    (ALONE, ALONE, "10 of the 10 strata with questions have fewer than 5, 10 of them one"),
    ([*EIGHT, (5, 9)], EIGHT * 2, "1 of the 3 strata with questions have fewer than 5, 1 of them"),
    ([*EIGHT, (5, 9), (5, 9)], EIGHT * 2, None),
]


@pytest.mark.parametrize(("clean", "custom", "note"), NOTES)
def test_what_a_reader_should_know_is_noted(clean, custom, note, capsys):
    paths = []
    for name, counted in (("clean", clean), ("custom", custom)):
        rows = [
            {"id": k, "n_correct": c, "n_samples": m, "first_correct": c > 0}
            for k, (c, m) in enumerate(counted[: len(clean)])
        ]
        paths.append(json_lines(name, rows))
    _, _, err = score(capsys, "--clean", *paths)
    assert (note or "") in err
    assert ("note:" in err) == (note is not None)
    assert "strata with" not in score(capsys, "--clean", *paths, "--bins", "1")[2]


@pytest.mark.parametrize(
    ("n_questions", "num_leaked", "n_samples", "marked"),
    [
        (19, 0, 10, {"": False}),
        (20, 0, 10, {"": True}),
        (20, 0, 1, {"": False}),
        (39, 19, 10, {"all": True, "leaked": False, "unleaked": True}),
    ],
)
def test_differences_of_few_questions_or_single_responses_are_not_marked(
    n_questions, num_leaked, n_samples, marked, capsys
):
    """The strategies differ on every question, so their difference would be marked."""
    clean, identity = (
        counts(name, n_questions, n_correct, num_leaked=num_leaked)
        for name, n_correct in (("clean", 0), ("identity", 10))
    )
    other = counts("other", n_questions, 0, n_samples, num_leaked)
    _, out, _ = score(capsys, "--clean", clean, identity, other, "--format", "md")
    assert "**" not in out  # the clean model solves nothing
    sections = re.findall(r"^\| \*(\w+) ", out, re.MULTILINE) or [""]
    rows = re.findall(r"^\| other .*", out, re.MULTILINE)
    assert {s: "−1.000†" in row for s, row in zip(sections, rows, strict=True)} == marked


def test_questions_with_one_response_or_none_are_single_responses(tables, capsys):
    """As of a strategy that drops most of them."""
    ids = tables["clean"].question_id
    rows = [{"id": i, "n_correct": 0, "n_samples": int(k > 18)} for k, i in enumerate(ids)]
    _, _, err = score(capsys, "--clean", "clean.parquet", json_lines("ted.jsonl", rows))
    assert "ted.jsonl: one response per question, so" in err


def test_a_strategy_that_drops_most_responses_leaves_the_marks_of_the_others(capsys):
    clean, identity = counts("clean", 20, 0), counts("identity", 20, 10)
    rows = [{"id": k, "n_correct": 0, "n_samples": 2 * (k == 0)} for k in range(20)]
    files = [counts("other", 20, 0), identity, json_lines("ted.jsonl", rows)]
    _, out, err = score(capsys, "--clean", clean, *files, "--format", "md")
    assert "−1.000†" in re.search(r"^\| other .*", out, re.MULTILINE)[0]
    assert "one response per question" not in err


def test_disagreements_of_the_rules_are_written(capsys):
    rows = [{"id": 1, "response": text, "gold": "18"} for text in ("#### 18", "who knows")]
    clean = json_lines("clean.jsonl", rows)
    _, _, err = score(capsys, "--clean", clean, f"x={clean}", "--disagreements", "differ.jsonl")
    assert "note: differ.jsonl: 2 responses on which rules disagree" in err
    listed = [json.loads(line) for line in Path("differ.jsonl").read_text().splitlines()]
    assert [row["response"] for row in listed] == ["#### 18", "#### 18"]


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--extraction", "flexible-extract", "no file has responses with gold answers"),
        ("--disagreements", "d.jsonl", "every file says which responses are correct; name"),
        ("--filter", "x", "no file is a log with several filters"),
        ("--clean-batch2", "clean.parquet", "is the file of --clean"),
    ],
)
def test_options_that_do_not_apply_are_rejected(option, value, message, tables, capsys):
    assert f"error: {option}: {message}" in rejected(capsys, *TED, option, value)


@pytest.mark.parametrize("width", [60, 80, 100, 250])
def test_a_table_fits_the_terminal(width, tables, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    paths = ["--clean", "clean.parquet", "identity=ted.parquet"]
    _, out, _ = score(capsys, *paths, "--clean-batch2", "clean_batch2.parquet")
    out = re.sub("\x1b[^m]*m", "", out)
    assert max(map(len, out.splitlines())) <= width
    assert "clean, batch 2 " in out
    assert ("Not shown: other intervals" in out) == (width < 250)
    header = next(line for line in out.splitlines() if line.startswith("Strategy"))
    for name in ("SA-PPG", "G-APP", "G-AP"):
        assert (name in header.split()) != (name in out.partition("Not shown")[2])


def test_version_is_printed(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"zerogap {zerogap.__version__}\n"


def test_files_with_other_gold_answers_are_not_compared(capsys):
    """The same question ids of another task, as lm_eval logs, responses and marks."""
    log, other = (
        json_lines(gold, [record(k, ["18"], gold=gold) for k in "01"]) for gold in ("18", "19")
    )
    assert f"{other}: 2 questions (0, 1) with another gold answer than in {log}" in rejected(
        capsys, "--clean", log, other
    )
    first, shifted = (
        json_lines(f"{start}", [record(k + start, ["1"], gold=str(k)) for k in range(9)])
        for start in (0, 1)
    )
    assert "(lm_eval counts from 0, Inspect from 1)" in rejected(capsys, "--clean", first, shifted)
    for same in ({"text": "18", "gold": "18.0"}, {"correct": True, "gold": "9 + 9 = 18\n#### 18"}):
        file = json_lines("same", [{"id": k, **same} for k in "01"])
        assert score(capsys, "--clean", log, file)[0] == 0


def run_file(place, **made_by):
    """A strategy's `solve` table where a run has it, and its provenance."""
    path = Path(f"run/{place}/gsm8k/cells/railcap/solve.parquet")
    table, _ = solve_tables(n=30, m=20)
    parquet.write(path, table, "solve", {"run": "run", "strategy": "railcap", **made_by})
    return path


def test_files_of_a_run_are_read_in_their_place_only(capsys):
    own, exchanged = (
        run_file(name, model="llama2", benchmark="gsm8k") for name in ("llama2", "gemma")
    )
    assert score(capsys, "--clean", own, f"x={own}")[0] == 0
    assert "was made for run run, model llama2" in rejected(capsys, "--clean", own, exchanged)
    copy = shutil.copy(own, "copy.parquet")
    assert score(capsys, "--clean", own, copy)[0] == 0


@pytest.mark.parametrize(
    ("clean", "other", "note"),
    [
        ({"engine": "engine 1"}, {"engine": "engine 2"}, None),
        ({"engine": "engine 1"}, {"engine": "vllm 1"}, "values of engine (clean: engine; x: vllm)"),
        (
            {"sampling": {"temperature": 1, "stop": ["Q:"]}},  # of zerogap evaluate
            {"sampling": {"temperature": 1}, "stop": ["Q:"]},  # of the workflow
            None,
        ),
        (
            {"sampling": {"temperature": 1}, "stop": ["Q:"]},
            {"sampling": {"temperature": 1}, "stop": ["A:"]},
            "values of stop (clean: ['Q:']; x: ['A:'])",
        ),
        (
            {"sampling": {}, "extraction": "numeric", "chat_template": "apply"},
            {"sampling": {}, "extraction": "gsm8k/strict-match", "chat_template": "apply"},
            "values of extraction (clean: numeric; x: gsm8k/strict-match)",
        ),
        *(
            ({"sampling": {"temperature": 1}}, other, "values of temperature (clean: 1; x: 2)")
            for other in (
                {"sampling": {"temperature": 2}},
                {"source": {"sampling": {"temperature": 2}}},
            )
        ),
    ],
)
def test_other_engines_and_sampling_settings_are_noted(clean, other, note, capsys):
    files = [run_file(name, **made) for name, made in (("a", clean), ("b", other))]
    _, _, err = score(capsys, "--clean", files[0], f"x={files[1]}")
    assert ("drawn or marked with different" in err) == (note is not None)
    assert (note or "") in err


@pytest.mark.parametrize(
    "words", [["--clean", ""], ["--clean="], ["x="], ["x", "--output", ""], [" "]]
)
def test_an_empty_name_is_not_the_working_directory(words, capsys):
    """The folder has one log, which a name of the folder stands for."""
    log = json_lines("only.jsonl", [{"id": k, "correct": True} for k in range(3)])
    assert "has no value; give one" in rejected(capsys, "--clean", log, f"x={log}", *words)
