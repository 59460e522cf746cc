"""The conversion of a GGUF file: a tiny Llama that the package gguf itself writes."""

import json

import numpy as np
import pytest
from tokenizers import pre_tokenizers

import convert_gguf
from zerogap.errors import InputError

gguf = pytest.importorskip("gguf", reason="gguf is not installed (envs/smollm2.txt)")
VALUES = {"package": "gguf", "file": "tiny.gguf", "end_token": "<|im_end|>"}
WIDTH, HEADS, INNER, CONTEXT = 32, 2, 64, 128
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TOKENS = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet()), "eg", "gs"]


@pytest.fixture(scope="module")
def weights():
    """GGUF's name of a tensor → its values."""
    rng = np.random.default_rng(0)
    shapes = {
        "token_embd.weight": (len(TOKENS), WIDTH),
        "output_norm.weight": (WIDTH,),
        "blk.0.attn_norm.weight": (WIDTH,),
        "blk.0.ffn_norm.weight": (WIDTH,),
        "blk.0.ffn_gate.weight": (INNER, WIDTH),
        "blk.0.ffn_up.weight": (INNER, WIDTH),
        "blk.0.ffn_down.weight": (WIDTH, INNER),
    } | {f"blk.0.attn_{name}.weight": (WIDTH, WIDTH) for name in ("q", "k", "v", "output")}
    return {name: rng.normal(size=shape).astype("float32") for name, shape in shapes.items()}


@pytest.fixture(scope="module")
def converted(weights, tmp_path_factory):
    """The model folder that the script makes of a GGUF file with a chat's template and token."""
    folder = tmp_path_factory.mktemp("gguf")
    writer = gguf.GGUFWriter(folder / "tiny.gguf", "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3] * len(SPECIAL) + [1] * (len(TOKENS) - len(SPECIAL)))
    writer.add_token_merges(["e g", "g s"])
    for add in (writer.add_bos_token_id, writer.add_eos_token_id, writer.add_unk_token_id):
        add(1)
    writer.add_chat_template("{{ messages }}")
    for name, values in weights.items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convert_gguf, "package_file", lambda package, file: folder / file)
        convert_gguf.main(folder / "model", **VALUES)
    return folder / "model"


def test_the_weights_are_those_of_the_file_in_bfloat16(converted, weights):
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(converted)
    assert model.dtype == torch.bfloat16
    layer = model.model.layers[0]
    for name, module in (("ffn_up", layer.mlp.up_proj), ("ffn_down", layer.mlp.down_proj)):
        expected = torch.from_numpy(weights[f"blk.0.{name}.weight"]).to(torch.bfloat16)
        assert torch.equal(module.weight, expected)


def test_responses_end_with_the_configured_token_and_prompts_are_plain_text(converted):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(converted)
    assert tokenizer.eos_token == tokenizer.pad_token == "<|im_end|>"
    assert tokenizer.chat_template is None
    assert tokenizer.decode(tokenizer("Q: 12 eggs\nA:").input_ids) == "Q: 12 eggs\nA:"
    settings = json.loads((converted / "config.json").read_text())
    assert settings["eos_token_id"] == settings["pad_token_id"] == SPECIAL.index("<|im_end|>")


def test_the_provenance_names_package_and_file(converted):
    origin = json.loads((converted / "provenance.json").read_text())
    assert (origin["package"], origin["file"]) == ("gguf", "tiny.gguf")
    assert len(origin["sha256"]) == 64


def test_an_interrupted_conversion_leaves_no_base_that_a_later_run_would_read(
    converted, monkeypatch
):
    def interrupted(**_: object) -> None:  # once the model and the tokenizer are written
        raise KeyboardInterrupt

    folder = converted.parent
    monkeypatch.setattr(convert_gguf, "package_file", lambda package, file: folder / file)
    monkeypatch.setattr(convert_gguf, "provenance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        convert_gguf.main(folder / "again", **VALUES)
    assert not (folder / "again").exists()


def test_an_end_token_that_the_file_does_not_have_is_an_error(converted, monkeypatch):
    folder = converted.parent
    monkeypatch.setattr(convert_gguf, "package_file", lambda package, file: folder / file)
    with pytest.raises(InputError, match=r"end_token: '<\|im_ed\|>' is not a token of tiny.gguf"):
        convert_gguf.main(folder / "other", **VALUES | {"end_token": "<|im_ed|>"})


def test_texts_become_gemmas_tokens_by_the_merges_that_its_scores_order(tmp_path):
    words = ["an", "na", "ana", "ban", "▁ban", "▁b"]  # in the order of their merges
    characters = ["▁", "a", "b", "n"]
    tokens = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<0xC3>", "<0xA9>", "\n\n"]
    kinds = [3] * 5 + [6] * 2 + [4] + [1] * (len(words) + len(characters))
    scores = [-1000.0] * len(tokens) + [-float(at) for at in range(len(words) + len(characters))]
    writer = gguf.GGUFWriter(tmp_path / "whole", "gemma3")
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens + words + characters)
    writer.add_token_scores(scores)
    writer.add_token_types(kinds)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    content = (tmp_path / "whole").read_bytes()
    parts = [tmp_path / "part0", tmp_path / "part1"]
    parts[0].write_bytes(content[:100])
    parts[1].write_bytes(content[100:])

    tokenizer = convert_gguf.read_tokenizer(convert_gguf.joined(parts, tmp_path))
    text = "banana ban\n\né"
    ids = tokenizer(text).input_ids
    assert tokenizer.convert_ids_to_tokens(ids) == [
        "<bos>", "ban", "ana", "▁ban", "\n\n", "<0xC3>", "<0xA9>",
    ]  # fmt: skip
    assert tokenizer.decode(ids, skip_special_tokens=True) == text
