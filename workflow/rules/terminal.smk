"""What a run says in the terminal; included last, since it looks at all rules."""

from snakemake.cli import get_argument_parser
from snakemake.settings.enums import Quietness

from zerogap.pipeline import terminal

if workflow.is_main_process:
    # Snakemake takes a misspelt target for a file.
    try:
        terminal.check_targets(
            get_argument_parser().parse_args(sys.argv[1:]).targets,
            [rule.name for rule in workflow.rules if not rule.has_wildcards()],
        )
    except InputError as error:
        sys.exit(f"error: {error}")
    uses_gpu = {rule.name: "gpu" in rule.resources for rule in workflow.rules}
    for warning in terminal.resource_warnings(
        workflow.resource_settings.overwrite_resources,
        dict.fromkeys(("merge_shards", "merge_neurons"), False) | uses_gpu,
    ):
        logger.warning(warning)

# A dry run fits a screen; with `--quiet host` it lists the jobs and why they run.
if workflow.output_settings.dryrun and Quietness.RULES in (
    workflow.output_settings.quiet or ()
):
    logger.addFilter(terminal.CountsOnce())


# The last lines that a run prints, whatever the profile hides.
onerror:
    if workflow.scheduler.failed:  # not if the run was interrupted
        logger.error(
            terminal.describe_failures(
                workflow.scheduler.failed, workflow.start_time.timestamp()
            )
        )
