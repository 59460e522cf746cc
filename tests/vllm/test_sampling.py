"""The workflow's jobs decode with the real vLLM as with our engine: `make vllm-test`."""

import contextlib
import json
import math
import shutil

import numpy as np
import pandas as pd
import pytest

from helpers.job_inputs import BENCHMARK, SAMPLING
from helpers.paths import ROOT
from zerogap.data.toy import problems
from zerogap.families.tokenizers import load_tokenizer
from zerogap.io import parquet
from zerogap.sampling import jobs, vllm_sampler

pytest.importorskip("vllm", reason="vLLM is not installed; run make vllm-test")

MODEL = ROOT / "workflow/resources/bases/llama2"
NUM_QUESTIONS, NUM_SAMPLES = 4, 40
STRATEGIES = {
    "identity": {"class": "identity", "parameters": {}},
    "railcap": {"class": "railcap", "parameters": {"n": 4}},
    "lne_blocking": {"class": "lne_blocking", "parameters": {}},
}
PARAMETERS = {
    "sampling": SAMPLING
    | {"num_samples": NUM_SAMPLES, "max_new_tokens": 64, "batch_size": NUM_QUESTIONS * NUM_SAMPLES},
    "benchmark": BENCHMARK | {"stop": ["Q:"]},
    "metadata": {},
}
# Of the difference of two solve probabilities: exceeded by chance once in 16,000 comparisons.
MAX_STANDARD_ERRORS = 4


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    asked = problems(NUM_QUESTIONS, 0, "test")
    questions = pd.DataFrame(
        {
            "question_id": [f"test-{k}" for k in range(NUM_QUESTIONS)],
            "question": [problem.question for problem in asked],
            "gold": [problem.gold for problem in asked],
            "rationale": "", "leaked": False, "paraphrase": None,
        }
    )  # fmt: skip
    parquet.write(folder / "questions.parquet", questions, "questions", {})
    exemplars = [
        {"question": p.question, "target": f" {p.rationale} The answer is {p.gold}."}
        for p in problems(2, 1, "train")
    ]
    (folder / "exemplars.json").write_text(json.dumps(exemplars))
    names = ("questions.parquet", "exemplars.json")
    return {"model": MODEL} | {name.partition(".")[0]: folder / name for name in names}


def decode(inputs, folder, engine):
    """Greedy trajectories of an engine, and its responses under every strategy along ours."""
    jobs.decode_greedy(
        **inputs, output=folder / f"{engine}_greedy.parquet", engine=engine, **PARAMETERS
    )
    for name, strategy in STRATEGIES.items():
        jobs.sample_cell(
            **inputs, greedy=folder / "zerogap_greedy.parquet", strategy=strategy, engine=engine,
            samples=folder / f"{engine}_{name}.parquet", seed=3, stream="strategies",
            solve=folder / f"{engine}_{name}_solve.parquet", **PARAMETERS,
        )  # fmt: skip


@pytest.fixture(scope="module")
def folder(inputs, tmp_path_factory):
    """What both engines have decoded; one start of vLLM serves all of its jobs."""
    folder = tmp_path_factory.mktemp("responses")
    decode(inputs, folder, "zerogap")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
        read = jobs.JobInputs.read(
            **inputs, **{k: PARAMETERS[k] for k in ("sampling", "benchmark")}
        )
        with vllm_sampler.started(MODEL, "float32", read.prompts, 64) as llm:
            patch.setattr(vllm_sampler, "started", lambda *_: contextlib.nullcontext(llm))
            decode(inputs, folder, "vllm")
    return folder


def tables(folder, name, contract):
    """The tables of our engine and of vLLM."""
    return (parquet.read(folder / f"{e}_{name}.parquet", contract) for e in ("zerogap", "vllm"))


def test_greedy_trajectories_and_entropies_are_those_of_our_engine(folder):
    ours, theirs = tables(folder, "greedy", "greedy")
    columns = ["question_id", "text", "answer", "correct", "finish_reason"]
    pd.testing.assert_frame_equal(ours[columns], theirs[columns])
    for row, other in zip(ours.itertuples(), theirs.itertuples(), strict=True):
        assert list(row.token_ids) == list(other.token_ids)
        np.testing.assert_allclose(row.entropy, other.entropy, atol=1e-3)


