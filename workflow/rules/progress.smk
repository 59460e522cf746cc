"""One line on the long jobs, which are those with a timing, whenever some of them start."""

from zerogap.pipeline.progress import Progress

if workflow.is_main_process:
    logger.addHandler(
        Progress([rule.name for rule in workflow.rules if rule.benchmark], logger.info)
    )
