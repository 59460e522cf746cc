"""A model from a folder or the hub: checked before its weights are loaded."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from zerogap.data.extraction import OPENED_THINKING, THINKING
from zerogap.data.plain_text import ends_in_thinking, has_thinking
from zerogap.engine import generation_config, loading, memory
from zerogap.engine.decoder import Decoder
from zerogap.errors import InputError, first_line
from zerogap.families.tokenizers import load_tokenizer
from zerogap.io.digests import FILES, folder_digest
from zerogap.io.hub import SECOND_COPIES, hub_problem
from zerogap.precision import used_precision
from zerogap.sampling.responses import chat_prompt

ChatTemplate = Literal["apply", "ignore"]


@dataclass
class Model:
    """A model on this machine whose tokenizer and configuration can be used.

    Its weights are loaded when a step needs them, and stay until :meth:`free`. `dtype` is the
    precision that is asked for, the context length is in tokens, and `thinking` makes an extraction
    rule fit the chat template: "thinking/" if that has tags for thinking, "opened-thinking/" if
    prompts end in thinking, otherwise "".
    """

    name: str
    folder: Path
    dtype: str
    tokenizer: PreTrainedTokenizerBase
    end_tokens: list[int]
    context_length: int
    thinking: str = ""

    @property
    def precision(self) -> str:
        """The precision that it has here: that of `dtype`, or float32 on a CPU slow in it."""
        return used_precision(self.dtype)

    @cached_property
    def digest(self) -> str:
        """A digest of the model's files."""
        return folder_digest(self.folder)

    @cached_property
    def weights(self) -> PreTrainedModel:
        """The model itself; :attr:`decoder` gives it an attention for decoding alone."""
        return loading.load(self.folder, self.dtype)

    @cached_property
    def decoder(self) -> Decoder:
        """What decodes the model."""
        return loading.decoder(self.weights)

    def free(self) -> None:
        """Forget weights and decoder, before those of another model are loaded."""
        vars(self).pop("decoder", None)
        vars(self).pop("weights", None)
        memory.release()


def find(name: str, chat_template: ChatTemplate | None, dtype: str) -> Model:
    """Find a folder, or download a model of the hub, and check what can be checked at once.

    A tokenizer's chat template is applied, or ignored for prompts of plain text. The dtype "auto"
    is bfloat16, or float32 on a CPU slow in it.

    Raises:
        InputError: the model is not found or is gated, see
            :func:`zerogap.engine.loading.check_folder`, it has no end token, or `chat_template`
            does not fit it.
    """
    folder = Path(name)
    if folder.is_dir():
        name = os.path.abspath(name)  # the same name from any folder, and not "."
    else:
        # The hub's names are OWNER/MODEL.
        if folder.is_file() or folder.is_absolute() or len(folder.parts) > 2:
            raise InputError(f"{name}: no such folder; correct the path of the model")
        from huggingface_hub import snapshot_download

        try:
            ignored = SECOND_COPIES
            folder = Path(snapshot_download(name, allow_patterns=FILES, ignore_patterns=ignored))
        except Exception as error:  # the hub's libraries raise many types
            raise InputError(hub_problem(error, name, None)) from error
    config = loading.check_folder(folder)
    tokenizer, generation = load_tokenizer(folder), generation_config.read(folder)
    num_tokens = config.get_text_config().vocab_size
    if tokenizer.vocab_size > num_tokens:
        raise InputError(
            f"{name}: the tokenizer has {tokenizer.vocab_size} tokens and the model {num_tokens}; "
            "copy the model's own tokenizer"
        )
    if tokenizer.chat_template and chat_template is None:
        raise InputError(
            f"{name}: the tokenizer has a chat template, and benchmark prompts are plain text; "
            "choose --chat-template apply (each prompt is a user's message) or --chat-template "
            "ignore (a base model that has a template)"
        )
    if chat_template == "apply" and not tokenizer.chat_template:
        raise InputError(
            f"{name}: the tokenizer has no chat template; choose --chat-template ignore"
        )
    thinking = _thinking(name, tokenizer) if chat_template == "apply" else ""
    ends = generation_config.end_tokens(tokenizer, generation)
    if not ends:
        raise InputError(
            f"{name}: the model has no end token, so no response would ever end; set eos_token in "
            "tokenizer_config.json"
        )
    generation_config.note_ignored(generation, name)
    dtype = "bfloat16" if dtype == "auto" else dtype
    length = loading.context_length(config)
    return Model(name, folder, dtype, tokenizer, ends, length, thinking)


def _thinking(name: str, tokenizer: PreTrainedTokenizerBase) -> str:
    """What makes an extraction rule fit the chat template (:class:`Model`), which is tried out."""
    question, reply = "How many?", "reply"
    asked = [{"role": "user", "content": question}]
    replied = [*asked, {"role": "assistant", "content": reply}]
    try:
        prompt = chat_prompt(tokenizer, asked)
        chat = tokenizer.apply_chat_template(replied, tokenize=False)
    except Exception as error:  # a template may raise anything
        raise InputError(
            f"{name}: its chat template cannot write a user's message and a reply without a "
            f"system message ({first_line(error)}); correct the template in the model's folder, "
            "or choose --chat-template ignore"
        ) from error
    if question not in prompt or reply not in chat:
        raise InputError(
            f"{name}: its chat template leaves out messages that are plain texts; give the model a "
            "template for texts, not for lists of content parts, or choose --chat-template ignore"
        )
    if ends_in_thinking(prompt):
        return OPENED_THINKING
    return THINKING if has_thinking(tokenizer.get_chat_template()) else ""
