"""Mistakes in an overlay on the paper's configuration: one line with file, key and remedy."""

import re

import pytest
import yaml

from helpers.configurations import PAPER, overlaid
from zerogap.config import config_warnings, load
from zerogap.errors import InputError

VALUES = yaml.safe_load(PAPER[0].read_text())
PREPARED = {"models.gemma.preparation": {"name": "x", "benchmark": "gsm8k"}}
GENERATED = {"source": "generated", "generated": {"num_train": 700, "num_test": 700}}
TED = {"label": "T", "class": "ted"}
IDENTITY = {"label": "Mine", "class": "identity"}
OUTSIDE = {"label": "Mine", "class": "package.mine:Mine"}
FILTER = "must be one of the sampled strategies .identity"

# Key → values that it must not have, each with what the message says about the key.
WRONG_VALUES = {
    "nonsense": [(1, ": unknown key; the keys here are ablation, benchmarks")],
    "sampling": [(5, r"must be a mapping \(got 5\)")],
    "sampling.temperatur": [(0.7, ": unknown key.* temperature")],
    "sampling.num_samples": [(0, "must be a positive integer"), (2.5, "must be a valid integer")],
    "sampling.top_p": [(list(range(99)), r"must be .*0, 1, 2, .*…\)$")],
    "sampling.temperature": [("warm", "must be a valid number"), (0, "must be greater than")],
    "sampling.batch_size": [("many", "must be 'auto' or be a valid integer")],
    "sampling.num_shards": [(2000, "must be less than or equal to 1000")],
    "benchmarks.gsm8k.questions.hub.sha256": [("abc", "must match")],
    "benchmarks.gsm8k.num_leaked": [(1319, r"is 1319; .* below num_test \(1319\), so that unlea")],
    "benchmarks.gsm8k.prompt.template": [("Q: {{question}}", "is 'Q: {{question}}'")],
    "benchmarks.gsm8k.prompt.exemplars": [("own", "must be 'lm_eval' or 'toy' or be a .jsonl")],
    "benchmarks.pq.num_test": [(10, "cannot be set.* set it in benchmarks.gsm8k")],
    "benchmarks.pq.questions_of": [("pq", r"is 'pq'; it must name a benchmark .*\(gsm8k\)")],
    "models": [(dict.fromkeys(VALUES["models"]), "must have at least one entry")],
    "models.mine": [(VALUES["models"]["gemma"], "has the label of models.gemma .'Gemma'.; give")],
    "training.nonsense": [(1, ": unknown key; .*clean, contaminated$")],
    "strategies.t": [(TED, ": class 'ted' needs the key filter_of")],
    "strategies.identity": [(None, "is missing; the other")],
    "strategies.railcap.klass": [("x", ": unknown key.* class, filter")],
    "ablation.railcap": [(IDENTITY, "has the name .* rename it")],
}
# Overlay, and the message from the key on.
COMBINATIONS = [
    ({"benchmarks.gsm8k.questions.source": "files"}, "benchmarks.gsm8k.questions.files is missing"),
    (
        {"benchmarks.gsm8k.questions": {"source": "files", "files": {"train": "a", "test": "b"}}},
        "benchmarks.gsm8k.questions.files.train is 'a', which",
    ),
    ({"benchmarks.gsm8k.questions": GENERATED}, r".*generated.num_test is 700, fewer than num_tes"),
    (
        {"benchmarks.gsm8k": {"questions": GENERATED, "num_test": 700, "num_preparation": 50}},
        r"benchmarks.gsm8k.questions.generated.num_train is 700, .* num_preparation \(710\)",
    ),
    ({"benchmarks.gsm8k.stop": [""]}, "benchmarks.gsm8k.stop.0 must have at least 1 character"),
    ({"benchmarks.gsm8k.prompt.exemplars": [{"question": "Q"}]}, ".*exemplars.0.target is missing"),
    ({"benchmarks.pq.paraphrases.chat.request": {"model": "x"}}, ".*chat.request.model cannot be"),
    ({"benchmarks.gsm8k.contamination": "paraphrase"}, "benchmarks.gsm8k.paraphrases is missing"),
    ({"benchmarks.pq.contamination": "verbatim"}, "benchmarks.pq.paraphrases has no effect"),
    ({"benchmarks.pq.paraphrases.chat": None}, "benchmarks.pq.paraphrases.chat is missing; method"),
    ({"benchmarks.pq.paraphrases.method": "generated"}, ".*paraphrases.method is generated, but"),
    ({"benchmarks.gsm8k": None}, "benchmarks.pq.questions_of is 'gsm8k'.*there are none"),
    (
        {"sampling.num_shards": 801, "benchmarks.gsm8k": {"num_test": 800, "num_leaked": 9}},
        r"sampling.num_shards is 801, more than benchmarks.gsm8k.num_test \(800\); lower it",
    ),
    ({"instructions.source": "files"}, "instructions.files is missing; source: files needs it"),
    (
        {"benchmarks.gsm8k.num_preparation": 10}
        | {"models.gemma.preparation": {"name": "x", "benchmark": "pq"}},
        "models.gemma.preparation.benchmark is 'pq'; .* num_preparation above 0",
    ),
    (
        PREPARED
        | {"benchmarks.gsm8k": {"num_preparation": 10, "num_train": 20, "questions": GENERATED}}
        | {"benchmarks.gsm8k.num_test": 50, "benchmarks.gsm8k.num_leaked": 25},
        "models.gemma.preparation.benchmark is 'gsm8k', whose .* another source",
    ),
    ({**PREPARED, "models.gemma.preparation.training": {"lr": 1}}, ".*training.lr: unknown key"),
    ({"training.clean.group_by_length": True}, "training.save_steps is 20; .* epoch or null"),
    (
        {"training": {"per_device_batch_size": 16, "num_gpus": 4}},
        "training.global_.*num_gpus = 64$",
    ),
    (
        {"strategies.t": {**TED, "filter_of": "railcap"}, "strategies.railcap": None},
        f"strategies.t.filter_of is 'railcap'; it {FILTER}",
    ),
    ({"strategies.railcap.filter_of": "ted"}, "strategies.railcap: class .* takes no .* remove it"),
    ({"strategies.shortcut.needs_base_model": False}, "strategies.shortcut: .* needs the key need"),
    ({"models.llama2": None}, "primary_setting.model is .* must be one of gemma, pythia"),
    ({"benchmarks.pq": None, "primary_setting.benchmark": "pq"}, ".*benchmark is 'pq', which is"),
    ({"decoding.engine": "vllm"}, "decoding.engine is vllm, which cannot sample shortcut, and one"),
    (
        {"strategies.shortcut": None, "ablation.mine": OUTSIDE, "decoding.engine": "vllm"},
        "decoding.engine is vllm, which cannot sample mine, .* or set decoding.engine: zerogap",
    ),
    (
        {"strategies.shortcut": None, "sampling.batch_invariant": True, "decoding.engine": "vllm"},
        "decoding.engine is vllm, .* or sampling.batch_invariant: false",
    ),
    (
        {"strategies.shortcut": None, "sampling.temperature": 2.5, "decoding.engine": "vllm"},
        "decoding.engine is vllm, .* at temperatures up to 2; .* or a lower sampling.temperature",
    ),
    *(
        ({key: value}, f"{re.escape(key)}{'' if problem.startswith(':') else ' '}{problem}")
        for key, wrong in WRONG_VALUES.items()
        for value, problem in wrong
    ),
]


