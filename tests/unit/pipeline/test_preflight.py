"""Preflight checks that ask no hub."""

import json
import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from helpers.paths import ROOT
from zerogap.errors import InputError
from zerogap.families import HUB_SIZES
from zerogap.pipeline import preflight
from zerogap.pipeline.preflight import FAILED, OK, all_checks, hub_resources, run_checks
from zerogap.sampling import engines

GB = 1e9
LLAMA2 = "meta-llama/Llama-2-7b-hf"
CHAT = {
    "base_url": "https://api.deepseek.com", "model": "m", "concurrency": 1, "max_attempts": 1,
    "api_key_env": "DEEPSEEK_API_KEY",
}  # fmt: skip
pytestmark = pytest.mark.usefixtures("in_empty_checkout")


def found(config, check):
    """What one of the checks prints."""
    return [str(result) for result in all_checks(config) if result.check == check]


@pytest.fixture
def disk(monkeypatch):
    """Set the free space."""

    def free(num_bytes):
        monkeypatch.setattr(shutil, "disk_usage", lambda _: namedtuple("U", "free")(num_bytes))

    return free


def test_no_hub_is_asked_for_a_base_from_an_installed_package(quick):
    gguf = {"package": "some-package", "file": "some/model.gguf", "end_token": "</s>"}
    config = quick(models__llama2__base="nobody/nothing", models__llama2__gguf=gguf)
    assert not [result for result in all_checks(config) if "llama2" in result.check]


def test_all_failures_are_reported_at_once_one_per_line(quick, disk):
    disk(10_000)
    config = quick(
        benchmarks__pq__paraphrases={"method": "chat", "chat": CHAT},
        models__llama2__base="nobody/nothing",
        models__gemma=None,
        instructions__source="hub",
    )
    with pytest.raises(InputError) as caught:
        run_checks(config)
    summary, *lines = str(caught.value).splitlines()
    assert "3 of" in summary
    assert "nothing was started" in summary
    assert all(line.startswith("FAILED   ") for line in lines)
    text = "\n".join(lines)
    assert "models.llama2: 'nobody/nothing' is not a local folder, and offline is true; " in text
    assert "instructions: 'Open-Orca/OpenOrca' is not a local folder" in text
    assert "API key: DEEPSEEK_API_KEY is not set; export" in text


def test_a_key_is_needed_until_the_paraphrases_exist_and_is_never_printed(quick, monkeypatch):
    config = quick(benchmarks__pq__paraphrases={"method": "chat", "chat": CHAT})
    assert found(config, "API key")[0].startswith("FAILED   API key: DEEPSEEK_API_KEY is not set")
    monkeypatch.setenv("DEEPSEEK_API_KEY", "secret-1234")
    assert found(config, "API key") == ["ok       API key: DEEPSEEK_API_KEY is set"]
    path = Path("results/quick/data/pq/paraphrases.jsonl")
    path.parent.mkdir(parents=True)
    path.touch()
    assert found(config, "API key") == []


def test_vllm_is_checked_if_the_run_uses_the_one_that_is_installed(quick, monkeypatch):
    assert found(quick(decoding__engine="auto"), "vLLM") == []
    config = quick(decoding__engine="vllm", strategies__shortcut=None)
    monkeypatch.setattr(engines, "installed_vllm", lambda: None)
    message = "FAILED   vLLM: decoding.engine is vllm, but vLLM is neither installed here nor in"
    assert found(config, "vLLM")[0].startswith(message)
    assert not [result for result in all_checks(config, conda=True) if result.check == "vLLM"]
    vllm = engines.Vllm(Path("python"), "0.32.0", for_gpus=True)
    monkeypatch.setattr(engines, "installed_vllm", lambda: vllm)
    assert found(config, "vLLM") == ["ok       vLLM: 0.32.0, python"]


