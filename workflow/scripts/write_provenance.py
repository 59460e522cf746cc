"""Write the provenance page: software versions recorded in the files, and the configuration."""

import json

from script_helpers import Job, run_job
from zerogap.io import parquet
from zerogap.io.provenance import provenance
from zerogap.reporting.pages import collect_versions, provenance_html
from zerogap.reporting.render import provenance_line, save_texts


def main(job: Job) -> None:
    report = provenance(**job.params.metadata)
    questions = dict(
        zip(job.params.benchmarks, map(parquet.provenance, job.input.questions), strict=True)
    )
    served = {
        f"paraphrases of {label}": "; ".join(made["served_models"])
        for label, made in questions.items()
        if made.get("served_models")
    }
    page = {
        "software": {
            "Responses": collect_versions(map(parquet.provenance, job.input.responses)),
            "Metrics": collect_versions(map(parquet.provenance, job.input.metrics)),
            "Report": collect_versions([report]),
            **({"Chat model": served} if served else {}),
        },
        "left_out": {
            label: made["left_out"] for label, made in questions.items() if made.get("left_out")
        },
        "config": job.params.config,
    }
    html = provenance_html(**page, scale=job.params.scale, footer=provenance_line(report))
    text = json.dumps(page, indent=2, ensure_ascii=False) + "\n"
    save_texts(job.params.prefix, {".html": html, ".json": text})


if __name__ == "__main__":
    run_job(main, snakemake)  # noqa: F821 (Snakemake defines it)
