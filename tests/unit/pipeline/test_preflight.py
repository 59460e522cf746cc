"""Preflight checks that ask no hub."""

import json
import os
import shutil
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from helpers.paths import ROOT
from zerogap.errors import InputError
from zerogap.families import published_size
from zerogap.pipeline import targets
from zerogap.pipeline.preflight import inputs, machine
from zerogap.pipeline.preflight.checks import all_checks, run_checks
from zerogap.pipeline.preflight.hub import hub_resources
from zerogap.pipeline.preflight.result import FAILED, OK, SKIPPED
from zerogap.pipeline.preflight.strategies import check_strategies
from zerogap.pipeline.text_lengths import few_shot_tokens
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
    assert {"versions", "disk space", "end token of gemma"} <= {r.check for r in results}


def test_a_filter_that_does_not_filter_is_reported(quick):
    entry = {"label": "Mine", "class": "zerogap.strategies.railcap:RailCap", "parameters": {}}
    config = quick(strategies__mine=entry | {"filter_of": "identity"})
    assert failures(check_strategies(config)) == [
        "strategy mine: strategies: RailCap does not filter responses; remove filter_of"
    ]


def test_nothing_is_checked_once_all_long_jobs_are_done(quick, monkeypatch):
    config = quick()
    monkeypatch.setitem(machine.VERSIONS, "transformers", "9")
    assert failures(all_checks(config))
    for job in targets.timed_jobs(config):
        path = Path(job.output)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert all_checks(config) == []


def test_all_failures_are_reported_at_once_one_per_line(quick, monkeypatch):
    monkeypatch.setitem(machine.VERSIONS, "llamafactory", "1.0")
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
    assert "4 of" in summary
    assert "nothing was started" in summary
    assert all(line.startswith("FAILED   ") for line in lines)
    text = "\n".join(lines)
    assert "models.llama2: 'nobody/nothing' is not a local folder, and offline is true; " in text
    assert "instructions: 'Open-Orca/OpenOrca' is not a local folder" in text
    assert "API key: DEEPSEEK_API_KEY is not set; export" in text
    assert "versions: llamafactory is 0.9.5, but only llamafactory 1.0 and transformers" in text


def test_a_run_of_gsm8k_alone_needs_no_api_key(paper, quick):
    assert failures(inputs.check_api_keys(paper()))
    assert inputs.check_api_keys(paper(benchmarks__pq=None)) == []
    chat = {"base_url": "https://api.deepseek.com", "model": "m", "concurrency": 1}
    chat |= {"api_key_env": "DEEPSEEK_API_KEY", "max_attempts": 1}
    by_chat = {"benchmarks__pq__paraphrases": {"method": "chat", "chat": chat}}
    assert failures(all_checks(quick(**by_chat)))
    assert not failures(run_checks(quick(benchmarks__pq=None)))


def test_the_expected_versions_are_those_of_the_lock_file():
    lock = (ROOT / "requirements.lock").read_text()
    for package, version in machine.VERSIONS.items():
        assert f"\n{package}=={version} " in lock
    assert not failures(machine.check_versions())


def test_vllm_is_checked_only_if_the_configuration_asks_for_it(quick, monkeypatch):
    assert machine.check_vllm(quick(decoding__engine="auto")) == []
    config = quick(decoding__engine="vllm")
    monkeypatch.setattr(engines, "installed_vllm", lambda: None)
    message = "vLLM: decoding.engine is vllm, but vLLM is neither installed here nor in"
    assert failures(machine.check_vllm(config))[0].startswith(message)
    vllm = engines.Vllm(Path("python"), "0.32.0", for_gpus=True)
    monkeypatch.setattr(engines, "installed_vllm", lambda: vllm)
    assert [str(result) for result in machine.check_vllm(config)] == [
        "ok       vLLM: 0.32.0, python"
    ]


def test_the_vllm_of_a_conda_environment_is_not_checked(quick, tmp_path, monkeypatch):
    (tmp_path / "conda-meta").mkdir()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    (result,) = machine.check_vllm(quick(decoding__engine="vllm"))
    assert result.status == SKIPPED


def test_a_missing_package_is_reported(monkeypatch):
    monkeypatch.setattr(machine, "VERSIONS", {"no-such-package": "1.0"})
    assert "no-such-package is missing" in failures(machine.check_versions())[0]


