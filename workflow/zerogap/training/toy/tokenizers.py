"""A byte-level BPE tokenizer for each family of the embedded bases.

The three share their text handling and differ, as the real ones do, in their special tokens and in
whether a text is given a BOS token by itself. Digits are single tokens, and so is every newline:
the empty line after a problem reads the same wherever it stands, and the tokens of the shots are a
prefix of the tokens of shots + question.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast


@dataclass(frozen=True)
class SpecialTokens:
    """A family's special tokens; ids in the order of `listed`."""

    listed: tuple[str, ...]
    eos: str
    bos: str
    adds_bos: bool


SPECIAL_TOKENS = {
    "llama": SpecialTokens(("<unk>", "<s>", "</s>"), "</s>", "<s>", adds_bos=True),
    "gemma4": SpecialTokens(("<pad>", "<eos>", "<bos>"), "<eos>", "<bos>", adds_bos=True),
    "gpt_neox": SpecialTokens(
        ("<|endoftext|>", "<|padding|>"), "<|endoftext|>", "<|endoftext|>", adds_bos=False
    ),
}


def train(
    texts: Iterable[str], family: str, vocabulary: int, context: int
) -> PreTrainedTokenizerFast:
    """Learn a tokenizer from texts.

    Args:
        family: "llama", "gemma4" or "gpt_neox".
        vocabulary: number of tokens, special ones and the 256 bytes included.
        context: the model's context in tokens.
    """
    special = SPECIAL_TOKENS[family]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\n|\d"), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(special.listed),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    if special.adds_bos:
        bos = (special.bos, tokenizer.token_to_id(special.bos))
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{special.bos} $A", pair=f"{special.bos} $A $B", special_tokens=[bos]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=special.bos,
        eos_token=special.eos,
        pad_token=special.listed[0] if special.listed[0] == "<pad>" else special.eos,
        model_max_length=context,
        clean_up_tokenization_spaces=False,
    )
