"""The language models that paraphrase: behind an OpenAI-compatible endpoint, or on this machine."""

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

import httpx2

from zerogap.data.paraphrases.llm import ChatModel, NoReplyError, Reply
from zerogap.errors import InputError

if TYPE_CHECKING:  # importing transformers takes seconds
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_MAX_RETRIES = 5  # of one request, by the library, with exponential back-off or Retry-After
_TIMEOUT = 120.0  # seconds
_LOCAL = "paraphrases.local.model"
_REFUSALS = (300, 301, 302, 303, 307, 308, 400, 401, 402, 403, 404, 422)


def chat_endpoint(base_url: str, model: str, api_key_env: str) -> ChatModel:
    """The endpoint as a function from messages to a reply.

    Args:
        base_url: address of the endpoint.
        model: name of the model at the endpoint.
        api_key_env: the environment variable that holds the key, which is written nowhere.

    Raises:
        InputError: the key is not set. The function raises it if the endpoint refuses a request.
    """
    import openai  # takes a second, and the other methods do not need it

    key = os.environ.get(api_key_env)
    if not key:
        raise InputError(
            f"the environment variable {api_key_env} is not set; set it to the key for {base_url}, "
            "or set paraphrases.method to local or rules"
        )
    client = openai.OpenAI(
        base_url=base_url,
        api_key=key,
        max_retries=_MAX_RETRIES,
        timeout=_TIMEOUT,
        # The key and the questions go to the configured host only.
        http_client=httpx2.Client(follow_redirects=False),
    )

    def chat(messages: list[dict[str, str]], attempt: int) -> Reply:
        # Services quote the key in their messages, so only the kind of an error is passed on.
        conversation: Any = messages
        try:
            reply = client.chat.completions.create(model=model, messages=conversation)
        except openai.APIStatusError as error:
            if error.status_code in _REFUSALS:
                raise InputError(
                    f"{base_url} refuses requests to {model!r} with status {error.status_code}; "
                    "check base_url, model, the key and the account"
                ) from None
            raise NoReplyError(f"status {error.status_code} after {_MAX_RETRIES} retries") from None
        except openai.APIError as error:
            raise NoReplyError(f"{type(error).__name__} after {_MAX_RETRIES} retries") from None
        except json.JSONDecodeError:
            raise NoReplyError("a reply that is not valid JSON") from None
        # A service may answer with anything, so the attributes may be missing.
        choices = getattr(reply, "choices", None)
        usage = getattr(reply, "usage", None)
        return Reply(
            choices[0].message.content if choices else None,
            usage.prompt_tokens if usage else 0,
            usage.completion_tokens if usage else 0,
        )

    return chat


def local_chat_model(
    model: str,
    revision: str | None,
    *,
    dtype: str,
    temperature: float,
    max_new_tokens: int,
    seed: int,
) -> ChatModel:
    """A chat model of `transformers`, on the GPU if there is one, as a function.

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
    import torch

    tokenizer, chat_lm = _load(model, revision, dtype)
    pad_id = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id

    def chat(messages: list[dict[str, str]], attempt: int) -> Reply:
        try:
            prompt = tokenizer.apply_chat_template(
                messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
            )
        except Exception as error:  # whatever the template's author raises
            raise InputError(
                f"{_LOCAL}: the chat template of {model!r} rejects a system message ({error}); use "
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
) -> "tuple[PreTrainedTokenizerBase, PreTrainedModel]":
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(model, revision=revision)
        chat_lm = AutoModelForCausalLM.from_pretrained(
            model, revision=revision, dtype=getattr(torch, dtype), use_safetensors=True
        )
    except (OSError, ValueError) as error:
        raise InputError(
            f"{_LOCAL}: could not load {model!r} ({error}); use a folder or a causal "
            "language model on the hub"
        ) from error
    if not tokenizer.chat_template:
        raise InputError(f"{_LOCAL}: {model!r} has no chat template; use a model tuned for chat")
    return tokenizer, chat_lm.to("cuda" if torch.cuda.is_available() else "cpu").eval()
