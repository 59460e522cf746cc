"""Generated data in place of GSM8K and OpenOrca, for toy models."""
