"""A module in place of vLLM: its responses are made of the request's seed alone."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

END, LONGEST = 0, 5


@dataclass
class SamplingParams:
    n: int
    temperature: float
    top_p: float
    max_tokens: int
    stop: list[str]
    stop_token_ids: list[int]
    seed: int
    extra_args: dict[str, Any] | None


@dataclass
class FakeVllm:
    """The module; `requests` are all that were made.

    Attributes:
        version: what `__version__` is.
        fails_at: number of the call of `generate` that is interrupted.
        cannot_load: the error of loading a model.
        options: what the latest `LLM` was made with.
        is_running: whether that `LLM` has not been shut down.
    """

    version: str = "0.32.0"
    fails_at: int | None = None
    cannot_load: Exception | None = None
    requests: list[tuple[list[int], SamplingParams]] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    is_running: bool = False
    num_calls: int = 0

    SamplingParams = SamplingParams

    @property
    def __version__(self) -> str:
        return self.version

    def LLM(self, model: str, **options: Any) -> SimpleNamespace:  # noqa: N802
        if self.cannot_load is not None:
            raise self.cannot_load
        self.options, self.is_running = options, True
        return SimpleNamespace(
            generate=self._generate,
            llm_engine=SimpleNamespace(
                vllm_config=SimpleNamespace(scheduler_config=SimpleNamespace(max_num_seqs=256)),
                engine_core=SimpleNamespace(shutdown=self._shut_down),
            ),
        )

    def _generate(self, inputs, params, use_tqdm):
        self.num_calls += 1
        if self.num_calls == self.fails_at:
            raise KeyboardInterrupt
        prompts = [entry["prompt_token_ids"] for entry in inputs]
        self.requests += zip(prompts, params, strict=True)
        return [
            SimpleNamespace(outputs=[response(request.seed + k) for k in range(request.n)])
            for request in params
        ]

    def _shut_down(self):
        self.is_running = False


def response(seed: int) -> SimpleNamespace:
    """A response: some tokens, ended by an end token, a stop string or their number."""
    generator = np.random.default_rng(seed)
    length = int(generator.integers(1, LONGEST + 1))
    tokens = generator.integers(5, 60, length).tolist()
    reason, stop = [("stop", None), ("stop", "Q:"), ("length", None)][int(generator.integers(3))]
    if (reason, stop) == ("stop", None):
        tokens[-1] = END
    return SimpleNamespace(token_ids=tuple(tokens), finish_reason=reason, stop_reason=stop)
