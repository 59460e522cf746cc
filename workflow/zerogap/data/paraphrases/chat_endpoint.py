"""A language model behind an OpenAI-compatible endpoint."""

import json
import os

from zerogap.data.paraphrases.llm import Ask, NoReply, Reply
from zerogap.errors import InputError

_RETRIES = 5  # of one request, by the library, with growing pauses; it heeds Retry-After
_TIMEOUT = 120.0  # seconds
_REFUSALS = (400, 401, 402, 403, 404, 422)


def endpoint(base_url: str, model: str, api_key_env: str) -> Ask:
    """The endpoint as a function from messages to a reply.

    Args:
        api_key_env: the environment variable that holds the key; the key is written nowhere.

    Raises:
        InputError: the key is not set. The function raises it where the endpoint refuses.
    """
    import openai  # takes a second, and the rules do without

    key = os.environ.get(api_key_env)
    if not key:
        raise InputError(
            f"the environment variable {api_key_env} is not set; it must hold the key for "
            f"{base_url} (or set data.paraphrases.method to local or rules)"
        )
    client = openai.OpenAI(base_url=base_url, api_key=key, max_retries=_RETRIES, timeout=_TIMEOUT)

    def ask(messages: list[dict[str, str]], _: int) -> Reply:
        # Services quote the key in their messages: only status and kind of an error are passed on.
        try:
            reply = client.chat.completions.create(model=model, messages=messages)
        except openai.APIStatusError as error:
            if error.status_code in _REFUSALS:
                raise InputError(
                    f"{base_url} refuses requests to {model!r} with status {error.status_code}; "
                    "check base_url, model, the key and the account"
                ) from None
            raise NoReply(f"status {error.status_code} after {_RETRIES} retries") from None
        except openai.APIError as error:
            raise NoReply(f"{type(error).__name__} after {_RETRIES} retries") from None
        except json.JSONDecodeError:
            raise NoReply("a reply that is not JSON") from None
        choices = getattr(reply, "choices", None)
        used = getattr(reply, "usage", None)
        return Reply(
            choices[0].message.content if choices else None,
            used.prompt_tokens if used else 0,
            used.completion_tokens if used else 0,
        )

    return ask
