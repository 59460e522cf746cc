"""What a dry run prints: how many jobs of each rule there are, once."""

import logging


class CountsOnce(logging.Filter):
    """Drops what Snakemake adds to the job counts, for a dry run that does not list the jobs.

    It repeats the counts after the list, and then names all rules again, by the reasons of their
    jobs.
    """

    def __init__(self) -> None:
        """Let the first counts through."""
        super().__init__()
        self._counted = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a message of Snakemake is printed."""
        counts = vars(record).get("event") == "run_info"
        repeats = counts and self._counted
        self._counted |= counts
        return not repeats and not str(record.msg).startswith("Reasons:")
