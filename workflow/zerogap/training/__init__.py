"""Training: LoRA with LLaMA-Factory, and toy base models from scratch."""
