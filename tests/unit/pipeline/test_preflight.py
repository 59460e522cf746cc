"""Preflight checks that ask no hub."""

import json
import os
import re
import shutil
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from helpers.paths import ROOT
from zerogap.errors import InputError
from zerogap.families import published_size
from zerogap.pipeline import preflight, targets
from zerogap.pipeline.preflight import (
    FAILED,
    OK,
    SKIPPED,
    all_checks,
    check_strategies,
    hub_resources,
    run_checks,
)
from zerogap.sampling import engines

GB = 1e9
LLAMA2 = "meta-llama/Llama-2-7b-hf"
pytestmark = pytest.mark.usefixtures("in_empty_checkout")


def failures(results):
    return [f"{result.check}: {result.text}" for result in results if result.status == FAILED]


def test_the_quick_scale_passes_and_asks_no_hub(quick, monkeypatch):
    monkeypatch.setattr("huggingface_hub.HfApi", None)
    results = run_checks(quick())
    assert not failures(results)
    assert [result.check for result in results if result.status == SKIPPED] == ["GPU memory"]
    assert {"disk space", "tokenizer of gemma"} <= {r.check for r in results}


def test_a_filter_that_does_not_filter_is_reported(quick):
    entry = {"label": "Mine", "class": "zerogap.strategies.railcap:RailCap", "parameters": {}}
    config = quick(strategies__mine=entry | {"filter_of": "identity"})
    assert failures(check_strategies(config)) == [
        "strategy mine: strategies: RailCap does not filter responses; remove filter_of"
    ]


def test_nothing_is_checked_once_all_long_jobs_are_done(quick):
    config = quick()
    assert all_checks(config)
    for job in targets.timed_jobs(config):
        path = Path(job.output)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert all_checks(config) == []


def test_all_failures_are_reported_at_once_one_per_line(quick, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: namedtuple("U", "free")(10_000))
    chat = {"base_url": "https://api.deepseek.com", "model": "m", "concurrency": 1}
    chat |= {"api_key_env": "DEEPSEEK_API_KEY", "max_attempts": 1}
    config = quick(
        benchmarks__pq__paraphrases={"method": "chat", "chat": chat},
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


def test_a_run_of_gsm8k_alone_needs_no_api_key(paper, quick):
    assert failures(preflight.check_api_keys(paper()))
    assert preflight.check_api_keys(paper(benchmarks__pq=None)) == []
    chat = {"base_url": "https://api.deepseek.com", "model": "m", "concurrency": 1}
    chat |= {"api_key_env": "DEEPSEEK_API_KEY", "max_attempts": 1}
    by_chat = {"benchmarks__pq__paraphrases": {"method": "chat", "chat": chat}}
    assert failures(all_checks(quick(**by_chat)))
    assert not failures(run_checks(quick(benchmarks__pq=None)))


def test_vllm_is_checked_only_if_the_configuration_asks_for_it(quick, monkeypatch):
    assert preflight.check_vllm(quick(decoding__engine="auto")) == []
    config = quick(decoding__engine="vllm", strategies__shortcut=None)
    monkeypatch.setattr(engines, "installed_vllm", lambda: None)
    message = "vLLM: decoding.engine is vllm, but vLLM is neither installed here nor in"
    assert failures(preflight.check_vllm(config))[0].startswith(message)
    vllm = engines.Vllm(Path("python"), "0.32.0", for_gpus=True)
    monkeypatch.setattr(engines, "installed_vllm", lambda: vllm)
    assert [str(result) for result in preflight.check_vllm(config)] == [
        "ok       vLLM: 0.32.0, python"
    ]


def test_the_vllm_of_a_conda_environment_is_not_checked(quick, tmp_path, monkeypatch):
    (tmp_path / "conda-meta").mkdir()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    (result,) = preflight.check_vllm(quick(decoding__engine="vllm", strategies__shortcut=None))
    assert result.status == SKIPPED


def test_the_api_key_is_never_printed(paper, monkeypatch):
    monkeypatch.setenv("DEEPSEEK_API_KEY", "secret-1234")
    results = preflight.check_api_keys(paper())
    assert [result.status for result in results] == [OK]
    assert "secret-1234" not in str(results)


def test_no_api_key_is_needed_once_the_paraphrases_exist(paper):
    config = paper()
    assert failures(preflight.check_api_keys(config))
    path = Path("results/paper/data/pq/paraphrases.jsonl")
    path.parent.mkdir(parents=True)
    path.touch()
    assert preflight.check_api_keys(config) == []


def test_free_disk_space_is_compared_with_what_is_still_to_be_made(paper, monkeypatch):
    config, size = paper(), published_size(LLAMA2)
    sizes = dict.fromkeys(config.models, size)
    free = {}
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: namedtuple("U", "free")(free["now"]))
    free["now"] = 150 * GB
    assert preflight.check_disk_space(config, sizes).status == FAILED
    free["now"] = 300 * GB
    assert preflight.check_disk_space(config, sizes).status == OK
    free["now"] = 150 * GB
    existing = Path("results/paper/llama2/base/model.safetensors")
    existing.parent.mkdir(parents=True)
    with existing.open("wb") as file:
        file.truncate(100 * 10**9)  # sparse: takes no disk space
    assert preflight.check_disk_space(config, sizes).status == OK
    # A rehearsal's files are not those of the run, nor are the bases of another one.
    for folder in map(Path, ("results/paper_rehearsal", "results/bases/other/base")):
        folder.mkdir(parents=True)
        existing = existing.rename(folder / existing.name)
        assert preflight.check_disk_space(config, sizes).status == FAILED


