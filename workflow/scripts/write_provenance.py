"""What a run was made by: the versions that its files tell of, and its configuration."""

import argparse
from pathlib import Path

from arguments import json_argument, run
from zerogap.io import parquet
from zerogap.io.provenance import provenance
from zerogap.reporting import provenance_page, render


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--responses", type=Path, nargs="+", required=True)
    parser.add_argument("--readings", type=Path, nargs="+", required=True)
    parser.add_argument("--config", type=json_argument, required=True)
    parser.add_argument("--scale", default="", help="a sentence on the size of the run")
    parser.add_argument("--facts", type=json_argument, default={})
    parser.add_argument("--output", required=True, help="prefix: .html .json")
    args = parser.parse_args(argv)

    own = provenance(**args.facts)
    stages = {
        "Responses": provenance_page.versions(map(parquet.provenance, args.responses)),
        "MetricTable": provenance_page.versions(map(parquet.provenance, args.readings)),
        "Report": provenance_page.versions([own]),
    }
    footer = render.provenance_line(own)
    for suffix, text in {
        ".html": provenance_page.to_html(stages, args.config, args.scale, footer),
        ".json": provenance_page.to_json(stages, args.config),
    }.items():
        with parquet.atomic(f"{args.output}{suffix}") as path:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    run(main)
