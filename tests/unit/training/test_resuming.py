"""Which checkpoints a training resumes from."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from zerogap.training import resuming
from zerogap.training.llamafactory import write_datasets

TRAINING = {"learning_rate": 2e-4, "save_steps": 20, "bf16": False}


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
    checkpoints = [
        checkpoint(tmp_path, step) for step in (5, 20, 100)
    ]  # not in the order of the names
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
        return resuming.training_fingerprint(model, data, family, TRAINING | changed)

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
