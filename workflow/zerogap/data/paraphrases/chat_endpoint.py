"""The language model that paraphrases, behind an OpenAI-compatible endpoint."""

import json
import os
from typing import Any

import httpx2

from zerogap.data.paraphrases.llm import ChatModel, NoReplyError, Reply
from zerogap.errors import InputError

_MAX_RETRIES = 5  # of one request, by the library, with exponential back-off or Retry-After
_TIMEOUT = 120.0  # seconds
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
            "or set paraphrases.method to rules"
        )
    client = openai.OpenAI(
        base_url=base_url,
        api_key=key,
        max_retries=_MAX_RETRIES,
        timeout=_TIMEOUT,
        # The key and the questions go to the configured host only.
        http_client=httpx2.Client(follow_redirects=False),
    )

    def chat(messages: list[dict[str, str]]) -> Reply:
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
