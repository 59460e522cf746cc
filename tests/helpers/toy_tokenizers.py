"""The `transformers` tokenizer classes of the three families, with a small BPE trained here.

How they treat special tokens, spaces and line breaks is the behaviour of the real classes.
"""

import json

from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import (
    GemmaTokenizer,
    GPTNeoXTokenizer,
    LlamaTokenizer,
    PreTrainedTokenizerBase,
    TokenizersBackend,
)

from zerogap.data.toy import instructions, problems

PROBLEMS = problems(300, 3, "pretrain")
TEXTS = [f"Q: {problem.question} A: {problem.rationale} The answer is 7." for problem in PROBLEMS]
TEXTS += [" ".join(example.values()) for example in instructions(200, 3)]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def train_bpe(special: list[str], byte_level: bool) -> dict:
    """Train a small BPE on bytes, or on characters with '▁' for a space."""
    core = Tokenizer(models.BPE())
    if byte_level:
        core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
    else:
        core.pre_tokenizer = pre_tokenizers.Metaspace()
        alphabet = ["▁"]
    trainer = trainers.BpeTrainer(
        vocab_size=900, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    core.train_from_iterator([" ".join(text.split()) for text in TEXTS], trainer)
    model = json.loads(core.to_str())["model"]
    return {"vocab": model["vocab"], "merges": [tuple(pair) for pair in model["merges"]]}


def llama() -> PreTrainedTokenizerBase:
    return LlamaTokenizer(
        **train_bpe(["<unk>", "<s>", "</s>", *BYTES], False), legacy=False, add_bos_token=True
    )


def llama_as_stored() -> PreTrainedTokenizerBase:
    """Like Llama-2's tokenizer.json: a normaliser puts '▁' before every part of a text."""
    bpe = train_bpe(["<unk>", "<s>", "</s>", *BYTES], False)
    core = Tokenizer(models.BPE(**bpe, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    core.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    core.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1),
        ]
    )
    core.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 1)]
    )
    return TokenizersBackend(
        tokenizer_object=core, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def gemma() -> PreTrainedTokenizerBase:
    bpe = train_bpe(["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", *BYTES], False)
    for line in ("\n", "\n\n"):  # tokens of their own, as in Gemma
        bpe["vocab"][line] = len(bpe["vocab"])
    return GemmaTokenizer(
        vocab=bpe["vocab"], merges=[*bpe["merges"], ("\n", "\n")], add_bos_token=True
    )


def gpt_neox() -> PreTrainedTokenizerBase:
    bpe = train_bpe(["<|endoftext|>", "<|padding|>"], True)
    bpe["vocab"]["ĊĊ"] = len(bpe["vocab"])  # an empty line is one token, as in GPT-NeoX
    return GPTNeoXTokenizer(vocab=bpe["vocab"], merges=[*bpe["merges"], ("Ċ", "Ċ")])


TOKENIZERS = {
    "llama": llama,
    "llama_as_stored": llama_as_stored,
    "gemma4": gemma,
    "gpt_neox": gpt_neox,
}
