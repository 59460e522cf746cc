"""zerogap: contamination-mitigation evaluation of language models.

The parts stand alone: :mod:`zerogap.metrics` (SA-PPG and its siblings from counts),
:mod:`zerogap.decoding` (RailCap, the baselines and the sampler), :mod:`zerogap.data`,
:mod:`zerogap.training`, :mod:`zerogap.reporting`. Importing the package itself loads none of them;
`zerogap.sample` and the strategies load torch when they are first named.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "sample": "zerogap.sampling.api",
    "Identity": "zerogap.strategies.identity",
    "LNEBlocking": "zerogap.strategies.lne_blocking",
    "RailCap": "zerogap.strategies.railcap",
    "RailCapLogitsProcessor": "zerogap.strategies.railcap",
    "Shortcut": "zerogap.strategies.shortcut",
    "TED": "zerogap.strategies.ted",
}
__all__ = list(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'zerogap' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)
