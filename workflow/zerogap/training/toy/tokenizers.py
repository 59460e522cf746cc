"""A byte-level BPE tokenizer for each family's toy model.

They split text in the same way and differ, as the real ones do, in their special tokens and in
whether they add a BOS token by themselves. Each digit and each newline is a token of its own, so
an empty line has the same tokens everywhere, and the tokens of the exemplars are a prefix of the
tokens of exemplars and question.
"""

from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from zerogap.families import toy_architecture


def train(
    texts: Iterable[str], family: str, vocab_size: int, context_length: int
) -> PreTrainedTokenizerFast:
    """Learn a tokenizer from texts.

    Args:
        texts: what it is learnt from.
        family: a family with a toy model, which decides the special tokens.
        vocab_size: number of tokens, including the special ones and the 256 bytes.
        context_length: the model's context in tokens.

    Raises:
        InputError: the family has no toy model.
    """
    special = toy_architecture(family).special_tokens
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\n|\d"), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(special.tokens),
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
        pad_token=special.pad,
        model_max_length=context_length,
        clean_up_tokenization_spaces=False,
    )
