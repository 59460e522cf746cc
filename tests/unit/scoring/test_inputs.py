import json
import os
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers import shared_data
from helpers.response_files import comma_separated, json_lines, record, text
from helpers.synthetic_run import questions_table, samples_table
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.scoring import inputs
from zerogap.scoring.inputs import Texts, leaked_questions, load
from zerogap.strategies.filtering import DROPPED


def by_response(marks):
    return [
        {"question_id": question, "sample_id": k, "correct": mark}
        for question, correct in marks.items()
        for k, mark in enumerate(correct)
    ]


def load_rows(rows, *arguments, **options):
    return load(json_lines("f", rows), *arguments, **options)


def test_the_first_response_has_the_lowest_sample_id_in_any_order_of_rows():
    rows = by_response({"a": [True, False, False], "b": [False, True, True]})
    counts = load_rows([rows[4], *reversed(rows[:4]), rows[5]]).counts
    assert dict(zip(counts.question_id, counts.first_correct, strict=True)) == {
        "a": True, "b": False,
    }  # fmt: skip


def test_column_aliases_and_forms_of_marks_and_ids_are_accepted():
    rows = [{"id": 7, "is_correct": mark} for mark in (1, 0, True, 1.0, "false")]
    (row,) = load_rows(rows).counts.to_dict("records")
    assert row == {"question_id": "7", "n_correct": 3, "n_samples": 5, "first_correct": True}
    written = text("g", "id,text,target", '7,"3, or\n18",#### 18', "7,no idea,18.0")
    (row,) = load(written).counts.to_dict("records")
    assert (row["question_id"], row["n_correct"], row["n_samples"]) == ("7", 1, 2)
    word = text("h", '{"id": "a", "text": "none", "gold": "none"}')  # it is an answer
    assert load(word).counts["n_correct"].tolist() == [1]


def test_an_alias_is_another_column_if_the_file_has_both_names():
    rows = [{"question_id": "a", "id": k, "correct": True, "is_correct": None} for k in range(2)]
    counts = load_rows(rows).counts
    assert counts["question_id"].tolist() == ["a"]
    assert counts["n_correct"].tolist() == [2]


def test_leaked_is_read_from_the_column_or_from_a_list_of_ids():
    marks = by_response({"a": [True, False], "b": [False, False]})
    rows = [row | {"leaked": row["question_id"] == "a"} for row in marks]
    assert load_rows(rows).counts["leaked"].tolist() == [True, False]
    assert "leaked" not in load_rows(marks).counts
    assert leaked_questions(text("ids", "a", "", " b ")) == ["a", "b"]
    with pytest.raises(InputError, match="has no question ids"):
        leaked_questions(text("ids", ""))


def test_responses_may_be_longer_than_the_default_limit_of_csv():
    rows = [{"question_id": "a", "response": "so " * 70_000 + "2", "gold": 2}]
    assert load(comma_separated("f", rows)).counts["n_correct"].tolist() == [1]


def test_a_log_without_repeats_is_read_by_its_metric_and_filter():
    marks = {"strict-match": [0.0, 1.0], "flexible-extract": [1.0, 1.0]}
    path = json_lines(
        "f",
        [
            record(k, ["…"], kind=kind, match=match)
            for kind, matches in marks.items()
            for k, match in enumerate(matches)
        ],
    )
    strict = load(path)
    assert strict.counts.iloc[:, :3].values.tolist() == [["0", 0, 1], ["1", 1, 1]]
    assert "'strict-match' (others: flexible-extract; choose with --filter)" in strict.notes[0]
    for name in ("flexible-extract", "2"):
        assert load(path, name).counts["n_correct"].tolist() == [1, 1]
    with pytest.raises(InputError, match="scorer 'maj'; it has strict-match, flexible"):
        load(path, "maj")


