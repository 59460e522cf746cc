"""Convert a GGUF file of an installed package to a model folder in bfloat16, with provenance."""

import hashlib
import importlib.metadata
import json
from pathlib import Path

from script_helpers import run
from zerogap.io.provenance import provenance
from zerogap.plugins import package_file


def main(output: Path, *, package: str, file: str, end_token: str) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    path = package_file(package, file)
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    tokenizer.eos_token = tokenizer.pad_token = end_token
    tokenizer.chat_template = None
    model = AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.bfloat16
    )
    for settings in (model.config, model.generation_config):
        settings.eos_token_id = settings.pad_token_id = tokenizer.eos_token_id
    model.save_pretrained(output)
    tokenizer.save_pretrained(output)
    origin = provenance(
        package=package,
        version=importlib.metadata.version(package),
        file=path.name,
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        end_token=end_token,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
    )
    (output / "provenance.json").write_text(json.dumps(origin, indent=2) + "\n")


if __name__ == "__main__":
    run(main)
