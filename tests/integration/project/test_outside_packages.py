"""Packages that pip has installed: of others, whose names are known everywhere, and ours."""

import json
import os
import re
import shutil
import sys
from importlib import metadata

import pytest

from helpers.paths import ROOT
from helpers.scripts import pip_install, python
from zerogap import plugins
from zerogap.config import load
from zerogap.errors import InputError
from zerogap.evaluation import question_sets
from zerogap.evaluation.strategies import named_strategies
from zerogap.pipeline import parameters

EXAMPLE = ROOT / "examples/outside_strategy"
BENCHMARK = """
BENCHMARK = {
    "label": "Sums",
    "contamination": "verbatim",
    "questions": {"source": "files", "files": {"train": %(file)r, "test": %(file)r}},
    "num_test": 2,
    "num_leaked": 1,
    "num_train": 1,
    "prompt": {
        "template": "Q: {question}\\nA:", "target": " {rationale} {answer}", "separator": "\\n\\n",
        "num_shots": 1, "exemplars": [{"question": "1 + 1?", "target": "2"}],
    },
    "extraction": "numeric",
    "stop": ["Q:"],
}
"""
OTHERS = """[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "others"
version = "1"
[project.entry-points."zerogap.benchmarks"]
sums = "sums:BENCHMARK"
no_mapping = "sums:__name__"
[project.entry-points."zerogap.strategies"]
broken = "broken:Strategy"
no_strategy = "sums:BENCHMARK"
railcap = "broken:RailCap"
[tool.setuptools]
py-modules = ["sums", "broken"]
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Where the example and a package with a benchmark are installed, without the network."""
    example, others, site = (tmp_path_factory.mktemp(name) for name in ("rules", "others", "site"))
    shutil.copytree(EXAMPLE, example, dirs_exist_ok=True)
    questions = others / "questions.jsonl"
    lines = ({"question": f"{n} + 1?", "answer": f"{n + 1}\n#### {n + 1}"} for n in range(3))
    questions.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (others / "sums.py").write_text(BENCHMARK % {"file": str(questions)})
    (others / "broken.py").write_text("raise RuntimeError('first line\\nsecond line')")
    (others / "pyproject.toml").write_text(OTHERS)
    pip_install(site, example, others)
    return site


@pytest.fixture(autouse=True)
def on_path(site, monkeypatch):
    """The packages can be imported, and the names that they offer are looked up again."""
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.chdir(ROOT)
    plugins.installed.cache_clear()
    yield
    plugins.installed.cache_clear()
    for name in ("rail_rules", "sums"):
        sys.modules.pop(name, None)


def test_an_evaluation_uses_an_installed_strategy_and_an_installed_benchmark():
    question_set = question_sets.load("sums", None, 0, None)
    assert sorted(question_set.questions.gold) == ["1", "2"]
    (_, strategy) = named_strategies(["clear_runner_up"], None, None).values()
    assert repr(strategy) == "ClearRunnerUp(n=4, min_share=0.5)"


def test_a_configuration_names_them_and_imports_no_strategy(tmp_path):
    (overlay,) = re.findall(r"```yaml\n(.*?)```", (EXAMPLE / "README.md").read_text(), re.DOTALL)
    path = tmp_path / "overlay.yaml"
    path.write_text(overlay + "benchmarks: { sums: { file: sums, num_test: 3, num_leaked: 2 } }\n")
    config = load(["config.yaml", path])
    sums = config.benchmarks["sums"]
    assert (sums.label, sums.num_test, sums.num_leaked) == ("Sums", 3, 2)
    names = ("clear_runner_up", "low_entropy", "uncapped_end", "railcap")
    assert [parameters.strategy(config, name)["class"] for name in names] == [
        "rail_rules:ClearRunnerUp", "rail_rules:LowEntropy", "rail_rules:UncappedEnd", "railcap",
    ]  # fmt: skip
    assert parameters.strategy_module(config, "low_entropy") == "rail_rules"
    assert "rail_rules" not in sys.modules


def strategies(name):
    return named_strategies([name], None, None)


def benchmark(name):
    return question_sets.load(name, None, 0, None)


@pytest.mark.parametrize(
    ("find", "name", "message"),
    [
        (strategies, "broken", "cannot import 'broken:Strategy': first line; "),
        (strategies, "no_strategy", "is not a class with a method prepare"),
        (strategies, "clear_runer", "must be one of identity, ted, shortcut, lne_blocking, "
         "railcap, broken, clear_runner_up, low_entropy, no_strategy, uncapped_end or"),
        (benchmark, "no_mapping", "is not a mapping with a benchmark's keys"),
        (benchmark, "sum", "gsm_symbolic_pq, no_mapping, pq, sums, toy_gsm8k"),
    ],
)  # fmt: skip
def test_a_broken_package_or_an_unknown_name_is_one_line(find, name, message):
    with pytest.raises(InputError) as error:
        find(name)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_two_packages_with_one_name_are_an_error(monkeypatch):
    points = [metadata.EntryPoint("halve", f"{name}:Halve", "group") for name in ("one", "two")]
    monkeypatch.setattr(metadata, "entry_points", lambda group: points)
    with pytest.raises(InputError, match="'halve' of group: one:Halve and two:Halve; uninstall"):
        plugins.installed.__wrapped__("group")


SCORED = ROOT / "examples/score"
QUESTIONS = """{"question": "Tom has 4 apples and buys 3 more. How many?", "answer": "7\\n#### 7"}
{"question": "Ann has 2 pens and loses 1. How many?", "answer": "1\\n#### 1"}
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Where the wheel of an sdist is installed, without its dependencies and the network."""
    source, installed = (tmp_path_factory.mktemp(name) for name in ("source", "installed"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("workflow/zerogap", "workflow/benchmarks"):
        shutil.copytree(ROOT / name, source / name, symlinks=True)
    build = "from setuptools import build_meta; print(build_meta.build_sdist('.'))"
    pip_install(installed, source / python("-c", build, cwd=source).stdout.splitlines()[-1])
    return installed


@pytest.fixture
def zerogap(installed, tmp_path):
    """Run a command of the installed package in an empty folder."""

    def run(*arguments):
        return python("-m", "zerogap", *arguments, cwd=tmp_path, env={"PYTHONPATH": str(installed)})

    return run


def test_the_installed_package_is_marked_as_typed(installed):
    assert (installed / "zerogap/py.typed").exists()


def test_responses_are_scored_with_a_page(zerogap, tmp_path):
    files = [SCORED / name for name in ("clean.jsonl", "identity.jsonl", "railcap.csv")]
    process = zerogap("score", "--clean", *files, "--html", "page.html", "--format", "csv")
    assert process.returncode == 0, process.stderr
    assert "identity" in process.stdout
    assert "<html" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("benchmark", ["questions.jsonl", "toy_gsm8k"])
def test_a_model_is_evaluated_on_questions_of_a_file_or_of_the_package(
    zerogap, tmp_path, benchmark
):
    (tmp_path / "questions.jsonl").write_text(QUESTIONS)
    model = ROOT / "workflow/resources/bases/llama2"
    sizes = ("--num-samples", 2, "--max-new-tokens", 4, "--strategies", "identity", "railcap")
    files = ("--benchmark", benchmark, "--num-questions", 2, "--output", "out")
    process = zerogap("evaluate", model, *files, *sizes)
    assert process.returncode == 0, process.stderr
    assert {"railcap.parquet", "summary.md", "report.html"} <= set(os.listdir(tmp_path / "out"))


@pytest.mark.parametrize(
    "arguments",
    [("plan",), ("rehearse",), ("run", "--profile", "quick")],
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
