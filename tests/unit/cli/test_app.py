"""What all commands share, and the call of Snakemake that `zerogap run` makes."""

import os
import sys

import pytest
import typer

from helpers.paths import ROOT
from zerogap.cli import main
from zerogap.cli.app import COMMANDS, app, repeat_options
from zerogap.errors import InputError

EXAMPLES = {command.__name__: example for command, (example, *_) in COMMANDS.items()}
COLLECT = "zerogap.evaluation.collect"
DECODING = ["nowhere", "--benchmark", "toy_gsm8k", "--output", "out"]


@pytest.fixture
def without(monkeypatch):
    """Make a module impossible to import."""

    def remove(module):
        monkeypatch.setitem(sys.modules, module, None)
        monkeypatch.delattr(module, raising=False)

    return remove


@pytest.mark.parametrize("command", EXAMPLES)
def test_help_has_an_example_and_the_exit_statuses(command, capsys):
    assert main([command, "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"Example: zerogap {command} " in text
    assert "Exit status: 0 success, 2 invalid input (one line)" in text


@pytest.mark.parametrize(("command", "example"), EXAMPLES.items())
def test_the_example_of_every_help_text_is_accepted(command, example, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").touch()
    parser = typer.main.get_command(app).commands[command]
    assert parser.make_context(command, repeat_options(example.split()))


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


@pytest.mark.parametrize(
    ("words", "late", "extra"),
    [
        (["evaluate", *DECODING], f"{COLLECT}.collect", "evaluate"),
        (["show", "test-0000", "--run", "quick"], "zerogap.analysis.one_question.find", "decoding"),
    ],
)
def test_a_package_that_is_imported_late_says_so_too(words, late, extra, monkeypatch, capsys):
    def without_package(*_, **__):
        raise ModuleNotFoundError("No module named 'some_package'", name="some_package")

    monkeypatch.setattr(late, without_package)
    assert main(words) == 2
    assert capsys.readouterr().err == (
        "error: this command needs some_package, which is not installed; pip install "
        f"'/path/to/zerogap[{extra}]' installs all that zerogap itself needs\n"
    )


@pytest.mark.parametrize("command", ["sample", "evaluate"])
def test_the_benchmark_is_checked_before_torch_is_imported(command, without, capsys):
    without(COLLECT)
    assert main([command, "nowhere", "--benchmark", "nope", "--output", "results"]) == 2
    assert capsys.readouterr().err.startswith("error: --benchmark: 'nope' is unknown")


def test_rehearse_checks_the_names_of_models_before_it_imports_torch(without, capsys):
    without("zerogap.pipeline.rehearse")
    assert main(["rehearse", "--models", "nobody"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: --models: 'nobody' is not a model of the configuration (llama2")


@pytest.fixture
def collected(monkeypatch, capsys):
    """Run a command that collects: the strategies that it is to sample, or its error."""

    def collect(request, **_):
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


PROFILES = sorted(path.parent.name for path in ROOT.glob("profiles/*/config.yaml"))
QUICK = ["--profile", "profiles/quick"]


@pytest.fixture
def call(monkeypatch, tmp_path):
    """Run the command in an empty folder: Snakemake's arguments; None if it is not called."""
    calls = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "execv", lambda program, words: calls.append(words[3:]))
    (tmp_path / "a.yaml").write_text("run: mine")
    (tmp_path / "b.yaml").write_text("seed: 1")

    def run(*words):
        status = main(["run", *words])
        assert bool(calls) == (status == 0)
        return calls.pop() if calls else None

    return run


def test_targets_options_and_further_arguments_are_passed_on(call, capsys):
    words = call("table_main", "--profile", "quick", "-n", "--", "--cores", "1")
    assert words == ["table_main", "--cores", "1", *QUICK, "--dry-run"]
    printed = "snakemake table_main --cores 1 --profile profiles/quick --dry-run\n"
    assert capsys.readouterr().err == printed


@pytest.mark.parametrize(("overlay", "is_noted"), [("a.yaml", False), ("b.yaml", True)])
def test_overlays_that_change_the_run_under_its_name_are_noted(call, capsys, overlay, is_noted):
    call("--profile", "quick", "--with", overlay)
    assert ("results replace those of the profile" in capsys.readouterr().err) == is_noted


def test_a_run_from_within_another_checkout_is_an_error(call, tmp_path, monkeypatch, capsys):
    """Its results would be in the checkout that the package is installed from."""
    (tmp_path / "workflow/zerogap").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "workflow")
    assert call("--profile", "quick") is None
    error = capsys.readouterr().err
    assert f"{tmp_path} is a checkout of its own" in error
    assert f"installed from {ROOT}; activate the environment of the checkout" in error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Missing option '--profile'."),
        (["--profile", "quik"], f"--profile must be one of {', '.join(PROFILES)} (got quik)"),
        (["--profile", "quick", "--with", "none.yaml"], "'none.yaml' does not exist"),
        (["--profile", "quick", "--with", "a.yaml", "tables"], "'tables' does not exist"),
        (["--profile", "quick", "--", "--configfile", "a.yaml"], "pass overlays with --with"),
        (["--profile", "quick", "--cores", "1"], "No such option: --cores"),
    ],
)
def test_a_mistake_in_a_call_of_run_is_one_line(call, words, message, capsys):
    assert call(*words) is None
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert error.count("\n") == 1