def test_disk_space_is_skipped_if_the_size_of_a_model_is_unknown(paper):
    result = preflight.check_disk_space(paper(), {})
    assert result.status == SKIPPED
    assert "gemma, llama2, pythia" in result.text


def test_gpu_memory_is_compared_with_the_largest_job(paper):
    size = published_size(LLAMA2)  # 13.5 GB in bfloat16

    def status(gigabytes, **overlay):
        memories = [100 * GB, gigabytes * GB]
        return preflight.check_gpu_memory(paper(**overlay), {"llama2": size}, memories)[0].status

    assert status(80) == OK
    assert status(28) == FAILED  # the search for neurons holds two models
    no_search = {"strategies__shortcut": None}
    assert status(40, **no_search) == OK
    assert status(15, **no_search) == FAILED
    assert status(24, **no_search, sampling__dtype="float32") == FAILED


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


def copy_model(folder, **tokenizer_config):
    shutil.copytree(ROOT / "workflow/resources/bases/llama2", folder)
    Path(folder, "tokenizer_config.json").write_text(json.dumps(tokenizer_config))


@pytest.mark.parametrize(
    ("tokenizer_config", "text"),
    [
        ({"eos_token": "</s>"}, None),
        ({"eos_token": {"content": "</s>"}}, None),
        ({"eos_token": None}, "it has no end token"),
        ({}, "set eos_token in tokenizer_config.json"),
        ({"eos_token": "<end>"}, "'<end>' is not in its vocabulary"),
    ],
)
def test_the_end_token_must_be_in_the_vocabulary(quick, tokenizer_config, text):
    copy_model("copy", **tokenizer_config)
    result = preflight.check_tokenizer(quick(models__llama2__base="copy"), "llama2")
    assert (result.status == OK) == (text is None)
    assert (text or "") in result.text


def test_a_chat_template_is_refused_unless_it_is_ignored(quick):
    copy_model("copy", eos_token="</s>")
    plain = quick(models__llama2__base="copy")
    assert preflight.check_tokenizer(plain, "llama2").status == OK
    Path("copy/chat_template.jinja").write_text("{{ messages }}")
    refused = preflight.check_tokenizer(plain, "llama2")
    assert refused in all_checks(plain)
    assert refused.status == FAILED
    assert "set models.llama2.chat_template: ignore" in refused.text
    overlay = {"models__llama2__base": "copy", "models__llama2__chat_template": "ignore"}
    assert preflight.check_tokenizer(quick(**overlay), "llama2").status == OK


def test_a_chat_template_in_the_tokenizer_configuration_is_refused(quick):
    copy_model("copy", eos_token="</s>", chat_template="{{ messages }}")
    result = preflight.check_tokenizer(quick(models__llama2__base="copy"), "llama2")
    assert "has a chat template, and benchmark prompts are plain text" in result.text


def test_exemplars_and_a_response_must_fit_in_the_context(quick):
    copy_model("copy", eos_token="</s>")
    config = quick(models__llama2__base="copy")
    text = preflight.check_context_length(quick(sampling__max_new_tokens=10**6), "llama2").text
    exemplars = int(re.search(r"exemplars of gsm8k have (\d+)", text)[1])
    needed = exemplars + config.sampling.max_new_tokens
    for context, status in ((needed + 1, OK), (needed, FAILED)):
        values = json.loads(Path("copy/config.json").read_text())
        values["max_position_embeddings"] = context
        Path("copy/config.json").write_text(json.dumps(values))
        result = preflight.check_context_length(config, "llama2")
        assert result.status == status
    assert f"the exemplars of gsm8k have {exemplars} and sampling.max_new_tokens" in result.text


def test_a_folder_without_a_readable_model_is_reported(quick):
    Path("empty").mkdir()
    text = "\n".join(failures(all_checks(quick(models__llama2__base="empty"))))
    assert "weights of llama2: empty: has no readable safetensors files" in text
    assert "tokenizer of llama2: its tokenizer_config.json cannot be read" in text
    copy_model("truncated", eos_token="</s>")
    with Path("truncated/model.safetensors").open("r+b") as file:
        file.truncate(100)
    text = "\n".join(failures(all_checks(quick(models__llama2__base="truncated"))))
    assert "truncated: has no readable safetensors files" in text


def test_only_what_is_not_downloaded_yet_is_asked_for(paper):
    config = paper()
    keys = {resource.key for resource in hub_resources(config)}
    assert keys == {
        "models.llama2", "models.gemma", "models.pythia", "benchmarks.gsm8k.questions",
        "instructions",
    }  # fmt: skip
    Path("results/paper/llama2/base").mkdir(parents=True)
    Path("results/paper/data/gsm8k").mkdir(parents=True)
    Path("results/paper/data/gsm8k/train.jsonl").touch()
    remaining = {resource.key for resource in hub_resources(config)}
    assert keys - remaining == {"models.llama2", "benchmarks.gsm8k.questions"}


def test_the_answer_of_a_target_must_be_found(quick):
    assert not failures(preflight.check_answers(quick()))
    rule = {"benchmarks__gsm8k__extraction": "gsm8k/strict-match"}
    target = {"benchmarks__gsm8k__prompt__target": " {rationale} So {answer}."}
    (failure,) = failures(preflight.check_answers(quick(**rule, **target)))
    assert "does not find the answer 7 in ' It is so. So 7.'" in failure
