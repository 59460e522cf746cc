"""The small copy of one configured model, and where the files of its rehearsal are."""

import json
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from zerogap.config import Config
from zerogap.pipeline.base_files import base_files
from zerogap.pipeline.parameters import job_parameters

NUM_QUESTIONS, NUM_LEAKED, NUM_INSTRUCTIONS = 8, 4, 4
NUM_SAMPLES, MAX_NEW_TOKENS = 5, 12


class ModelCopy:
    """The copy of one model.

    Attributes:
        config: of the run.
        model: a key of its models.
        folder: of all files.
        real_width: shrink the number of layers only.
        real_weights: use the model as it is.
        benchmark: whose prompts are used.
        inputs: the files of every decoding job.
        base: folder of the copy before the training.
        merged: folder of the copy after it.
        greedy: table of greedy trajectories.
        neurons: table of neurons.
    """

    def __init__(
        self, config: Config, model: str, folder: Path, real_width: bool, real_weights: bool
    ) -> None:
        self.config, self.model, self.folder = config, model, folder
        self.real_width, self.real_weights = real_width, real_weights
        self.benchmark = config.owner_of(config.primary_setting.benchmark)
        self.inputs: dict[str, Any] = {
            "questions": folder / "questions.parquet",
            "exemplars": folder / "exemplars.json",
        }
        self.base, self.merged = folder / "base", folder / "model"
        self.greedy, self.neurons = folder / "greedy.parquet", folder / "neurons.parquet"

    @cached_property
    def source(self) -> Path:
        """The folder of the real model's files."""
        return base_files(self.config, self.model, weights=self.real_weights)

    def parameters(
        self, job: str, variant_of: Callable[[str], str] = lambda benchmark: benchmark
    ) -> dict[str, Any]:
        """The parameters of a job as in the run, with fewer samples and on our engine."""
        place = {"model": self.model, "variant": variant_of(self.benchmark)}
        if job.startswith("cells/"):
            _, place["cell"], job = job.split("/")
        parameters: dict[str, Any] = json.loads(job_parameters(self.config, job, place))
        for name in ("code", "engine"):
            parameters.pop(name, None)
        if "sampling" in parameters:
            sampling = parameters["sampling"]
            sampling["max_new_tokens"] = min(MAX_NEW_TOKENS, sampling["max_new_tokens"])
            if "num_samples" in sampling:
                sampling["num_samples"] = NUM_SAMPLES
        return parameters

    def table(self, name: str, contract: str) -> Path:
        """A table of a strategy, or of the clean model."""
        return self.folder / name / f"{contract}.parquet"
