"""What all commands share: help with an example and statuses, interruption, missing packages."""

import sys

import pytest

from zerogap.cli import main
from zerogap.errors import InputError

COMMANDS = ("evaluate", "sample", "score", "plan", "rehearse", "run", "show")
COLLECT = "zerogap.evaluation.collect"
DECODING = [
    "nowhere", "--benchmark", "toy_gsm8k", "--output", "out",
]  # fmt: skip


@pytest.fixture
def without(monkeypatch):
    """Make a module impossible to import."""

    def remove(module):
        monkeypatch.setitem(sys.modules, module, None)
        monkeypatch.delattr(module, raising=False)

    return remove


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_and_the_exit_statuses(command, capsys):
    assert main([command, "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"Example: zerogap {command} " in text
    assert "Exit status: 0 success, 2 invalid input (one line)" in text


def test_an_interruption_has_a_status_of_its_own(monkeypatch, capsys):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"{COLLECT}.collect", interrupted)
    assert main(["sample", *DECODING]) == 130
    assert "repeat the command to resume" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "module", "extra"),
    [
        (["sample", *DECODING], COLLECT, "[evaluate]'"),
        (["evaluate", *DECODING], COLLECT, "[evaluate]'"),
        (["plan"], "zerogap.config", "workflow]'"),
        (["rehearse"], "zerogap.config", "workflow]'"),
        (["run", "--profile", "quick"], "zerogap.config.files", "workflow]'"),
    ],
)
def test_a_missing_package_says_what_to_install(words, module, extra, without, capsys):
    without(module)
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: this command needs ")
    assert extra in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("command", ["sample", "evaluate"])
def test_the_benchmark_is_checked_before_torch_is_imported(command, without, capsys):
    without(COLLECT)
    options = ["nowhere", "--benchmark", "nope", "--output", "results"]
    assert main([command, *options]) == 2
    assert capsys.readouterr().err.startswith("error: --benchmark: 'nope' is unknown")


def test_rehearse_checks_the_names_of_models_before_it_imports_torch(without, capsys):
    without("zerogap.pipeline.rehearse")
    assert main(["rehearse", "--models", "nobody"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: --models: 'nobody' is not a model of the configuration (llama2")


@pytest.fixture
def collected(monkeypatch, capsys):
    """Run a command that collects: the strategies that it is to sample, or its error."""

    def collect(request):
        raise InputError(f"{request.strategies}, {request.num_samples} responses")

    monkeypatch.setattr(f"{COLLECT}.collect", collect)

    def run(*words):
        assert main([*words]) == 2
        return capsys.readouterr().err

    return run


@pytest.mark.parametrize(
    ("words", "strategies"),
    [
        ([], "['identity']"),
        (["--strategies", "railcap", "ted"], "['railcap', 'ted']"),
        (["--strategies", "railcap", "--strategies", "ted"], "['railcap', 'ted']"),
    ],
)
def test_options_with_several_values_may_be_repeated_or_listed(collected, words, strategies):
    assert f"{strategies}, 50 responses" in collected("sample", *DECODING, *words)


@pytest.mark.parametrize("command", ["sample", "evaluate"])
def test_an_output_that_is_a_file_is_refused_at_once(collected, command, tmp_path):
    path = tmp_path / "out"
    path.touch()
    assert "out' is a file" in collected(command, *DECODING[:-1], str(path))
