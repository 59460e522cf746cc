"""Every kind of file, and logs of other tools in the layouts that their newest versions write."""

import gzip
import io
import json
import zipfile

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


def eee_records(*, repeated, evaluations=("match",)):
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
            "model_response": {
                "text": [answer(mark) for mark in RIGHT[question]],
                "logprobs": [[0.1]],
            },
        }
        for question in IDS
    ]
    pd.DataFrame(rows).to_parquet(path)
    return path


def nested(*, with_marks):
    return [
        {
            "id": question,
            "question": f"What is {question}?",
            "gold": 3,
            "responses": [
                {"text": "?", "correct": bool(mark)} if with_marks else answer(mark)
                for mark in RIGHT[question]
            ],
        }
        for question in IDS
    ]


def in_a_folder(path):
    (path / "logs/deep").mkdir(parents=True)
    text(path / "logs/results_1.json", "{}")
    json_lines(path / "logs/deep/samples_t.jsonl", nested(with_marks=False))
    return path / "logs"


def zipped(path):
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, nested(with_marks=True))).encode()))
    return path


def marks():
    return [
        {"question_id": question, "sample_id": k, "correct": bool(mark)}
        for question, each in RIGHT.items()
        for k, mark in enumerate(each)
    ]


def counts():
    return [
        {"question_id": str(question), "n_correct": sum(each), "n_samples": len(each),
         "first_correct": bool(each[0])}
        for question, each in RIGHT.items()
    ]  # fmt: skip


def responses():
    return [
        {"question_id": question, "response": answer(mark), "gold": "3"}
        for question, each in RIGHT.items()
        for mark in each
    ]


def solve(path):
    parquet.write(path, pd.DataFrame(counts()).assign(leaked=False), "solve", provenance={})
    return path


def samples(path):
    table = pd.DataFrame(marks()).astype({"question_id": str}).assign(
        token_ids=[[1]] * 6, text="2", answer="2", extractor="last_number", n_tokens=1,
        finish_reason="eos",
    )  # fmt: skip
    parquet.write(path, table, "samples", provenance={})
    return path


def lm_eval(path):
    return json_lines(path, [record(q, list(map(answer, RIGHT[q])), gold="3") for q in RIGHT])


TABLES = {
    "solve table": lambda folder: solve(folder / "a"),
    "samples table": lambda folder: samples(folder / "a"),
    "marks": lambda folder: json_lines(folder / "a", marks()),
    "marks, CSV": lambda folder: comma_separated(folder / "a", marks()),
    "counts": lambda folder: json_lines(folder / "a", counts()),
    "counts, CSV": lambda folder: comma_separated(folder / "a", counts()),
    "responses": lambda folder: json_lines(folder / "a", responses()),
    "responses, CSV": lambda folder: comma_separated(folder / "a", responses()),
    "lm_eval": lambda folder: lm_eval(folder / "a"),
}
WITH_TEXTS = {
    "Inspect .eval": lambda folder: inspect_eval(folder / "a.eval"),
    "Inspect .json": lambda folder: inspect_json(folder / "a.json"),
    "Every Eval Ever": lambda folder: json_lines(folder / "a", eee_records(repeated=False)),
    "Every Eval Ever, repeated": lambda folder: json_lines(
        folder / "a", eee_records(repeated=True)
    ),
    "lighteval": lambda folder: lighteval(folder / "a"),
    "nested": lambda folder: json_lines(folder / "a", nested(with_marks=False)),
    "gzip, nested marks": lambda folder: zipped(folder / "a.jsonl.gz"),
    "a folder": in_a_folder,
}


@pytest.mark.parametrize("kind", [*TABLES, *WITH_TEXTS])
def test_every_kind_of_file_is_recognised_by_content_and_gives_the_same_counts(kind, tmp_path):
    loaded = load((TABLES | WITH_TEXTS)[kind](tmp_path), with_texts=True)
    counts, texts = loaded.counts.set_index("question_id"), loaded.texts
    found = {key: (row.n_correct, row.n_samples) for key, row in counts.iterrows()}
    assert found == COUNTS
    assert counts.first_correct.tolist() == [True, False]
    if kind in WITH_TEXTS:
        assert counts.gold.tolist() == ["3", "3"]
        assert texts.questions["2"] == "What is 2?"
        assert len(texts.responses["q1"]) == 3


@pytest.mark.parametrize("write", [inspect_eval, inspect_json])
def test_another_scorer_of_an_inspect_log_is_chosen(write, tmp_path):
    loaded = load(write(tmp_path / "log"), "model_graded")
    assert loaded.counts.n_correct.tolist() == [1, 2]  # it is wrong everywhere
    assert "correct is model_graded of the Inspect log (others: match" in loaded.notes[0]
    with pytest.raises(InputError, match="scorer 'other'; it has match, model_graded"):
        load(tmp_path / "log", "other")


