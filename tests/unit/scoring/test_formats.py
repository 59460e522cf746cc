"""Every kind of file, and logs of other tools in the layouts that their newest versions write."""

import gzip
import io
import json
import warnings
import zipfile
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from helpers.response_files import comma_separated, json_lines, record, text
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.scoring.inputs import load

IDS = ["q1", 2]
COUNTS = {"q1": (2, 3), "2": (1, 3)}  # correct and sampled
RIGHT = {"q1": (1, 0, 1), 2: (0, 1, 0)}  # by sample


def answer(is_right):
    return f"The answer is {3 if is_right else 4}"


def inspect_sample(question, epoch, **scores):
    """A sample of Inspect 0.3.285 without its transcript."""
    output = {"model": "mockllm/model", "completion": answer(RIGHT[question][epoch - 1])}
    return {
        "id": question,
        "epoch": epoch,
        "input": f"What is {question}?",
        "target": "3",
        "messages": [],
        "output": output,
        "scores": {name: {"value": value, "answer": "3"} for name, value in scores.items()},
        "metadata": {},
    }


def inspect_samples():
    return [
        inspect_sample(question, k + 1, match="CI"[not is_right], model_graded=float(not is_right))
        for question in IDS
        for k, is_right in enumerate(RIGHT[question])
    ]


def inspect_json(path):
    log = {"version": 2, "status": "success", "eval": {"task": "t"}, "samples": inspect_samples()}
    path.write_text(json.dumps(log, indent=2))
    return path


