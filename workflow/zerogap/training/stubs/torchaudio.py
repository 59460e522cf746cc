"""Empty stand-in for torchaudio, which LLaMA-Factory 0.9.5 imports even to train on text."""
