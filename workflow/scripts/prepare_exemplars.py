"""Prepare the exemplars of the few-shot prompt."""

import json
from pathlib import Path
from typing import Any

from script_helpers import run
from zerogap.data.prompts import exemplars
from zerogap.io import atomic


def main(output: Path, *, source: Any, num_shots: int) -> None:
    shots = exemplars(source, num_shots)
    atomic.write_text(output, json.dumps(shots, ensure_ascii=False, indent=2) + "\n")
    print(f"{len(shots)} exemplars")


if __name__ == "__main__":
    run(main)
