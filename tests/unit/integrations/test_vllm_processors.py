"""RailCap and LNE-blocking as vLLM's two model runners call them, without vLLM; their arguments.

The runners' buffers and batch updates are imitated. The reference is the processor for
`transformers`, row by row."""

import json
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zerogap import RailCap, RailCapLogitsProcessor
from zerogap.integrations.vllm import on_device, on_host
from zerogap.integrations.vllm.arguments import RailCapArguments, num_lne_blocks

VOCABULARY = 4
MODEL = SimpleNamespace(max_model_len=64, get_vocab_size=lambda: VOCABULARY)
CONFIG = SimpleNamespace(model_config=MODEL)


def params(**extra_args):
    return SimpleNamespace(extra_args=extra_args or None)


def slots(contexts):
    """The runner's buffers for contexts (prompt, generated tokens) by slot."""
    tokens = torch.zeros(len(contexts), MODEL.max_model_len, dtype=torch.int32)
    for row, (prompt, generated) in zip(tokens, contexts, strict=True):
        row[: len(prompt) + len(generated)] = torch.tensor([*prompt, *generated])
    lengths = torch.tensor([len(prompt) for prompt, _ in contexts], dtype=torch.int32)
    return SimpleNamespace(
        max_num_reqs=len(contexts),
        device=torch.device("cpu"),
        all_token_ids=SimpleNamespace(gpu=tokens),
        prompt_len=SimpleNamespace(gpu=lengths),
    )


def one_row_each(contexts, order):
    """This step's rows: one per slot, in some order."""
    tokens = [[*contexts[slot][0], *contexts[slot][1]] for slot in order]
    return SimpleNamespace(
        expanded_idx_mapping=torch.tensor(order, dtype=torch.int32),
        idx_mapping_np=np.array(order),
        expanded_local_pos=torch.zeros(len(order), dtype=torch.int32),
        input_ids=torch.tensor([row[-1] for row in tokens], dtype=torch.int32),
        pos=torch.tensor([len(row) - 1 for row in tokens]),
    )


def random_step(rows, masked):
    """Logits of rows (context, request), and these under the processor for `transformers`."""
    logits = torch.randn(len(rows), VOCABULARY)
    logits[torch.rand_like(logits) < masked] = float("-inf")
    expected = logits.clone()
    for row, ((prompt, generated), request) in zip(expected, rows, strict=True):
        if request is not None:
            parameters = {name: request[name] for name in ("n", "suppression", "successor")}
            processor = RailCapLogitsProcessor([request["trajectory"]], len(prompt), **parameters)
            row[:] = processor(torch.tensor([[*prompt, *generated]]).long(), row[None].clone())[0]
    return logits, expected


tokens = st.lists(st.integers(0, VOCABULARY - 1), max_size=12)
requests = st.none() | st.fixed_dictionaries(
    {
        "trajectory": tokens.filter(len),
        "n": st.integers(1, 3) | st.just(100),
        "suppression": st.sampled_from(["cap", "ban"]),
        "successor": st.sampled_from(["last", "first"]),
    }
)


@given(
    st.lists(st.tuples(tokens.filter(len), tokens, requests, requests), min_size=1, max_size=5),
    st.sampled_from([0, 0.7]),
    st.randoms(),
)
def test_every_row_on_the_device_equals_the_processor_for_transformers(cases, masked, random):
    contexts = [(prompt, generated) for prompt, generated, _, _ in cases]
    processor = on_device.RailCapProcessor(CONFIG, slots(contexts))
    for slot, (*_, earlier, _) in enumerate(cases):  # a slot's former request leaves nothing
        processor.add_request(slot, params(railcap=earlier))
    processor.apply_staged_writes()
    for slot, (*_, request) in enumerate(cases):
        assert processor.add_request(slot, params(railcap=request)) == (request is not None)
    processor.apply_staged_writes()
    order = list(range(len(cases)))
    random.shuffle(order)
    logits, expected = random_step([(contexts[slot], cases[slot][-1]) for slot in order], masked)
    assert torch.equal(processor.apply(logits, one_row_each(contexts, order)), expected)


def test_rows_of_draft_tokens_see_the_drafts_before_them():
    contexts = [([3], [0])]
    processor = on_device.RailCapProcessor(CONFIG, slots(contexts))
    request = {"trajectory": [0, 1, 2, 3], "n": 2, "suppression": "ban"}
    processor.add_request(0, params(railcap=request))
    processor.apply_staged_writes()
    drafts = SimpleNamespace(
        expanded_idx_mapping=torch.tensor([0, 0, 0]),
        idx_mapping_np=np.array([0]),
        expanded_local_pos=torch.tensor([0, 1, 2]),
        input_ids=torch.tensor([0, 1, 2]),
        pos=torch.tensor([1, 2, 3]),
    )
    banned = processor.apply(torch.zeros(3, VOCABULARY), drafts).isneginf()
    assert banned.nonzero().tolist() == [[1, 2], [2, 3]]


