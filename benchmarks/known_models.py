"""The report card on models whose history is known: false alarms, power, coverage.

    python benchmarks/known_models.py models.yaml --output FOLDER [--num-samples 20]

models.yaml lists groups with the same clean twin and questions, which a workflow run made:

    - name: llama, seed 0
      benchmark: workflow/benchmarks/toy_gsm8k.yaml # how the questions are asked
      data: results/quick/data/gsm8k # the run's questions
      seed: 0 # of the run
      controls: fresh # or rephrased
      strategies: [identity]
      clean: results/quick/llama2/clean_gsm8k/model
      contaminated: {verbatim: results/quick/llama2/gsm8k/model}

Every model is asked all questions and as many controls. A test is a block of 50 leaked or unleaked
questions with their controls, or of both mixed. Prints tables, whose tests are in tests.csv
(docs/evaluate.md#validation). An interrupted command resumes.
"""

import argparse
import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from tabulate import tabulate

from zerogap.config import load_benchmark
from zerogap.data.extraction import extraction_rule
from zerogap.data.prompts import PromptTemplate
from zerogap.evaluation import controls as control_questions
from zerogap.evaluation.card import LEVEL, SIGNALS, compare
from zerogap.evaluation.collect import collect
from zerogap.evaluation.model_run import Request
from zerogap.evaluation.question_sets import GENERATORS, QuestionSet
from zerogap.evaluation.summary import Summary, summarise
from zerogap.io import parquet
from zerogap.metrics.controls import auc

BLOCK = 50  # questions of a test
CLEAN = "clean"


def questions_of(group: Mapping[str, Any]) -> tuple[QuestionSet, "pd.Series[bool]"]:
    """The questions of a run as they are asked, and which of them leak."""
    data, settings = Path(group["data"]), load_benchmark(Path(group["benchmark"]))
    questions = parquet.read(data / "questions.parquet", "questions")
    entries = [json.loads(line) for line in (data / "test.jsonl").read_text().splitlines()]
    answers = {" ".join(entry["question"].split()): entry["answer"] for entry in entries}
    source = settings.questions.model_dump()
    if source["source"] == "generated":
        source["generated"]["num_test"] = len(questions)
    asked = QuestionSet(
        str(group["benchmark"]),
        questions.assign(answer=questions.question.map(answers)),
        PromptTemplate.of(settings.prompt.model_dump()),
        json.loads((data / "exemplars.json").read_text()),
        extraction_rule(settings.extraction),
        list(settings.stop),
        generator=source if source["source"] in GENERATORS else None,
    )
    return asked, questions.set_index("question_id").leaked


def asked_models(
    group: Mapping[str, Any], asked: QuestionSet, controls: QuestionSet, options: argparse.Namespace
) -> dict[str, list[Summary]]:
    """The summaries of each model: of the questions, of the controls."""
    summaries = {}
    for name, model in {CLEAN: group["clean"], **group["contaminated"]}.items():
        request = Request(
            model=model,
            question_set=asked,
            controls=controls,
            strategies=group["strategies"],
            output=options.output / f"{group['name']} {name}".replace(" ", "_"),
            num_samples=options.num_samples,
            chat_template="ignore",
            temperature=0.7,
            max_new_tokens=options.max_new_tokens,
            dtype=options.dtype,
            seed=0,
        )
        (sides,) = collect(request)
        summaries[name] = [summarise(side) for side in sides]
    return summaries


