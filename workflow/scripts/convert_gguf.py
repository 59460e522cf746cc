"""Convert a GGUF file of an installed package to a model folder in bfloat16, with provenance."""

import hashlib
import importlib.metadata
import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from script_helpers import run
from zerogap.errors import InputError
from zerogap.io.provenance import provenance
from zerogap.io.resume import resumable_dir
from zerogap.plugins import package_file

NORMAL, CONTROL, USER_DEFINED = 1, 3, 4  # kinds of tokens in a GGUF file


def main(output: Path, *, package: str, file: str | list[str], end_token: str) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    parts = [package_file(package, name) for name in ([file] if isinstance(file, str) else file)]
    # The checks before a run read a base that is there: it appears when it is complete.
    settings = {"package": package, "file": file, "end_token": end_token}
    with resumable_dir(output, settings) as folder:
        path, made = joined(parts, folder), folder / "model"
        tokenizer = read_tokenizer(path)
        if end_token not in tokenizer.get_vocab():
            raise InputError(f"gguf.end_token: {end_token!r} is not a token of {path.name}")
        tokenizer.eos_token = tokenizer.pad_token = end_token
        tokenizer.chat_template = None
        model = AutoModelForCausalLM.from_pretrained(
            path.parent, gguf_file=path.name, dtype=torch.bfloat16
        )
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        for values in (model.config, model.generation_config):
            values.eos_token_id = values.pad_token_id = tokenizer.eos_token_id
        model.save_pretrained(made)
        tokenizer.save_pretrained(made)
        origin = provenance(
            package=package,
            version=importlib.metadata.version(package),
            file=parts[0].name,
            sha256=digest,
            end_token=end_token,
            parameters=sum(parameter.numel() for parameter in model.parameters()),
        )
        (made / "provenance.json").write_text(json.dumps(origin, indent=2) + "\n")
        shutil.rmtree(output, ignore_errors=True)
        made.rename(output)


def joined(parts: Sequence[Path], folder: Path) -> Path:
    """The file that consists of the parts: the only part itself, or a new file in a folder."""
    if len(parts) == 1:
        return parts[0]
    whole = folder / "model.gguf"
    with whole.open("wb") as file:
        for part in parts:
            with part.open("rb") as piece:
                shutil.copyfileobj(piece, file)
    return whole


def read_tokenizer(file: Path) -> Any:
    """The tokenizer of a GGUF file.

    transformers (5.6) reads Gemma's vocabulary as a unigram model, of which its Gemma tokenizer
    takes the tokens without any merge: every text becomes single characters. A merge makes each
    token of the vocabulary, in the order of their scores, as in SentencePiece.
    """
    from transformers import AutoTokenizer, GemmaTokenizer
    from transformers.tokenization_utils_base import generate_merges

    values = gguf_values(file)
    if not values["general.architecture"].startswith("gemma"):
        return AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    names = values["tokenizer.ggml.tokens"]
    kinds = dict(zip(names, values["tokenizer.ggml.token_type"], strict=True))
    vocabulary = {name: token for token, name in enumerate(names)}
    scores = dict(zip(names, values["tokenizer.ggml.scores"], strict=True))
    others = of_kind(kinds, set(kinds.values()) - {NORMAL})
    merges = generate_merges(vocabulary, scores, others)
    tokenizer = GemmaTokenizer(vocabulary, merges, add_bos_token=True)
    tokenizer.add_special_tokens({"additional_special_tokens": of_kind(kinds, {CONTROL})})
    tokenizer.add_tokens(of_kind(kinds, {USER_DEFINED}))
    return tokenizer


def of_kind(kinds: dict[str, int], chosen: Iterable[int]) -> list[str]:
    """The tokens of some kinds."""
    return [name for name, kind in kinds.items() if kind in chosen]


def gguf_values(file: Path) -> dict[str, Any]:
    """What a GGUF file says about its model, by key."""
    import gguf

    return {key: field.contents() for key, field in gguf.GGUFReader(file).fields.items()}


if __name__ == "__main__":
    run(main)
