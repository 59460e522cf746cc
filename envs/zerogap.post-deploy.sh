#!/bin/sh
# Snakemake runs this in the new environment, and makes it again when this file changes: the digest
# of requirements.lock, which `make lock` writes here, makes both the same.
set -e
echo "71cabc208223b870b57be6f861a4f33d00822428e76f9b10576b121446fd8109  requirements.lock" | sha256sum --check --quiet -
# The lock file is complete, so --no-deps is safe; torchvision and torchaudio are left out on purpose.
python -m pip install --no-deps --require-hashes -r requirements.lock
