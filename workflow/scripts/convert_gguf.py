"""Convert a GGUF file of an installed package to a model folder in bfloat16, with provenance."""

import hashlib
import importlib.metadata
import json
from collections.abc import Sequence

from script_helpers import parse_arguments, run
from zerogap.io.provenance import provenance
from zerogap.plugins import package_file


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_arguments(__doc__, "output", argv=argv)
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    package, end_token = args.parameters["package"], args.parameters["end_token"]

    file = package_file(package, args.parameters["file"])
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    tokenizer.eos_token = tokenizer.pad_token = end_token
    tokenizer.chat_template = None
    model = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.bfloat16
    )
    for settings in (model.config, model.generation_config):
        settings.eos_token_id = settings.pad_token_id = tokenizer.eos_token_id
    model.save_pretrained(args.output)
    tokenizer.save_pretrained(args.output)
    origin = provenance(
        package=package,
        version=importlib.metadata.version(package),
        file=file.name,
        sha256=hashlib.sha256(file.read_bytes()).hexdigest(),
        end_token=end_token,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
    )
    (args.output / "provenance.json").write_text(json.dumps(origin, indent=2) + "\n")


if __name__ == "__main__":
    run(main)
