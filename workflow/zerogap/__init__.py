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
    "sample": "zerogap.decoding.standalone",
    "Identity": "zerogap.decoding.identity",
    "LNEBlocking": "zerogap.decoding.lne_blocking",
    "RailCap": "zerogap.decoding.railcap",
    "RailCapLogitsProcessor": "zerogap.decoding.railcap",
    "Shortcut": "zerogap.decoding.shortcut",
    "TED": "zerogap.decoding.ted",
}
__all__ = list(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'zerogap' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)
