"""The toy base models of the quick scale: tokenizer, corpus, architecture and pretraining."""