def test_the_api_key_is_never_printed(paper, monkeypatch):
    monkeypatch.setenv("DEEPSEEK_API_KEY", "secret-1234")
    results = inputs.check_api_keys(paper())
    assert [result.status for result in results] == [OK]
    assert "secret-1234" not in str(results)


def test_no_api_key_is_needed_once_the_paraphrases_exist(paper):
    config = paper()
    assert failures(inputs.check_api_keys(config))
    path = Path("results/paper/data/pq/paraphrases.jsonl")
    path.parent.mkdir(parents=True)
    path.touch()
    assert inputs.check_api_keys(config) == []


def test_free_disk_space_is_compared_with_what_is_still_to_be_made(paper, monkeypatch):
    config, size = paper(), published_size(LLAMA2)
    sizes = dict.fromkeys(config.models, size)
    free = {}
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: namedtuple("U", "free")(free["now"]))
    free["now"] = 150 * GB
    assert machine.check_disk_space(config, sizes).status == FAILED
    free["now"] = 300 * GB
    assert machine.check_disk_space(config, sizes).status == OK
    free["now"] = 150 * GB
    existing = Path("results/paper/llama2/base/model.safetensors")
    existing.parent.mkdir(parents=True)
    with existing.open("wb") as file:
        file.truncate(100 * 10**9)  # sparse: takes no disk space
    assert machine.check_disk_space(config, sizes).status == OK
    # A rehearsal's files are not those of the run, nor are the bases of another one.
    for folder in map(Path, (targets.rehearsal(config), "results/bases/other/base")):
        folder.mkdir(parents=True)
        existing = existing.rename(folder / existing.name)
        assert machine.check_disk_space(config, sizes).status == FAILED


def test_disk_space_is_skipped_if_the_size_of_a_model_is_unknown(paper):
    result = machine.check_disk_space(paper(), {})
    assert result.status == SKIPPED
    assert "gemma, llama2, pythia" in result.text


def test_gpu_memory_is_compared_with_the_largest_job(paper):
    size = published_size(LLAMA2)  # 13.5 GB in bfloat16

    def status(gigabytes, **overlay):
        memories = [100 * GB, gigabytes * GB]
        return machine.check_gpu_memory(paper(**overlay), {"llama2": size}, memories)[0].status

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
    assert machine.gpu_memories() == [81559 * 2**20, 40960 * 2**20]
    command.write_text('#!/bin/sh\ncase "$*" in *--id=1,0*) echo 24576;; *) echo 81559;; esac\n')
    assert machine.gpu_memories() == [81559 * 2**20]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0,1")
    assert machine.gpu_memories() == [24576 * 2**20]
    command.write_text("#!/bin/sh\nexit 9\n")
    assert machine.gpu_memories() == []
    monkeypatch.setenv("PATH", "")
    assert machine.gpu_memories() == []


def copy_model(folder, **tokenizer_config):
    shutil.copytree(ROOT / "workflow/resources/bases/llama2", folder)
    Path(folder, "tokenizer_config.json").write_text(json.dumps(tokenizer_config))


@pytest.mark.parametrize(
    ("tokenizer_config", "text"),
    [
        ({"eos_token": "</s>"}, None),
        ({"eos_token": {"content": "</s>"}}, None),
        ({"eos_token": None}, "the tokenizer has none"),
        ({}, "set eos_token in tokenizer_config.json"),
        ({"eos_token": "<end>"}, "'<end>' is not in its vocabulary"),
    ],
)
def test_the_end_token_must_be_in_the_vocabulary(quick, tokenizer_config, text):
    copy_model("copy", **tokenizer_config)
    result = inputs.check_end_token(quick(models__llama2__base="copy"), "llama2")
    assert (result.status == OK) == (text is None)
    assert (text or "") in result.text


def test_a_chat_template_is_refused_unless_it_is_ignored(quick):
    copy_model("copy", eos_token="</s>")
    plain = quick(models__llama2__base="copy")
    assert inputs.check_chat_template(plain, "llama2").status == OK
    Path("copy/chat_template.jinja").write_text("{{ messages }}")
    refused = inputs.check_chat_template(plain, "llama2")
    assert refused in all_checks(plain)
    assert refused.status == FAILED
    assert "set models.llama2.chat_template: ignore" in refused.text
    overlay = {"models__llama2__base": "copy", "models__llama2__chat_template": "ignore"}
    assert inputs.check_chat_template(quick(**overlay), "llama2").status == OK