def inspect_eval(path):
    """A zip file whose members are compressed by zstd, which zipfile cannot write: by hand."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("header.json", pa.compress(b"{}", "zstd", asbytes=True))
        for sample in inspect_samples():
            name = f"samples/{sample['id']}_epoch_{sample['epoch']}.json"
            packed = pa.compress(json.dumps(sample).encode(), "zstd", asbytes=True)
            archive.writestr(name, packed)
    data = file.getvalue()
    for signature, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):  # the method's place
        parts = data.split(signature)
        at = offset - len(signature)
        data = signature.join([parts[0], *(p[:at] + b"\x5d\x00" + p[at + 2 :] for p in parts[1:])])
    path.write_bytes(data)
    return path


def eee_records(*, repeated=False, evaluations=("match",)):
    """Instances of Every Eval Ever 0.2.2: one response each, or all of a question in one."""
    records = []
    for question in IDS:
        marks = [RIGHT[question]] if repeated else [(mark,) for mark in RIGHT[question]]
        records += [
            {
                "schema_version": "instance_level_eval_0.2.2",
                "evaluation_id": "e",
                "model_id": "m",
                "evaluation_name": name,
                "sample_id": str(question),
                "sample_hash": f"h{question}",
                "interaction_type": "single_turn",
                "input": {"raw": f"What is {question}?", "reference": ["3"]},
                "output": {"raw": [answer(mark) for mark in each]},
                "answer_attribution": [],
                "evaluation": {"score": float(each[0]), "is_correct": bool(each[0])},
            }
            for each in marks
            for name in evaluations
        ]
    return records


def lighteval(path, **changes):
    """Details of lighteval 0.13.0."""
    rows = [
        {
            "doc": {
                "id": str(question),
                "query": f"What is {question}?",
                "choices": ["4", "1 + 2 = 3\n#### 3"],
                "gold_index": [1],
                "num_samples": 3,
            }
            | changes,
            "metric": {"avg@n": 0.5},
            "model_response": {"text": list(map(answer, RIGHT[question])), "logprobs": [[0.1]]},
        }
        for question in IDS
    ]
    pd.DataFrame(rows).to_parquet(path)
    return path


def nested(answers):
    """One record per question, with its responses."""
    return [
        {"id": key, "question": f"What is {key}?", "gold": 3, "responses": list(map(answers, each))}
        for key, each in RIGHT.items()
    ]


def in_a_folder(path):
    (path / "deep").mkdir(parents=True)
    text(path / "results_1.json", "{}")
    json_lines(path / "deep/samples_t.jsonl", nested(answer))
    return path


def zipped(path):
    records = nested(lambda mark: {"text": "?", "correct": bool(mark)})
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, records)).encode()))
    return path


def solve(path):
    table = pd.DataFrame(COUNTED).astype({"question_id": str}).assign(leaked=False)
    parquet.write(path, table, "solve", provenance={})
    return path


def samples(path):
    table = pd.DataFrame(MARKS).astype({"question_id": str}).assign(
        token_ids=[[1]] * 6, text="2", answer="2", extractor="last_number", n_tokens=1,
        finish_reason="eos",
    )  # fmt: skip
    parquet.write(path, table, "samples", provenance={})
    return path


MARKS = [
    {"question_id": question, "sample_id": k, "correct": bool(mark)}
    for question, each in RIGHT.items()
    for k, mark in enumerate(each)
]
COUNTED = [
    {"question_id": question, "n_correct": sum(each), "n_samples": len(each),
     "first_correct": bool(each[0])}
    for question, each in RIGHT.items()
]  # fmt: skip
RESPONSES = [
    {"question_id": question, "response": answer(mark), "gold": "3"}
    for question, each in RIGHT.items()
    for mark in each
]
LM_EVAL = [record(q, list(map(answer, each)), gold="3") for q, each in RIGHT.items()]
# What a file has: a function that writes it, or rows of JSON Lines, and of CSV where they are flat.
TABLES = {"solve table": solve, "samples table": samples, "lm_eval": LM_EVAL}
FLAT = {"marks": MARKS, "counts": COUNTED, "responses": RESPONSES}
for name, rows in FLAT.items():
    TABLES |= {name: rows, f"{name}, CSV": partial(comma_separated, rows=rows)}
WITH_TEXTS = {
    "Inspect .eval": inspect_eval,
    "Inspect .json": inspect_json,
    "Every Eval Ever": eee_records(),
    "Every Eval Ever, repeated": eee_records(repeated=True),
    "lighteval": lighteval,
    "nested": nested(answer),
    "gzip, nested marks": zipped,
    "a folder": in_a_folder,
}


@pytest.mark.parametrize("kind", [*TABLES, *WITH_TEXTS])
def test_every_kind_of_file_is_recognised_by_content_and_gives_the_same_counts(kind):
    content, path = (TABLES | WITH_TEXTS)[kind], Path("a")
    path = content(path) if callable(content) else json_lines(path, content)
    loaded = load(path, with_texts=True)
    counts, texts = loaded.counts.set_index("question_id"), loaded.texts
    found = {key: (row.n_correct, row.n_samples) for key, row in counts.iterrows()}
    assert found == COUNTS
    assert counts.first_correct.tolist() == [True, False]
    if kind in WITH_TEXTS:
        assert counts.gold.tolist() == ["3", "3"]
        assert texts.questions["2"] == "What is 2?"
        assert len(texts.responses["q1"]) == 3


def test_a_named_rule_scores_the_responses_of_marked_files(tmp_path):
    rows = [{"id": key, "text": answer(1), "target": 3, "is_correct": False} for key in IDS]
    log = [record(k, [answer(1)], match=0.0, target="3") for k in (0, 1)]
    eee = [row | {"evaluation": {"is_correct": False}} for row in eee_records()]
    for path, num_correct in {
        json_lines("own", rows): 2,
        json_lines("lm_eval", log): 2,
        json_lines("eee", eee): 3,
        inspect_json(tmp_path / "log.json"): 3,
    }.items():
        by_mark, by_rule = load(path), load(path, extraction="numeric")
        assert by_mark.disagreements is None
        assert "correct is " in by_mark.notes[0]
        assert "responses scored by the rule numeric" in by_rule.notes[0]
        assert by_rule.counts["n_correct"].sum() == num_correct
    kept = load(json_lines("marks", [{"id": "a", "correct": True}]), extraction="numeric")
    assert kept.counts["n_correct"].tolist() == [1]


@pytest.mark.parametrize("write", [inspect_eval, inspect_json])
def test_another_scorer_of_an_inspect_log_is_chosen(write):
    loaded = load(write(Path("log")), "model_graded")
    assert loaded.counts.n_correct.tolist() == [1, 2]  # it is wrong everywhere
    assert "correct is model_graded of the Inspect log (others: match" in loaded.notes[0]
    with pytest.raises(InputError, match="scorer 'other'; it has match, model_graded"):
        load("log", "other")


def test_one_of_several_evaluations_of_every_eval_ever_is_read():
    path = json_lines("f", eee_records(evaluations=("a", "b")))
    assert load(path, "b").counts.n_samples.tolist() == [3, 3]


def test_the_mark_of_every_eval_ever_counts_if_the_output_is_a_text():
    records = eee_records()
    for each in records:
        each["output"] = {"raw": "The answer is 4."}
    marks = [sum(RIGHT[question]) for question in IDS]
    assert load(json_lines("f", records)).counts.n_correct.tolist() == marks


def test_an_id_of_a_response_is_not_that_of_the_question():
    rows = [
        {"id": f"q{k}", "responses": [{"id": j, "text": "", "correct": j < 1} for j in range(3)]}
        for k in range(2)
    ]
    assert load(json_lines("f", rows)).counts.n_samples.tolist() == [3, 3]


def test_counts_may_have_responses_next_to_them():
    row = {"id": "a", "n_correct": 1, "n_samples": 2, "responses": ["4", "5"]}
    assert load(json_lines("f", [row])).counts.n_correct.tolist() == [1]


def test_a_log_of_multiple_choice_has_no_empty_responses():
    row = record(0, ["x"]) | {"resps": [[["-1.5", "False"]], [["-2.5", "False"]]]}
    assert ", 0 empty" in load(json_lines("f", [row])).notes[-1]


def test_lighteval_documents_without_ids_are_told_apart_by_their_question():
    assert load(lighteval("f", id="")).counts.question_id.nunique() == 2


def test_the_cluster_of_inspect_samples_is_in_their_metadata():
    samples = [sample | {"metadata": {"cluster": "t1"}} for sample in inspect_samples()]
    Path("log").write_text(json.dumps({"eval": {}, "samples": samples}))
    assert load("log").counts["cluster"].tolist() == ["t1", "t1"]


def test_of_an_inspect_sample_that_was_run_again_the_last_record_counts():
    first, *others = inspect_samples()
    with zipfile.ZipFile("log.eval", "w") as archive, warnings.catch_warnings(action="ignore"):
        for sample in (first | {"scores": {}}, first, *others):
            name = f"samples/{sample['id']}_epoch_{sample['epoch']}.json"
            archive.writestr(name, json.dumps(sample))
    assert load("log.eval").counts.n_correct.tolist() == [2, 1]


def test_an_inspect_sample_without_a_mark_is_left_out_unless_a_rule_marks_it():
    samples = inspect_samples()
    samples[0]["scores"]["match"]["value"] = float("nan")
    log = text("log", json.dumps({"eval": {}, "samples": samples}))
    loaded = load(log)
    assert loaded.counts.n_samples.tolist() == [2, 3]
    assert "1 samples that match did not score are left out" in " ".join(loaded.notes)
    for sample in samples:
        sample["scores"] = {}
    log = text("log", json.dumps({"eval": {}, "samples": samples}))
    assert load(log, extraction="numeric").counts.n_correct.tolist() == [2, 1]
    samples[0]["error"] = {"message": "out of memory"}  # so that it has no response
    log = text("log", json.dumps({"eval": {}, "samples": samples}))
    with pytest.raises(InputError, match="sample 'q1' has no score; finish the log with inspect"):
        load(log, extraction="numeric")


def test_a_scorer_that_scored_no_inspect_sample_is_an_error():
    samples = inspect_samples()
    for sample in samples:
        sample["scores"]["match"]["value"] = float("nan")
    with pytest.raises(InputError, match="the scorer match scored no sample"):
        load(text("log", json.dumps({"eval": {}, "samples": samples})))


def test_on_several_gpus_lm_eval_repeats_the_last_request_of_some():
    records = [record(k, ["18"] * (1 + (k == 2)), match=k % 2) for k in range(3)]
    counts = load(json_lines("log", records)).counts
    assert (counts.n_correct.tolist(), counts.n_samples.tolist()) == ([0, 1, 0], [1, 1, 1])
    records = [record(k, ["18", "1"] * (1 + (k == 2))) for k in range(3)]
    assert load(json_lines("log", records)).counts.n_samples.tolist() == [2, 2, 2]


def test_an_lm_eval_log_without_metrics_needs_a_rule():
    records = [record(k, ["18"]) | {"metrics": ["bypass"], "bypass": None} for k in range(2)]
    for each in records:
        del each["exact_match"]
    log = json_lines("log", records)
    assert load(log, extraction="numeric").counts.n_correct.tolist() == [1, 1]
    with pytest.raises(InputError, match="no metric says"):
        load(log)


def test_a_mean_over_epochs_in_every_eval_ever_is_no_mark():
    records = eee_records()
    records[0]["evaluation"] = {"score": 0.02, "is_correct": True}
    log = json_lines("log", records)
    with pytest.raises(
        InputError, match=r"evaluation.score is 0.02, so is_correct marks no single"
    ):
        load(log)
    assert load(log, extraction="numeric").counts.n_correct.tolist() == [2, 1]


def test_lighteval_ids_of_several_splits_are_told_apart_by_their_question():
    assert load(lighteval("f", id="0")).counts.question_id.nunique() == 2


def test_inspect_samples_without_targets_are_counted():
    samples = [{k: v for k, v in each.items() if k != "target"} for each in inspect_samples()]
    counts = load(json_lines("log", samples)).counts
    assert counts.n_correct.tolist() == [2, 1]
    assert counts.gold.isna().all()


def test_the_text_of_an_inspect_sample_may_be_in_its_first_choice_only():
    samples = inspect_samples()
    contents = ["3", [{"text": "3"}, {"reasoning": ""}], None, "3", "4", "5"]
    for sample, content in zip(samples, contents, strict=True):
        sample["output"] = {"completion": None, "choices": [{"message": {"content": content}}]}
    samples[3]["output"] = {"choices": []}
    log = text("log", json.dumps({"eval": {}, "samples": samples}))
    for rule in (None, "numeric"):
        assert "6 responses, 2 empty" in load(log, extraction=rule).notes[-1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": {}}, "sample 1: sample 'q1' has no score; finish the log with inspect"),
        ({"scores": {"match": {"value": "P"}}}, "the score match of sample 'q1' is 'P'; give"),
        ({"scores": {"match": {"value": [1]}}}, r"the score match of sample 'q1' is \[1\]; give"),
        ({"epoch": 2}, "duplicate row: question 'q1', sample 2"),
        ({"invalidation": {"author": "me"}}, "sample 'q1' is invalidated; finish the log with"),
    ],
)
def test_an_unfinished_or_partial_inspect_log_is_an_error(change, message):
    samples = inspect_samples()
    samples[0] |= change
    log = {"version": 2, "eval": {}, "samples": samples}
    with pytest.raises(InputError, match=message):
        load(text("f", json.dumps(log)), "match")


OTHERS = {
    "results of lm_eval": json.dumps({"results": {}, "versions": {}}, indent=1),
    "log of lm_eval 0.3": '[{"doc_id": 0, "prompt_0": "", "logit_0": "", "acc": "1.0"}]',
    "results of lighteval": '{"config_general": {}, "results": {}, "versions": {}}',
    "aggregate of Every Eval Ever": '{"evaluation_id": "e", "evaluation_results": []}',
    "Inspect log without samples": '{"eval": {}, "status": "cancelled", "samples": []}',
    "log of HELM": '{"adapter_spec": {}, "request_states": []}',
    "log of EvalScope": '{"index": 0, "target": "3", "sample_score": {}}',
    "OpenAI's batch API": '{"custom_id": "a", "response": {}}',
    "OpenAI Evals": '{"run_id": "r", "event_id": 0}',
    "EvalPlus": '{"task_id": "HumanEval/0", "solution": ""}',
    "a pointer of Git LFS": "version https://git-lfs.github.com/spec/v1",
    "a web page": "<!DOCTYPE html>",
}


@pytest.mark.parametrize(("kind", "content"), OTHERS.items(), ids=OTHERS)
def test_a_file_of_another_kind_is_named(kind, content):
    with pytest.raises(InputError, match=f"is .*{kind}"):
        load(text("f", content))


def test_a_folder_with_several_logs_names_them():
    for name in "ab":
        text(f"{name}.jsonl")
    with pytest.raises(InputError, match=r"has 2 logs \(a.jsonl, b.jsonl\); name one of them"):
        load(".")
    Path("empty").mkdir()
    with pytest.raises(InputError, match="is a folder without a file of responses"):
        load("empty")


@pytest.mark.parametrize("index", [2, [], [0, 1], None])
def test_lighteval_without_one_gold_answer_is_an_error(index):
    with pytest.raises(InputError, match=r"row 1: (needs doc.choices|doc.gold_index is 2 of 2)"):
        load(lighteval("f", gold_index=index))
