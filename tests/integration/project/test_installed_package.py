"""The package installed by pip, used where no checkout is."""

import os
import shutil

import pytest

from helpers.paths import ROOT
from helpers.scripts import pip_install, python

EXAMPLE = ROOT / "examples/score"
QUESTIONS = """{"question": "Tom has 4 apples and buys 3 more. How many?", "answer": "7\\n#### 7"}
{"question": "Ann has 2 pens and loses 1. How many?", "answer": "1\\n#### 1"}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Where the wheel of an sdist is installed, without its dependencies and the network."""
    source, site = (tmp_path_factory.mktemp(name) for name in ("source", "site"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "workflow/zerogap", source / "workflow/zerogap")
    build = "from setuptools import build_meta; print(build_meta.build_sdist('.'))"
    pip_install(site, source / python("-c", build, cwd=source).stdout.splitlines()[-1])
    return site


@pytest.fixture
def zerogap(site, tmp_path):
    """Run a command of the installed package in an empty folder."""

    def run(*arguments):
        return python("-m", "zerogap", *arguments, cwd=tmp_path, env={"PYTHONPATH": str(site)})

    return run


def test_responses_are_scored_with_a_page(zerogap, tmp_path):
    files = [EXAMPLE / name for name in ("clean.jsonl", "identity.jsonl", "railcap.csv")]
    process = zerogap("score", "--clean", *files, "--html", "page.html", "--format", "csv")
    assert process.returncode == 0, process.stderr
    assert "identity" in process.stdout
    assert "<html" in (tmp_path / "page.html").read_text()


def test_a_model_is_evaluated_on_a_file_of_questions(zerogap, tmp_path):
    (tmp_path / "questions.jsonl").write_text(QUESTIONS)
    model = ROOT / "workflow/resources/bases/llama2"
    sizes = ("--num-samples", 2, "--max-new-tokens", 4, "--strategies", "identity", "railcap")
    files = ("--benchmark", "questions.jsonl", "--output", "out")
    process = zerogap("evaluate", model, *files, *sizes)
    assert process.returncode == 0, process.stderr
    assert {"railcap.parquet", "summary.md", "report.html"} <= set(os.listdir(tmp_path / "out"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan",),
        ("rehearse",),
        ("run", "--profile", "quick"),
        ("sample", "m", "--benchmark", "gsm8k", "--output", "out"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_what_needs_the_checkout_says_so_in_one_line(zerogap, arguments):
    process = zerogap(*arguments)
    assert process.returncode == 2
    assert process.stdout == ""
    assert process.stderr.startswith("error: ")
    assert "in a checkout" in process.stderr
    assert process.stderr.count("\n") == 1


def test_a_run_that_is_not_there_is_one_line(zerogap):
    process = zerogap("show", "test-0000", "--run", "quick")
    assert process.returncode == 2
    assert process.stderr.startswith("error: results/quick: ")
    assert process.stderr.count("\n") == 1
