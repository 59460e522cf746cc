"""The sampler against other engines: tokens per second and peak memory on the same work.

python benchmarks/engines.py                       # the Llama toy model, float32
python benchmarks/engines.py --model smollm2-135m  # a shape with random weights, eight shots
python benchmarks/engines.py --model FOLDER --dtype bfloat16 --gsm8k test.jsonl --ending natural
python benchmarks/engines.py --model llama-2-7b --dtype bfloat16 --tokens 128  # on a GPU

The engines of :mod:`contenders` run in a process each: zerogap, also under RailCap and LNE-blocking
and with one question at a time; vLLM, where it is installed (docs/railcap.md), with and without
RailCap; OpenVINO GenAI, if `--openvino` names the same weights as a GGUF file in float16 and
`openvino-genai` is installed; `generate` for one question at a time; and `generate` from a
prefilled prompt. All draw the same number of responses to the same prompts at the same temperature.

With `--ending forced` all responses have the full length. With `natural` they end at the model's
end token or at the next question, and `generate` is left out, which waits for the longest response.
The speed of `generate` does not depend on the number of questions, so it gets fewer. vLLM and
OpenVINO run with the fastest of several settings, found on a quarter of the questions first and
listed below the table. On a GPU all responses are drawn once before the measurement: our steps are
captured in the first draw, vLLM's while it starts. vLLM then has the prompts in its prefix cache.
"""

import argparse
import ctypes.util
import statistics
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import common
import contenders

from zerogap.sampling.engines import installed_vllm

SEQUENCES = {"cpu": (128, 256, 512), "cuda": (256, 512, 1024)}  # per step of the others
VLLM_LIBRARIES = ("tcmalloc_minimal", "iomp5")  # recommended for vLLM on CPUs
Run = dict[str, Any]


def main() -> None:
    """Measure all contenders in turn and publish the table."""
    parser = common.parser(__doc__, questions=20, samples=50, tokens=64, repeats=3)
    parser.add_argument("--generate-questions", type=int, default=1)
    parser.add_argument("--rows", type=int, help="batch size; by default as many as fit")
    parser.add_argument("--ending", choices=("forced", "natural"), default="forced")
    parser.add_argument("--gsm8k", type=Path, help="GSM8K's test.jsonl; else generated questions")
    parser.add_argument("--openvino", type=Path, metavar="GGUF", help="the weights for OpenVINO")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = common.model_folder(args.model, args.dtype, Path(scratch))
        prompts = common.write_prompts(Path(scratch), args.model, args.questions, args.gsm8k)
        results, notes = measure_in_turn(args, folder, prompts)
    first = results["zerogap"][0]
    common.publish(
        f"{Path(args.model).name}, {args.dtype}: {args.questions} questions × {args.samples} "
        f"samples of {'' if args.ending == 'forced' else 'at most '}{args.tokens} tokens behind "
        f"{first['prompt']} prompt tokens",
        [
            "engine", "tokens/s (best)", "speed-up of zerogap", "peak MiB", "start-up, s",
            "questions",
        ],
        [_row(name, runs, results["zerogap"]) for name, runs in results.items()],
        args.output,
        notes,
    )  # fmt: skip


