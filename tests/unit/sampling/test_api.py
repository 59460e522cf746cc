import shutil
from types import SimpleNamespace
from unittest.mock import Mock

import pandas as pd
import pytest
import torch
from transformers import GotOcr2Config, GotOcr2ForConditionalGeneration

import zerogap
from helpers.neuron_tables import write_neurons
from helpers.rules import parity
from helpers.tiny_models import SIZES, model, tokenizer
from zerogap.engine import loading
from zerogap.engine.decoder import Prompt, SamplingParams
from zerogap.engine.sampler import greedy
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.io.resume import Journal
from zerogap.sampling.arguments import checked_strategy
from zerogap.sampling.responses import chat_prompt, encoded

TOKENIZER = tokenizer()
PROMPTS = {"a": "Shots. Q: one\nA:", "b": "Shots. Q: twenty-two\nA:", "c": "Shots. Q: 3\nA:"}


def sample(prompts=PROMPTS, words=TOKENIZER, net=None, **options):
    options = {"num_samples": 6, "max_new_tokens": 12} | options
    return zerogap.sample(model("llama") if net is None else net, words, prompts, **options)


def saved(folder, seed):
    model("llama", seed).save_pretrained(folder)
    return folder


def test_the_table_has_one_row_per_response():
    table = sample()
    assert list(table.question_id) == [name for name in PROMPTS for _ in range(6)]
    assert table.correct.isna().all()
    assert list(dict.fromkeys(sample(list(PROMPTS.values())).question_id)) == ["0", "1", "2"]


def test_at_temperature_0_all_responses_to_a_prompt_are_the_greedy_one():
    net = model("llama").bfloat16()
    table = zerogap.sample(net, TOKENIZER, PROMPTS, num_samples=6, max_new_tokens=12, temperature=0)
    assert len(table) == 6 * len(PROMPTS)
    prompts = [Prompt(name, TOKENIZER(text)["input_ids"]) for name, text in PROMPTS.items()]
    params = SamplingParams(temperature=0, max_new_tokens=12)
    trajectories = greedy(loading.decoder(net), prompts, TOKENIZER, params)
    for prompt, trajectory in zip(prompts, trajectories, strict=True):
        drawn = table[table.question_id == prompt.question_id].token_ids
        assert [list(token_ids) for token_ids in drawn] == [trajectory.token_ids] * 6


def test_a_model_on_a_device_that_cannot_decode_is_an_error(monkeypatch):
    net = model("llama")
    monkeypatch.setattr(type(net), "device", torch.device("mps"))
    with pytest.raises(InputError, match="is on mps"):
        sample(net=net)


def test_gold_answers_mark_responses_right_or_wrong():
    gold = {"c": "0", "b": "1", "a": "1"}  # in another order than the prompts
    table = sample(gold=gold, extraction="helpers.rules:parity")
    expected = [parity(t) == gold[q] for q, t in zip(table.question_id, table.text, strict=True)]
    assert list(table.correct) == expected
    assert set(expected) == {True, False}


def test_a_strategy_changes_the_responses():
    plain, capped = sample(temperature=0.3), sample(temperature=0.3, strategy=zerogap.RailCap(n=1))
    assert list(plain.token_ids) != list(capped.token_ids)


def test_a_strategy_that_filters_drops_responses():
    assert len(sample(temperature=0.02, strategy=zerogap.TED())) < 18


def test_a_strategy_may_be_compiled_without_a_signature():
    compiled = SimpleNamespace(prepare=max)  # `inspect` finds none
    assert checked_strategy(compiled) is compiled


def test_a_file_has_a_row_for_a_question_whose_responses_are_all_dropped(tmp_path):
    drops_all, gold = zerogap.TED(tau=100), dict.fromkeys(PROMPTS, "1")
    table = sample(strategy=drops_all, gold=gold, output=tmp_path / "ted.parquet")
    counts = parquet.read(tmp_path / "ted.parquet", "counts")
    assert len(table) == 0
    assert dict(zip(counts.question_id, counts.n_samples, strict=True)) == dict.fromkeys(PROMPTS, 0)


@pytest.mark.parametrize("start", [("<filler_0>",), ("<filler_1>", "<filler_2>")])
def test_the_beginning_of_a_chat_template_is_not_doubled(start):
    words = tokenizer()
    start_ids = words.convert_tokens_to_ids(list(start))
    words.chat_template = (
        f"{''.join(start)}{{{{ messages[0].content }}}} {{{{ strftime_now('%Y') }}}}"
    )
    text = chat_prompt(words, [{"role": "user", "content": "Q"}])
    assert text == f"{''.join(start)}Q 2026"  # on every day

    def with_start(text):
        return [*start_ids, *words(text)["input_ids"]]

    def tokenize(texts):
        several = isinstance(texts, list)
        return {"input_ids": [*map(with_start, texts)] if several else with_start(texts)}

    assert encoded(tokenize, [text, "Q"]) == [with_start("Q 2026"), with_start("Q")]


def test_a_compiled_model_and_another_default_device_change_nothing():
    expected = sample(strategy=zerogap.RailCap(n=2))
    compiled = torch.compile(model("llama"))
    with torch.device("meta"):
        table = sample(net=compiled, strategy=zerogap.RailCap(n=2))
    pd.testing.assert_frame_equal(table, expected)