def test_a_chat_template_in_the_tokenizer_configuration_is_refused(quick):
    copy_model("copy", eos_token="</s>", chat_template="{{ messages }}")
    result = inputs.check_chat_template(quick(models__llama2__base="copy"), "llama2")
    assert "has a chat template, and benchmark prompts are plain text" in result.text


def test_exemplars_and_a_response_must_fit_in_the_context(quick):
    copy_model("copy", eos_token="</s>")
    config = quick(models__llama2__base="copy")
    exemplars = few_shot_tokens(config, "llama2", "gsm8k")
    needed = exemplars + config.sampling.max_new_tokens
    for context, status in ((needed + 1, OK), (needed, FAILED)):
        values = json.loads(Path("copy/config.json").read_text())
        values["max_position_embeddings"] = context
        Path("copy/config.json").write_text(json.dumps(values))
        result = inputs.check_context_length(config, "llama2")
        assert result.status == status
    assert f"the exemplars of gsm8k have {exemplars} and sampling.max_new_tokens" in result.text


def test_a_folder_without_a_readable_model_is_reported(quick):
    Path("empty").mkdir()
    text = "\n".join(failures(all_checks(quick(models__llama2__base="empty"))))
    assert "weights of llama2: empty: has no readable safetensors files" in text
    assert "end token of llama2: its tokenizer_config.json cannot be read" in text
    copy_model("truncated", eos_token="</s>")
    with Path("truncated/model.safetensors").open("r+b") as file:
        file.truncate(100)
    text = "\n".join(failures(all_checks(quick(models__llama2__base="truncated"))))
    assert "truncated: has no readable safetensors files" in text


def line(number, gold="1"):
    return json.dumps({"question": f"How many is {number}?", "answer": f"It is so.\n#### {gold}"})


@pytest.mark.parametrize(
    ("train", "test", "texts"),
    [
        ([line(k) for k in range(8)], [line(k) for k in range(9, 20)], []),
        ([line(k) for k in range(8)], [line(1), "{"], ["questions.files.test: ", "line 2", "JSON"]),
        ([line(0)], [line(k, "many") for k in range(9)], [".files.train: ", ".files.test: "]),
        ([line(0)] * 2, [line(0)] * 2, ["line 2: duplicate"]),
        (["\udcff"], [line(0)], ["questions.files.train: ", "UTF-8"]),
        (
            [line(k) for k in range(3)],
            [line(0)],
            ["has 3 questions, fewer than the 5 of num_train"],
        ),
    ],
)
def test_local_questions_are_read_and_counted(quick, train, test, texts):
    for name, lines in {"train": train, "test": test}.items():
        Path(f"{name}.jsonl").write_text("\n".join(lines), errors="surrogateescape")
    config = quick(
        benchmarks__gsm8k__questions={
            "source": "files",
            "files": {"train": "train.jsonl", "test": "test.jsonl"},
        },
        benchmarks__gsm8k__num_test=8,
        benchmarks__gsm8k__num_leaked=4,
        benchmarks__gsm8k__num_train=5,
    )
    report = "\n".join(failures(inputs.check_data_files(config)))
    assert all(text in report for text in texts)
    assert bool(report) == bool(texts)


def test_local_instructions_are_read_and_counted(quick):
    path = Path("instructions.jsonl")
    path.write_text('{"question": "Say it.", "response": "It."}\n')
    config = quick(instructions={"source": "files", "files": str(path)})
    assert "instructions.jsonl" in failures(inputs.check_data_files(config))[0]
    path.unlink()
    path.mkdir()
    assert "instructions.files: " in failures(inputs.check_data_files(config))[0]


def test_missing_exemplars_are_reported(quick):
    config = quick(benchmarks__gsm8k__prompt__num_shots=99)
    assert "benchmarks.gsm8k.prompt.exemplars: " in failures(inputs.check_data_files(config))[0]


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


def test_a_chat_model_on_the_hub_is_looked_for(paper):
    local = {"model": "some/chat", "revision": "main"}
    config = paper(benchmarks__pq__paraphrases={"method": "local", "local": local})
    resources = {resource.key: resource for resource in hub_resources(config)}
    assert resources["benchmarks.pq.paraphrases.local"].repository == "some/chat"