def measure_in_turn(
    args: argparse.Namespace, folder: Path, prompts: str
) -> tuple[dict[str, list[Run]], list[str]]:
    """Every contender's runs, and how vLLM's settings were found.

    Contenders take turns, so that a slow minute meets them all.
    """
    work = {
        "folder": str(folder), "dtype": args.dtype, "prompts": prompts,
        "questions": args.questions,
        "samples": args.samples, "tokens": args.tokens, "natural": args.ending == "natural",
        "strategy": "identity", "rows": args.rows,
    }  # fmt: skip
    one_at_a_time = work | {"questions": args.generate_questions, "rows": args.samples}
    plan: dict[str, Run] = {
        "zerogap": work | {"engine": "zerogap"},
        "zerogap, RailCap": work | {"engine": "zerogap", "strategy": "railcap"},
        "zerogap, LNE-blocking": work | {"engine": "zerogap", "strategy": "lne_blocking"},
        "zerogap, one question at a time": one_at_a_time | {"engine": "zerogap"},
    }
    notes = []
    if installed := installed_vllm():
        vllm, sweep = fastest_vllm(work | {"engine": "vllm"}, installed.python)
        name = f"vLLM ({described(vllm)})"
        plan |= {name: vllm, f"{name}, RailCap": vllm | {"strategy": "railcap"}}
        notes.append(f"vLLM {installed.version} {sweep}.")
    else:
        print("vLLM is left out: it is not installed (docs/railcap.md)\n", flush=True)
    if args.openvino:
        as_gguf = work | {"engine": "openvino", "folder": str(args.openvino)}
        settings = [{"rows": rows} for rows in SEQUENCES["cpu"]]
        openvino, tried = fastest(as_gguf, settings, args.questions // 4)
        plan[f"OpenVINO GenAI ({described(openvino)})"] = openvino
        notes.append(f"OpenVINO GenAI {version('openvino-genai')} on a quarter of them: {tried}.")
    if args.ending == "forced":
        plan["generate, prompt prefilled once"] = one_at_a_time | {"engine": "generate_prefilled"}
        plan["generate"] = one_at_a_time | {"engine": "generate"}
    results: dict[str, list[Run]] = {name: [] for name in plan}
    for _ in range(args.repeats):
        for name, options in plan.items():
            results[name].append(common.in_child(__file__, **options))
    return results, notes


def fastest_vllm(work: Run, python: Path) -> tuple[Run, str]:
    """The work with vLLM's fastest settings, and the speed with each of them.

    Tried are numbers of sequences per step and preloaded libraries, on a quarter of the questions.
    Compilation, which takes minutes on a CPU, is tried only with the best of these, and on all
    questions: on a few of them its speed differed by a third between runs.
    """
    found = [path for name in VLLM_LIBRARIES if (path := _library(name, python))]
    settings = [
        {"rows": rows, "python": str(python), "preload": preload}
        for rows in SEQUENCES[common.default_device()]
        for preload in ([[], found] if found else [[]])
    ]
    best, tried = fastest(work, settings, work["questions"] // 4)
    if common.default_device() != "cpu":
        return best, f"on a quarter of the questions: {tried}"
    best, both = fastest(best, [{}, {"compiled": True}], work["questions"])
    return best, f"on a quarter of the questions: {tried}; on all questions: {both}"


def fastest(work: Run, settings: list[Run], questions: int) -> tuple[Run, str]:
    """The work with the fastest of the settings, and the speed with each of them."""
    tried = [work | setting for setting in settings]
    speeds = []
    for each in tried:
        run = common.in_child(__file__, **each | {"questions": max(1, questions)})
        speeds.append(run["speed"])
        print(f"{work['engine']}, {described(each)}: {speeds[-1]:,.0f} tokens/s", flush=True)
    listed = (
        f"{described(each)}: {speed:,.0f} tokens/s"
        for each, speed in zip(tried, speeds, strict=True)
    )
    return tried[speeds.index(max(speeds))], "; ".join(listed)


def described(work: Run) -> str:
    """The settings of another engine in words."""
    libraries = ""
    if "preload" in work:
        libraries = f", {'libraries' if work['preload'] else 'none'} preloaded"
    compiled = ", compiled" if work.get("compiled") else ""
    return f"{work['rows']} sequences{libraries}{compiled}"


def _library(name: str, python: Path) -> str | None:
    """A shared library of the interpreter's environment or of the system."""
    own = next(python.parents[1].glob(f"lib/lib{name}.so*"), None)
    return str(own) if own else ctypes.util.find_library(name)


def _row(name: str, runs: list[Run], reference: list[Run]) -> list[str]:
    best = max(runs, key=lambda run: run["speed"])
    return [
        name,
        f"{best['speed']:,.0f}",
        common.ratios(*([run["speed"] for run in each] for each in (reference, runs))),
        f"{best['peak'] / 2**20:,.0f}",
        f"{statistics.median(run['startup'] for run in runs):.0f}",
        str(best["questions"]),
    ]


if __name__ == "__main__":
    common.run(main, contenders.measure)
