"""`zerogap run`: the call of Snakemake that it makes, and mistakes in one line."""

import os

import pytest

from helpers.paths import ROOT
from zerogap.cli import main

PROFILES = "full, gsm8k, quick, slurm, smollm2, varied, workstation"
QUICK = ["--profile", "profiles/quick"]


@pytest.fixture
def call(monkeypatch, tmp_path):
    """Run the command in an empty folder: Snakemake's arguments; None if it is not called."""
    calls = []
    monkeypatch.setenv("PATH", os.environ["PATH"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "execv", lambda program, words: calls.append(words[3:]))

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


def test_own_overlays_follow_those_of_the_profile(call, tmp_path):
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("run: mine")
    words = call("--profile", "gsm8k", "--with", "a.yaml", "b.yaml", "--", "--config", "seed=1")
    options, files = words[: words.index("--configfile")], words[words.index("--configfile") + 1 :]
    assert options == ["--config", "seed=1", "--profile", "profiles/gsm8k"]
    assert files[:2] == ["profiles/quick/quick.yaml", "profiles/gsm8k/gsm8k.yaml"]
    assert [(ROOT / file).resolve() for file in files[2:]] == [
        tmp_path / "a.yaml",
        tmp_path / "b.yaml",
    ]


def test_overlays_that_change_the_run_under_its_name_are_noted(call, tmp_path, capsys):
    (tmp_path / "a.yaml").write_text("seed: 1")
    call("--profile", "quick", "--with", "a.yaml")
    assert "results replace those in results/quick and reports/quick" in capsys.readouterr().err
    (tmp_path / "a.yaml").write_text("{ seed: 1, run: mine }")
    call("--profile", "quick", "--with", str(tmp_path / "a.yaml"))
    assert "note:" not in capsys.readouterr().err


def test_snakemake_runs_in_the_root_of_the_checkout(call):
    assert call("--profile", "slurm") == ["--profile", "profiles/slurm"]
    assert os.path.samefile(os.curdir, ROOT)


def test_a_run_from_within_another_checkout_is_an_error(call, tmp_path, monkeypatch, capsys):
    """Its results would be in the checkout that the package is installed from."""
    (tmp_path / "Snakefile").touch()
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
        (["--profile", "quik"], f"--profile must be one of {PROFILES} (got quik)"),
        (["--profile", "profiles/quick"], f"must be one of {PROFILES} (got profiles/quick)"),
        (["--profile", "quick", "--with", "none.yaml"], "--with none.yaml: no such file"),
        (["--profile", "quick", "--with", "a.yaml", "tables"], "--with tables: no such file; targ"),
        (["", "--profile", "quick"], "TARGET must not be empty"),
        (["--profile", "quick", "--with", "list.yaml"], "must be a mapping of keys to values"),
        (["--profile", "quick", "--with", "tabs.yaml"], "tabs.yaml: is not valid YAML"),
        (
            ["--profile", "quick", "--with", "typo.yaml"],
            "typo.yaml: sampling.temprature: unknown key",
        ),
        (["--profile", "quick", "--with", "binary.yaml"], "binary.yaml: is not valid YAML"),
        (["--profile", "quick", "--", "--configfile", "a.yaml"], "pass overlays with --with"),
        (["--profile", "quick", "--", "--config", "a.b=1"], "--config a.b=1: write KEY=VALUE"),
        (["--profile", "quick", "--", "-C", "seed=1", "all"], "--config all: write KEY=VALUE"),
        (["--profile", "quick", "--cores", "1"], "No such option: --cores"),
    ],
)
def test_a_mistake_is_one_line(call, words, message, tmp_path, capsys):
    (tmp_path / "a.yaml").write_text("run: mine")
    (tmp_path / "list.yaml").write_text("- run")
    (tmp_path / "tabs.yaml").write_text("run:\n\tmine")
    (tmp_path / "typo.yaml").write_text("sampling: { temprature: 1 }")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe")
    assert call(*words) is None
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert error.count("\n") == 1
