"""The processors as vLLM's own V2 code loads and calls them; its kernels need a GPU."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

vllm = pytest.importorskip("vllm", reason="vLLM is not installed; run make vllm-test")

from vllm.v1.sample.logits_processor import LogitsProcessor  # noqa: E402
from vllm.v1.worker.gpu.sample.logits_processor import interface, loader  # noqa: E402

PROMPT, TRAJECTORY, RAIL_TOKEN = [5, 6], [1, 2, 3], 3
VOCABULARY = 8


@pytest.fixture(scope="module")
def classes():
    return {found.__name__: found for found in loader._load_v2_logitsprocs_plugins()}


def railcap(**arguments):
    return vllm.SamplingParams(extra_args={"railcap": arguments})


def test_the_loader_of_the_second_model_runner_finds_both_processors(classes):
    assert set(classes) >= {"RailCapProcessor", "LNEBlockingProcessor"}
    assert all(issubclass(each, LogitsProcessor) for each in classes.values())  # the first's


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"n": 2}, "trajectory must be a list"), ({"trajectory": [1], "n": 0}, "n must be")],
)
def test_invalid_arguments_fail_the_request_at_admission(arguments, message):
    check = loader.build_custom_logits_processors_params_validator(None)
    check(railcap(trajectory=TRAJECTORY, n=2))
    with pytest.raises(vllm.exceptions.VLLMValidationError, match=message):
        check(railcap(**arguments))


def test_a_step_with_the_runners_own_batch_layout_caps_the_rail_token(classes):
    tokens = torch.tensor([[*PROMPT, 1, 2, 0], [*PROMPT, 1, 2, 0]], dtype=torch.int32)
    lengths = torch.tensor([len(PROMPT)] * 2, dtype=torch.int32)
    states = interface.LogitsProcRequestState(
        device=torch.device("cpu"),
        max_num_reqs=2,
        vocab_size=VOCABULARY,
        all_token_ids=SimpleNamespace(gpu=tokens),
        prompt_len=SimpleNamespace(gpu=lengths),
        prefill_len=SimpleNamespace(gpu=lengths),
        total_len=SimpleNamespace(gpu=lengths + 2),
    )
    model = SimpleNamespace(max_model_len=5, get_vocab_size=lambda: VOCABULARY)
    processor = classes["RailCapProcessor"](SimpleNamespace(model_config=model), states)
    assert processor.add_request(0, railcap(trajectory=TRAJECTORY, n=2))
    assert not processor.add_request(1, vllm.SamplingParams())
    processor.apply_staged_writes()
    slots = torch.tensor([0, 1], dtype=torch.int32)
    step = interface.LogitsContext(
        expanded_idx_mapping=slots,
        idx_mapping=slots,
        idx_mapping_np=slots.numpy(),
        expanded_local_pos=torch.zeros(2, dtype=torch.int32),
        input_ids=tokens[:, 3],
        pos=torch.tensor([3, 3]),
        seq_lens_upper_bound_np=np.array([4, 4]),
    )
    logits = torch.arange(VOCABULARY).float().repeat(2, 1)
    logits[:, RAIL_TOKEN] = 50
    after = processor.apply(logits.clone(), step)
    runner_up = VOCABULARY - 1
    assert after[0, RAIL_TOKEN] == runner_up  # its logit is its index
    assert torch.equal(after[1], logits[1])
