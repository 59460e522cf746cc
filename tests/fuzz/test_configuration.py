"""Wrong configurations: one error each, before anything starts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from helpers.configurations import QUICK, nested
from helpers.dry_runs import link_checkout, snakemake
from helpers.fuzzing import judge, outcome_of_call, outcome_of_process
from helpers.paths import ROOT
from zerogap.config import load
from zerogap.pipeline.preflight import run_checks

NAN, INFINITE = float("nan"), float("inf")
COUNT = [0, -1, 2.5, "many", 10**9, 10**30, NAN, INFINITE, True, [1], {"a": 1}]
RATE = [0, -0.5, NAN, INFINITE, 1e30, 1e-300, "fast", True, [0.1]]
FRACTION = [-0.1, 1.5, NAN, "half", [0.5]]
NAMES = [
    "a b", "a/b", "../up", "f\n", "", "a;b", "a'b", "ü", "a.b", "-a b", "$(id)", "a" * 300, "２",
]  # fmt: skip
HIDDEN = [
    "a\nb", "a\tb", "\x1b[31mred", "a\u200bb", "\u202eab", "\x00", "\u2028", "\ud800",
    "Llama\u00a0toy",
]  # fmt: skip
LABELS = [*HIDDEN, "", "  ", " x", "x ", "a" * 300, 5, None]
WORDS = [*HIDDEN, "", "a b", "x" * 5000, 5]  # as of hubs
CHAT = {
    "base_url": "https://x.org", "model": "m", "api_key_env": "HOME", "concurrency": 1,
    "max_attempts": 1,
}  # fmt: skip
PARAPHRASES = {"method": "chat", "on_invalid": "error"}
WRONG_CHAT: dict[str, list[Any]] = {
    "base_url": [
        *("", "file:///etc/passwd", "ftp://x", "https://", "http://user:pw@x.org/v1", "x.org"),
        *("https://x .org", "https://x.org\n", "javascript:1", "https://[::1"),
        "https://x.org:99999",
    ],
    "model": ["", "\n", 5],
    "api_key_env": ["", "A B", "A=B", "sk-123", "\x00", "1A"],
    "concurrency": [0, 10**5, 10**9],
    "max_attempts": [0, 10**9],
    "request": [{"stream": True}, {"n": 5}, {"t": NAN}, {"model": "x"}, {1: 2}, {"tools": []}],
    "served_model": ["", "\n"],
}

# Key → values that it must not have.
WRONG: dict[str, list[Any]] = {
    "run": [*NAMES, 5, None, "bases"],
    "scale_note": [*HIDDEN, "x" * 5000, 5, None],
    "seed": [-1, 2**70, 0.5, "one", NAN],
    "offline": ["yes", 1, None],
    "fork_jobs": ["yes", 1, None],
    "max_runtime": COUNT,
    "sampling.num_samples": COUNT,
    "sampling.max_new_tokens": [*COUNT, 100_000],
    "sampling.temperature": RATE,
    "sampling.top_p": [0, 1.5, 1e-30, NAN, "all"],
    "sampling.dtype": ["int8", "bf16", 16],
    "sampling.batch_size": [0, -1, "all", 2.5, 10**9],
    "sampling.num_shards": [0, 101, "two", 10**9],
    "metrics.bins": COUNT,
    "metrics.n_resamples": [0, 50, 10**30, NAN],
    "metrics.confidence_level": [0, 1, 1.5, NAN, "high", 1e-9, 1 - 1e-12],
    "training.clean.learning_rate": RATE,
    "training.contaminated.num_epochs": [*RATE, 1e9],
    "training.warmup_ratio": FRACTION,
    "training.lr_scheduler": ["cosin", "", 5],
    "training.template": ["nope", "fewshot"],
    "training.lora.rank": [0, -1, 10**5, 10**9, 10**30],
    "training.lora.alpha": [0, 10**9],
    "training.lora.dropout": [-0.1, 1, NAN],
    "training.cutoff_len": [0, 16, 40, 10**9, 10**30],
    "training.clean.num_gpus": [0, 10**9],
    "training.device": ["gpu", "cuda:0"],
    "training.save_steps": [0, "hour", True],
    "training.clean.global_batch_size": [0, 7, 8 * 10**7],
    "neuron_localisation.fraction": [0, 1.5, NAN, 1e-30],
    "neuron_localisation.group_size": [0, 10**9, 10**30],
    "neuron_localisation.num_questions": [0, 10**9],
    "neuron_localisation.num_shards": [0, 10**6, 10**9],
    "models.llama2.family": ["gpt_neox", "gemma4", "bert", "LLAMA", ""],
    "models.llama2.base": ["no/such/folder", *HIDDEN, "", 5, "x" * 900, "http://x/y", "/", "."],
    "models.llama2.revision": WORDS,
    "models.llama2.label": [*LABELS, "Pythia, toy", "pythia,  TOY"],
    "models.llama2.gguf": [{"package": "", "file": "x", "end_token": "</s>"}],
    "models.data": [{"label": "D", "base": "workflow/resources/bases/llama2"}],
    "models.a b": [{"label": "D", "base": "workflow/resources/bases/llama2"}],
    "benchmarks.base": [{"file": "workflow/benchmarks/toy_gsm8k.yaml", "label": "B"}],
    "benchmarks.clean_mine": [{"file": "workflow/benchmarks/toy_gsm8k.yaml", "label": "B"}],
    "benchmarks.gsm8k.file": ["none.yaml", 5, "Makefile"],
    "benchmarks.gsm8k.num_test": [0, 1, 101, 10**30],
    "benchmarks.gsm8k.num_leaked": [0, 100, 10**30],
    "benchmarks.gsm8k.stop": [
        *("Q:", [""], [5], ["The"], [" "], ["7", "1"], ["."], ["Q:"] * 10_000, ["x" * 10**6])
    ],
    "benchmarks.gsm8k.extraction": [
        *("", "best", "math:nothing", "no.such:rule", "sys:exit", "os:_exit", "builtins:len"),
        *("builtins:exit", "builtins:str", "thinking/" * 2000 + "numeric", "thinking/"),
        *("thinking/thinking/numeric", "math-verify/", "zerogap.data.extraction:extraction_rule"),
    ],
    "benchmarks.gsm8k.prompt.template": [
        *("Q:", "{answer}", "{question", 5, "{question!r}", "{question:>100}", "{question.x}"),
        *("{question[0]}", "{question:{question}}", "\x00{question}", "{question}\x1b[31m"),
    ],
    "benchmarks.gsm8k.prompt.target": [
        *(" {rationale} {answer!r}", " {answer:>10}", " {rationale} The answer is {answer}0."),
        *(" {rationale} So x{answer}y, 3.", " Q: {rationale} So {answer}."),
        " {rationale} Q:{answer}",
    ],
    "benchmarks.gsm8k.prompt.separator": ["", 5, None],
    "benchmarks.gsm8k.prompt.exemplars": ["no.jsonl", [], [{"question": "", "target": ""}], "x"],
    "benchmarks.gsm8k.prompt.num_shots": [0, 99, 10**30],
    "benchmarks.gsm8k.num_preparation": [10**9],
    "benchmarks.gsm8k.questions.generated.num_train": [0, 10**9],
    "benchmarks.gsm8k.questions.generated.num_test": [0, 10**9],
    "benchmarks.gsm8k.questions.hub": [
        {"repository": repository, "revision": "x"} for repository in [*WORDS, "../x", "a/b/c"]
    ],
    "benchmarks.gsm8k.label": [*LABELS, "Paraphrased problems"],
    "benchmarks.pq.paraphrases": [
        {**PARAPHRASES, "chat": {**CHAT, key: value}}
        for key, values in WRONG_CHAT.items()
        for value in values
    ],
    "instructions.num_examples": [0, "all", 10**9, 10**30],
    "primary_setting.model": ["nobody", 5, "", None],
    "strategies.identity": [None],
    "strategies.identity.class": [
        *("os:getcwd", "railcup", "Identity", "math:pi", "no.such:S", ":", "sys:exit", "os:abort"),
        *("builtins:exit", "builtins:dict", "zerogap.strategies.base:Strategy", "typing:Any"),
    ],
    "strategies.identity.parameters": [{"a": 1}, {1: 2}, {"": 1}, [1], {"self": 1}],
    "strategies.railcap.label": [
        *(*LABELS, "Identity", "IDENTITY", "All-Zero", "Clean model", "Noise floor"),
        "clean model, second batch",
    ],
    "strategies.railcap.parameters.n": [0, -1, 2.5, "4", True, None, [4], NAN],
    "strategies.railcap.parameters.ngram": [4],
    "strategies.railcap.parameters.suppression": ["stop", None],
    "strategies.ted.parameters.tau": [-1, 2.5, "2"],
    "strategies.ted.parameters.max_length": [0, NAN],
    "strategies.lne_blocking.parameters.threshold": [-1, 2.5, "7"],
    "strategies.lne_blocking.parameters.beta": [0, -2, NAN, INFINITE],
    "strategies.lne_blocking.parameters.rounding": ["up", 1],
    "strategies.shortcut.parameters.n": [4],
    "strategies.ted.filter_of": ["ted", "nobody", 5],
    **{
        f"strategies.{name}": [{"label": "Mine", "class": "identity"}]
        for name in ("clean", "all_zero", "batch1", "a b", "a/b", "x;y")
    },
    "ablation.identity": [{"label": "Mine", "class": "identity"}],
    "sampling.temprature": [0.7],
    "sampling": [5, [], "fast"],
}


def bomb(depth: int) -> str:
    """Ten to the power of `depth` values, as aliases of aliases."""
    lists = (f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]\n" for k in range(1, depth))
    return "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(lists)


REQUEST = "run: f\nbenchmarks: {pq: {paraphrases: {method: chat, chat: {request: {x: %s}}}}}"
# Files that a YAML reader may choke on, or read as something that JSON does not have.
WRONG_FILES: dict[str, str | bytes] = {
    "an alias in itself, list": "run: f\nscale_note: &a [*a]",
    "an alias in itself, mapping": "run: f\nstrategies: &a {x: *a}",
    "an alias in itself, parameters": "run: f\nstrategies: {identity: {parameters: &a {x: *a}}}",
    "1,000 deep": "a: " + "[" * 1000 + "]" * 1000,
    "100,000 deep": "a: " + "[" * 100_000,
    "2,000 deep, in lines": "\n".join(" " * depth + "a:" for depth in range(2000)),
    "5,000 digits": "seed: " + "9" * 5000,
    "5,000 hexadecimal digits": "seed: 0x" + "f" * 5000,
    "a bomb": bomb(8),
    "a bomb in parameters": "strategies: {identity: {parameters: {x: &x [1, 1]}}}\n" + bomb(7),
    "a date": "run: 2024-01-01",
    "an impossible date": "seed: 9999-99-99",
    "a date in parameters": "strategies: {identity: {parameters: {x: 2024-01-01}}}",
    **{
        f"{value} in a request": REQUEST % value for value in ("2024-01-01", "!!set {a, b}", ".nan")
    },
    "bytes": "run: !!binary aGk=",
    "Python": "run: !!python/object/apply:os.getcwd []",
    **{f"the key {key}": f"{key}: 1" for key in ("? [a]\n", "? {a: 1}\n", "~", "1", "2024-01-01")},
    **{
        f"the model {key}": f"models: {{{key}: {{label: x, base: y}}}}"
        for key in ("1", "yes", "1.5")
    },
    "a merge with a number": "models: {<<: 5}",
    "two documents": "run: f\n---\nseed: 2",
    **{
        f"{content!r}": content
        for content in ("", "5", "run: f\x00", "\trun: f", "run: *x", "a: [")
    },
    "UTF-16": "run: f".encode("utf-16"),
    "Latin-1": "scale_note: é".encode("latin-1"),
    "half a surrogate pair": 'scale_note: "\\ud800"',
    "an escape": 'scale_note: "\\e[31m"',
    "30 MB": "# " + "x" * 30_000_000,
    "100,000 keys": "\n".join(f"k{number}: 1" for number in range(100_000)),
    "ordered": "strategies: !!omap [a: 1]",
    "the same key twice": "models: {llama2: {label: a, label: b}}",
}


@pytest.fixture
def start(tmp_path, monkeypatch) -> Callable[[dict[str, Any]], object]:
    """What happens with an overlay before the first job starts."""
    monkeypatch.chdir(ROOT)

    def run(values: dict[str, Any]) -> object:
        return run_checks(load([*QUICK, write_overlay(tmp_path, values)]))

    return run


def write_overlay(folder: Path, values: dict[str, Any]) -> Path:
    path = folder / "overlay.yaml"
    path.write_text(yaml.safe_dump(nested({"run": "fuzz", **values})))
    return path


def test_every_wrong_configuration_is_a_clear_error(start) -> None:
    outcomes = {
        f"{key}: {value!r}": outcome_of_call(lambda: start({key: value}))  # noqa: B023
        for key, values in WRONG.items()
        for value in values
    }
    assert len(outcomes) >= 400
    judge("configuration", outcomes)


def test_every_file_that_is_no_configuration_is_a_clear_error(tmp_path) -> None:
    path, outcomes = tmp_path / "overlay.yaml", {}
    for name, content in WRONG_FILES.items():
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        outcomes[name] = outcome_of_call(lambda: load([*QUICK, path]))
    judge("configuration files", outcomes)


def test_aliases_and_braces_are_allowed(start, tmp_path) -> None:
    assert start({"scale_note": "A {note}.", "models.llama2.label": "Llama {x}"})
    path = tmp_path / "aliases.yaml"
    path.write_text("training: {clean: &shared {num_epochs: 2}, contaminated: {<<: *shared}}")
    assert load([*QUICK, path]).training.contaminated.num_epochs == 2


IN_SNAKEMAKE = {  # found while reading, importing and checking
    "a name with a line break": {"run": "f\n"},
    "a function as a class": {"strategies.identity.class": "os:getcwd"},
    "more tokens than the context": {"sampling.max_new_tokens": 100_000},
}


def test_snakemake_stops_before_its_first_job(tmp_path) -> None:
    outcomes = {}
    for name, values in IN_SNAKEMAKE.items():
        folder = link_checkout(tmp_path / name)
        write_overlay(folder, values)
        process = snakemake(
            *("-F", "--profile", "profiles/quick", "--configfile", "profiles/quick/quick.yaml"),
            *("overlay.yaml", "--", "results/fuzz/data/gsm8k/split.parquet"),
            workdir=folder,
        )
        outcomes[name] = outcome_of_process(process.returncode, process.stdout + process.stderr)
        assert not list(folder.glob("results/*/data"))
    judge("configuration, snakemake", outcomes)