def test_an_lm_eval_log_may_be_a_parquet_file(tmp_path):
    pd.DataFrame([record(k, ["…"], match=match) for k, match in enumerate([0.0, 1.0])]).to_parquet(
        tmp_path / "f.parquet"
    )
    assert load(tmp_path / "f.parquet").counts["n_correct"].tolist() == [0, 1]


def test_golds_of_a_parquet_file_have_the_digits_that_it_stores(tmp_path):
    rows = pd.DataFrame({"question_id": ["a", "b"], "response": ["It is 0.1", "It is 18.5"]})
    for kind in (pa.float32(), pa.decimal128(5, 2)):
        gold = pa.array([0.1, 18.5]).cast(kind)
        table = pa.Table.from_pandas(rows).append_column("gold", gold)
        pq.write_table(table, tmp_path / "f.parquet")
        assert load(tmp_path / "f.parquet").counts["n_correct"].tolist() == [1, 1]


def test_marks_of_what_may_be_different_questions_under_one_id_are_noted():
    rows = [{"question_id": "0", "correct": 1, "gold": gold} for gold in ("18", "7")]
    loaded = load_rows(rows)
    assert "questions with several values of gold (0); if they are different" in loaded.notes[-1]
    assert loaded.counts["n_samples"].tolist() == [2]
    assert loaded.counts["gold"].tolist() == [None]
    loaded = load_rows([rows[0], rows[0] | {"gold": None}])
    assert loaded.counts["gold"].tolist() == ["18"]
    assert not [note for note in loaded.notes if "several values" in note]


def test_every_repeat_of_a_log_is_scored():
    texts = ["The answer is 18.", "#### 17", "18", "who knows"]
    target = "9 + 9 = <<9+9=18>>18\n#### 18"
    records = [
        record(0, texts, kind=kind, match=0.0, target=target) for kind in ("score-first", "maj@64")
    ]
    loaded = load_rows(records)
    assert loaded.counts.drop(columns=["gold", "doc_hash"]).to_dict("records") == [
        {"question_id": "0", "n_correct": 2, "n_samples": 4, "first_correct": True}
    ]
    assert loaded.notes[0].endswith("only one of the repeats")
    assert "the rule numeric" in loaded.notes[1]
    filtered = load("f", "maj@64")
    assert filtered.notes[0].endswith("so --filter maj@64 has no effect (use --extraction)")
    pd.testing.assert_frame_equal(filtered.counts, loaded.counts)


def test_an_old_log_of_two_filters_without_names_is_read_by_number():
    def passes(*marks, responses=("18", "18")):
        records = [record(0, [responses[k]], match=mark) for k, mark in enumerate(marks)]
        records += [each | {"doc_id": 1, "exact_match": 1.0} for each in records]
        for each in records:
            del each["filter"], each["metrics"]
        return json_lines("f", sorted(records, key=lambda each: each["exact_match"]))

    log = passes(0.0, 1.0)
    for name, expected in ((None, [0, 1]), ("1", [0, 1]), ("2", [1, 1])):
        loaded = load(log, name)
        assert loaded.counts.n_correct.tolist() == expected
        assert "an old log with 2 passes per document" in loaded.notes[1]
    with pytest.raises(InputError, match="scorer '3'; it has 1, 2"):
        load(log, "3")
    repeats = json_lines("g", [record(0, ["18", "3"], kind="none")])
    assert load(repeats, "2").counts.n_correct.tolist() == [1]  # there, filters have no effect
    with pytest.raises(InputError, match="lm_eval appends to an existing log"):
        load(passes(0.0, 1.0, responses=("18", "17")))


