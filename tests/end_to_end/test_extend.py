"""The model, the benchmark and the strategy of docs/extend.md, in one run of the workflow."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from helpers.dry_runs import link_checkout, snakemake
from helpers.paths import ROOT
from zerogap.data.toy import problems
from zerogap.io import parquet

SMALL = """
run: micro
benchmarks: { letters: { num_test: 12, num_leaked: 6, num_train: 8 } }
strategies: { ted: null, shortcut: null, lne_blocking: null }
ablation:
  railcap_n3: null
  railcap_ban: null
  ted_unfiltered: null
  lne_blocking_nearest: null
"""

pytestmark = pytest.mark.slow


def files_of_the_page() -> dict[str, str]:
    """The blocks of the page that begin with a path."""
    page = (ROOT / "docs/extend.md").read_text()
    return dict(re.findall(r"```(?:python|yaml)\n# (\S+)\n(.*?)```", page, re.DOTALL))


def write_multiple_choice(path: Path, num_questions: int, split: str) -> None:
    """Write the project's own problems with two answers to choose from."""
    lines = []
    for number, problem in enumerate(problems(num_questions, 3, split)):
        wrong = str(int(problem.gold) + 2)
        first, second = (problem.gold, wrong) if number % 2 else (wrong, problem.gold)
        entry = {
            "question": f"{problem.question} (A) {first} (B) {second}",
            "answer": f"{problem.rationale}\n#### {'A' if number % 2 else 'B'}",
        }
        lines.append(json.dumps(entry))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a finished run."""
    folder = tmp_path_factory.mktemp("extend")
    link_checkout(folder)
    files = files_of_the_page()
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    write_multiple_choice(folder / "my_benchmark/train.jsonl", 12, "train")
    write_multiple_choice(folder / "my_benchmark/test.jsonl", 12, "test")
    (folder / "small.yaml").write_text(SMALL)
    overlays = [name for name in files if name.endswith(".yaml") and "/" not in name]
    assert overlays == ["my_strategy.yaml", "my_model.yaml", "my_benchmark.yaml"]
    done = snakemake(
        *("--profile", "profiles/quick", "--configfile", "profiles/quick/quick.yaml"),
        *("tests/end_to_end/micro.yaml", *overlays, "small.yaml"),
        *("--", "table_main", "table_extraction_agreement"),
        workdir=folder,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return folder


def test_the_strategy_and_the_model_are_in_table_3(run):
    table = pd.read_csv(run / "reports/micro/tables/main.csv", comment="#")
    assert "halve" in set(table.key)
    assert any("mine" in column for column in table.columns)


def test_the_benchmark_has_its_questions_and_letters_for_answers(run):
    questions = parquet.read(run / "results/micro/data/letters/questions.parquet", "questions")
    assert set(questions.gold) == {"A", "B"}
    path = run / "results/micro/mine/letters/cells/halve/samples.parquet"
    assert set(parquet.read(path, "samples").answer.dropna()) <= set("ABCDE")
    assert parquet.provenance(path)["extraction"] == "my_package.letters:letter"


def test_the_built_in_rules_are_compared_with_the_benchmarks_own(run):
    table = pd.read_csv(run / "reports/micro/tables/extraction_agreement.csv", comment="#")
    assert {"halve", "railcap"} <= set(table.key)