@pytest.mark.parametrize("name", STRATEGIES)
def test_solve_probabilities_agree_within_sampling_error(folder, name):
    ours, theirs = tables(folder, f"{name}_solve", "solve")
    assert list(ours.n_samples) == list(theirs.n_samples) == [NUM_SAMPLES] * NUM_QUESTIONS
    # Of our engine alone, so that no response of vLLM decides its own bound.
    estimate = (ours.n_correct + 1) / (NUM_SAMPLES + 2)
    variance = 2 * estimate * (1 - estimate) / NUM_SAMPLES
    difference = (theirs.n_correct - ours.n_correct) / NUM_SAMPLES
    assert (difference.abs() <= MAX_STANDARD_ERRORS * variance**0.5).all()
    of_the_mean = math.sqrt(variance.sum()) / NUM_QUESTIONS
    assert abs(difference.mean()) <= MAX_STANDARD_ERRORS * of_the_mean


def test_the_strategies_lead_away_from_the_trajectory_in_both_engines(folder):
    """Otherwise the agreement would show nothing."""
    greedy = parquet.read(folder / "zerogap_greedy.parquet", "greedy").set_index("question_id")

    def share_on_trajectory(table):
        """Of responses that begin with the first 8 tokens of the greedy trajectory."""
        rows = zip(table.token_ids, greedy.token_ids.loc[table.question_id], strict=True)
        return np.mean(
            [list(response[:8]) == list(trajectory[:8]) for response, trajectory in rows]
        )

    for engine in ("zerogap", "vllm"):
        identity, *others = (
            share_on_trajectory(parquet.read(folder / f"{engine}_{name}.parquet", "samples"))
            for name in STRATEGIES
        )
        error = math.sqrt(identity * (1 - identity) / (NUM_QUESTIONS * NUM_SAMPLES))
        assert all(identity - other > MAX_STANDARD_ERRORS * error for other in others)


def test_responses_end_for_the_same_reasons(folder):
    ours, theirs = tables(folder, "identity", "samples")
    assert set(theirs.finish_reason) <= {"eos", "stop", "length"}
    shares = [(table.finish_reason == "eos").mean() for table in (ours, theirs)]
    assert abs(shares[0] - shares[1]) <= MAX_STANDARD_ERRORS * math.sqrt(0.5 / len(ours))
    assert not theirs.text.str.contains("Q:").any()
    for engine, name in (("zerogap", "zerogap"), ("vllm", "vllm 0.")):
        made_by = parquet.provenance(folder / f"{engine}_railcap.parquet")
        assert made_by["engine"].startswith(name)


def test_every_end_token_of_the_generation_config_ends_a_response(inputs, folder, tmp_path):
    """Also one that vLLM's own tokenizer does not name; the responses have the token."""
    shutil.copytree(MODEL, tmp_path / "model")
    greedy = parquet.read(folder / "zerogap_greedy.parquet", "greedy").token_ids[0]
    ends = [load_tokenizer(MODEL).eos_token_id, int(greedy[5])]
    (tmp_path / "model/generation_config.json").write_text(json.dumps({"eos_token_id": ends}))
    for engine in ("zerogap", "vllm"):
        output = tmp_path / f"{engine}_greedy.parquet"
        model = {"model": tmp_path / "model"}
        jobs.decode_greedy(**inputs | model, output=output, engine=engine, **PARAMETERS)
    ours, theirs = tables(tmp_path, "greedy", "greedy")
    columns = ["question_id", "text", "finish_reason"]
    pd.testing.assert_frame_equal(ours[columns], theirs[columns])
    assert [list(tokens) for tokens in ours.token_ids] == list(map(list, theirs.token_ids))
    assert ours.finish_reason[0] == "eos"
    assert len(ours.token_ids[0]) <= 6
