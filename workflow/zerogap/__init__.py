"""zerogap: contamination-mitigation evaluation of language models.

The parts stand alone: :mod:`zerogap.metrics` (SA-PPG and its siblings from counts),
:mod:`zerogap.decoding` (RailCap, the baselines and the sampler), :mod:`zerogap.data`,
:mod:`zerogap.training`, :mod:`zerogap.reporting`. Importing the package itself loads none of them.
"""

__version__ = "0.1.0"