def blocks(
    leaked: "pd.Series[bool]", controls: pd.DataFrame
) -> Iterator[tuple[str, list[str], list[str]]]:
    """The tests: what the questions are, their ids, and those of their controls."""
    originals = controls.get("original", leaked.index)
    of_question = dict(zip(originals, controls.question_id, strict=False))
    usable = [question for question in leaked.index if question in of_question]
    halves = {
        "leaked": [question for question in usable if leaked[question]],
        "unleaked": [question for question in usable if not leaked[question]],
    }
    for kind, ids in halves.items():
        for start in range(0, len(ids) - BLOCK + 1, BLOCK):
            block = ids[start : start + BLOCK]
            yield kind, block, [of_question[question] for question in block]
    for start in range(0, min(map(len, halves.values())) - BLOCK // 2 + 1, BLOCK // 2):
        block = [
            question for ids in halves.values() for question in ids[start : start + BLOCK // 2]
        ]
        yield "mixed", block, [of_question[question] for question in block]


def tested(
    summaries: Mapping[str, Sequence[Summary]], leaked: "pd.Series[bool]", controls: QuestionSet
) -> Iterator[dict[str, Any]]:
    """One row per model and test."""
    twin = summaries[CLEAN][0].questions.set_index("question_id").identity
    for name, (benchmark, other) in summaries.items():
        for kind, ids, control_ids in blocks(leaked, controls.questions):
            if kind == "mixed" and name == CLEAN:
                continue
            rows = controls.questions.set_index("question_id").loc[control_ids].reset_index()
            own = dataclasses.replace(controls, questions=rows)
            sides = (_only(benchmark, ids), _only(other, control_ids))
            found = compare([sides], own)
            flags = found.questions.set_index("question_id").flagged
            truth = float((sides[0].questions.set_index("question_id").identity - twin[ids]).mean())
            yield {
                "model": name,
                "questions": kind,
                "is_clean": name == CLEAN or kind == "unleaked",
                "style_auc": found.style_auc,
                "inflation": found.inflation[0],
                "inflation_true": truth,
                "is_covered": found.inflation[1] <= truth <= found.inflation[2],
                "share": found.share[0],
                "num_flagged": int(flags.sum()),
                "num_flagged_unleaked": int(flags[~leaked[flags.index]].sum()),
                **{f"p_{signal}": row.p for signal, row in found.signals.items()},
                **{f"auc_{signal}": row.auc for signal, row in found.signals.items()},
            }


def separation(summaries: Mapping[str, Sequence[Summary]], leaked: "pd.Series[bool]") -> Any:
    """AUC of each signal between a model's leaked and unleaked questions."""
    rows = []
    for name, (benchmark, _) in summaries.items():
        table = benchmark.questions.set_index("question_id")
        first, second = table[leaked[table.index]], table[~leaked[table.index]]
        for signal in table.columns.intersection(list(SIGNALS)):
            rows.append((name, signal, auc(first[signal].to_numpy(), second[signal].to_numpy())))
    return pd.DataFrame(rows, columns=["model", "signal", "auc"])


def _only(summary: Summary, ids: Sequence[str]) -> Summary:
    table = summary.questions.set_index("question_id").loc[list(ids)].reset_index()
    return dataclasses.replace(summary, questions=table)


def main() -> None:
    """Ask every model, test every block and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("models", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--num-samples", type=int, default=20)
    parser.add_argument("--max-new-tokens", type=int, default=96)
    parser.add_argument("--dtype", default="float32")
    options = parser.parse_args()
    tests, separations = [], []
    for group in yaml.safe_load(options.models.read_text()):
        asked, leaked = questions_of(group)
        controls = control_questions.load(asked, group["controls"], group["seed"])
        assert controls is not None  # noqa: S101 (only --controls none has none)
        if "original" in controls.questions:
            paired = asked.questions.question_id.isin(controls.questions.original)
            asked = dataclasses.replace(asked, questions=asked.questions[paired])
            leaked = leaked[asked.questions.question_id]
        summaries = asked_models(group, asked, controls, options)
        tests += [{"group": group["name"], **row} for row in tested(summaries, leaked, controls)]
        separations.append(separation(summaries, leaked).assign(group=group["name"]))
        pd.DataFrame(tests).to_csv(options.output / "tests.csv", index=False)
    table = pd.DataFrame(tests)
    p_values = [f"p_{signal}" for signal in SIGNALS if f"p_{signal}" in table]
    found = table[p_values].le(LEVEL).assign(is_covered=table.is_covered)
    by = ["group", "is_clean", "questions", "model"]
    summary = found.groupby([table[name] for name in by]).agg(["sum", "count"])
    print(tabulate(summary, headers="keys", tablefmt="github"))
    aucs = pd.concat(separations).pivot_table(
        index=["group", "model"], columns="signal", values="auc"
    )
    print(tabulate(aucs.round(3), headers="keys", tablefmt="github"))


if __name__ == "__main__":
    main()
