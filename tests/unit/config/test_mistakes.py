"""Mistakes in an overlay on the paper's configuration, put together as Snakemake does it."""

import re

import pytest
import yaml
from snakemake.utils import update_config

from helpers.paths import ROOT
from zerogap.config import Config, config_warnings, from_snakemake
from zerogap.errors import InputError

BASE = ROOT / "config.yaml"

MISTAKES = {
    "unknown key": ("sampling: { temprature: 1 }", "sampling.temprature", "unknown key"),
    "not a number": ("sampling: { num_samples: many }", "sampling.num_samples", "integer"),
    "no samples": ("sampling: { num_samples: 0 }", "sampling.num_samples", "positive integer"),
    "unknown engine": ("decoding: { engine: sglang }", "decoding.engine", "'auto', 'zerogap'"),
    "vLLM in batch-invariant decoding": (
        "{ decoding: { engine: vllm }, sampling: { batch_invariant: true } }",
        "decoding.engine",
        "or sampling.batch_invariant: false",
    ),
    "no strata": ("metrics: { bins: 0 }", "metrics.bins", "positive integer"),
    "unknown family": ("models: { gemma: { family: bert } }", "models.gemma.family", "gpt_neox"),
    "unknown class": (
        "strategies: { mine: { label: Mine, class: railcup } }",
        "strategies.mine.class",
        "or package.module:Class",
    ),
    "unknown class in the ablation": (
        "ablation: { mine: { label: Mine, class: Identity } }",
        "ablation.mine.class",
        "identity, ",
    ),
    "filter of an unknown strategy": (
        "strategies: { ted: { filter_of: nobody } }",
        "strategies.ted.filter_of",
        "must be one of the sampled strategies",
    ),
    "filter of a filter": (
        "strategies: { t: { label: T, class: ted, filter_of: ted } }",
        "strategies.t.filter_of",
        "must be one of the sampled strategies",
    ),
    "filter of a removed strategy": (
        "strategies: { mine: { label: M, class: ted, filter_of: railcap }, railcap: null }",
        "strategies.mine.filter_of",
        "must be one of the sampled strategies",
    ),
    "filter without a source": (
        "strategies: { t: { label: T, class: ted } }",
        "strategies.t",
        "needs the key filter_of",
    ),
    "source of a strategy that does not filter": (
        "strategies: { railcap: { filter_of: identity } }",
        "strategies.railcap",
        "remove it",
    ),
    "patching without the base model": (
        "strategies: { shortcut: { needs_base_model: false } }",
        "strategies.shortcut",
        "needs the key needs_base_model",
    ),
    "preparation on the questions of another benchmark": (
        "models: { gemma: { preparation: { name: x, benchmark: pq } } }",
        "models.gemma.preparation.benchmark",
        "num_preparation above 0",
    ),
    "preparation on generated questions": (
        "models: { gemma: { preparation: { name: x, benchmark: gsm8k } } }\n"
        "benchmarks: { gsm8k: { num_preparation: 10, num_train: 20, num_test: 50, "
        "num_leaked: 25, questions: { source: generated, "
        "generated: { num_train: 50, num_test: 50 } } } }",
        "models.gemma.preparation.benchmark",
        "another source",
    ),
    "preparation with an unknown key of training": (
        "models: { gemma: { preparation: { name: x, benchmark: gsm8k, training: { lr: 1 } } } }",
        "models.gemma.preparation.training.lr",
        "unknown key",
    ),
    "screening fewer questions than the benchmark has": (
        "models: { gemma: { preparation: { name: x, benchmark: gsm8k, screening: "
        "{ num_candidates: 30, num_samples: 5 } } } }\n"
        "benchmarks: { gsm8k: { num_preparation: 10, num_train: 20 } }",
        "models.gemma.preparation.screening.num_candidates",
        "raise it",
    ),
    "no identity": ("strategies: { identity: null }", "strategies.identity", "is missing"),
    "name in strategies and ablation": (
        "ablation: { railcap: { label: R, class: railcap } }",
        "ablation.railcap",
        "rename it",
    ),
    "reserved name": (
        "strategies: { all_zero: { label: Z, class: identity } }",
        "strategies.all_zero",
        "rename it",
    ),
    "unknown model": (
        "primary_setting: { model: gpt }",
        "primary_setting.model",
        "llama2, gemma, pythia",
    ),
    "model of the primary setting removed": (
        "models: { llama2: null }",
        "primary_setting.model",
        "must be one of gemma, pythia",
    ),
    "benchmark of the primary setting removed": (
        "benchmarks: { pq: null }\nprimary_setting: { benchmark: pq }",
        "primary_setting.benchmark",
        "must be one of gsm8k",
    ),
    "owner of shared questions removed": (
        "benchmarks: { gsm8k: null }",
        "benchmarks.pq.questions_of",
        "must name a benchmark of this run",
    ),
    "no models": (
        "models: { llama2: null, gemma: null, pythia: null }",
        "models",
        "must have at least one entry",
    ),
    "more leaked than test questions": (
        "benchmarks: { gsm8k: { num_test: 100, num_leaked: 101 } }",
        "benchmarks.gsm8k.num_leaked",
        "below benchmarks.gsm8k.num_test",
    ),
    "all questions leaked": (
        "benchmarks: { gsm8k: { num_test: 100, num_leaked: 100 } }",
        "benchmarks.gsm8k.num_leaked",
        "unleaked questions remain",
    ),
    "fewer generated than evaluated": (
        "benchmarks: { gsm8k: { questions: { source: generated, "
        "generated: { num_train: 660, num_test: 50 } } } }",
        "benchmarks.gsm8k.questions.generated.num_test",
        "fewer than",
    ),
    "batch not a multiple": (
        "training: { global_batch_size: 32, per_device_batch_size: 5 }",
        "training.global_batch_size",
        "per_device_batch_size × num_gpus = 5",
    ),
    "batch smaller than the devices take": (
        "training: { per_device_batch_size: 16, num_gpus: 4 }",
        "training.global_batch_size",
        "= 64",
    ),
    "batch of one kind of training": (
        "training: { contaminated: { per_device_batch_size: 7 } }",
        "training.global_batch_size",
        "= 7 (contaminated models)",
    ),
    "no files": (
        "benchmarks: { gsm8k: { questions: { source: files } } }",
        "benchmarks.gsm8k.questions.files.train",
        "give the path",
    ),
    "missing files": (
        "benchmarks: { gsm8k: { questions: { source: files, "
        "files: { train: absent.jsonl, test: absent.jsonl } } } }",
        "benchmarks.gsm8k.questions.files.train",
        "absent.jsonl",
    ),
    "unknown extraction rule": (
        "benchmarks: { gsm8k: { extraction: best } }",
        "benchmarks.gsm8k.extraction",
        "numeric",
    ),
}


