#!/bin/sh
# Snakemake runs this in the new environment, and makes it again when this file changes: the digest
# of requirements.lock, which `make lock` writes here, makes both the same.
set -e
echo "3f7ee64a33094004db142c286a31e2c7805a270c29592eecbc3e9109fe9f130c  requirements.lock" | sha256sum --check --quiet -
# The lock file is complete, so --no-deps is safe; torchvision and torchaudio are left out on purpose.
python -m pip install --no-deps --require-hashes -r requirements.lock
