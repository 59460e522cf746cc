"""`zerogap show` on the folder of a small run."""

import pandas as pd
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from zerogap.cli import main
from zerogap.io import parquet

WORDS = ["he", "has", "one", "two", "three", "four", "apples", ".", "<eos>"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "results/small"
    questions = pd.DataFrame(
        {
            "question_id": ["a", "b"],
            "question": ["How many apples?", "And now?"],
            "rationale": ["1 + 1 = 2", "2 + 1 = 3"],
            "gold": ["2", "3"],
            "leaked": [True, False],
            "paraphrase": ["Count them.", None],
        }
    )
    write(folder / "data/pq/questions.parquet", questions, "questions")
    write(folder / "data/gsm8k/split.parquet", questions, "questions")
    others = questions.assign(question=["How many pears?", "And then?"])
    write(folder / "data/algebra/split.parquet", others, "questions")
    model = folder / "tiny/pq/model"
    model.mkdir(parents=True)
    tokenizer = Tokenizer(models.WordLevel({word: k for k, word in enumerate(WORDS)}, "."))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(["<eos>"])
    tokenizer.save(str(model / "tokenizer.json"))
    greedy = responses([["he has two apples . <eos>"], ["three <eos>"]], "sample_id", "n_tokens")
    greedy["entropy"] = [[0.0] * len(tokens) for tokens in greedy["token_ids"]]
    write(folder / "tiny/pq/greedy.parquet", greedy, "greedy")
    for cell, texts in {
        "tiny/clean_algebra/cells/batch1": [["two <eos>", "two <eos>"], ["two <eos>"]],
        "tiny/clean_gsm8k/cells/batch1": [["one <eos>", "two <eos>"], ["four <eos>"]],
        "tiny/pq/cells/railcap": [["he has two three . <eos>"] * 4, ["three <eos>"]],
        "tiny/pq/cells/railcap_n1": [["he has one apples . <eos>"] * 4, ["three <eos>"]],
        "tiny/pq/cells/identity": [["he has two apples . <eos>"] * 4, ["three <eos>"]],
    }.items():
        write(folder / cell / "samples.parquet", responses(texts), "samples")
    return folder


def responses(texts, *without):
    """One row per response; a response with "two" is right."""
    rows = [
        {
            "question_id": "ab"[k],
            "sample_id": sample,
            "token_ids": [WORDS.index(word) for word in text.split()],
            "text": text.removesuffix(" <eos>"),
            "answer": None,
            "extractor": None,
            "correct": "two" in text,
            "n_tokens": len(text.split()),
            "finish_reason": "eos",
        }
        for k, several in enumerate(texts)
        for sample, text in enumerate(several)
    ]
    return pd.DataFrame(rows).drop(columns=list(without))


def write(path, table, contract):
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write(path, table, contract, provenance={})


def test_a_question_is_shown_with_its_responses_by_strategy(run, capsys):
    assert main(["show", "a", "--run", "small", "--num-responses", "2"]) == 0
    assert capsys.readouterr().out == (
        "a of pq, model tiny, leaked\n\n"
        "How many apples?\n"
        "leaked as: Count them.\n"
        "gold answer: 2\n"
        "greedy response of the contaminated model (right): he has two apples .\n\n"
        "clean: 1 of 2 right\n  wrong  one\n  right  two\n\n"
        "identity: 4 of 4 right\n" + "  right  he has two apples .\n" * 2 + "\n"
        "railcap: 4 of 4 right\n" + "  right  he has two three .\n" * 2 + "\n"
        "railcap_n1: 0 of 4 right\n" + "  wrong  he has one apples .\n" * 2 + "\n"
    )


def test_a_terminal_highlights_what_is_on_the_rail(run, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert main(["show", "a", "--run", "small", "--num-responses", "1", "--n", "3"]) == 0
    shown = capsys.readouterr().out
    assert "\x1b[30;43mhe has two\x1b[0m three ." in shown
    assert "\x1b[30;43mhe has two apples .\x1b[0m" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["c", "--run", "small"], "results/small: has no question 'c'; there are a, b"),
        (["a", "--run", "other"], "results/other: no such folder; the runs are small"),
        (["a", "--run", "new"], "results/new: has no greedy trajectories"),
        (["a", "--run", "small", "--model", "big"], "has no responses of model big and benchmark"),
    ],
)
def test_what_the_run_does_not_have_is_named(run, capsys, arguments, message):
    (run.parent / "new").mkdir()
    assert main(["show", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"), [(None, "does not exist; copy"), ("{", "is not a readable tokenizer")]
)
def test_a_missing_or_damaged_tokenizer_is_one_line(run, capsys, content, message):
    path = run / "tiny/pq/model/tokenizer.json"
    path.unlink()
    if content:
        path.write_text(content)
    assert main(["show", "a", "--run", "small"]) == 2
    assert f"results/small/tiny/pq/model/tokenizer.json: {message}" in capsys.readouterr().err
