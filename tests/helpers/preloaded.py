"""What every call of Snakemake imports and calculates before it reads its arguments."""

import pandas  # noqa: F401
import snakemake.cli  # noqa: F401

import zerogap.config
import zerogap.pipeline.report.figures
import zerogap.pipeline.report.tables
import zerogap.pipeline.terminal  # noqa: F401
from zerogap.pipeline import parameters

for script in parameters.SCRIPTS.glob("*.py"):
    parameters.code(script.stem)