@pytest.mark.parametrize("num_generated", [0, 1, 2, 3])
def test_lne_blocking_excludes_the_best_token_of_the_first_steps(num_generated):
    contexts = [([1, 2], [0] * num_generated), ([1], [0])]
    processor = on_device.LNEBlockingProcessor(CONFIG, slots(contexts))
    arguments = {"entropy": 0.0, "threshold": 2}  # no entropy: as many blocks as the threshold
    assert processor.add_request(0, params(lne_blocking=arguments))
    assert not processor.add_request(1, params())
    processor.apply_staged_writes()
    logits = torch.tensor([[0.0, 3.0, 1.0, 2.0]] * 2)
    blocked = processor.apply(logits, one_row_each(contexts, [1, 0])).isneginf()
    assert blocked.nonzero().tolist() == ([[1, 1]] if num_generated < 2 else [])


def test_a_batch_without_the_strategy_is_returned_as_it_is():
    contexts = [([1], [0])]
    processor = on_device.RailCapProcessor(CONFIG, slots(contexts))
    assert not processor.add_request(0, params())
    processor.apply_staged_writes()
    logits = torch.zeros(1, VOCABULARY)
    assert processor.apply(logits, SimpleNamespace(idx_mapping_np=np.array([0]))) is logits


@pytest.fixture
def vllm(monkeypatch):
    def process_dict_updates(by_row, batch, new):
        for row, (params, output) in enumerate(batch):
            if (request := new(params, None, output)) is not None:
                by_row[row] = request

    module = SimpleNamespace(process_dict_updates=process_dict_updates)
    monkeypatch.setitem(sys.modules, "vllm.v1.sample.logits_processor.builtin", module)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cases=st.lists(st.tuples(tokens, requests), min_size=1, max_size=5),
    masked=st.sampled_from([0, 0.7]),
)
@pytest.mark.filterwarnings("ignore:RailCap. every token but")
def test_every_row_on_the_host_equals_the_processor_for_transformers(cases, masked, vllm):
    processor = on_host.RailCapProcessor(CONFIG, torch.device("cpu"), is_pin_memory=False)
    processor.update_state([(params(railcap=request), list(t)) for t, request in cases])
    logits, expected = random_step([(([], t), request) for t, request in cases], masked)
    assert torch.equal(processor.apply(logits), expected)


SHORT_MODEL = SimpleNamespace(max_model_len=3, get_vocab_size=lambda: 10)


def test_an_object_and_its_json_text_are_the_same():
    request = {"trajectory": [5, 6], "n": 2, "suppression": "ban"}
    parsed = RailCapArguments.parse(params(railcap=request))
    assert parsed == RailCapArguments([5, 6], RailCap(2, "ban"))
    assert parsed == RailCapArguments.parse(params(railcap=json.dumps(request)))


def test_a_request_without_the_strategy_has_no_arguments():
    assert RailCapArguments.parse(params()) is None
    assert num_lne_blocks(params(railcap={"trajectory": [1]})) is None


INVALID = {
    RailCapArguments.parse: [
        ([1, 2], "railcap: must be an object with trajectory, n, suppression, successor (got [1"),
        ("{", "railcap: is not JSON"),
        ({}, "trajectory must be a list of token ids"),
        ({"trajectory": [1, True]}, "trajectory must be a list of token ids"),
        ({"trajectory": [1, -1]}, "trajectory must be a list of token ids"),
        ({"trajectory": []}, "trajectory is empty"),
        ({"trajectory": [1], "n": 0}, "n must be a whole number of at least 1 (got 0)"),
        ({"trajectory": [1], "m": 4}, "unknown 'm'; it takes trajectory, n, suppression, successo"),
    ],
    num_lne_blocks: [
        ({}, "entropy must be the mean entropy (nats) of the greedy steps"),
        ({"entropy": -0.1}, "a number of at least 0 (got -0.1)"),
        ({"entropy": 0.1, "beta": 0}, "beta must be a positive number (got 0)"),
    ],
}


@pytest.mark.parametrize(
    ("parse", "value", "message"),
    [(parse, *case) for parse, cases in INVALID.items() for case in cases],
)
def test_invalid_arguments_are_one_line(parse, value, message):
    with pytest.raises(ValueError, match=rf"^[^\n]*{re.escape(message)}[^\n]*$"):
        parse(params(railcap=value, lne_blocking=value))


@pytest.mark.parametrize(
    ("trajectory", "usable", "warning"),
    [
        ([1, 2, 3], [1, 2, 3], ""),
        ([1, 2, 3, 4], [1, 2, 3], "of 4 tokens is longer than the context of 3"),
        ([1, 10, 2], [1], "token 10 of a trajectory is not in the vocabulary of 10 tokens"),
    ],
)
def test_a_trajectory_ends_where_the_model_cannot_follow(trajectory, usable, warning, caplog):
    assert RailCapArguments(trajectory, RailCap()).within(SHORT_MODEL) == usable
    assert warning in caplog.text
    assert bool(caplog.text) == bool(warning)
