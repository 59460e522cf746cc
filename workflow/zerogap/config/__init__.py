"""The configuration of a run: what it may say, how it is read, what it means."""

from zerogap.config.benchmark import Benchmark, Instructions
from zerogap.config.checks import config_warnings
from zerogap.config.config import CLEAN_PREFIX, Config
from zerogap.config.load import from_snakemake, load, load_benchmark, paper_config
from zerogap.config.models import BASES_FOLDER, FROM_SCRATCH, ModelEntry, Preparation, Pretraining
from zerogap.config.sampling import NeuronLocalisation, Sampling
from zerogap.config.strategies import StrategyEntry
from zerogap.config.training import Training

__all__ = [
    "BASES_FOLDER",
    "CLEAN_PREFIX",
    "FROM_SCRATCH",
    "Benchmark",
    "Config",
    "Instructions",
    "ModelEntry",
    "NeuronLocalisation",
    "Preparation",
    "Pretraining",
    "Sampling",
    "StrategyEntry",
    "Training",
    "config_warnings",
    "from_snakemake",
    "load",
    "load_benchmark",
    "paper_config",
]
