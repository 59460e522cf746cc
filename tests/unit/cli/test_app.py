"""What all commands share: help with an example and exit statuses, completion, interruption."""

import os
import subprocess
import sys

import pytest

from helpers.paths import ROOT
from zerogap.cli import app, main
from zerogap.errors import InputError

COMMANDS = ("evaluate", "sample", "score", "plan", "rehearse", "run", "show")
DECODING = [
    "--model", "nowhere", "--benchmark", "toy_gsm8k", "--output", "out",
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_and_the_exit_statuses(command, capsys):
    assert main([command, "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"Example: zerogap {command} " in text
    assert "Exit status: 0 success, 2 invalid input (one line)" in text


def test_commands_are_completed_by_the_shell():
    words = {"_ZEROGAP_COMPLETE": "complete_bash", "COMP_WORDS": "zerogap ev", "COMP_CWORD": "1"}
    process = subprocess.run(
        [sys.executable, "-m", "zerogap"],
        env=os.environ | words | {"PYTHONPATH": str(ROOT / "workflow")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.split() == ["evaluate"]


def test_an_interruption_has_a_status_of_its_own(monkeypatch, capsys):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("zerogap.evaluation.collect.collect", interrupted)
    assert main(["sample", *DECODING]) == app.INTERRUPTED
    assert "repeat the command to resume" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["sample", "evaluate"])
def test_a_missing_package_says_what_to_install(command, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "zerogap.evaluation.collect", None)
    monkeypatch.delattr("zerogap.evaluation.collect", raising=False)
    assert main([command, *DECODING]) == 2
    assert "pip install '/path/to/zerogap[evaluate]'" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["plan"], ["rehearse"], ["run", "--profile", "quick"]])
def test_a_command_of_the_workflow_says_what_to_install(words, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "zerogap.config", None)
    monkeypatch.delattr("zerogap.config", raising=False)
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: this command needs ")
    assert "workflow]'" in error
    assert error.count("\n") == 1


def test_rehearse_checks_the_names_of_models_before_it_imports_torch(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "zerogap.pipeline.rehearsal", None)
    monkeypatch.delattr("zerogap.pipeline.rehearsal", raising=False)
    assert main(["rehearse", "--models", "nobody"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: --models: 'nobody' is not a model of the configuration (llama2")


@pytest.mark.parametrize("command", ["sample", "evaluate"])
def test_the_benchmark_is_checked_before_torch_is_imported(command, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "zerogap.evaluation.collect", None)
    monkeypatch.delattr("zerogap.evaluation.collect", raising=False)
    options = ["--model", "nowhere", "--benchmark", "nope", "--output", "results"]
    assert main([command, *options]) == 2
    assert capsys.readouterr().err.startswith("error: --benchmark: 'nope' is unknown")


def test_options_with_several_values_may_be_repeated_or_listed():
    arguments = ["sample", *DECODING, "--strategies", "railcap", "ted"]
    repeated = app._repeat_options(arguments)
    assert repeated[-4:] == ["--strategies", "railcap", "--strategies", "ted"]


def test_words_after_two_dashes_are_left_as_they_are():
    passed_on = ["--", "--config", "seed=1", "run=mine"]
    repeated = app._repeat_options(["run", "--with", "a.yaml", "b.yaml", *passed_on])
    assert repeated == ["run", "--with", "a.yaml", "--with", "b.yaml", *passed_on]


def test_sample_samples_identity_unless_told_otherwise(monkeypatch, capsys):
    def collect(request):
        raise InputError(f"{request.strategies}, {request.num_samples} responses")

    monkeypatch.setattr("zerogap.evaluation.collect.collect", collect)
    assert main(["sample", *DECODING]) == 2
    assert "['identity'], 50 responses" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["sample", "evaluate"])
def test_an_output_that_is_a_file_is_refused_at_once(command, tmp_path, capsys):
    path = tmp_path / "out"
    path.touch()
    options = ["--model", "nowhere", "--benchmark", "toy_gsm8k", "--output", str(path)]
    assert main([command, *options]) == 2
    assert "out' is a file" in capsys.readouterr().err
