"""Count the steps of responses on the greedy trajectory, by kind of the rail token."""

import pandas as pd

from script_helpers import Job, run_job
from zerogap.analysis.rail import replay
from zerogap.data.token_kinds import token_kinds
from zerogap.io import parquet
from zerogap.io.provenance import provenance
from zerogap.strategies.registry import RAIL_N


def main(job: Job) -> None:
    # After script_helpers, which makes these imports faster.
    from zerogap.engine import generation_config
    from zerogap.families.tokenizers import load_tokenizer

    tokenizer = load_tokenizer(job.input.model)
    config = generation_config.read(job.input.model)
    kind = token_kinds(tokenizer.decode, generation_config.end_tokens(tokenizer, config))
    leaked = parquet.read_of_run(job.input.questions, "questions").set_index("question_id").leaked
    clean_samples = parquet.read_of_run(job.input.clean_samples, "samples")
    clean_greedy = parquet.read_of_run(job.input.clean_greedy, "greedy")
    greedy = parquet.read_of_run(job.input.greedy, "greedy")
    tables = [replay("clean", clean_samples, clean_greedy, leaked, RAIL_N, kind)]
    for (strategy, n), path in zip(job.params.thresholds.items(), job.input.samples, strict=True):
        samples = parquet.read_of_run(path, "samples")
        tables.append(replay(strategy, samples, greedy, leaked, n, kind))
    made_by = provenance(**job.params.metadata, thresholds=job.params.thresholds)
    parquet.write(job.output[0], pd.concat(tables), "rail", made_by)


if __name__ == "__main__":
    run_job(main, snakemake)  # noqa: F821 (Snakemake defines it)
