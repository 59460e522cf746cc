"""The paper's claims, and whether a run supports them."""
