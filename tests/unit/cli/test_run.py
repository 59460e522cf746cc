"""`zerogap run`: the call of Snakemake that it makes, and mistakes in one line."""

import os

import pytest

from helpers.paths import ROOT
from zerogap.cli import main

PROFILES = sorted(path.parent.name for path in ROOT.glob("profiles/*/config.yaml"))
QUICK = ["--profile", "profiles/quick"]


@pytest.fixture
def call(monkeypatch, tmp_path):
    """Run the command in an empty folder: Snakemake's arguments; None if it is not called."""
    calls = []
    monkeypatch.setenv("PATH", os.environ["PATH"])
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
def test_a_mistake_is_one_line(call, words, message, capsys):
    assert call(*words) is None
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert error.count("\n") == 1
