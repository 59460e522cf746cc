"""What the benchmarks share: models by shape, prompts, and contenders measured in a child process.

Every figure comes from a process of its own, so that peak memory is that contender's alone, and
every ratio from contenders that ran one after the other in the same call.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "workflow"))
BASES = ROOT / "workflow/resources/bases"

SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama-160m": (
        "LlamaConfig",
        {
            "vocab_size": 32000, "hidden_size": 768, "intermediate_size": 2048,
            "num_hidden_layers": 12, "num_attention_heads": 12, "max_position_embeddings": 2048,
        },
    ),
    "llama-2-7b": (
        "LlamaConfig",
        {
            "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
            "num_hidden_layers": 32, "num_attention_heads": 32, "max_position_embeddings": 4096,
        },
    ),
    "pythia-12b": (
        "GPTNeoXConfig",
        {
            "vocab_size": 50688, "hidden_size": 5120, "intermediate_size": 20480,
            "num_hidden_layers": 36, "num_attention_heads": 40, "max_position_embeddings": 2048,
            "rotary_pct": 0.25,
        },
    ),
    "gemma-4-e2b": (  # the text part alone
        "Gemma4TextConfig",
        {
            "vocab_size": 262144, "hidden_size": 1536, "intermediate_size": 6144,
            "num_hidden_layers": 35, "num_attention_heads": 8, "num_key_value_heads": 1,
            "head_dim": 256, "global_head_dim": 512, "sliding_window": 512,
            "num_kv_shared_layers": 20, "hidden_size_per_layer_input": 256,
            "use_double_wide_mlp": True, "final_logit_softcapping": 30.0,
            "layer_types": (["sliding_attention"] * 4 + ["full_attention"]) * 7,
        },
    ),
}  # fmt: skip


def tokenizer() -> Any:
    """The shipped Llama base's; its ids are valid in every shape."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(BASES / "llama2")


def model(name: str, dtype: str, device: str) -> Any:
    """An embedded base model by name, or a shape with random weights made on the device."""
    import torch
    import transformers

    kind = getattr(torch, dtype)
    if name not in SHAPES:
        loaded = transformers.AutoModelForCausalLM.from_pretrained(BASES / name, dtype=kind)
        return loaded.to(device).eval()
    config_class, values = SHAPES[name]
    torch.manual_seed(0)
    torch.set_default_dtype(kind)
    with torch.device(device):
        made = transformers.AutoModelForCausalLM.from_config(
            getattr(transformers, config_class)(**values)
        )
    torch.set_default_dtype(torch.float32)
    return made.eval()


def prompts(name: str, questions: int) -> list[Any]:
    """Few-shot prompts: two shots for a toy model, the eight of lm_eval for a shape.

    The small shipped tokenizer needs more tokens for the eight than the model's own would: their
    first 700 are taken, as many as Llama-2's own tokenizer makes of them.
    """
    from zerogap.data.prompts import DEFAULT_TEMPLATE, exemplars
    from zerogap.data.toy.word_problems import problems
    from zerogap.engine.decoder import Prompt

    encode = tokenizer()
    asked = [problem.question for problem in problems(questions, 0, "test")]
    if name not in SHAPES:
        shots = DEFAULT_TEMPLATE.few_shot_prefix(exemplars("toy", 2))
        whole = encode([DEFAULT_TEMPLATE.prompt(shots, question) for question in asked])[
            "input_ids"
        ]
    else:
        shots = encode(DEFAULT_TEMPLATE.few_shot_prefix(exemplars("lm_eval", 8)))["input_ids"][:700]
        whole = [shots + encode(DEFAULT_TEMPLATE.prompt("", one))["input_ids"] for one in asked]
    return [Prompt(str(index), ids) for index, ids in enumerate(whole)]


def default_device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def peak_bytes(device: str) -> int:
    """Largest memory held so far: of the device, or of this process."""
    if device == "cuda":
        import torch

        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def held_bytes(device: str) -> int:
    """Memory held now."""
    import psutil
    import torch

    return torch.cuda.memory_allocated() if device == "cuda" else psutil.Process().memory_info().rss


def synchronize(device: str) -> None:
    import torch

    if device == "cuda":
        torch.cuda.synchronize()


def clock(device: str) -> Callable[[], float]:
    """Seconds: the processor's on a CPU, disturbed least by what else runs there; else the wall's.

    For shares and ratios within one process.
    """
    return time.process_time if device == "cpu" else time.perf_counter


def in_child(script: str, **arguments: Any) -> dict[str, Any]:
    """Run `script --child JSON` in a fresh process; what it prints last is its result."""
    environment = os.environ | {
        "MALLOC_TRIM_THRESHOLD_": "4000000000",  # as the workflow's jobs have it
        "MALLOC_MMAP_THRESHOLD_": "1000000000",
        "HF_HUB_OFFLINE": "1",
    }
    done = subprocess.run(
        [sys.executable, script, "--child", json.dumps(arguments)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def parser(description: str, **defaults: Any) -> argparse.ArgumentParser:
    """The options that benchmarks share, and whole numbers by name with their defaults."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--output", type=Path, help="also write the table to this Markdown file")
    made.add_argument("--model", default=defaults.pop("model", "llama2"), help="base or shape")
    made.add_argument("--dtype", default="float32")
    for name, value in defaults.items():
        made.add_argument(f"--{name}", type=int, default=value)
    return made


def run(main: Callable[[], None], child: Callable[[dict[str, Any]], None]) -> None:
    """Be the parent, or the child that it started."""
    if "--child" in sys.argv:
        child(json.loads(sys.argv[sys.argv.index("--child") + 1]))
    else:
        main()


class Endless:
    """A tokenizer whose end token is never drawn: every response has the full length."""

    def __init__(self, words: Any) -> None:
        self._words = words
        self.eos_token_id = -100

    def __getattr__(self, name: str) -> Any:
        return getattr(self._words, name)

    def __len__(self) -> int:
        return len(self._words)


def publish(title: str, header: list[str], rows: list[list[str]], output: Path | None) -> None:
    """Print a Markdown table with the machine it was measured on, and write it."""
    import platform

    import torch
    import transformers

    widths = [max(len(str(line[i])) for line in [header, *rows]) for i in range(len(header))]
    lines = [
        "| "
        + " | ".join(str(cell).ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in [header, ["-" * width for width in widths], *rows]
    ]
    machine = (
        torch.cuda.get_device_name()
        if torch.cuda.is_available()
        else f"{_processor()}, {torch.get_num_threads()} threads"
    )
    said = f"{machine}; torch {torch.__version__}, transformers {transformers.__version__}, "
    said += f"Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}"
    text = f"## {title}\n\n" + "\n".join(lines) + f"\n\n{said}\n"
    print(text)
    if output:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text)


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown processor"
