"""Where the sources of tables and figures are, and what they say about the protocol."""

import pytest

from helpers.configurations import PAPER, overlaid
from helpers.paths import ROOT
from zerogap.config import load
from zerogap.data import gsm8k_format
from zerogap.pipeline.report import protocol, sources
from zerogap.pipeline.report.entry import file, made_of, value
from zerogap.pipeline.report.protocol import (
    PRIMARY_PROTOCOL_DIFFERENCES,
    PROTOCOL_DIFFERENCES,
    scale_sentence,
)
from zerogap.pipeline.report.tables import TABLES

RUN, QUESTIONS = "results/paper", "benchmarks.gsm8k.questions"


@pytest.fixture
def config(monkeypatch):
    monkeypatch.chdir(ROOT)
    return load(["config.yaml"])


def differences(config, source=PROTOCOL_DIFFERENCES):
    return source.read(source.locate(config))


def test_a_source_made_of_others_has_their_files_once_and_reads_them_in_order(config):
    questions = f"{RUN}/data/gsm8k/questions.parquet"
    solve = f"{RUN}/llama2/clean_gsm8k/cells/batch1/solve.parquet"
    counts = made_of(lambda clean, names: (clean, names), sources.CLEAN, value(lambda _: ["a"]))
    assert counts.locate(config) == [file(solve, "solve", questions), ["a"]]
    both = made_of(lambda a, b: None, counts, sources.CLEAN)
    assert both.files(config) == [questions, solve]
    letters = made_of(lambda a, b: a + b, value(lambda _: "a"), value(lambda _: "b"))
    assert letters.read(letters.locate(config)) == "ab"


def test_variants_have_the_labels_of_the_configuration(config):
    labels = sources.LABELS.read(sources.LABELS.locate(config))
    assert labels.strategy("railcap_n7") == "RailCap, n=7"
    for name in ("railcap_first", "lne_blocking_nearest"):
        assert labels.strategy(name) == config.ablation[name].label


def test_table_4_lists_railcap_by_its_n_among_the_ablation_and_bans_last(config):
    rows = sources.LABELS.read(sources.LABELS.locate(config)).configurations
    assert list(rows.values()) == ["n=1", "n=3", "n=4", "n=5", "n=7", "n=4, ban"]
    assert rows["railcap"] == "n=4"
    with_7 = overlaid(PAPER, {"strategies.railcap.parameters": {"n": 7, "suppression": "cap"}})
    rows = sources.LABELS.read(sources.LABELS.locate(with_7)).configurations
    assert [name for name, label in rows.items() if label == "n=7"] == ["railcap"]


def test_a_lost_timing_does_not_make_the_cost_table_again(config):
    files = TABLES["cost"].source.files(config)
    assert f"{RUN}/llama2/gsm8k/cells/railcap/samples.parquet" in files
    assert not any("timings" in path for path in files)


@pytest.mark.parametrize("source", [PROTOCOL_DIFFERENCES, PRIMARY_PROTOCOL_DIFFERENCES])
def test_the_papers_configuration_has_the_papers_protocol(config, source):
    assert differences(config, source) == ()


@pytest.mark.parametrize(
    ("key", "value", "difference"),
    [
        ("strategies.railcap.parameters.n", 7, "railcap n 7, not 4"),
        ("strategies.railcap.parameters.suppression", "ban", "RailCap's suppression ban, not cap"),
        ("benchmarks.pq.paraphrases.method", "rules", "paraphrases by the method rules, not chat"),
        ("instructions.hub.repository", "x/y", "instructions of x/y, not Open-Orca/OpenOrca"),
        (
            "benchmarks.gsm8k.questions.hub",
            {"repository": "me/mine", "sha256": None},
            "questions of me/mine, not GSM8K's",
        ),
        ("training.lr_scheduler", "linear", "learning-rate schedule linear, not cosine"),
        (
            "models.gemma.base",
            "google/gemma-4-E2B-it",
            "base model google/gemma-4-E2B-it, not Gemma-4-E2B",
        ),
    ],
)
def test_another_choice_is_a_difference_from_the_paper(key, value, difference, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert differences(overlaid(PAPER, {key: value})) == (difference,)


def test_questions_of_the_hub_are_gsm8ks_if_the_hash_says_so():
    assert differences(overlaid(PAPER, {f"{QUESTIONS}.hub.repository": "mirror/gsm8k"})) == ()


def test_questions_of_local_files_are_compared_with_gsm8k(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    entries = [{"question": "How many?", "answer": "Two and two.\n#### 4"}]
    folder = tmp_path / RUN / "data/gsm8k"
    folder.mkdir(parents=True)
    for split in ("train", "test"):
        gsm8k_format.write(folder / f"{split}.jsonl", entries)
    same = gsm8k_format.fingerprint({"train": entries, "test": entries})
    paths = {split: str(folder / f"{split}.jsonl") for split in ("train", "test")}
    values = {"source": "files", "files": paths, "hub.sha256": same}
    local = overlaid(PAPER, {f"{QUESTIONS}.{key}": value for key, value in values.items()})
    assert differences(local) == ("questions of other files, not GSM8K's",)
    monkeypatch.setattr(protocol, "GSM8K_SHA256", same)
    assert differences(local) == ()


def test_the_scale_sentence_counts_questions_samples_and_models(config):
    sentence = scale_sentence(config)
    assert "GSM8K with N = 1319 questions (660 leaked) and 8 shots" in sentence
    assert "m = 50 samples per question, B = 50 strata, 95 % intervals; " in sentence
    assert "mean nothing" not in sentence
    small = overlaid(PAPER, {"benchmarks.gsm8k": {"num_test": 12, "num_leaked": 6}})
    assert "With fewer than 20 questions, intervals, † and verdicts mean" in scale_sentence(small)
    assert "3 models: Llama2 from meta-llama/Llama-2-7b-hf" in sentence
