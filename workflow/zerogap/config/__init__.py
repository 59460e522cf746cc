"""The configuration of a run: what it may say, how it is read, what it means."""

from zerogap.config.benchmark import Benchmark
from zerogap.config.config import Config, config_warnings, vllm_problem
from zerogap.config.errors import ConfigError
from zerogap.config.files import paper_config
from zerogap.config.load import from_snakemake, load, load_benchmark
from zerogap.config.models import BASES_FOLDER, ModelEntry, Training

__all__ = [
    "BASES_FOLDER",
    "Benchmark",
    "Config",
    "ConfigError",
    "ModelEntry",
    "Training",
    "config_warnings",
    "from_snakemake",
    "load",
    "load_benchmark",
    "paper_config",
    "vllm_problem",
]
