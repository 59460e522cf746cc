"""What of a model's generation config has an effect: its end tokens, and nothing else.

Responses are drawn from the model's own distribution, by temperature and top-p alone, in every
engine. Penalties, top-k and other keys that `model.generate` would apply are ignored and named.
"""

import sys
from pathlib import Path
from typing import Any

from transformers import GenerationConfig, PreTrainedTokenizerBase

from zerogap.errors import InputError
from zerogap.families.folders import read_json
from zerogap.families.structure import config_of, problem_of

# Keys that change what `model.generate` draws → the value without effect.
NEUTRAL: dict[str, Any] = {
    "repetition_penalty": 1, "encoder_repetition_penalty": 1,
    "exponential_decay_length_penalty": [], "penalty_alpha": 0, "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
    "top_k": 0, "top_p": 1, "min_p": 0, "top_h": 1, "typical_p": 1, "epsilon_cutoff": 0,
    "eta_cutoff": 0, "guidance_scale": 1, "num_beams": 1, "min_length": 0, "min_new_tokens": 0,
    "bad_words_ids": [], "suppress_tokens": [], "begin_suppress_tokens": [], "sequence_bias": [],
    "forced_bos_token_id": [], "forced_eos_token_id": [], "stop_strings": [],
    "watermarking_config": [],
}  # fmt: skip


def read(folder: str | Path) -> GenerationConfig:
    """The generation config that a model in this folder is loaded with.

    Raises:
        InputError: its file cannot be read, or its end tokens are not whole numbers.
    """
    path = Path(folder) / "generation_config.json"
    if not path.is_file():
        return GenerationConfig.from_model_config(config_of(folder))
    read_json(path)
    try:
        config = GenerationConfig.from_pretrained(folder)
        if not all(end is None or type(end) is int for end in _configured(config)):
            raise TypeError("eos_token_id must be a whole number or a list of them")
    except Exception as error:  # values that do not fit raise anything
        raise InputError(
            f"{path}: is not a generation config ({problem_of(error)}); correct it, or remove it"
        ) from error
    return config


def end_tokens(tokenizer: PreTrainedTokenizerBase, config: GenerationConfig) -> list[int]:
    """The ids of all tokens that end a response, in ascending order; empty if there are none.

    They are the tokenizer's end token, those of the generation config, and the special token that
    ends a reply in the chat template, whether or not prompts are written in it.
    """
    tokens = [tokenizer.eos_token_id, _end_of_turn(tokenizer), *_configured(config)]
    return sorted({int(token) for token in tokens if token is not None})


def _configured(config: GenerationConfig) -> list[Any]:
    ends = config.eos_token_id
    return ends if isinstance(ends, list) else [ends]


def note_ignored(config: GenerationConfig, model: str | Path) -> None:
    """Name the keys that `model.generate` would apply, on standard error."""
    named = [
        f"{name} {value}"
        for name, neutral in NEUTRAL.items()
        if (value := getattr(config, name, None)) not in (None, neutral)
    ]
    if named:
        print(
            f"note: {model}: {', '.join(named)} of its generation config: without effect; zerogap "
            "uses only the end tokens",
            file=sys.stderr,
        )


def _end_of_turn(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """The special token after a reply in the chat template; None without one."""
    if not tokenizer.chat_template:
        return None
    reply = "reply"
    chat = [{"role": "user", "content": "How many?"}, {"role": "assistant", "content": reply}]
    try:
        text = tokenizer.apply_chat_template(chat, tokenize=False)
    except Exception:  # a template may raise anything, and no reply can be written in it then
        return None
    _, _, after = text.rpartition(reply)
    first = tokenizer(after.lstrip(), add_special_tokens=False)["input_ids"][:1]
    names = tokenizer.convert_ids_to_tokens(first)
    is_special = reply in text and names and names[0] in tokenizer.get_added_vocab()
    return first[0] if is_special else None