def test_responses_without_text_or_answer_are_counted_by_rule():
    def note(*responses):
        rows = [{"id": 1, "response": text, "gold": "18"} for text in responses]
        return load_rows(rows).notes[0]

    noted = note("The answer is 18.", "So 18", "", "who knows")
    assert "4 responses, 1 empty; without an answer: numeric 2, gsm8k/strict-match 4, " in noted
    assert (
        "of those with an answer by either rule, gsm8k/strict-match agrees on 0.0%, gsm8k_cot"
        in noted
    )
    assert noted.endswith("flexible-extract agrees on 100.0%")
    assert note("", " ").endswith("numeric: every one of the 2 responses is empty")
    assert "agrees" not in note("who knows")


def test_texts_of_files_with_marks_are_counted():
    rows = [{"id": 1, "text": text, "answer": "18", "correct": 1} for text in ("18", "")]
    rows[1]["answer"] = None
    (note,) = load_rows(rows).notes
    assert note.endswith("2 responses, 1 empty; without an answer: its rule or filter 1")
    rows[1]["answer"] = "18"  # as a gold answer, of which nothing is known to be extracted
    assert load_rows(rows).notes[0].endswith("2 responses, 1 empty")
    del rows[1]["text"]
    assert "2 responses, 1 empty" in load_rows(rows).notes[0]
    log = [record(k, [text], filtered_resps=["[invalid]"]) for k, text in enumerate(("x", ""))]
    _, note = load_rows(log).notes
    assert note.endswith("2 responses, 1 empty; without an answer: its rule or filter 2")


@shared_data.needs_cases
def test_the_shared_logs_are_scored_right():
    def n_correct(name, *options):
        return load(shared_data.CASES / f"lmeval_{name}.jsonl", *options).counts.n_correct.tolist()

    assert n_correct("boxed_latex_comma") == [4] * 5
    assert n_correct("log_without_filter_key", "1") == [0, 0, 0, 1, 0]
    assert n_correct("gsmplus_none_target") == [2] * 5
    assert n_correct("gsmplus_none_target", None, "flexible-extract") == [1, 1, 1, 0, 1]
    assert n_correct("all_empty") == [0] * 5


def test_responses_on_which_rules_disagree_are_listed():
    rows = [
        {"id": 1, "response": "The answer is 18.", "gold": "18"},
        {"id": 1, "response": "Nine and nine.\n#### 18", "gold": "18"},
        {"id": 2, "response": "nobody knows", "gold": "18"},
    ]
    file = json_lines("f", rows)
    one, other = load(file, list_disagreements=True).disagreements
    assert one == {
        "file": "f",
        "line": 1,
        "question_id": "1",
        "gold": "18",
        "numeric": {"answer": "18", "correct": True},
        "gsm8k/strict-match": {"answer": None, "correct": False},
        "gsm8k_cot/strict-match": {"answer": "18", "correct": True},
        "flexible-extract": {"answer": "18.", "correct": True},
        "response": "The answer is 18.",
    }
    assert (other["line"], other["gsm8k_cot/strict-match"]["correct"]) == (2, False)
    assert load(file).disagreements == ()
    marked = json_lines("g", by_response({"a": [True]}))
    assert load(marked, list_disagreements=True).disagreements is None


def test_responses_that_a_strategy_dropped_are_not_counted():
    texts = ["The answer is 18.", "The answer is 3.", DROPPED]
    records = [record(0, texts), record(1, [DROPPED] * 3)]
    loaded = load_rows(records, with_texts=True)
    assert loaded.counts.drop(columns=["gold", "doc_hash"]).to_dict("records") == [
        {"question_id": "0", "n_correct": 1, "n_samples": 2, "first_correct": True},
        {"question_id": "1", "n_correct": 0, "n_samples": 0, "first_correct": False},
    ]
    assert loaded.notes[-1].endswith("4 responses were dropped by the strategy")
    assert loaded.texts.responses == {"0": texts[:2], "1": []}
    marked = [
        {"id": key, "text": text, "correct": text == texts[0]}
        for key, each in (("0", texts), ("1", [DROPPED] * 3))
        for text in each
    ]
    again = load_rows(marked)
    assert again.counts.n_samples.tolist() == [2, 0]
    assert again.notes[-1] == loaded.notes[-1]
    nothing = load_rows(records[1:]).counts
    assert (nothing.n_correct.dtype, nothing.n_samples.dtype) == (int, int)


