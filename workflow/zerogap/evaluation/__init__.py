"""`zerogap evaluate`: sample one model under several strategies and say what the responses show."""
