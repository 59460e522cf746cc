"""Write the `solve` table of All-Zero, which fails every question (paper, section 5.2.2).

It shows what an equal-weight average rewards: on a weak clean model, answering everything wrong
comes close to most questions' solve probability. Nothing is decoded.
"""

from script_helpers import Job, run_job
from zerogap.io import parquet
from zerogap.io.provenance import provenance
from zerogap.metrics.same_questions import with_leaked_of


def main(job: Job) -> None:
    questions = parquet.read_of_run(job.input.questions, "questions")
    clean = with_leaked_of(questions, parquet.read_of_run(job.input.clean, "solve"))
    metadata = provenance(**job.params.metadata)
    parquet.write(job.output[0], clean.assign(n_correct=0, first_correct=False), "solve", metadata)


if __name__ == "__main__":
    run_job(main, snakemake)  # noqa: F821 (Snakemake defines it)
