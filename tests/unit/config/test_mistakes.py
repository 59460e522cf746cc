"""Mistakes in an overlay on the paper's configuration: one line with file, key and remedy."""

import re

import pytest
import yaml

from helpers.configurations import PAPER, QUICK, overlaid
from zerogap.config import config_warnings, load
from zerogap.errors import InputError

VALUES = yaml.safe_load(PAPER[0].read_text())
PRETRAINING = yaml.safe_load(QUICK[1].read_text())["pretraining"]
GSM8K = {"file": "workflow/benchmarks/gsm8k.yaml"}
PREPARED = {"models.gemma.preparation": {"name": "x", "benchmark": "gsm8k"}}
GENERATED = {"source": "generated", "generated": {"num_train": 700, "num_test": 700}}
TED = {"label": "T", "class": "ted"}
IDENTITY = {"label": "Mine", "class": "identity"}

# Keys and values of an overlay → the key that the message begins with, and what follows it.
MISTAKES = [
    # of single values
    ({"nonsense": 1}, "nonsense", ": unknown key; the keys here are ablation, benchmarks"),
    ({"sampling.temperatur": 0.7}, "sampling.temperatur", ": unknown key.* temperature"),
    ({"sampling.num_samples": 0}, "sampling.num_samples", r"must be a positive integer \(got 0\)"),
    ({"sampling.num_samples": 2.5}, "sampling.num_samples", "must be a valid integer"),
    ({"sampling": 5}, "sampling", r"must be a mapping \(got 5\)"),
    ({"sampling.top_p": list(range(99))}, "sampling.top_p", r"must be .*0, 1, 2, .*…\)$"),
    ({"sampling.temperature": "warm"}, "sampling.temperature", "must be a valid number"),
    ({"sampling.temperature": 0}, "sampling.temperature", "must be greater than 0"),
    (
        {"sampling.batch_size": "many"},
        "sampling.batch_size",
        "must be 'auto' or be a valid integer",
    ),
    ({"decoding.engine": "sglang"}, "decoding.engine", "must be 'auto', 'zerogap'"),
    ({"metrics.bins": 0}, "metrics.bins", "must be a positive integer"),
    # of a benchmark
    ({"benchmarks.gsm8k.file": "absent.yaml"}, "benchmarks.gsm8k.file", "is 'absent.yaml', which"),
    ({"benchmarks.gsm8k.n_test": 9}, "benchmarks.gsm8k.n_test", ": unknown key; .*stop, file$"),
    ({"benchmarks.gsm8k.label": None}, "benchmarks.gsm8k.label", "must be a valid string"),
    (
        {"benchmarks.gsm8k.questions.source": "web"},
        "benchmarks.gsm8k.questions.source",
        "must be 'hub', 'files', 'generated' or",
    ),
    *(
        (
            {"benchmarks.gsm8k.questions.source": source},
            f"benchmarks.gsm8k.questions.{source}",
            f"is missing; source: {source} needs it",
        )
        for source in ("generated", "files", "gsm_symbolic")
    ),
    (
        {"benchmarks.gsm8k.questions": {"source": "files", "files": {"train": "a", "test": "b"}}},
        "benchmarks.gsm8k.questions.files.train",
        "is 'a', which does not exist or is not readable; give the path",
    ),
    (
        {"benchmarks.gsm8k.questions": {"source": "files", "files": {"train": "a"}}},
        "benchmarks.gsm8k.questions.files.test",
        "is missing: Test split",
    ),
    (
        {"benchmarks.gsm8k.questions.hub.sha256": "abc"},
        "benchmarks.gsm8k.questions.hub.sha256",
        "must match",
    ),
    (
        {"benchmarks.gsm8k.questions": GENERATED},
        "benchmarks.gsm8k.questions.generated.num_test",
        r"is 700, fewer than num_test \(1319\); raise it",
    ),
    (
        {"benchmarks.gsm8k": {"questions": GENERATED, "num_test": 700, "num_preparation": 50}},
        "benchmarks.gsm8k.questions.generated.num_train",
        r"is 700, fewer than num_train \+ num_preparation \(710\)",
    ),
    (
        {"benchmarks.gsm8k.num_leaked": 1319},
        "benchmarks.gsm8k.num_leaked",
        r"is 1319; it must be below num_test \(1319\), so that unleaked questions remain",
    ),
    ({"benchmarks.gsm8k.extraction": "last"}, "benchmarks.gsm8k.extraction", ": 'last'.*numeric"),
    ({"benchmarks.gsm8k.stop": "Q:"}, "benchmarks.gsm8k.stop", "must be a valid list"),
    ({"benchmarks.gsm8k.stop": [""]}, "benchmarks.gsm8k.stop.0", "must have at least 1 character"),
    *(
        ({f"benchmarks.gsm8k.prompt.{key}": text}, f"benchmarks.gsm8k.prompt.{key}", message)
        for key, text, message in (
            ("template", "Q:", "is 'Q:'.*{question}"),
            ("template", "Q: {{question}}", "is 'Q: {{question}}'"),
            ("target", " {answr}", "is .*{rationale} and {answer} .write {{ and }} for braces"),
            ("exemplars", "own", "must be 'lm_eval' or 'toy' or be a .jsonl file or be a valid"),
        )
    ),
    *(
        (
            {"benchmarks.gsm8k.prompt.exemplars": [{"question": "Q", **answer}]},
            f"benchmarks.gsm8k.prompt.exemplars.0.{key}",
            message,
        )
        for answer, key, message in (
            ({}, "target", "is missing: The response, without"),
            ({"answer": "2"}, "answer", ": unknown key; .*question, target"),
        )
    ),
    (
        {"benchmarks.gsm8k.contamination": "paraphrase"},
        "benchmarks.gsm8k.paraphrases",
        "is missing; contamination: paraphrase needs it",
    ),
    (
        {"benchmarks.pq.contamination": "verbatim"},
        "benchmarks.pq.paraphrases",
        "has no effect .* remove it, or set",
    ),
    (
        {"benchmarks.pq.paraphrases.method": "local"},
        "benchmarks.pq.paraphrases.local.model",
        "is not set; name a folder",
    ),
    (
        {"benchmarks.pq.paraphrases.on_invalid": "stop"},
        "benchmarks.pq.paraphrases.on_invalid",
        "must be 'error'",
    ),
    (
        {"benchmarks.pq.num_test": 10},
        "benchmarks.pq.num_test",
        "cannot be set.* set it in benchmarks.gsm8k",
    ),
    *(
        (
            {"benchmarks.pq.questions_of": owner},
            "benchmarks.pq.questions_of",
            r"is .*; it must name a benchmark of this run .*\(gsm8k\)",
        )
        for owner in ("pq", ["gsm8k"])
    ),
    ({"benchmarks.gsm8k": None}, "benchmarks.pq.questions_of", "is 'gsm8k'.*there are none"),
    ({"benchmarks.clean": GSM8K}, "benchmarks.clean", ": the name is reserved; rename it"),
    ({"benchmarks.clean_x": GSM8K}, "benchmarks.clean_x", ": the name is reserved for clean"),
    ({"instructions.source": "files"}, "instructions.files", "is missing; source: files needs it"),
    # of a model
    ({"models.llama2.family": "bert"}, "models.llama2.family", "is 'bert'; .*auto, llama"),
    (
        {"models": dict.fromkeys(("llama2", "gemma", "pythia"))},
        "models",
        "must have at least one entry",
    ),
    ({"models.a b": VALUES["models"]["gemma"]}, "models.a b", ": the name may only have letters"),
    (
        {"models.mine": VALUES["models"]["gemma"]},
        "models.mine",
        r"has the label of models.gemma \('Gemma'\); give it",
    ),
    (
        {"models.llama2.base": "from_scratch"},
        "pretraining",
        "is missing, but Llama2 is to be pretrained from scratch; add",
    ),
    (
        {"pretraining": PRETRAINING, "models.gemma": {"base": "from_scratch", "family": "auto"}},
        "models.gemma.family",
        "'auto' has no toy model",
    ),
    ({"pretraining": {"max_steps": 5}}, "pretraining.vocab_size", "is missing: Tokens"),
    (
        {"models.gemma.preparation": {"name": "x", "benchmark": "pq"}},
        "models.gemma.preparation.benchmark",
        "is 'pq'; .* num_preparation above 0",
    ),
    (
        PREPARED
        | {"benchmarks.gsm8k": {"num_preparation": 10, "num_train": 20, "questions": GENERATED}}
        | {"benchmarks.gsm8k.num_test": 50, "benchmarks.gsm8k.num_leaked": 25},
        "models.gemma.preparation.benchmark",
        "is 'gsm8k', whose .* another source",
    ),
    (
        {**PREPARED, "models.gemma.preparation.training": {"lr": 1}},
        "models.gemma.preparation.training.lr",
        ": unknown key",
    ),
    (
        {
            **PREPARED,
            "models.gemma.preparation.screening": {"num_candidates": 30, "num_samples": 5},
            "benchmarks.gsm8k": {"num_preparation": 10, "num_train": 20},
        },
        "models.gemma.preparation.screening.num_candidates",
        "is 30, fewer than .*; raise it",
    ),
    # of the trainings
    ({"training.nonsense": 1}, "training.nonsense", ": unknown key; .*clean, contaminated$"),
    ({"training.clean": {"lr": 1}}, "training.clean.lr", ": unknown key"),
    ({"training.warmup_ratio": 1.0}, "training.warmup_ratio", "must be less than 1"),
    ({"training.bf16": "yes"}, "training.bf16", "must be a valid boolean"),
    ({"training.save_steps": "often"}, "training.save_steps", "must be a valid integer or be 'ep"),
    ({"training.clean.group_by_length": True}, "training.save_steps", "is 20; .* epoch or null"),
    *(
        (
            values,
            "training.global_batch_size",
            f"is 32; it must be a multiple of per_device_batch_size × num_gpus = {product}$",
        )
        for values, product in (
            ({"training.per_device_batch_size": 5}, 5),
            ({"training": {"per_device_batch_size": 16, "num_gpus": 4}}, 64),
            ({"training.contaminated.per_device_batch_size": 7}, 7),
        )
    ),
    # of the strategies
    (
        {"strategies.mine": {**TED, "class": "x"}},
        "strategies.mine.class",
        "is .* or package.module",
    ),
    (
        {"ablation.mine": {**TED, "class": "I"}},
        "ablation.mine.class",
        "is 'I'; .* one of identity,",
    ),
    (
        {"strategies.railcap.klass": "x"},
        "strategies.railcap.klass",
        ": unknown key.* class, filter",
    ),
    *(
        (values, f"strategies.{key}.filter_of", "is .* must be one of the sampled strategies .id")
        for values, key in (
            ({"strategies.ted.filter_of": "nobody"}, "ted"),
            ({"strategies.t": {**TED, "filter_of": "ted"}}, "t"),
            ({"strategies.t": {**TED, "filter_of": "railcap"}, "strategies.railcap": None}, "t"),
        )
    ),
    ({"strategies.t": TED}, "strategies.t", ": class 'ted' needs the key filter_of"),
    (
        {"strategies.railcap.filter_of": "identity"},
        "strategies.railcap",
        ": class 'railcap' takes no key filter_of; remove it",
    ),
    (
        {"strategies.shortcut.needs_base_model": False},
        "strategies.shortcut",
        ": class 'shortcut' needs the key needs_base_model",
    ),
    ({"strategies.identity": None}, "strategies.identity", "is missing; the other"),
    ({"ablation.railcap": IDENTITY}, "ablation.railcap", "has the name .* rename it"),
    *(
        (
            {f"strategies.{name}": IDENTITY},
            f"strategies.{name}",
            ": the name is reserved; rename it",
        )
        for name in ("all_zero", "clean")
    ),
    # of the whole
    ({"primary_setting.model": "gpt"}, "primary_setting.model", "is 'gpt'.*llama2, gemma, pythia"),
    ({"models.llama2": None}, "primary_setting.model", "is .* must be one of gemma, pythia"),
    (
        {"benchmarks.pq": None, "primary_setting.benchmark": "pq"},
        "primary_setting.benchmark",
        "is 'pq', which is not in benchmarks; it must be one of gsm8k",
    ),
    (
        {"decoding.engine": "vllm", "sampling.batch_invariant": True},
        "decoding.engine",
        "is vllm, .* or sampling.batch_invariant: false",
    ),
    ({"sampling.num_shards": 2000}, "sampling.num_shards", "is 2000, more than .*; lower it"),
]