@pytest.mark.parametrize(("values", "message"), COMBINATIONS)
def test_a_mistake_is_one_line_with_its_key_and_remedy(values, message):
    with pytest.raises(InputError) as caught:
        overlaid(PAPER, values)
    assert re.match(rf"(\S+/)?\S+: {message}", str(caught.value))
    assert "\n" not in str(caught.value)


def test_more_strata_than_samples_is_a_warning_with_its_reason():
    (warning,) = config_warnings(overlaid(PAPER, {"metrics.bins": 51}))
    assert "metrics.bins is 51, more than sampling.num_samples (50)" in warning
    assert "only 51 values" in warning
    assert not config_warnings(load(PAPER))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", ": is not valid YAML"),
        (
            "strategies:\n  a: {class: ted}\n  b: {}\n  a: {class: railcap}\n",
            ", line 4: duplicate key strategies.a",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path, text, message):
    path, entry = tmp_path / "overlay.yaml", tmp_path / "entry.yaml"
    path.write_text(text)
    entry.write_text(f"benchmarks: {{ mine: {{ file: {path} }} }}")
    for paths in ([*PAPER, path], [path], [*PAPER, entry]):
        with pytest.raises(InputError, match=f"overlay.yaml{message}"):
            load(paths)


@pytest.mark.parametrize(
    ("overlays", "place"),
    [
        (["sampling: { num_samples: 0 }", "seed: 1"], "0.yaml: sampling.num_samples must"),
        (["sampling: { num_samples: 0 }", "sampling: { num_samples: x }"], "1.yaml: sampling.num"),
        (["seed: 1", "models: { llama2: null }"], "config.yaml: primary_setting.model is"),
        (["benchmarks: { gsm8k: { stop: [''] } }"], "0.yaml: benchmarks.gsm8k.stop.0 must"),
        (
            ["models: { mine: { label: Mine } }", "models: { gemma: null }"],
            "0.yaml: models.mine.base is missing",
        ),
        (["seed: 1", "models: { llama: null }"], "1.yaml: models.llama is null, but there is no"),
        (["training: { learning_rate: 0 }"], "0.yaml: training.learning_rate must be greater"),
        (["training: { clean: { learning_rate: 0 } }"], "0.yaml: training.clean.learning_rate mus"),
    ],
)
def test_a_mistake_is_reported_with_the_last_file_that_has_its_key(overlays, place, tmp_path):
    paths = [tmp_path / f"{k}.yaml" for k in range(len(overlays))]
    for path, text in zip(paths, overlays, strict=True):
        path.write_text(text)
    with pytest.raises(InputError, match=rf"^(\S*/)?{re.escape(place)}"):
        load([*PAPER, *paths])


def test_an_overlay_may_remove_what_another_scale_has():
    assert overlaid(PAPER, {"benchmarks.gsm_symbolic": None}) == load(PAPER)


def test_an_overlay_alone_is_not_a_configuration(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("seed: 1")
    with pytest.raises(InputError, match=r"mine\.yaml: has no run; the first file is a whole conf"):
        load([path])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  num_samples: 50", "  # num_samples: 50", "sampling.num_samples is missing: Resp"),
        ("num_samples:", "num_sample:", "sampling.num_sample: unknown key"),
    ],
)
def test_a_missing_key_is_reported_with_its_meaning_and_a_typo_before_it(
    tmp_path, old, new, message
):
    path = tmp_path / "config.yaml"
    path.write_text(PAPER[0].read_text().replace(old, new))
    with pytest.raises(InputError, match=f"config.yaml: {message}"):
        load([path])
