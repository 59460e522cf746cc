"""The `training` section of a configuration, as the scripts get it."""

RECIPE = {
    "lora": {"rank": 8, "alpha": 16, "dropout": 0.0}, "learning_rate": 1e-3, "num_epochs": 1,
    "lr_scheduler": "cosine", "warmup_ratio": 0.1, "global_batch_size": 4, "num_gpus": 1,
    "per_device_batch_size": 2, "bf16": False, "device": "auto", "group_by_length": False,
    "cutoff_len": 128, "save_steps": None, "seed": 0,
}  # fmt: skip
