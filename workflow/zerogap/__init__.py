"""zerogap: contamination-mitigation evaluation of language models.

The subpackages can be used independently: :mod:`zerogap.metrics` computes SA-PPG and other metrics
from counts, :mod:`zerogap.strategies` holds RailCap and the baselines, and :mod:`zerogap.sampling`
samples responses under a strategy. Importing the package loads none of them; `zerogap.sample` and
the strategy classes import torch on first use.
"""

import importlib
import os
from typing import Any

__version__ = "0.1.0"
# Threads that wait for each other give up their core after microseconds, not milliseconds: next to
# a busy process sampling takes 2.7 times as long, not 3.3. OpenMP reads this when torch loads it.
os.environ.setdefault("GOMP_SPINCOUNT", "5000")

_MODULES = {
    "sample": "zerogap.sampling.api",
    "Context": "zerogap.strategies.base",
    "Intervention": "zerogap.strategies.base",
    "Rows": "zerogap.engine.decoder",
    "last_tokens": "zerogap.strategies.rail",
    "pad_trajectories": "zerogap.strategies.rail",
    "rail_tokens": "zerogap.strategies.rail",
    "Identity": "zerogap.strategies.identity",
    "LNEBlocking": "zerogap.strategies.lne_blocking",
    "RailCap": "zerogap.strategies.railcap",
    "RailCapLogitsProcessor": "zerogap.strategies.logits_processor",
    "Shortcut": "zerogap.strategies.shortcut",
    "TED": "zerogap.strategies.ted",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'zerogap' has no attribute '{name}'")
    try:
        return getattr(importlib.import_module(_MODULES[name]), name)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"zerogap.{name} needs {error.name}; install it with "
            "pip install '/path/to/zerogap[decoding]'"
        ) from None
