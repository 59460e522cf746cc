"""RailCap as vLLM's first model runner calls it, without vLLM: its batch updates are imitated."""

import sys
from types import SimpleNamespace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zerogap import RailCapLogitsProcessor
from zerogap.integrations.vllm import on_host

VOCABULARY = 4
MODEL = SimpleNamespace(max_model_len=64, get_vocab_size=lambda: VOCABULARY)
tokens = st.lists(st.integers(0, VOCABULARY - 1), max_size=12)
requests = st.none() | st.fixed_dictionaries(
    {
        "trajectory": tokens.filter(len),
        "n": st.integers(1, 3),
        "suppression": st.sampled_from(["cap", "ban"]),
        "successor": st.sampled_from(["last", "first"]),
    }
)


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
def test_every_row_equals_the_processor_for_transformers(cases, masked, vllm):
    processor = on_host.RailCapProcessor(
        SimpleNamespace(model_config=MODEL), torch.device("cpu"), is_pin_memory=False
    )
    processor.update_state(
        [(SimpleNamespace(extra_args={"railcap": request}), list(t)) for t, request in cases]
    )
    logits = torch.randn(len(cases), VOCABULARY)
    logits[torch.rand_like(logits) < masked] = float("-inf")
    expected = logits.clone()
    for row, (generated, request) in enumerate(cases):
        if request:
            parameters = {name: request[name] for name in ("n", "suppression", "successor")}
            reference = RailCapLogitsProcessor([request["trajectory"]], 0, **parameters)
            expected[row] = reference(torch.tensor([generated]).long(), logits[row : row + 1])[0]
    assert torch.equal(processor.apply(logits.clone()), expected)
