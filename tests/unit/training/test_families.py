"""Families: module names against the real classes, training ids against inference ids."""

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from zerogap.data import prompts
from zerogap.data.toy.word_problems import problems
from zerogap.errors import InputError
from zerogap.families import FAMILIES, training_example
from zerogap.training.toy import bases, tokenizers

TEXTS = [f"Q: {one.question}\nA: {one.rationale}" for one in problems(200, 3, "pretrain")]
PROMPT = prompts.prompt(prompts.few_shot_prefix(prompts.exemplars("generated", 2)), "How many?")
SIZE = {"width": 32, "layers": 4, "feed_forward": 48}


def tiny(family: str):
    tokenizer = tokenizers.train(TEXTS, family, 400, 256)
    return AutoModelForCausalLM.from_config(bases.configuration(family, tokenizer, SIZE)), tokenizer


@pytest.mark.parametrize("family", FAMILIES)
def test_lora_targets_are_all_linear_layers_of_the_blocks_but_per_layer_ones(family: str) -> None:
    model, _ = tiny(family)
    linear = {name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)}
    wanted = {name for name in linear if ".layers." in name and "per_layer" not in name}
    chosen = {name for name in linear if name.endswith(FAMILIES[family].lora_targets)}
    assert chosen == wanted
    assert chosen < linear


@pytest.mark.parametrize("family", FAMILIES)
def test_every_layer_has_its_down_projection(family: str) -> None:
    model, _ = tiny(family)
    found = [
        module
        for name, module in model.named_modules()
        if name.endswith(FAMILIES[family].down_projection)
    ]
    assert len(found) == SIZE["layers"]
    assert all(module.out_features == SIZE["width"] for module in found)


@pytest.mark.parametrize(("family", "first"), [("llama", "<s>"), ("gemma4", "<bos>")])
def test_bos_is_written_out_where_the_tokenizer_adds_it(family: str, first: str) -> None:
    tokenizer = tokenizers.train(TEXTS, family, 400, 256)
    prompt, response, tokens = training_example(tokenizer, PROMPT, " It is 7.")
    assert prompt == first + PROMPT
    assert response == " It is 7."
    assert tokens == len(tokenizer(PROMPT + " It is 7.\n\n")["input_ids"]) + 1


def test_nothing_is_written_where_it_adds_none() -> None:
    tokenizer = tokenizers.train(TEXTS, "gpt_neox", 400, 256)
    assert training_example(tokenizer, PROMPT, " It is 7.")[:2] == (PROMPT, " It is 7.")


def metaspace(scheme: str) -> PreTrainedTokenizerFast:
    """Words with their leading space as '▁', as sentencepiece writes them."""
    words = ["<unk>", "<s>", "\n", "▁Q:", "▁A:", "▁how", "▁one", "A:", "Q:", "▁"]
    core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, "<unk>"))
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split("\n", "isolated"), pre_tokenizers.Metaspace(prepend_scheme=scheme)]
    )
    core.decoder = decoders.Metaspace()
    core.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 1)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=core, bos_token="<s>", unk_token="<unk>")


def test_a_tokenizer_that_adds_the_space_itself_gets_none() -> None:
    core = metaspace("always")
    assert core.tokenize(" one") == core.tokenize("one")  # the premiss
    assert training_example(core, "Q: how", " one")[0] == "<s>Q: how"


def test_disagreement_is_an_error_with_both_lists() -> None:
    tokenizer = tokenizers.train(TEXTS, "llama", 400, 256)
    with pytest.raises(InputError, match=r"(?s)training, response.*inference, all"):
        training_example(tokenizer, "How man", "y apples")  # splits a token
