"""Time and memory of a dry run as a function of models, benchmarks and strategies.

python benchmarks/dag_size.py

Nothing exists yet, so `snakemake -n` plans every job. Every benchmark has questions of its own, and
so a clean model per base model. Seconds are processor time.
"""

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import common
import yaml

SIZES = ((4, 4, 5), (10, 5, 10), (10, 10, 10), (50, 10, 10))  # models, benchmarks, strategies


def main() -> None:
    """Plan all sizes and publish the table."""
    args = common.output_parser(__doc__).parse_args()
    rows = []
    for models, benchmarks, strategies in SIZES:
        result = common.in_child(
            __file__, models=models, benchmarks=benchmarks, strategies=strategies
        )
        rows.append(
            [
                str(models),
                str(benchmarks),
                str(strategies),
                f"{models * benchmarks * strategies:,}",
                f"{result['jobs']:,}",
                f"{result['seconds']:.1f}",
                f"{result['bytes'] / 2**20:,.0f}",
            ]
        )
    common.publish(
        "Dry run (`snakemake -n`) by the size of the run",
        ["models", "benchmarks", "strategies", "cells", "jobs", "seconds", "memory, MiB"],
        rows,
        args.output,
    )


def measure(models: int, benchmarks: int, strategies: int) -> dict[str, Any]:
    """Number of jobs, processor seconds and peak memory of one dry run."""
    command = [sys.executable, "-m", "snakemake", "-n", "--quiet", "rules"]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("Snakefile", "config.yaml", "workflow"):
            Path(folder, name).symlink_to(common.ROOT / name)
        overlay = Path(folder, "large.yaml")
        overlay.write_text(json.dumps(configuration(models, benchmarks, strategies)))
        process = subprocess.run(  # noqa: S603 (Snakemake itself)
            [*command, "--configfile", overlay.name],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(common.ROOT / "workflow")},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "jobs": int(re.findall(r"^total +(\d+)$", process.stdout, re.MULTILINE)[0]),
        "seconds": usage.ru_utime + usage.ru_stime,
        "bytes": usage.ru_maxrss * 1024,
    }


def configuration(models: int, benchmarks: int, strategies: int) -> dict[str, Any]:
    """An overlay of `config.yaml` with so many models, benchmarks and strategies.

    The strategies are the paper's five and RailCap with further n; there is no ablation.
    """
    paper = yaml.safe_load((common.ROOT / "config.yaml").read_text())
    without = {key: dict.fromkeys(paper[key]) for key in ("models", "benchmarks", "ablation")}
    return {
        "run": "large",
        "models": without["models"]
        | {
            f"model{k}": {"label": f"Model {k}", "base": f"organisation/model-{k}"}
            for k in range(models)
        },
        "benchmarks": without["benchmarks"]
        | {
            f"benchmark{k}": paper["benchmarks"]["gsm8k"] | {"label": f"Benchmark {k}"}
            for k in range(benchmarks)
        },
        "strategies": {
            f"railcap{n}": paper["strategies"]["railcap"]
            | {"label": f"RailCap {n}", "parameters": {"n": n, "suppression": "cap"}}
            for n in range(1, strategies - len(paper["strategies"]) + 1)
        },
        "ablation": without["ablation"],
        "primary_setting": {"model": "model0", "benchmark": "benchmark0"},
    }


if __name__ == "__main__":
    common.run(main, measure)
