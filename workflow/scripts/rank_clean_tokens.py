"""Rank the clean model's greedy tokens under the contaminated model (Figure 1 b, d)."""

from script_helpers import run
from zerogap.sampling import diagnostics

if __name__ == "__main__":
    run(diagnostics.rank_clean_tokens, on_gpu=True)
