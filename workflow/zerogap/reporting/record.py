"""What is filed of an evaluation: a record of Every Eval Ever, and a section for a model card.

The record has the fields of that project's `eval.schema.json`
(https://github.com/evaleval/every_eval_ever), version `SCHEMA_VERSION`.
"""

import contextlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

import zerogap
from zerogap.io import atomic
from zerogap.io.provenance import draws, engines
from zerogap.metrics.definitions import METRICS
from zerogap.reporting.render import Table, provenance_line, to_markdown
from zerogap.scoring.score import BATCH2

SCHEMA_VERSION = "0.3.0"
UNKNOWN = "unknown"
CLEAN = ("clean", BATCH2)  # values of another model
DESCRIPTIONS = {  # of metrics without a clean model
    "drop": "Identity's solve probability minus the strategy's, mean over the questions",
    "inflation": "Solve probability on the benchmark minus that on controls that cannot leak",
    "rouge_l": "Mean ROUGE-L between the responses and the greedy response of the same question",
    "peakedness": "Share of responses that nearly repeat the greedy trajectory, as in CDD",
}
ARGUMENTS = {"temperature": "temperature", "top_p": "top_p", "max_tokens": "max_new_tokens"}
# Of a file, besides its draws.
DETAILS = ("strategy", "strategy_parameters", "precision", "chat_template")


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What a record says about its values."""

    benchmark: str  # a name, or a file
    made_by: Mapping[str, Mapping[str, Any]]  # strategy → provenance of its responses, if known
    num_responses: Mapping[str, int]  # strategy → its responses to all questions
    reference: str | None  # the clean model, or the file of its responses
    repository: str | None = None  # the benchmark's data set on the Hugging Face Hub
    drawn: str = "questions"  # what the bootstrap draws; or clusters of questions, or samples
    bins: int = 50
    n_resamples: int = 2000
    confidence_level: float = 0.95


def write_record(path: Path, values: pd.DataFrame, evaluation: Evaluation) -> None:
    """Write a record with one result per value; those of the clean model are left out.

    What a reader has filled in there about the same model is kept. `values` has columns subset,
    n_questions, strategy, metric, label, value, ci_low and ci_high, as
    `zerogap.scoring.score.summary`.
    """
    created = str(time.time())
    made_by = (made for name, made in evaluation.made_by.items() if name not in CLEAN)
    model_info = _model_info(list(made_by))
    benchmark = Path(evaluation.benchmark).name
    is_shown = values["value"].notna() & ~values["strategy"].isin(CLEAN)
    source_metadata = {
        "source_name": "zerogap",
        "source_type": "evaluation_run",
        "source_organization_name": UNKNOWN,
        "evaluator_relationship": "other",
    }
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        previous = json.loads(path.read_text(encoding="utf-8"))
        filled, own = previous["model_info"], model_info["additional_details"]
        kept, is_known = filled["additional_details"], own["digest"] != UNKNOWN
        has_same_name = own["name_in_files"] == kept.get("name_in_files", filled["id"])
        if own["digest"] == kept.get("digest", UNKNOWN) and (is_known or has_same_name):
            source_metadata = previous["source_metadata"]
            own["model_availability"] = kept["model_availability"]
            if is_known or own["name_in_files"] != UNKNOWN:  # which may be another model
                model_info |= {key: filled[key] for key in ("name", "id")}
    record = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{benchmark}/{model_info['id']}/{created}",
        "retrieved_timestamp": created,
        "source_metadata": source_metadata,
        "eval_library": {"name": "zerogap", "version": zerogap.__version__},
        "model_info": model_info,
        "evaluation_results": [
            _result(row, benchmark, evaluation) for row in values[is_shown].to_dict("records")
        ],
    }
    text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)
    atomic.write_text(path, f"{text}\n")


def generation_config(made_by: Mapping[str, Any]) -> dict[str, Any]:
    """How responses were drawn, as far as the provenance of their file says."""
    details = {name: made_by[name] for name in DETAILS if name in made_by}
    drawn = next((drawn for drawn in draws(made_by) if "sampling" in drawn), {})
    details |= drawn | drawn.get("sampling", {})
    details.pop("sampling", None)
    arguments = {name: details.pop(own) for name, own in ARGUMENTS.items() if own in details}
    texts = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in details.items()
    }
    return {"generation_args": arguments, "additional_details": texts}


def model_card_section(
    title: str,
    tables: Iterable[Table],
    notes: Iterable[str],
    paragraphs: Sequence[str],
    settings: Mapping[str, Any],
) -> str:
    """A section in Markdown: tables, notes, what they mean, and the settings in one line."""
    parts = [
        f"## {title}",
        *map(to_markdown, tables),
        *(f"Note: {note}." for note in notes),
        *paragraphs,
        provenance_line(settings),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _result(row: Mapping[Any, Any], benchmark: str, evaluation: Evaluation) -> dict[str, Any]:
    strategy, subset, metric = row["strategy"], row["subset"], row["metric"]
    on_hub = {"source_type": "hf_dataset", "hf_repo": evaluation.repository}
    source = on_hub if evaluation.repository else {"source_type": "other"}
    details = {"strategy": strategy, "subset": subset, "num_questions": str(row["n_questions"])}
    if subset == "all":
        details["num_responses"] = str(evaluation.num_responses[strategy])
    score: dict[str, Any] = {"score": row["value"], "details": details}
    if pd.notna(row["ci_low"]):
        score["uncertainty"] = {
            "confidence_interval": {
                "lower": row["ci_low"],
                "upper": row["ci_high"],
                "confidence_level": evaluation.confidence_level,
                "method": f"bootstrap over {evaluation.drawn}",
            },
            "num_samples": row["n_questions"],
            "num_bootstrap_samples": evaluation.n_resamples,
        }
    return {
        "evaluation_result_id": f"{subset}/{strategy}/{metric}",
        "evaluation_name": f"{benchmark}.{strategy}" + f".{subset}" * (subset != "all"),
        "source_data": {"dataset_name": benchmark, **source},
        "metric_config": _metric_config(metric, row["label"], evaluation),
        "score_details": score,
        "generation_config": generation_config(evaluation.made_by[strategy]),
    }


def _metric_config(name: str, label: str, evaluation: Evaluation) -> dict[str, Any]:
    metric, is_difference, _ = name.partition("_vs_")
    most = 2.0 if metric == "inflation" else 1.0  # less the references' own difference
    config: dict[str, Any] = {
        "evaluation_description": DESCRIPTIONS.get(metric)
        or (METRICS[metric].definition.__doc__ or "").split("\n")[0],
        "metric_id": f"zerogap.{name}",
        "metric_name": label,
        "metric_unit": "proportion",
        "lower_is_better": metric != "solve_mean",
        "score_type": "continuous",
        "min_score": -most if is_difference or metric in ("drop", "inflation") else 0.0,
        "max_score": most,
    }
    if metric == "solve_mean":
        return config | {"metric_id": "pass_at_k", "metric_parameters": {"k": 1}}
    if metric not in DESCRIPTIONS:
        reference = _public_name(evaluation.reference or "")
        config["metric_parameters"] = {"clean_model": reference, "bins": evaluation.bins}
    return config


def _model_info(files: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The model that drew the responses, where their files name exactly one."""
    models, digests = (
        {file[key] for file in files if key in file} for key in ("model", "model_digest")
    )
    used = sorted(set().union(*map(engines, files)))
    name = _public_name(models.pop()) if len(models) == 1 else UNKNOWN
    return {
        "name": name,
        "id": name,
        "inference_engine": {"name": " and ".join(used) or UNKNOWN},
        "additional_details": {
            "deployment_type": "self_deployed" if used else UNKNOWN,
            "model_availability": UNKNOWN,
            "digest": digests.pop() if len(digests) == 1 else UNKNOWN,
            "name_in_files": name,
        },
    }


def _public_name(name: str) -> str:
    """A name on the hub as it is; of a path, only the last part."""
    path = Path(name)
    is_local = path.exists() or path.is_absolute() or len(path.parts) > 2
    return path.resolve().name if is_local else name
