"""Tables, figures and the claims sheet; no torch."""
