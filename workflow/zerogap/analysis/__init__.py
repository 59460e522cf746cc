"""What the tables of a run say beyond the metrics: memorisation, overlap, cost and more."""
