"""A misspelt target ends the run with the nearest names."""

from snakemake.cli import get_argument_parser

from zerogap.pipeline.target_names import check_targets

if workflow.is_main_process:
    try:
        check_targets(
            get_argument_parser().parse_args(sys.argv[1:]).targets,
            [rule.name for rule in workflow.rules if not rule.has_wildcards()],
        )
    except InputError as error:
        sys.exit(f"error: {error}")
