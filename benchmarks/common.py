"""Shared by the benchmarks: model shapes, prompts, measuring in child processes, result tables.

Every number comes from a process of its own, so that peak memory is that of one contender. Every
ratio compares contenders that ran one after the other in the same call.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "workflow"))
BASES = ROOT / "workflow/resources/bases"

SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "smollm2-135m": (
        "LlamaConfig",
        {
            "vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536,
            "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
            "max_position_embeddings": 8192, "tie_word_embeddings": True,
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
LM_EVAL_PREFIX_TOKENS = 700  # the eight lm_eval shots in Llama-2's own tokenizer


def tokenizer(name: str = "llama2") -> Any:
    """A model folder's tokenizer, or the Llama toy model's: its ids are valid in every shape."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(name if Path(name).is_dir() else BASES / "llama2")


def model(name: str, dtype: str, device: str) -> Any:
    """A model folder, a shipped toy model, or a shape with random weights made on the device.

    As in the engine, a CPU that is slow in a low precision gets float32. It has no end tokens, so
    that only a tokenizer ends responses.
    """
    import torch
    import transformers

    from zerogap.precision import usable_dtype

    torch_dtype = usable_dtype(getattr(torch, dtype), torch.device(device))
    if name not in SHAPES:
        folder = name if Path(name).is_dir() else BASES / name
        loaded = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch_dtype)
        loaded.generation_config.eos_token_id = None
        return loaded.to(device).eval()
    config_class, values = SHAPES[name]
    torch.manual_seed(0)
    torch.set_default_dtype(torch_dtype)
    with torch.device(device):
        random_model = transformers.AutoModelForCausalLM.from_config(
            getattr(transformers, config_class)(**values)
        )
    torch.set_default_dtype(torch.float32)
    random_model.generation_config.eos_token_id = None
    return random_model.eval()


def model_folder(name: str, dtype: str, scratch: Path) -> Path:
    """The folder of a model for engines that load one; a shape's weights are written to scratch."""
    if name not in SHAPES:
        return Path(name) if Path(name).is_dir() else BASES / name
    model(name, dtype, "cpu").save_pretrained(scratch)
    tokenizer(name).save_pretrained(scratch)
    return scratch


def prompts(name: str, num_questions: int, gsm8k: Path | None = None) -> list[Any]:
    """Few-shot prompts: two shots for a toy model, else the eight of lm_eval.

    The toy tokenizer needs more tokens for the eight shots than a real one. Its first
    :data:`LM_EVAL_PREFIX_TOKENS` are used for a shape, as many as Llama-2's tokenizer needs. The
    questions are the first of a file of GSM8K, or generated.
    """
    from zerogap.data.prompts import DEFAULT_TEMPLATE, exemplars
    from zerogap.data.toy import problems
    from zerogap.engine.decoder import Prompt

    encode = tokenizer(name)
    if gsm8k:
        lines = gsm8k.read_text(encoding="utf-8").splitlines()[:num_questions]
        questions = [json.loads(line)["question"] for line in lines]
    else:
        questions = [problem.question for problem in problems(num_questions, 0, "test")]
    if name in SHAPES:
        shots = DEFAULT_TEMPLATE.few_shot_prefix(exemplars("lm_eval", 8))
        prefix = encode(shots)["input_ids"][:LM_EVAL_PREFIX_TOKENS]
        texts = [DEFAULT_TEMPLATE.prompt("", question) for question in questions]
        token_ids = [prefix + ids for ids in encode(texts)["input_ids"]]
    else:
        shots = DEFAULT_TEMPLATE.few_shot_prefix(
            exemplars("lm_eval", 8) if Path(name).is_dir() else exemplars("toy", 2)
        )
        texts = [DEFAULT_TEMPLATE.prompt(shots, question) for question in questions]
        token_ids = encode(texts)["input_ids"]
    return [Prompt(str(index), ids) for index, ids in enumerate(token_ids)]


def write_prompts(folder: Path, name: str, num_questions: int, gsm8k: Path | None) -> str:
    """A file of token ids (:func:`prompts`) for engines whose environment lacks the exemplars."""
    path = folder / "prompts.json"
    made = prompts(name, num_questions, gsm8k)
    path.write_text(json.dumps([prompt.token_ids for prompt in made]))
    return str(path)


def read_prompts(path: str, num_questions: int) -> list[Any]:
    """The first prompts of such a file."""
    from zerogap.engine.decoder import Prompt

    token_ids = json.loads(Path(path).read_text())[:num_questions]
    return [Prompt(str(index), ids) for index, ids in enumerate(token_ids)]


