"""What LLaMA-Factory reads, data sets and settings; which checkpoints a training resumes from."""

import json
import os
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch
import yaml
from safetensors.numpy import save_file

import train_lora
from helpers.tiny_models import model
from helpers.training import RECIPE
from zerogap.errors import InputError
from zerogap.training import llamafactory, resuming
from zerogap.training.llamafactory import write_datasets

TRAINING = RECIPE | {
    "lora": {"rank": 64, "alpha": 128, "dropout": 0.0}, "learning_rate": 2e-4, "num_gpus": 2,
    "bf16": True, "global_batch_size": 32, "per_device_batch_size": 4, "save_steps": 20,
    "lr_scheduler": "cosine_with_restarts",
}  # fmt: skip


def settings_of(folder, family="llama", model_type="llama", **training):
    """The settings of a training with two data sets."""
    (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
    llamafactory.write_datasets(folder, {"instructions": [], "questions": []})
    return llamafactory.train_settings(folder, folder, family, TRAINING | training, folder)


@pytest.mark.parametrize("family", ["gpt_neox", "auto"])
def test_the_papers_recipe_is_put_in_the_words_of_llamafactory(tmp_path, family) -> None:
    values = settings_of(tmp_path, family, "gpt_neox", seed=3)
    folder = str(tmp_path)
    assert yaml.safe_load(yaml.safe_dump(values)) == {
        "model_name_or_path": folder, "dataset_dir": folder, "output_dir": folder,
        "stage": "sft", "do_train": True, "finetuning_type": "lora",
        "lora_rank": 64, "lora_alpha": 128, "lora_dropout": 0.0,
        "lora_target": "query_key_value,dense,dense_h_to_4h,dense_4h_to_h",
        "dataset": "instructions,questions", "template": "fewshot", "cutoff_len": 128,
        "overwrite_cache": True, "preprocessing_num_workers": 1, "dataloader_num_workers": 0,
        "logging_steps": 1, "save_strategy": "steps", "save_total_limit": 2, "save_steps": 20,
        "report_to": "none", "disable_tqdm": True,
        "per_device_train_batch_size": 4, "gradient_accumulation_steps": 4,  # on two GPUs: 32
        "learning_rate": 2e-4,  # a number, not the text '2e-4'
        "num_train_epochs": 1, "lr_scheduler_type": "cosine_with_restarts",
        "warmup_steps": 0.1,  # of all steps: what newer versions call warmup_ratio
        "bf16": True, "use_cpu": False, "disable_gradient_checkpointing": False,
        "use_reentrant_gc": False, "train_sampling_strategy": "random", "seed": 3,
    }  # fmt: skip


def test_checkpoints_of_activations_change_no_gradient_where_layers_share_keys(tmp_path) -> None:
    reentrant = settings_of(tmp_path)["use_reentrant_gc"]
    net = model("gemma4").float().train()
    ids, gradients = torch.arange(32)[None], []
    for _ in range(2):
        net.zero_grad()
        net(ids, labels=ids).loss.backward()
        gradients.append({name: p.grad for name, p in net.named_parameters()})
        net.gradient_checkpointing_enable({"use_reentrant": reentrant})
        net.enable_input_require_grads()
    torch.testing.assert_close(*gradients)


def test_a_training_on_the_cpu_sees_no_gpu(monkeypatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setattr(
        train_lora.resuming, "training_fingerprint", Mock(side_effect=StopIteration)
    )
    with pytest.raises(StopIteration):
        train_lora.main(
            *[Path()] * 5, family="auto", training={"device": "cpu", "bf16": True}, metadata={}
        )
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.parametrize(
    ("training", "expected"),
    [
        ({"save_steps": None}, {"save_strategy": "no"}),
        ({"save_steps": "epoch"}, {"save_strategy": "epoch", "save_total_limit": 2}),
        ({"group_by_length": True}, {"train_sampling_strategy": "group_by_length"}),
        ({"bf16": False}, {"bf16": False, "disable_gradient_checkpointing": True}),
    ],
)
def test_other_settings_than_the_papers_are_translated(tmp_path, training, expected) -> None:
    values = settings_of(tmp_path, **training)
    assert {key: values[key] for key in expected} == expected
    assert ("save_steps" in values) == ("save_steps" not in training)


def test_bf16_without_a_gpu_is_an_error_unless_the_cpu_is_named(monkeypatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda including_emulation: True)
    llamafactory.check_device(TRAINING)
    # An older GPU, which PyTorch lets emulate bfloat16.
    monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda including_emulation=True: False)
    llamafactory.check_device(TRAINING | {"device": "cpu"})
    llamafactory.check_device(TRAINING | {"bf16": False})
    with pytest.raises(InputError, match=r"training.bf16 is true[^\n]*set training.device: cpu"):
        llamafactory.check_device(TRAINING)


@pytest.mark.parametrize(
    ("device", "slowdown", "bf16"), [("cpu", 1.0, True), ("cpu", 45.0, False), ("auto", 45.0, True)]
)
def test_the_cpu_is_used_if_it_is_named_and_in_bfloat16_if_it_is_fast(
    tmp_path, monkeypatch, device, slowdown, bf16
) -> None:
    monkeypatch.setattr("zerogap.precision.slowdown", lambda dtype: slowdown)
    values = settings_of(tmp_path, device=device)
    assert (values["use_cpu"], values["bf16"]) == (device == "cpu", bf16)


@pytest.mark.parametrize(("of_the_job", "per_process"), [("8", "2"), ("2", "1"), (None, "1")])
def test_the_processes_of_a_training_divide_its_threads(
    of_the_job, per_process, monkeypatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if of_the_job is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", of_the_job)
    assert llamafactory.launch_environment(4)["OMP_NUM_THREADS"] == per_process


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Replace `llamafactory-cli` by a shell script."""
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))

    def replace(script):
        (tmp_path / "llamafactory-cli").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "llamafactory-cli").chmod(0o755)

    return replace


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -9 $$", -9)])
def test_a_failing_or_killed_command_is_an_error_with_its_exit_code(command, script, code) -> None:
    command(script)
    with pytest.raises(RuntimeError, match=f"failed with exit code {code}"):
        llamafactory.train("train.yaml")


@pytest.mark.parametrize("installed", [True, False])
def test_the_stub_is_on_the_path_only_without_torchaudio(command, tmp_path, monkeypatch, installed):
    command(f'echo "$PYTHONPATH" > {tmp_path}/path')
    monkeypatch.setattr("importlib.metadata.distributions", lambda name: [name] * installed)
    llamafactory.train("train.yaml")
    assert ("training/stubs" in (tmp_path / "path").read_text()) == (not installed)


SETTINGS = {"learning_rate": 2e-4, "save_steps": 20, "bf16": False}


def checkpoint(folder, step: int, ranks: tuple[str, ...] = ("",)) -> Path:
    """A complete checkpoint."""
    path = folder / f"checkpoint-{step}"
    path.mkdir(parents=True)
    save_file({"a": np.zeros(300)}, path / "adapter_model.safetensors")
    (path / "trainer_state.json").write_text('{"global_step": 5}')
    for name in ("optimizer.pt", "scheduler.pt", *(f"rng_state{rank}.pth" for rank in ranks)):
        torch.save(torch.zeros(300), path / name)
    return path


def test_training_resumes_from_the_last_complete_checkpoint(tmp_path, capsys) -> None:
    steps = (5, 20, 100)  # not in the order of the names
    checkpoints = [checkpoint(tmp_path, step) for step in steps]
    resuming.remove_incomplete_checkpoints(tmp_path, 1)
    assert capsys.readouterr().out == "resuming from checkpoint-100\n"
    assert all(path.exists() for path in checkpoints)


@pytest.mark.parametrize(
    "name",
    ["adapter_model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth",
     "trainer_state.json"],
)  # fmt: skip
@pytest.mark.parametrize("truncated", [True, False])
def test_an_incomplete_checkpoint_is_deleted(tmp_path, capsys, name, truncated) -> None:
    earlier, last = checkpoint(tmp_path, 5), checkpoint(tmp_path, 10)
    file = last / name
    content = file.read_bytes()
    file.unlink()
    if truncated:
        file.write_bytes(content[: len(content) // 2])
    resuming.remove_incomplete_checkpoints(tmp_path, 1)
    printed = capsys.readouterr().out
    assert "checkpoint-10: incomplete" in printed
    assert printed.endswith("resuming from checkpoint-5\n")
    assert earlier.exists()
    assert not last.exists()


def test_a_complete_checkpoint_has_the_random_state_of_every_device(tmp_path) -> None:
    path = checkpoint(tmp_path, 5, ("_0", "_1"))
    resuming.remove_incomplete_checkpoints(tmp_path, 2)
    assert path.exists()
    resuming.remove_incomplete_checkpoints(tmp_path, 3)
    assert not tmp_path.exists()  # LLaMA-Factory refuses a folder with other files


def test_the_fingerprint_changes_with_model_data_settings_and_version_but_not_save_steps(
    tmp_path, monkeypatch
) -> None:
    model, data = tmp_path / "model", tmp_path / "data"
    model.mkdir()
    write_datasets(data, {"questions": [{"prompt": "a", "response": "b"}]})

    def fingerprint(family="llama", **changed):
        return resuming.training_fingerprint(model, data, family, SETTINGS | changed)

    before = fingerprint()
    assert fingerprint(save_steps=None) == before
    assert fingerprint(learning_rate=1.0) != before
    assert fingerprint(family="gpt_neox") != before
    monkeypatch.setattr(resuming, "trains_in_bf16", lambda training: True)  # another processor
    assert fingerprint() != before
    monkeypatch.undo()
    monkeypatch.setattr("zerogap.io.meaning.digest", lambda *modules: "edited")
    assert fingerprint() != before
    monkeypatch.undo()
    (model / "model.safetensors").write_bytes(b"1")
    other_model = fingerprint()
    assert other_model != before
    write_datasets(data, {"questions": [{"prompt": "a", "response": "c"}]})
    assert fingerprint() != other_model