def test_a_tokenizer_whose_special_tokens_have_no_text_is_an_error():
    of_mistral_common = Mock(spec=type(TOKENIZER))  # there the texts are a method
    with pytest.raises(
        InputError, match=r"tokenizer: it does not encode special tokens; load tekken\.json"
    ):
        sample(words=of_mistral_common)


@pytest.mark.parametrize("output", [None, "samples.parquet"])
def test_the_model_can_be_used_as_before(output, tmp_path):
    net, ids = model("llama").train(), torch.tensor([[1, 2, 3]])
    net.lm_head.eval()
    expected = net(ids).logits
    sample(net=net, output=output and tmp_path / output, num_samples=2, max_new_tokens=3)
    assert net.training
    assert not net.lm_head.training
    torch.testing.assert_close(net(ids).logits, expected)


def test_towers_keep_an_attention_of_their_own():
    vision = {"hidden_size": 16, "num_hidden_layers": 1}
    config = GotOcr2Config(text_config=SIZES | {}, vision_config=vision)
    net = GotOcr2ForConditionalGeneration(config)
    parts = config, config.text_config, config.vision_config
    before = [part._attn_implementation for part in parts]
    zerogap.sample(net, TOKENIZER, PROMPTS, num_samples=2, max_new_tokens=3)
    assert [part._attn_implementation for part in parts] == before == ["eager", "sdpa", "eager"]


def test_the_model_can_be_used_as_before_if_memory_runs_out(monkeypatch):
    net = model("llama").train()
    attention = net.config._attn_implementation

    def exhausted(net):
        net.eval()
        raise torch.OutOfMemoryError

    monkeypatch.setattr(loading, "SharedPromptDecoder", exhausted)
    with pytest.raises(torch.OutOfMemoryError):
        zerogap.sample(net, TOKENIZER, PROMPTS, num_samples=2, max_new_tokens=3)
    assert net.training
    assert net.config._attn_implementation == attention


def test_shortcut_leaves_no_patch_on_the_model(tmp_path):
    net, ids = model("llama", 1), torch.tensor([[1, 2, 3]])
    expected = net(ids).logits
    neurons = write_neurons(tmp_path / "neurons.parquet", layer=0, neuron=range(40))
    paths = {"base_model": saved(tmp_path / "base", seed=2), "neurons": neurons}
    options = {"net": net, "num_samples": 2, "max_new_tokens": 3, "temperature": 0.1}
    plain = sample(**options)
    patched = sample(strategy=zerogap.Shortcut(), **options, **paths)
    assert list(patched.token_ids) != list(plain.token_ids)
    torch.testing.assert_close(net(ids).logits, expected)


def test_the_output_file_holds_the_table_and_nothing_else_is_left(tmp_path):
    table = sample(output=tmp_path / "samples.parquet")
    pd.testing.assert_frame_equal(
        parquet.read(tmp_path / "samples.parquet", "samples"), table, check_dtype=False
    )
    assert [path.name for path in tmp_path.iterdir()] == ["samples.parquet"]


CHANGED_SETTINGS = {
    "num_samples": 3, "temperature": 0.9, "top_p": 0.9, "max_new_tokens": 4, "stop": "xyz",
    "seed": 1, "batch_invariant": True, "extraction": "flexible-extract",
    "strategy": zerogap.RailCap(n=2), "gold": {"a": "1", "b": "2", "c": "3"},
    "prompts": {**PROMPTS, "c": "Shots. Q: 4\nA:"},
}  # fmt: skip


def test_an_interrupted_call_is_resumed_with_the_same_settings_only(tmp_path, monkeypatch, capsys):
    """What starting over gives is in tests/integration/sampling."""

    def starts_over(name, **options):
        if name != "same":
            shutil.copytree(tmp_path / "same.parquet.work", tmp_path / f"{name}.parquet.work")
        with pytest.raises(KeyboardInterrupt):
            sample(**options, output=tmp_path / f"{name}.parquet")
        return "starting over" in capsys.readouterr().err

    monkeypatch.setattr(Journal, "get", Mock(side_effect=KeyboardInterrupt))
    words, net = tokenizer(), model("llama")
    words.add_tokens(["xyz"])
    net.lm_head.weight.data[3].neg_()
    neurons = {layer: tmp_path / f"neurons{layer}.parquet" for layer in (0, 2)}
    for layer, path in neurons.items():
        write_neurons(path, layer, range(40))
    same = {
        "gold": {"a": "1", "b": "2", "c": "2"}, "max_new_tokens": 3, "neurons": neurons[0],
        "base_model": saved(tmp_path / "base", seed=2), "strategy": zerogap.Shortcut(),
    }  # fmt: skip
    assert not starts_over("same", **same)
    changed = CHANGED_SETTINGS | {"words": words, "net": net, "neurons": neurons[2]}
    changed |= {"base_model": saved(tmp_path / "other", seed=3)}
    for name, value in {"batch_size": 5, **changed}.items():
        assert starts_over(name, **same | {name: value}) == (name in changed), name
    saved(tmp_path / "base", seed=3)
    assert starts_over("base edited in place", **same)
    write_neurons(neurons[0], 2, range(40))
    assert starts_over("neurons edited in place", **same)


def test_a_model_without_an_end_token_is_an_error():
    words, net = tokenizer(), model("llama")
    words.eos_token = net.generation_config.eos_token_id = None
    with pytest.raises(InputError, match="no end token"):
        zerogap.sample(net, words, PROMPTS, num_samples=2, max_new_tokens=3)
