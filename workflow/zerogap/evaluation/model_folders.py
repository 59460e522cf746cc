"""A model from a folder or the hub: checked before its weights are loaded."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from transformers import AutoConfig, PreTrainedModel, PreTrainedTokenizerBase

from zerogap.engine import loading
from zerogap.errors import InputError, first_line
from zerogap.io.hub import SMALL_FILES, WEIGHTS, hub_problem

ChatTemplate = Literal["apply", "ignore"]


@dataclass(frozen=True)
class ModelFolder:
    """A model on this machine whose tokenizer and configuration can be used.

    Attributes:
        name: the model as it was given.
        folder: where its files are.
        tokenizer: its tokenizer, with an end token.
        context_length: in tokens.
    """

    name: str
    folder: Path
    tokenizer: PreTrainedTokenizerBase
    context_length: int

    def load(self, dtype: str) -> PreTrainedModel:
        """Load the weights, on the GPU if there is one.

        Raises:
            InputError: they cannot be loaded as a causal language model.
        """
        try:
            return loading.load(self.folder, dtype)
        except Exception as error:  # many types, from three libraries
            raise InputError(
                f"{self.name}: cannot be loaded as a causal language model ({first_line(error)})"
            ) from error


def find(name: str, chat_template: ChatTemplate | None) -> ModelFolder:
    """Find a model, download it if it is on the hub, and check what can be checked at once.

    Args:
        name: a folder, or a model on the hub.
        chat_template: what to do with a tokenizer that has a chat template: "apply" it, or
            "ignore" it and prompt with plain text.

    Raises:
        InputError: the model is not found, is gated, has no safetensors weights, its configuration
            or tokenizer cannot be read, it has no end token, or `chat_template` does not fit it.
    """
    folder = Path(name)
    if not folder.is_dir():
        if folder.is_absolute() or len(folder.parts) > 2:  # the hub's names are OWNER/MODEL
            raise InputError(f"{name}: no such folder; correct the path of the model")
        folder = _download(name)
    if not any(folder.glob("*.safetensors")):
        raise InputError(
            f"{name}: has no safetensors weights, and other formats are not loaded; convert it "
            "with model.save_pretrained(folder)"
        )
    try:
        config = AutoConfig.from_pretrained(folder)
        tokenizer = loading.load_tokenizer(folder)
    except Exception as error:  # many types, and the remedy is the same
        raise InputError(
            f"{name}: its configuration or tokenizer cannot be read ({first_line(error)}); save "
            "both with save_pretrained in the model's folder"
        ) from error
    _check_chat_template(name, tokenizer, chat_template)
    if chat_template == "apply":
        tokenizer.eos_token = end_of_turn(tokenizer) or tokenizer.eos_token
    if tokenizer.eos_token_id is None:
        raise InputError(
            f"{name}: the tokenizer has no end token, so no response would ever end; set eos_token "
            "in tokenizer_config.json"
        )
    return ModelFolder(name, folder, tokenizer, loading.context_length(config))


def end_of_turn(tokenizer: PreTrainedTokenizerBase) -> str | None:
    """The special token that ends a reply in the chat template; None if a reply ends with a text.

    Some chat models end a reply with another token than the tokenizer's end token.
    """
    reply = "reply"
    messages = [{"role": "user", "content": "text"}, {"role": "assistant", "content": reply}]
    rest = tokenizer.apply_chat_template(messages, tokenize=False).rpartition(reply)[2]
    token_ids = tokenizer(rest.lstrip(), add_special_tokens=False)["input_ids"]
    first = tokenizer.convert_ids_to_tokens(token_ids[:1])
    return first[0] if first and first[0] in tokenizer.get_added_vocab() else None


def _check_chat_template(
    name: str, tokenizer: PreTrainedTokenizerBase, chat_template: ChatTemplate | None
) -> None:
    if tokenizer.chat_template and chat_template is None:
        raise InputError(
            f"{name}: the tokenizer has a chat template, and benchmark prompts are plain text; "
            "choose --chat-template apply (each prompt is a user's message) or --chat-template "
            "ignore (a base model that has a template)"
        )
    if chat_template == "apply" and not tokenizer.chat_template:
        raise InputError(f"{name}: the tokenizer has no chat template; omit --chat-template apply")


def _download(name: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=[*SMALL_FILES, *WEIGHTS]))
    except Exception as error:  # the hub's libraries raise many types
        raise InputError(hub_problem(error, name, None)) from error
