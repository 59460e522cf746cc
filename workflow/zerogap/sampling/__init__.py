"""Sample responses to questions, score them and store them."""