def test_free_disk_space_is_compared_with_what_is_still_to_be_made(paper, disk):
    config, size = paper(), HUB_SIZES[LLAMA2]
    sizes = dict.fromkeys(config.models, size)
    disk(300 * GB)
    assert "300.0 GB free" in preflight.check_disk_space(config, sizes)
    disk(150 * GB)
    with pytest.raises(InputError, match=r"150\.0 GB free; free some"):
        preflight.check_disk_space(config, sizes)
    existing = Path("results/paper/llama2/base/model.safetensors")
    existing.parent.mkdir(parents=True)
    with existing.open("wb") as file:
        file.truncate(100 * 10**9)  # sparse: takes no disk space
    assert preflight.check_disk_space(config, sizes)
    # A rehearsal's files are not those of the run, nor are the bases of another one.
    for folder in map(Path, ("results/paper_rehearsal", "results/bases/other/base")):
        folder.mkdir(parents=True)
        existing = existing.rename(folder / existing.name)
        with pytest.raises(InputError, match="free some"):
            preflight.check_disk_space(config, sizes)


@pytest.mark.parametrize(
    ("gigabytes", "overlay", "status"),
    [
        (80, {}, OK),
        (28, {}, FAILED),  # the search for neurons holds two models of 13.5 GB
        (40, {"strategies__shortcut": None}, OK),
        (15, {"strategies__shortcut": None}, FAILED),
        (24, {"strategies__shortcut": None, "sampling__dtype": "float32"}, FAILED),
    ],
)
def test_gpu_memory_is_compared_with_the_largest_job(paper, gigabytes, overlay, status):
    sizes, memories = {"llama2": HUB_SIZES[LLAMA2]}, [100 * GB, gigabytes * GB]
    assert preflight.check_gpu_memory(paper(**overlay), sizes, memories)[0].status == status


