"""How fast a device works, and how long a job therefore takes: stated, measured or assumed.

A rate that the user states applies as it is. A speed measured in a finished run
(:mod:`zerogap.pipeline.finished_run`) scales the assumed rates of that stage and model. All others
are assumed: measured on one GPU, or arithmetic, and scaled by data sheets (docs/planning.md).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from zerogap.families import ModelSize

STATED, MEASURED, ASSUMED = "stated", "measured", "assumed"
RateByModel = Mapping[str, float]  # under "": of a model with REFERENCE_PARAMETERS

# Tokens per second of a 7B model in bfloat16 on one A100 with 80 GB.
DEFAULT_RATES = {"training": 3000, "sampling": 8000, "greedy": 5000, "prefill": 10_000}
COMPUTE_BOUND = ("training", "prefill")  # the others are limited by the memory bandwidth
REFERENCE_PARAMETERS = 7e9  # of the model to which the default rates apply
MIN_PARAMETERS_TO_SCALE = 4e8  # below, fixed costs per step dominate
# A step of few rows, measured with 20 on an H200 and scaled to that A100 (docs/planning.md). It is
# twice the time to read the weights.
SECONDS_PER_PARAMETER = 2.1e-12


@dataclass(frozen=True)
class Gpu:
    """A GPU, from its data sheet.

    Attributes:
        memory: in bytes, as CUDA reports it.
        bandwidth: of the memory, relative to the A100 with 80 GB (2.04 TB/s).
        compute: dense bfloat16 operations, relative to the A100 (312 TFLOPS).
    """

    memory: float
    bandwidth: float
    compute: float


GIB = 2**30
GPUS = {
    "a100-80gb": Gpu(79.2 * GIB, 1.0, 1.0),
    "a100-40gb": Gpu(39.5 * GIB, 0.76, 1.0),
    "h100-80gb": Gpu(79.1 * GIB, 1.64, 3.17),
    "h200-141gb": Gpu(139.8 * GIB, 2.35, 3.17),
    "rtx-4090": Gpu(23.5 * GIB, 0.49, 0.53),
    "rtx-3090": Gpu(23.6 * GIB, 0.46, 0.23),
}
DEFAULT_GPU = "a100-80gb"


@dataclass(frozen=True)
class Work:
    """What a job does.

    Attributes:
        tokens: kind of rate → tokens processed at it.
        decode_steps: forward passes of one model over a batch too small for a rate.
        decoded: the tokens that these steps generate.
        batch_rows: rows of that batch.
    """

    tokens: Mapping[str, float] = field(default_factory=dict)
    decode_steps: float = 0.0
    decoded: float = 0.0
    batch_rows: int = 1

    @property
    def num_tokens(self) -> float:
        """All tokens, whatever their rate."""
        return sum(self.tokens.values()) + self.decoded

    @property
    def main_kind(self) -> str:
        """The kind of rate that takes most of the time; it comes last in `tokens`."""
        return "greedy" if self.decode_steps else list(self.tokens)[-1]


@dataclass(frozen=True)
class Rates:
    """Tokens per second on one device.

    A model without a stated rate gets that of a 7B model in inverse proportion to its parameters.

    Attributes:
        training: stated rates: tokens of training examples, prompts included.
        sampling: stated rates: generated tokens, many responses per question.
        greedy: stated rates: generated tokens, one response per question.
        prefill: stated rates: tokens of prompts, and of responses that are only scored.
        speeds: (stage, model) → speed measured in a finished run, relative to `REFERENCE_RATES`.
        gpu: of the assumed rates.
    """

    training: RateByModel = field(default_factory=dict)
    sampling: RateByModel = field(default_factory=dict)
    greedy: RateByModel = field(default_factory=dict)
    prefill: RateByModel = field(default_factory=dict)
    speeds: Mapping[tuple[str, str], float] = field(default_factory=dict)
    gpu: Gpu = GPUS[DEFAULT_GPU]

    def source(self, work: Work, stage: str, model: str, size: ModelSize) -> str:
        """Where a job's rate comes from: STATED, MEASURED or ASSUMED; "" if there is none.

        Neither a rate stated for all models nor an assumed one applies to a model with fewer than
        MIN_PARAMETERS_TO_SCALE.
        """
        stated: RateByModel = getattr(self, work.main_kind)
        scales = size.parameters >= MIN_PARAMETERS_TO_SCALE
        if model in stated or ("" in stated and scales):
            return STATED
        if (stage, model) in self.speeds:
            return MEASURED
        return ASSUMED if scales else ""

    def seconds(self, work: Work, stage: str, model: str, size: ModelSize) -> float:
        """How long a job takes; NaN if no rate is known."""
        source = self.source(work, stage, model, size)
        if not source:
            return math.nan
        if source == MEASURED:
            return REFERENCE_RATES.nominal_seconds(work, model, size) / self.speeds[stage, model]
        return self.nominal_seconds(work, model, size)

    def nominal_seconds(self, work: Work, model: str, size: ModelSize) -> float:
        """How long a job takes at the stated and the assumed rates, for a model of any size."""
        seconds = sum(
            tokens / self.rate(kind, model, size.parameters) for kind, tokens in work.tokens.items()
        )
        if work.decode_steps:
            shortest = SECONDS_PER_PARAMETER / self.gpu.bandwidth * size.parameters
            rows_seconds = work.batch_rows / self.rate("greedy", model, size.parameters)
            seconds += work.decode_steps * max(shortest, rows_seconds)
        return seconds

    def rate(self, kind: str, model: str, parameters: int) -> float:
        """The stated or assumed rate of one kind of work."""
        stated: RateByModel = getattr(self, kind)
        if model in stated:
            return stated[model]
        factor = self.gpu.compute if kind in COMPUTE_BOUND else self.gpu.bandwidth
        return stated.get("", DEFAULT_RATES[kind] * factor) * REFERENCE_PARAMETERS / parameters


REFERENCE_RATES = Rates()