def with_overlay(text: str) -> Config:
    merged = yaml.safe_load(BASE.read_text())
    update_config(merged, yaml.safe_load(text))
    return from_snakemake(merged, [BASE])


@pytest.mark.parametrize(("overlay", "key", "remedy"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_line_with_its_key_and_remedy(overlay, key, remedy):
    with pytest.raises(InputError) as caught:
        with_overlay(overlay)
    message = str(caught.value)
    assert re.match(rf"(config|{BASE}): {re.escape(key)}", message)
    assert remedy in message
    assert "\n" not in message


def test_more_strata_than_samples_is_a_warning_with_its_reason():
    (warning,) = config_warnings(with_overlay("metrics: { bins: 60 }"))
    assert "metrics.bins is 60, more than sampling.num_samples (50)" in warning
    assert "only 51 values" in warning
    assert not config_warnings(with_overlay("{}"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "strategies:\n  a: {class: ted}\n  b: {}\n  a: {class: railcap}\n",
            "line 4: duplicate key strategies.a",
        ),
        ("seed: 1\nrun: x\nseed: 2\n", "line 3: duplicate key seed"),
    ],
)
def test_a_duplicate_key_is_named_with_file_and_line(tmp_path, text, message):
    path = tmp_path / "overlay.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=f"overlay.yaml, {message}"):
        from_snakemake({}, [path, BASE])