def test_one_of_several_evaluations_of_every_eval_ever_is_read(tmp_path):
    path = json_lines(tmp_path / "f", eee_records(repeated=False, evaluations=("a", "b")))
    assert load(path, "b").counts.n_samples.tolist() == [3, 3]


def test_the_mark_of_every_eval_ever_counts_if_the_output_is_a_text(tmp_path):
    records = eee_records(repeated=False)
    for each in records:
        each["output"] = {"raw": "The answer is 4."}
    marks = [sum(RIGHT[question]) for question in IDS]
    assert load(json_lines(tmp_path / "f", records)).counts.n_correct.tolist() == marks


def test_an_id_of_a_response_is_not_that_of_the_question(tmp_path):
    rows = [
        {"id": f"q{k}", "responses": [{"id": j, "text": "", "correct": j < 1} for j in range(3)]}
        for k in range(2)
    ]
    assert load(json_lines(tmp_path / "f", rows)).counts.n_samples.tolist() == [3, 3]


def test_counts_may_have_responses_next_to_them(tmp_path):
    row = {"id": "a", "n_correct": 1, "n_samples": 2, "responses": ["4", "5"]}
    assert load(json_lines(tmp_path / "f", [row])).counts.n_correct.tolist() == [1]


def test_a_log_of_multiple_choice_has_no_empty_responses(tmp_path):
    row = record(0, ["x"]) | {"resps": [[["-1.5", "False"]], [["-2.5", "False"]]]}
    assert ", 0 empty" in load(json_lines(tmp_path / "f", [row])).notes[-1]


def test_lighteval_documents_without_ids_are_told_apart_by_their_question(tmp_path):
    assert load(lighteval(tmp_path / "f", id="")).counts.question_id.nunique() == 2


def test_the_cluster_of_inspect_samples_is_in_their_metadata(tmp_path):
    samples = [sample | {"metadata": {"cluster": "t1"}} for sample in inspect_samples()]
    (tmp_path / "log").write_text(json.dumps({"eval": {}, "samples": samples}))
    assert load(tmp_path / "log").counts["cluster"].tolist() == ["t1", "t1"]


def test_inspect_samples_without_targets_are_counted(tmp_path):
    samples = [{k: v for k, v in each.items() if k != "target"} for each in inspect_samples()]
    counts = load(json_lines(tmp_path / "log", samples)).counts
    assert counts.n_correct.tolist() == [2, 1]
    assert counts.gold.isna().all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": {}}, "sample 1: sample 'q1' has no score; finish the log with inspect"),
        ({"scores": {"match": {"value": "P"}}}, "the score match of sample 'q1' is 'P'; give"),
        ({"scores": {"match": {"value": [1]}}}, r"the score match of sample 'q1' is \[1\]; give"),
        ({"epoch": 2}, "duplicate row: question 'q1', sample 2"),
    ],
)
def test_an_unfinished_or_partial_inspect_log_is_an_error(change, message, tmp_path):
    samples = inspect_samples()
    samples[0] |= change
    log = {"version": 2, "eval": {}, "samples": samples}
    with pytest.raises(InputError, match=message):
        load(text(tmp_path / "f", json.dumps(log)), "match")


OTHERS = {
    "results of lm_eval": json.dumps({"results": {}, "configs": {}}, indent=1),
    "results of lighteval": '{"config_general": {}, "results": {}}',
    "aggregate of Every Eval Ever": '{"evaluation_results": [], "eval_library": {}}',
    "Inspect log without samples": json.dumps({"eval": {}, "status": "started"}, indent=1),
    "OpenAI's batch API": '{"custom_id": "a", "response": {}}',
    "OpenAI Evals": '{"run_id": "r", "event_id": 0}',
    "EvalPlus": '{"task_id": "HumanEval/0", "solution": ""}',
    "a pointer of Git LFS": "version https://git-lfs.github.com/spec/v1",
    "a web page": "<!DOCTYPE html>",
}


@pytest.mark.parametrize(("kind", "content"), OTHERS.items(), ids=OTHERS)
def test_a_file_of_another_kind_is_named(kind, content, tmp_path):
    with pytest.raises(InputError, match=f"is .*{kind}"):
        load(text(tmp_path / "f", content))


def test_a_folder_with_several_logs_names_them(tmp_path):
    for name in "ab":
        text(tmp_path / f"{name}.jsonl")
    with pytest.raises(InputError, match=r"has 2 logs \(a.jsonl, b.jsonl\); name one of them"):
        load(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="is a folder without a file of responses"):
        load(tmp_path / "empty")


@pytest.mark.parametrize("index", [2, [], [0, 1], None])
def test_lighteval_without_one_gold_answer_is_an_error(index, tmp_path):
    with pytest.raises(InputError, match=r"row 1: (needs doc.choices|doc.gold_index is 2 of 2)"):
        load(lighteval(tmp_path / "f", gold_index=index))