@pytest.mark.parametrize(("values", "key", "problem"), MISTAKES)
def test_a_mistake_is_one_line_with_its_key_and_remedy(values, key, problem):
    with pytest.raises(InputError) as caught:
        overlaid(PAPER, values)
    separator = "" if problem.startswith(":") else " "
    assert re.match(rf"(\S+/)?\S+: {re.escape(key)}{separator}{problem}", str(caught.value))
    assert "\n" not in str(caught.value)


def test_more_strata_than_samples_is_a_warning_with_its_reason():
    (warning,) = config_warnings(overlaid(PAPER, {"metrics.bins": 60}))
    assert "metrics.bins is 60, more than sampling.num_samples (50)" in warning
    assert "only 51 values" in warning
    assert not config_warnings(load(PAPER))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, ": does not exist or is not readable"),
        ("- a\n- b\n", ": must be a mapping"),
        ("a: [", ": is not valid YAML"),
        ("seed: 1\nrun: x\nseed: 2\n", ", line 3: duplicate key seed"),
        (
            "strategies:\n  a: {class: ted}\n  b: {}\n  a: {class: railcap}\n",
            ", line 4: duplicate key strategies.a",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path, text, message):
    path = tmp_path / "overlay.yaml"
    if text is not None:
        path.write_text(text)
    for paths in ([*PAPER, path], [path]):
        with pytest.raises(InputError, match=f"overlay.yaml{message}"):
            load(paths)
    path.with_name("entry.yaml").write_text(f"benchmarks: {{ mine: {{ file: {path} }} }}")
    if text is not None:
        with pytest.raises(InputError, match=f"overlay.yaml{message}"):
            load([*PAPER, path.with_name("entry.yaml")])


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
        (["training: { learning_rate: 0 }"], "0.yaml: training.learning_rate must be greater"),
        (
            ["training: { clean: { learning_rate: 0 } }"],
            "0.yaml: training.clean.learning_rate must",
        ),
        (
            ["pretraining: " + str(PRETRAINING | {"max_steps": 0, "gsm8k": "x"})],
            "0.yaml: pretraining.max_steps must be a positive",
        ),
        (
            ["pretraining: " + str({**PRETRAINING, "gsm8k": "x"}), "seed: 1"],
            "0.yaml: pretraining.gsm8k is 'x', which does not exist",
        ),
        (
            [
                "pretraining: " + str({**PRETRAINING, "gsm8k": "null"}).replace("'", ""),
                "models: { gemma: { pretraining: { max_steps: 0 } } }",
            ],
            "1.yaml: models.gemma.pretraining.max_steps must be a",
        ),
    ],
)
def test_a_mistake_is_reported_with_the_last_file_that_has_its_key(overlays, place, tmp_path):
    paths = [tmp_path / f"{k}.yaml" for k in range(len(overlays))]
    for path, text in zip(paths, overlays, strict=True):
        path.write_text(text)
    with pytest.raises(InputError, match=rf"^(\S*/)?{re.escape(place)}"):
        load([*PAPER, *paths])


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
