"""A chat model of `transformers` on this machine, on the GPU if there is one."""

import hashlib

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from zerogap.data.paraphrases.llm import ChatModel, Reply
from zerogap.errors import InputError

_KEY = "paraphrases.local.model"


def local_chat_model(
    model: str,
    revision: str | None,
    *,
    dtype: str,
    temperature: float,
    max_new_tokens: int,
    seed: int,
) -> ChatModel:
    """The model as a function from messages to a reply.

    A reply depends on the seed, the messages and the number of the attempt only, so that a run that
    was killed resumes with the same replies.

    Args:
        model: a folder, or a name on the hub.
        revision: branch, tag or commit on the hub; None for a folder.
        dtype: precision of the model, e.g. "bfloat16".
        temperature: sampling temperature.
        max_new_tokens: maximum length of a reply.
        seed: of the replies.

    Raises:
        InputError: the model cannot be loaded, or has no chat template that accepts a system
            message.
    """
    tokenizer, chat_lm = _load(model, revision, dtype)
    pad_id = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id

    def chat(messages: list[dict[str, str]], attempt: int) -> Reply:
        try:
            prompt = tokenizer.apply_chat_template(
                messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
            )
        except Exception as error:  # whatever the template's author raises
            raise InputError(
                f"{_KEY}: the chat template of {model!r} rejects a system message ({error}); use "
                "another model"
            ) from error
        key = hashlib.sha256(f"{seed}/{attempt}/{messages}".encode()).digest()
        torch.manual_seed(int.from_bytes(key[:8]))
        with torch.inference_mode():
            output = chat_lm.generate(
                **prompt.to(chat_lm.device),
                do_sample=True,
                temperature=temperature,
                max_new_tokens=max_new_tokens,
                pad_token_id=pad_id,
            )
        prompt_length = prompt["input_ids"].shape[1]
        new_ids = output[0, prompt_length:]
        text = tokenizer.decode(new_ids, skip_special_tokens=True)
        return Reply(text, prompt_length, len(new_ids))

    return chat


def _load(
    model: str, revision: str | None, dtype: str
) -> tuple[PreTrainedTokenizerBase, PreTrainedModel]:
    try:
        tokenizer = AutoTokenizer.from_pretrained(model, revision=revision)
        chat_lm = AutoModelForCausalLM.from_pretrained(
            model, revision=revision, dtype=getattr(torch, dtype), use_safetensors=True
        )
    except (OSError, ValueError) as error:
        raise InputError(
            f"{_KEY}: could not load {model!r} ({error}); use a folder or a causal language model "
            "on the hub"
        ) from error
    if not tokenizer.chat_template:
        raise InputError(f"{_KEY}: {model!r} has no chat template; use a model tuned for chat")
    return tokenizer, chat_lm.to("cuda" if torch.cuda.is_available() else "cpu").eval()
