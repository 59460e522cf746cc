"""A dry run fits a screen; with `--quiet host` it lists the jobs and why they run."""

from snakemake.settings.enums import Quietness

from zerogap.pipeline.dry_run import CountsOnce

if workflow.output_settings.dryrun and Quietness.RULES in (
    workflow.output_settings.quiet or ()
):
    logger.addFilter(CountsOnce())
