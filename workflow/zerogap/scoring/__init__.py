"""Score response files of any origin: readers, alignment and metrics."""
