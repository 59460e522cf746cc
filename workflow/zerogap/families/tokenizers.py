"""The tokenizer of a model folder, and whether prompts can be encoded with it."""

from pathlib import Path

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from zerogap.errors import InputError
from zerogap.families.folders import read_tokenizer
from zerogap.families.structure import problem_of

_PROBE = "Q: Tom has 1,450 apples.\n\nHe buys 23 in 2023.\nA: 12 + 345 = 357"


def load_tokenizer(folder: str | Path) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a model folder.

    `transformers` makes a tokenizer of the class that `tokenizer_config.json` names, and some
    classes split texts in their own way, whatever `tokenizer.json` says: LlamaTokenizer loses the
    spaces of a byte-level vocabulary (DeepSeek's distilled Llamas), GPT2Tokenizer keeps digits
    together (OLMo 2). Every prompt would be garbled, and nobody would notice.

    Raises:
        InputError: it cannot be read, has a :func:`tokenizer_problem`, does not turn a text into
            tokens, or splits it otherwise than its `tokenizer.json`.
    """
    stored = read_tokenizer(Path(folder))
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        problem = tokenizer_problem(tokenizer)
        tokens: list[int] = tokenizer(_PROBE, add_special_tokens=False)["input_ids"]
        if not set(tokens) - {tokenizer.unk_token_id}:
            raise ValueError(f"it turns {_PROBE!r} into no tokens")
    except Exception as error:  # many types, from three libraries
        raise InputError(
            f"{folder}: its tokenizer cannot be read ({problem_of(error)}); copy its files again, "
            "or save it with save_pretrained in the model's folder"
        ) from error
    if problem:
        raise InputError(f"{folder}: its tokenizer {problem}")
    if stored is not None:
        stored.no_padding()
        stored.no_truncation()
        if stored.encode(_PROBE, add_special_tokens=False).ids != tokens:
            raise InputError(
                f"{folder}: transformers makes it a {type(tokenizer).__name__}, which splits texts "
                "otherwise than its tokenizer.json; set tokenizer_class to "
                '"PreTrainedTokenizerFast" in tokenizer_config.json'
            )
    return tokenizer


def tokenizer_problem(tokenizer: PreTrainedTokenizerBase) -> str:
    """Why prompts cannot be encoded with a tokenizer, and the remedy; "" if they can."""
    if not isinstance(tokenizer.added_tokens_decoder, dict):  # that of mistral-common
        return "does not encode special tokens; load tekken.json as PreTrainedTokenizerFast"
    if tokenizer.eos_token_id in tokenizer("1 + 2")["input_ids"][-1:]:
        return "ends every prompt with its end token; save it with add_eos_token = False"
    return ""
