"""The mitigation strategies, one module each."""