def default_device() -> str:
    """The GPU if there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def peak_bytes(device: str) -> int:
    """Peak memory so far, of the GPU or of this process."""
    if device == "cuda":
        import torch

        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def synchronize(device: str) -> None:
    """Wait for the GPU, if there is one."""
    import torch

    if device == "cuda":
        torch.cuda.synchronize()


def clock(device: str) -> Callable[[], float]:
    """A clock in seconds: processor time on a CPU, wall time on a GPU.

    Processor time is disturbed least by other processes. Use it for ratios within one process.
    """
    return time.process_time if device == "cpu" else time.perf_counter


def in_child(
    script: str,
    *,
    python: str | Path = sys.executable,
    preload: Sequence[str] = (),
    **arguments: Any,
) -> Any:
    """Run `script --child JSON` in a new process; the last line that it prints is the result.

    The JSON has the arguments of its `measure`; shared libraries can be preloaded.
    """
    environment = os.environ | {
        "LD_PRELOAD": ":".join(preload),
        "MALLOC_TRIM_THRESHOLD_": f"{2**31 - 1}",  # as `memory.keep_freed_memory` sets them
        "MALLOC_MMAP_THRESHOLD_": f"{2**30}",
        "HF_HUB_OFFLINE": "1",
    }
    process = subprocess.run(  # noqa: S603 (this script itself)
        [python, script, "--child", json.dumps(arguments)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(process.stdout.splitlines()[-1])


def parser(description: str | None, **defaults: Any) -> argparse.ArgumentParser:
    """A parser with the options of a model, and an integer option for each further default."""
    options = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--output", type=Path, help="also write the table to this Markdown file")
    options.add_argument("--model", default=defaults.pop("model", "llama2"), help="model or shape")
    options.add_argument("--dtype", default=defaults.pop("dtype", "float32"))
    for name, value in defaults.items():
        options.add_argument(f"--{name}", type=int, default=value)
    return options


def run(main: Callable[[], None], measure: Callable[..., Any]) -> None:
    """Run as the parent, or as the child process that it started, which prints its result."""
    if "--child" in sys.argv:
        arguments = json.loads(sys.argv[sys.argv.index("--child") + 1])
        print(json.dumps(measure(**arguments)))
    else:
        main()


def ratios(numerators: Iterable[float], denominators: Iterable[float]) -> str:
    """The median of the ratios of pairs of runs, and their range."""
    values = [a / b for a, b in zip(numerators, denominators, strict=True)]
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def context(decoder: Any, prompts: list[Any], tokenizer: Any, **options: Any) -> Any:
    """What a strategy knows of the greedy trajectories; options of `SamplingParams`."""
    from zerogap.engine.decoder import SamplingParams
    from zerogap.engine.sampler import greedy
    from zerogap.strategies.base import Context

    params = SamplingParams(temperature=0, **options)
    trajectories = greedy(decoder, prompts, tokenizer, params)
    return Context([one.token_ids for one in trajectories], [one.entropy for one in trajectories])


class EndlessTokenizer:
    """A tokenizer whose end token is never drawn, so that every response has the full length."""

    def __init__(self, name: str = "llama2") -> None:
        self._tokenizer = tokenizer(name)
        self.eos_token_id = -100

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    def __len__(self) -> int:
        return len(self._tokenizer)


def publish(
    title: str,
    header: list[str],
    rows: list[list[str]],
    output: Path | None,
    notes: Sequence[str] = (),
) -> None:
    """Print a Markdown table, notes and the machine it was measured on; also write them."""
    import torch
    import transformers
    from tabulate import tabulate

    table = tabulate(rows, header, tablefmt="github", disable_numparse=True)
    if torch.cuda.is_available():
        machine = torch.cuda.get_device_name()
    else:
        machine = f"{_processor()}, {torch.get_num_threads()} threads"
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}, "
    versions += f"Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}"
    text = "\n\n".join([f"## {title}", table, *notes, f"{machine}; {versions}\n"])
    print(text)
    if output:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text)


def _processor() -> str:
    """Name, family and model: one name may stand for several generations."""
    fields = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        field, _, value = line.partition(":")
        fields[field.strip()] = value.strip()
    name = fields.get("model name")
    if name and "cpu family" in fields:
        return f"{name} (family {fields['cpu family']}, model {fields['model']})"
    return name or "unknown processor"