def test_a_pipe_is_not_reported_as_missing():
    os.mkfifo("pipe")
    with pytest.raises(InputError, match=r"pipe: is a pipe or a device; save its content"):
        load("pipe")


def test_multiple_choice_logs_and_older_logs_are_read():
    choices = record(0, ["x"], match=0.0, resps=[[["-1.5", "False"]], [["-0.5", "True"]]])
    choices |= {"metrics": ["acc_norm", "acc"], "acc": 1.0, "acc_norm": 0.0, "target": "1"}
    del choices["exact_match"]
    assert load_rows([choices]).counts["n_correct"].tolist() == [1]
    both = record(0, ["x"], match=1.0) | {"metrics": ["acc", "exact_match"], "acc": 0.0}
    assert load_rows([both]).counts["n_correct"].tolist() == [1]
    older = record(0, ["x"])
    del older["metrics"], older["filter"], older["doc_hash"]
    assert load_rows([older]).counts["n_correct"].tolist() == [1]
    oldest = text("oldest.jsonl", json.dumps([older, older | {"doc_id": 1}], indent=2))
    assert load(oldest).counts["n_correct"].tolist() == [1, 1]  # lm_eval 0.4.0 to 0.4.2


GOOD = '{"question_id": "a", "correct": true}'
# Files that are an error in tests/fuzz too are here where their line or values are special.
BAD = {
    "malformed": ([GOOD, "", '{"question_id": '], "line 3: invalid JSON"),
    "array": ([f"[{GOOD},", "7]"], "record 2: is not a JSON object"),
    "cut array": ([f"[{GOOD}"], "file.txt: invalid JSON"),
    "cut document": (["{", '"eval": {},', '"samples": ['], "file.txt: invalid JSON"),
    "ragged": (["question_id,correct", "a,1,2"], "line 2: 3 cells under 2 column names"),
    "semicolons": (["question_id;correct", "1;0"], "separate the columns by commas"),
    "tabs": (["question_id\tcorrect", "1\t0"], "separate the columns by commas"),
    "open quote": (["question_id,correct", 'a,"1'], "line 2: invalid CSV: .*; fix the quotation"),
    "no mark": ([GOOD, '{"question_id": "b"}'], "line 2: correct of question 'b' is empty"),
    "part": (['{"id": "b", "correct": 0.5}'], "'b' is 0.5; give true or false"),
    "twice": (
        ["question_id,sample_id,correct", "a,0,1", "a,1,1", "a,0,0"],
        "line 4: duplicate row: question 'a', sample 0 .*line 2",
    ),
    "too many": (["id,n_correct,n_samples", "a,3,2"], "line 2: question 'a' has 3 correct of 2"),
    "responses alone": (['{"id": "a", "text": "2"}'], "responses but no gold answers .* gold"),
    "golds differ": (
        ["id,text,gold", "a,2,2", "a,2,3"],
        "has gold 3 here and 2 before; give all responses of a question the same gold",
    ),
    "no gold in a row": (
        ['{"id": "a", "text": "2", "gold": 2}', '{"id": "b", "text": "2", "gold": null}'],
        "line 2: the gold answer is empty; give gold",
    ),
    "leaks differ": (["id,correct,leaked", "a,1,1", "a,1,0"], "line 3: .* has leaked False here"),
    "no cluster": (["id,correct,cluster", "a,1,"], "line 2: cluster is empty; give a text or"),
    "log with a document twice": (
        [record(0, ["18"]), record(0, ["18"])],
        "line 2: duplicate row: document '0', filter 'strict-match' .*line 1",
    ),
    "log with a document without responses": (
        [record(0, ["18"]), record(1, ["18"], resps=[[]])],
        "line 2: resps must be a list of lists of responses",
    ),
    "log without metric": (
        [record(0, ["1"], metrics=["bleu", "rouge"], bleu=0.5, rouge=0.5)],
        r"line 1: no metric says .* \(found: bleu, rouge\)",
    ),
}


