"""The later stages of a rehearsal: decoders, greedy decoding, neurons, strategies, metrics."""

from pathlib import Path
from typing import Any

import pandas as pd
import torch
from transformers import AutoModelForCausalLM

from zerogap.engine import loading
from zerogap.errors import InputError
from zerogap.families import fits_shared_prompt_decoder
from zerogap.io import parquet
from zerogap.metrics.evaluate import evaluate
from zerogap.metrics.same_questions import with_leaked_of
from zerogap.pipeline.rehearsal.model_copy import NUM_QUESTIONS, NUM_SAMPLES, ModelCopy
from zerogap.sampling import jobs, localisation, tables

LOCALISATION = {"fraction": 0.5, "group_size": 10**9, "num_questions": 1}  # one group per layer
NUM_RESAMPLES = 100


def compare_decoders(copy: ModelCopy) -> str:
    """Compare the shared prompt cache with the model's own on random tokens."""
    model = AutoModelForCausalLM.from_pretrained(
        copy.merged, dtype=torch.float32, use_safetensors=True
    ).eval()
    model = model.to("cuda" if torch.cuda.is_available() else "cpu")
    problem = loading.shared_prompt_misfit(model)
    if problem is None:
        return "the shared prompt cache gives the model's own logits"
    if fits_shared_prompt_decoder(model.config.get_text_config().model_type):
        raise InputError(
            f"the shared prompt cache does not give the model's own logits ({problem}); "
            f"open an issue with the log"
        )
    return f"the model's own cache is used, one question at a time (slower): {problem}"


def decode_greedy(copy: ModelCopy) -> str:
    """Decode the greedy trajectories of the trained copy."""
    parameters = copy.parameters("decode_greedy")
    jobs.decode_greedy(model=copy.merged, output=copy.greedy, **copy.inputs, **parameters)
    return f"{len(parquet.read(copy.greedy, 'greedy'))} trajectories"


def localise_neurons(copy: ModelCopy) -> str:
    """Select shortcut neurons with one question and one group per layer."""
    parameters = copy.parameters("localise_neurons")
    parameters["neuron_localisation"] |= LOCALISATION
    localisation.localise_neurons(
        contaminated=copy.merged,
        clean=copy.base,
        base_model=copy.base,
        greedy=copy.greedy,
        output=copy.neurons,
        **copy.inputs,
        **parameters,
    )
    table = parquet.read(copy.neurons, "neurons")
    return f"{int(table.selected.sum())} of {len(table)} neurons selected"


def sample_clean(copy: ModelCopy) -> str:
    """Sample the copy before the training, in place of the clean model."""
    parameters = copy.parameters("cells/batch1/sample_responses", copy.config.clean_variant)
    return _sample_cell(copy, "clean", copy.base, parameters)


def sample(copy: ModelCopy, name: str) -> str:
    """Sample responses under a strategy."""
    parameters = copy.parameters(f"cells/{name}/sample_responses")
    needs_base = copy.config.all_strategies[name].needs_base_model
    extra = {"base_model": copy.base, "neurons": copy.neurons} if needs_base else {}
    return _sample_cell(copy, name, copy.merged, parameters, **extra)


def filter_responses(copy: ModelCopy, name: str) -> str:
    """Filter the responses of another strategy."""
    source = copy.config.all_strategies[name].filter_of
    tables.filter_responses(
        questions=copy.inputs["questions"],
        greedy=copy.greedy,
        source=copy.table(str(source), "samples"),
        samples=copy.table(name, "samples"),
        solve=copy.table(name, "solve"),
        strategy=copy.parameters(f"cells/{name}/sample_responses")["strategy"],
        metadata={},
    )
    return f"{len(parquet.read(copy.table(name, 'samples'), 'samples'))} responses kept"


def compute_metrics(copy: ModelCopy) -> str:
    """Compute the metrics of all strategies."""
    table = parquet.read(copy.inputs["questions"], "questions")

    def solve(name: str) -> pd.DataFrame:
        return with_leaked_of(table, parquet.read(copy.table(name, "solve"), "solve"))

    strategies = {name: solve(name) for name in copy.config.all_strategies}
    metrics = evaluate(
        copy.model,
        copy.benchmark,
        solve("clean"),
        strategies,
        bins=copy.config.metrics.bins,
        n_resamples=NUM_RESAMPLES,
        confidence_level=copy.config.metrics.confidence_level,
        seed=copy.config.seed,
    )
    parquet.write(copy.folder / "metrics.parquet", metrics, "metrics", {})
    return f"{len(strategies)} strategies (the values mean nothing)"


def _sample_cell(
    copy: ModelCopy, name: str, model: Path, parameters: dict[str, Any], **extra: Any
) -> str:
    jobs.sample_cell(
        model=model,
        greedy=copy.greedy,
        samples=copy.table(name, "samples"),
        solve=copy.table(name, "solve"),
        **copy.inputs,
        **extra,
        **parameters,
    )
    table = parquet.read(copy.table(name, "samples"), "samples")
    if len(table) != NUM_QUESTIONS * NUM_SAMPLES:
        raise InputError(
            f"{len(table)} instead of {NUM_QUESTIONS * NUM_SAMPLES} responses; "
            "open an issue with the log"
        )
    return f"{len(table)} responses, {table.token_ids.map(tuple).nunique()} different"
