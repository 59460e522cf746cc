"""The model, the benchmark and the strategy of docs/bring-your-own.md, through the DAG at once."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from helpers.paths import ROOT
from zerogap.data.toy.word_problems import problems
from zerogap.io import parquet

SNAKEMAKE = Path(sys.executable).with_name("snakemake")

pytestmark = pytest.mark.slow


def shown_files() -> dict[str, str]:
    """The page's blocks that begin with a file's name."""
    page = (ROOT / "docs/bring-your-own.md").read_text()
    found = re.findall(r"```(?:python|yaml)\n# (\S+)\n(.*?)```", page, re.S)
    return dict(found)


def multiple_choice(path: Path, n: int, split: str) -> None:
    """The project's own problems, with two answers to choose from."""
    lines = []
    for number, problem in enumerate(problems(n, 3, split)):
        wrong = str(int(problem.gold) + 2)
        first, second = (problem.gold, wrong) if number % 2 else (wrong, problem.gold)
        gold = "A" if number % 2 else "B"
        entry = {
            "question": f"{problem.question} (A) {first} (B) {second}",
            "answer": f"{problem.rationale}\n#### {gold}",
        }
        lines.append(json.dumps(entry))
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def test_a_model_a_benchmark_and_a_strategy_from_outside(tmp_path):
    for name in ("Snakefile", "config.yaml", "workflow", "profiles", "envs", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    files = shown_files()
    assert len(files) == 5
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    multiple_choice(tmp_path / "my_benchmark/train.jsonl", 12, "train")
    multiple_choice(tmp_path / "my_benchmark/test.jsonl", 12, "test")

    ablation = ", ".join(f"railcap_{name}: null" for name in ("n1", "n3", "n5", "n7", "ban"))
    (tmp_path / "less.yaml").write_text(f"benchmarks: {{ pq: null }}\nablation: {{ {ablation} }}\n")
    overlays = ["less.yaml"] + [name for name in files if name.endswith(".yaml")]
    done = subprocess.run(
        [
            SNAKEMAKE, "--profile", "profiles/quick", "--configfile",
            "profiles/quick/quick.yaml", "tests/end_to_end/micro.yaml", *overlays,
            "--", "table_main", "table_extraction_agreement",
        ],
        cwd=tmp_path,
        env=os.environ
        | {"PATH": f"{SNAKEMAKE.parent}:{os.environ['PATH']}", "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]

    reports = tmp_path / "reports/micro/tables"
    main = pd.read_csv(reports / "main.csv", comment="#")
    assert "halve" in set(main.key)
    assert any("mine" in column for column in main.columns)
    samples = parquet.read(tmp_path / "results/micro/mine/gsm8k/halve/samples.parquet", "samples")
    assert set(samples.answer.dropna()) <= set("ABCDE")
    assert parquet.provenance(tmp_path / "results/micro/mine/gsm8k/halve/samples.parquet")[
        "extraction"
    ] == ("my_package.letters:letter")
    questions = parquet.read(tmp_path / "results/micro/data/questions.parquet", "questions")
    assert set(questions.gold) == {"A", "B"}
    agreement = pd.read_csv(reports / "extraction_agreement.csv", comment="#")
    assert {"halve", "railcap", "clean"} <= set(agreement.key)
