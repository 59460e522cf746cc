"""The jobs behind Figure 1 and the recovery rate: a model's second choices.

- Ranks: where are the clean model's tokens among those of the contaminated one?
- Recovery: does a model recover from its second choice? A response follows the greedy trajectory up
  to one random step, takes the runner-up there, and is sampled from then on. Forcing is an edit of
  the logits, so the sampler draws such responses like those of a strategy.

The arguments and errors are those of the other jobs: :mod:`zerogap.sampling.jobs`.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pandas as pd
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from zerogap.data.token_kinds import token_kinds
from zerogap.engine import loading
from zerogap.engine.decoder import Edit, Prompt, Rows, to_device
from zerogap.engine.drawing import entropy, uniforms
from zerogap.engine.hf_decoder import logits_of
from zerogap.engine.output_head import float32_logits
from zerogap.io import parquet
from zerogap.io.digests import folder_digest
from zerogap.io.provenance import provenance
from zerogap.io.resume import resumable_parts
from zerogap.sampling.cell import EngineSampler, engine_identity, sample_questions
from zerogap.sampling.identity import job_settings
from zerogap.sampling.responses import JobInputs, decoding_params, recorded

RECOVERY_STREAM = "recovery"


def rank_clean_tokens(
    *,
    model: Path,
    questions: Path,
    exemplars: Path,
    clean_greedy: Path,
    output: Path,
    steps: int,
    sampling: Mapping[str, Any],
    benchmark: Mapping[str, Any],
    metadata: Mapping[str, Any],
) -> None:
    """Write the `ranks` table: the clean model's tokens under the contaminated `model`.

    The first `steps` tokens of each trajectory in `clean_greedy` are ranked.
    """
    inputs = JobInputs.read(
        model, questions, exemplars, {**sampling, "max_new_tokens": steps}, benchmark
    )
    trajectories = parquet.read_of_run(clean_greedy, "greedy").set_index("question_id").token_ids
    net = loading.load(model, sampling["dtype"])
    rows = []
    for prompt, leaked in zip(inputs.prompts, inputs.questions.leaked, strict=True):
        tokens = list(map(int, trajectories[prompt.question_id]))[:steps]
        ranks = token_ranks(net, prompt.token_ids, tokens)
        rows += [
            (prompt.question_id, leaked, step, token, rank)
            for step, (token, rank) in enumerate(zip(tokens, ranks, strict=True), start=1)
        ]
    table = pd.DataFrame(rows, columns=parquet.CONTRACTS["ranks"].names)
    parameters = recorded(sampling, benchmark, metadata, steps=steps, **engine_identity(net))
    parquet.write(output, table, "ranks", provenance(**parameters))
    num_different = int((table["rank"] > 1).sum())
    print(f"the two models disagree at {num_different} of {len(table)} steps")


def measure_recovery(
    *,
    model: Path,
    questions: Path,
    exemplars: Path,
    greedy: Path,
    output: Path,
    sampling: Mapping[str, Any],
    seed: int,
    benchmark: Mapping[str, Any],
    metadata: Mapping[str, Any],
) -> None:
    """Write the `recovery` table: responses that take the runner-up at one random step.

    `sampling.num_samples` is the number of responses per question; each has a step of its own. An
    interrupted job resumes.
    """
    inputs = JobInputs.read(model, questions, exemplars, sampling, benchmark)
    context = inputs.context(parquet.read_of_run(greedy, "greedy"))
    kind = token_kinds(inputs.tokenizer.decode, inputs.end_tokens)
    rows, prompts, trajectories = [], [], []
    for prompt, gold, trajectory in zip(
        inputs.prompts, inputs.questions.gold, context.trajectories, strict=True
    ):
        name = prompt.question_id
        steps = forced_steps(name, len(trajectory), sampling["num_samples"], seed)
        rows += [(name, k, step, kind(trajectory[step]), gold) for k, step in enumerate(steps)]
        prompts += [Prompt(f"{name}/{k}", prompt.token_ids) for k in range(len(steps))]
        trajectories += [trajectory] * len(steps)
    table = pd.DataFrame(rows, columns=["question_id", "sample_id", "step", "kind", "gold"])
    # One prompt per response, since each has an edit of its own.
    draws = {"seed": seed, "stream": RECOVERY_STREAM}
    net = loading.load(model, sampling["dtype"])
    sampler = EngineSampler(
        loading.decoder(net),
        dataclasses.replace(inputs, questions=table, prompts=prompts),
        decoding_params({**sampling, "num_samples": 1}, benchmark, **draws),
        force_runner_up(trajectories, list(table.step)),
    )
    parameters = recorded(sampling, benchmark, metadata, **draws, **sampler.identity)
    settings = job_settings(inputs, context, **parameters, models=[folder_digest(model)])
    # In float32, as trajectories and ranks are: bfloat16 logits may tie for the second place.
    with resumable_parts(output, settings) as journal, float32_logits(net):
        drawn = ["token_ids", "text", "correct"]
        table[drawn] = sample_questions(sampler, journal=journal)[drawn]
        parquet.write(output, table, "recovery", provenance(**parameters))
    print(f"{len(table)} responses, {table.correct.mean():.3f} correct after a forced runner-up")


def token_ranks(
    model: PreTrainedModel, prompt_ids: list[int], response_ids: list[int]
) -> list[int]:
    """Return the rank under `model` of each response token (paper Figure 1 b, d).

    A token has rank 1 + the number of tokens with a larger logit. Rank 1 is the model's own greedy
    choice; rank 2 is its runner-up.
    """
    logits = _step_logits(model, prompt_ids, response_ids)
    token_logits = logits.gather(1, torch.tensor(response_ids, device=logits.device)[:, None])
    return cast(list[int], (1 + (logits > token_logits).sum(-1)).tolist())


def step_entropies(
    model: PreTrainedModel, prompt_ids: list[int], response_ids: list[int]
) -> list[float]:
    """Return the entropy (nats) of the distribution that each response token is drawn from."""
    return cast(list[float], entropy(_step_logits(model, prompt_ids, response_ids)).tolist())


def solution_tokens(tokenizer: PreTrainedTokenizerBase, solutions: list[str]) -> list[list[int]]:
    """The tokens of solutions behind other text, where no tokenizer puts a space in front."""
    start: list[int] = tokenizer("A:", add_special_tokens=False)["input_ids"]
    texts = [f"A:{solution}" for solution in solutions]
    encoded: list[list[int]] = tokenizer(texts, add_special_tokens=False)["input_ids"]
    return [tokens[len(start) :] for tokens in encoded]


def token_log_probabilities(
    model: PreTrainedModel, prompt_ids: list[int], response_ids: list[int]
) -> list[float]:
    """Return the log-probability (nats) of each response token under `model` at temperature 1."""
    logits = _step_logits(model, prompt_ids, response_ids)
    tokens = torch.tensor(response_ids, device=logits.device)[:, None]
    return cast(list[float], logits.log_softmax(-1).gather(1, tokens)[:, 0].tolist())


@torch.inference_mode()
def _step_logits(model: PreTrainedModel, prompt_ids: list[int], response_ids: list[int]) -> Tensor:
    """The logits (T, V) that the response's T tokens follow from, computed in one pass.

    They are in float32 (:mod:`zerogap.engine.output_head`), since those of a bfloat16 model tie.
    """
    inputs = torch.tensor([prompt_ids + response_ids], device=model.device)
    last = len(response_ids) + 1
    with float32_logits(model):
        return logits_of(model, inputs, last=last)[0, -last:-1]


def forced_steps(question_id: str, length: int, num_samples: int, seed: int) -> list[int]:
    """Return one step in [0, length) per response, uniform and independent.

    `length` is that of the question's greedy trajectory, the end token included.
    """
    numbers = uniforms(seed, "recovery-steps", question_id, range(num_samples), 1)[:, 0]
    return [int(number * length) for number in numbers]


def force_runner_up(trajectories: Sequence[Sequence[int]], steps: Sequence[int]) -> Edit:
    """Return the edit that follows each prompt's trajectory and leaves it at one step.

    At that step, counted from 0, the runner-up is forced: the most likely token other than the
    trajectory's. Later steps are left alone.
    """
    tokens = torch.nn.utils.rnn.pad_sequence(
        [torch.tensor(trajectory) for trajectory in trajectories], batch_first=True
    )
    last_steps = torch.tensor(steps)

    def edit_logits(logits: Tensor, rows: Rows) -> Tensor:
        last = last_steps[rows.question]
        row = (rows.step <= last).nonzero()[:, 0]
        if not len(row):
            return logits
        greedy = tokens[rows.question[row], rows.step[row]]
        leaves = (rows.step == last)[row]
        row, greedy, leaves = (to_device(part, logits.device) for part in (row, greedy, leaves))
        runner_up = logits[row].scatter(1, greedy[:, None], float("-inf")).argmax(-1)
        forced = torch.where(leaves, runner_up, greedy)
        logits[row] = float("-inf")
        logits[row, forced] = 0.0
        return logits

    return edit_logits