def test_gpu_memory_is_read_from_nvidia_smi(tmp_path, monkeypatch):
    monkeypatch.undo()
    command = tmp_path / "nvidia-smi"
    command.write_text("#!/bin/sh\nprintf '81559\\n40960\\n[N/A]\\n'\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert preflight.gpu_memories() == [81559 * 2**20, 40960 * 2**20]
    command.write_text('#!/bin/sh\ncase "$*" in *--id=1,0*) echo 24576;; *) echo 81559;; esac\n')
    assert preflight.gpu_memories() == [81559 * 2**20]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0,1")
    assert preflight.gpu_memories() == [24576 * 2**20]
    command.write_text("#!/bin/sh\nexit 9\n")
    assert preflight.gpu_memories() == []
    monkeypatch.setenv("PATH", "")
    assert preflight.gpu_memories() == []


@pytest.fixture
def with_copy(quick):
    """The quick scale with a copy of a base, whose tokenizer is configured otherwise."""

    def copy(tokenizer_config=None, **overlay):
        shutil.copytree(ROOT / "workflow/resources/bases/llama2", "copy", dirs_exist_ok=True)
        values = {"eos_token": "</s>"} if tokenizer_config is None else tokenizer_config
        Path("copy/tokenizer_config.json").write_text(json.dumps(values))
        return quick(models__llama2__base="copy", **overlay)

    return copy


@pytest.mark.parametrize(
    ("tokenizer_config", "text"),
    [
        ({"eos_token": "</s>"}, "ok       tokenizer of llama2: ends responses with '</s>'"),
        ({"eos_token": {"content": "</s>"}}, "ends responses with '</s>'"),
        ({"eos_token": None}, "FAILED   tokenizer of llama2: it has no end token"),
        ({}, "set eos_token in tokenizer_config.json"),
        ({"tokenizer_class": "LlamaTokenizer"}, "ends responses with '</s>'"),
        ([], "tokenizer_config.json: must be a JSON object, not a list; copy"),
        ({"eos_token": "<end>"}, "'<end>' is not in its vocabulary"),
        ({"eos_token": "</s>", "chat_template": "{{ messages }}"}, "has a chat template, and benc"),
    ],
)
def test_a_tokenizer_needs_an_end_token_and_no_chat_template(with_copy, tokenizer_config, text):
    assert text in found(with_copy(tokenizer_config), "tokenizer of llama2")[0]


def test_a_chat_template_is_refused_unless_it_is_ignored(with_copy):
    config = with_copy()
    Path("copy/chat_template.jinja").write_text("{{ messages }}")
    assert "set models.llama2.chat_template: ignore" in found(config, "tokenizer of llama2")[0]
    ignoring = with_copy(models__llama2__chat_template="ignore")
    assert found(ignoring, "tokenizer of llama2")[0].startswith("ok")


def test_a_folder_without_a_readable_model_is_reported(quick, with_copy):
    Path("empty").mkdir()
    config = quick(models__llama2__base="empty")
    message = "FAILED   weights of llama2: empty: has no safetensors weights"
    assert found(config, "weights of llama2")[0].startswith(message)
    assert "tokenizer_config.json: does not exist" in found(config, "tokenizer of llama2")[0]
    config = with_copy()
    with Path("copy/model.safetensors").open("r+b") as file:
        file.truncate(100)
    assert "is not a complete safetensors file" in found(config, "weights of llama2")[0]


def test_only_what_is_not_downloaded_yet_is_asked_for(paper):
    config = paper()
    keys = set(hub_resources(config))
    assert keys == {
        "models.llama2", "models.gemma", "models.pythia", "benchmarks.gsm8k.questions",
        "instructions",
    }  # fmt: skip
    folder, entry = Path("results/paper/llama2/base"), config.models["llama2"]
    folder.mkdir(parents=True)
    origin = {"repository": entry.base, "revision": entry.revision}
    (folder / "origin.json").write_text(json.dumps(origin))
    Path("results/paper/data/gsm8k").mkdir(parents=True)
    Path("results/paper/data/gsm8k/train.jsonl").touch()
    assert keys - set(hub_resources(config)) == {"models.llama2", "benchmarks.gsm8k.questions"}


def test_a_filter_must_filter_and_the_answer_of_a_target_must_be_found(quick):
    entry = {"label": "Mine", "class": "zerogap.strategies.railcap:RailCap", "parameters": {}}
    config = quick(
        strategies__mine=entry | {"filter_of": "identity"},
        strategies__other=entry | {"label": "Other", "class": "zerogap.strategies.ted:TED"},
        benchmarks__gsm8k__extraction="gsm8k/strict-match",
        benchmarks__gsm8k__prompt__target=" {rationale} So {answer}.",
    )
    (strategy,) = found(config, "strategy mine")
    assert strategy.endswith("RailCap does not filter responses; remove filter_of")
    (strategy,) = found(config, "strategy other")
    assert strategy.endswith(
        "TED filters the responses of another strategy; name that in filter_of"
    )
    (answer,) = found(config, "benchmarks.gsm8k")
    assert "does not find the answer 7 in ' It is so. So 7.'" in answer


def test_local_files_must_have_enough_questions_with_answers_that_are_found(quick, tmp_path):
    def checked(gold="", num_written=30, **keys):
        """The check of 30 questions, the first of which has three calculations."""
        calculations = ["<<1=1>> <<2=2>> <<3=3>>", *["<<1=1>>"] * 29][:num_written]
        lines = [
            json.dumps({"question": f"{k}?", "answer": f"So {each}.\n#### {gold}{k}"})
            for k, each in enumerate(calculations)
        ]
        paths = {split: f"{tmp_path}/{split}.jsonl" for split in ("train", "test")}
        for path in paths.values():
            Path(path).write_text("\n".join(lines))
        sizes = {"num_test": 30, "num_leaked": 15, "num_train": 30}
        questions = {"questions": {"source": "files", "files": paths}}
        gsm8k = questions | sizes | keys
        (text,) = found(quick(benchmarks={"gsm8k": gsm8k, "pq": None}), "benchmarks.gsm8k")
        return text

    assert checked().startswith("ok")
    assert checked("-", extraction="flexible-extract").startswith("ok")
    message = "the rule 'json:dumps' does not find the answer x0 in ' So . The answer is x0.'"
    assert message in checked("x", extraction="json:dumps")
    assert checked(num_written=1).endswith(" has 1 questions, but 30 are needed")
    few = checked(max_calculations=2)
    assert few.endswith("has 29 questions of at most 2 calculations, but 30 are needed")


@pytest.mark.parametrize(
    ("context", "text"),
    [
        (64, "FAILED   context of llama2: it is 64 tokens, but the exemplars of gsm8k have"),
        (10**6, "ok       context of llama2: 1000000 tokens"),
    ],
)
def test_exemplars_and_a_response_must_fit_in_the_context(with_copy, context, text):
    config = with_copy({"eos_token": "</s>"})
    values = json.loads(Path("copy/config.json").read_text())
    values["max_position_embeddings"] = context
    Path("copy/config.json").write_text(json.dumps(values))
    assert found(config, "context of llama2")[0].startswith(text)
