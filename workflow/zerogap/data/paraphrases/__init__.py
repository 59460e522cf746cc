"""Paraphrases of leaked questions (the benchmark PQ, appendix A.1): by rules or by a model."""
