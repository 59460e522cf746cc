"""A chat model of `transformers` on this machine, on the GPU if there is one."""

import hashlib

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from zerogap.data.paraphrases.llm import Ask, Reply
from zerogap.errors import InputError


def chat_model(
    model: str,
    revision: str | None,
    *,
    dtype: str,
    temperature: float,
    max_new_tokens: int,
    seed: int,
) -> Ask:
    """The model as a function from messages to a reply, drawn at `temperature`.

    A reply depends on the seed, the messages and the number of the try alone, so that a run that
    was killed goes on to the same replies.

    Args:
        model: a folder, or a name on the hub.
        revision: branch, tag or commit on the hub; None for a folder.

    Raises:
        InputError: it cannot be loaded, or has no chat template that takes a system message.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(model, revision=revision)
        loaded = AutoModelForCausalLM.from_pretrained(
            model, revision=revision, dtype=getattr(torch, dtype)
        )
    except (OSError, ValueError) as error:
        raise InputError(
            f"data.paraphrases.local.model: {model!r} cannot be loaded ({error}); it must be a "
            "folder or a causal language model on the hub"
        ) from error
    if not tokenizer.chat_template:
        raise InputError(
            f"data.paraphrases.local.model: {model!r} has no chat template; choose a model that "
            "was tuned for chat"
        )
    padding = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
    loaded = loaded.to("cuda" if torch.cuda.is_available() else "cpu").eval()

    def ask(messages: list[dict[str, str]], attempt: int) -> Reply:
        try:
            prompt = tokenizer.apply_chat_template(
                messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
            )
        except Exception as error:  # whatever the template's author raises
            raise InputError(
                f"data.paraphrases.local.model: the chat template of {model!r} refuses a system "
                f"message ({error}); choose another model"
            ) from error
        key = hashlib.sha256(f"{seed}/{attempt}/{messages}".encode()).digest()
        torch.manual_seed(int.from_bytes(key[:8]))
        with torch.inference_mode():
            generated = loaded.generate(
                **prompt.to(loaded.device),
                do_sample=True,
                temperature=temperature,
                max_new_tokens=max_new_tokens,
                pad_token_id=padding,
            )
        read = prompt["input_ids"].shape[1]
        new = generated[0, read:]
        return Reply(tokenizer.decode(new, skip_special_tokens=True), read, len(new))

    return ask
