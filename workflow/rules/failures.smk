"""What failed and why, as the last lines that a run prints, whatever the profile hides."""

from zerogap.pipeline import failures


onerror:
    logger.error(
        failures.describe(
            failures.FailedJob(job.rule.name, job.wildcards_dict, [*job.log])
            for job in workflow.scheduler.failed
        )
    )
