"""Files: contracts, atomic writes, resumable folders and provenance."""