@pytest.mark.parametrize(("lines", "message"), BAD.values(), ids=BAD)
def test_errors_name_the_line_the_value_and_the_fix_in_one_line(lines, message):
    path = json_lines("file.txt", lines)
    with pytest.raises(InputError, match=message) as raised:
        load(path)
    assert str(raised.value).startswith(str(path))
    assert "\n" not in str(raised.value)


def test_a_table_of_another_kind_is_named_with_its_columns():
    pd.DataFrame({"x": [1]}).to_parquet("other.parquet")
    with pytest.raises(InputError, match=r"unknown kind of file \(columns x\)"):
        load("other.parquet")


def test_texts_are_the_questions_and_the_first_three_responses():
    records = [
        record(number, list(texts), kind=kind)
        for kind in ("first", "second")
        for number, texts in ((7, "abcd"), (8, "efgh"))
    ]
    path = json_lines("log.jsonl", records)
    texts = load(path, with_texts=True).texts
    assert texts.questions == {"7": "How much?", "8": "How much?"}
    assert texts.responses == {"7": ["a", "b", "c"], "8": ["e", "f", "g"]}
    assert load(path).texts == Texts()


def test_samples_of_a_run_have_the_questions_of_their_benchmark():
    path = Path("run/llama2/gsm8k/cells/railcap/samples.parquet")
    run = {"run": "run", "model": "llama2", "variant": "gsm8k", "strategy": "railcap"}
    path.parent.mkdir(parents=True)
    parquet.write(path, samples_table(3, 2), "samples", run)
    assert load(path, with_texts=True).texts.questions == {}
    table = questions_table(3)
    for benchmark, asked in (("gsm8k", "How many?"), ("pq", "Which?")):
        folder = Path("run/data") / benchmark
        folder.mkdir(parents=True)
        parquet.write(folder / "questions.parquet", table.assign(question=asked), "questions", {})
    texts = load(path, with_texts=True).texts
    assert texts.questions == dict.fromkeys(table["question_id"], "How many?")
    assert len(texts.responses) == 3


@pytest.fixture
def large_files(monkeypatch):
    """Two files of responses that are taken for large."""
    monkeypatch.setattr(inputs, "LARGE", 0)
    rows = [{"question_id": "a", "response": f"The answer is {k}", "gold": 2} for k in range(4)]
    paths = {name: json_lines(name, rows) for name in ("clean", "strategy")}
    yield paths
    assert not active_children()


def test_large_files_are_read_at_once_as_one_after_another(large_files):
    options = {"extraction": "flexible-extract", "list_disagreements": True, "with_texts": True}
    loaded = inputs.load_all(large_files, **options)
    assert list(loaded) == ["clean", "strategy"]
    for name, path in large_files.items():
        expected = load(path, **options)
        pd.testing.assert_frame_equal(loaded[name].counts, expected.counts)
        assert replace(loaded[name], counts=None) == replace(expected, counts=None)


def test_an_error_in_large_files_names_the_first_that_is_not_valid(large_files):
    paths = large_files | {name: text(name, "a,b", "1,2") for name in ("bad", "worse")}
    with pytest.raises(InputError, match="bad: unknown kind of file"):
        inputs.load_all(paths)


def test_a_killed_process_that_read_a_large_file_is_an_error(large_files, monkeypatch):
    text("deadly.py", "import os", "def kill(text):", "    os.kill(os.getpid(), 9)")
    monkeypatch.syspath_prepend(Path.cwd())
    with pytest.raises(InputError, match="was killed"):
        inputs.load_all(large_files, extraction="deadly:kill")
