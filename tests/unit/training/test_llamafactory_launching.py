"""Running LLaMA-Factory's commands and reading the loss curve."""

import json

import pytest

from zerogap.training.llamafactory import launching


def test_several_devices_train_through_torchrun() -> None:
    assert launching.launch_environment(1) == {"NPROC_PER_NODE": "1"}
    several = launching.launch_environment(4)
    assert several["NPROC_PER_NODE"] == "4"
    assert several["FORCE_TORCHRUN"] == "1"


@pytest.mark.parametrize(("of_the_job", "per_process"), [("8", "2"), ("2", "1"), (None, "1")])
def test_the_processes_of_a_training_divide_its_threads(
    of_the_job, per_process, monkeypatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if of_the_job is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", of_the_job)
    assert launching.launch_environment(4)["OMP_NUM_THREADS"] == per_process


def test_the_loss_curve_has_one_row_per_logged_step(tmp_path) -> None:
    history = [
        {"step": 1, "loss": 2.0, "learning_rate": 0.1, "epoch": 0.5},
        {"step": 2, "loss": 1.5, "learning_rate": 0.05, "epoch": 1.0},
        {"step": 2, "train_loss": 1.75},
    ]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": history}))
    curve = launching.loss_curve(tmp_path, "llama2", "clean_gsm8k")
    assert curve.loss.tolist() == [2.0, 1.5]
    assert set(curve.model) == {"llama2"}


def test_a_failing_command_is_an_error_with_its_exit_code(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    cli = tmp_path / "llamafactory-cli"
    cli.write_text("#!/bin/sh\nexit 3\n")
    cli.chmod(0o755)
    with pytest.raises(RuntimeError, match="failed with exit code 3"):
        launching.train(tmp_path / "train.yaml")


def test_sets_are_written_in_the_same_order_by_every_training(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    cli = tmp_path / "llamafactory-cli"
    cli.write_text('#!/bin/sh\ntest "$PYTHONHASHSEED" = 0\n')
    cli.chmod(0o755)
    launching.train(tmp_path / "train.yaml")


@pytest.mark.parametrize("installed", [True, False])
def test_the_stub_is_on_the_path_only_without_torchaudio(tmp_path, monkeypatch, installed):
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    cli = tmp_path / "llamafactory-cli"
    cli.write_text(f'#!/bin/sh\necho "$PYTHONPATH" > {tmp_path}/path\n')
    cli.chmod(0o755)
    monkeypatch.setattr("importlib.metadata.distributions", lambda name: [name] * installed)
    launching.train(tmp_path / "train.yaml")
    assert ("training/stubs" in (tmp_path / "path").read_text()) == (not installed)
