"""Write the provenance page: software versions recorded in the files, and the configuration."""

from typing import TYPE_CHECKING

from script_helpers import run_job
from zerogap.io import parquet
from zerogap.io.provenance import provenance
from zerogap.reporting.provenance_page import collect_versions, to_html, to_json
from zerogap.reporting.render import provenance_line, save_texts

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def main(job: "Snakemake") -> None:
    report = provenance(**job.params.metadata)
    stages = {
        "Responses": collect_versions(map(parquet.provenance, job.input.responses)),
        "Metrics": collect_versions(map(parquet.provenance, job.input.metrics)),
        "Report": collect_versions([report]),
    }
    left_out = {
        label: parquet.provenance(path).get("left_out", [])
        for label, path in zip(job.params.benchmarks, job.input.questions, strict=True)
    }
    left_out = {label: question_ids for label, question_ids in left_out.items() if question_ids}
    config, footer = job.params.config, provenance_line(report)
    texts = {
        ".html": to_html(stages, config, job.params.scale, left_out, footer),
        ".json": to_json(stages, config, left_out),
    }
    save_texts(job.params.prefix, texts)


if __name__ == "__main__":
    run_job(main, snakemake)  # noqa: F821 (Snakemake defines it)
