#!/bin/sh
# Snakemake runs this in the new environment, and makes it again when this file changes: the digest
# of requirements.lock, which `make lock` writes here, makes both the same.
set -e
echo "50ba6f54f95dee85e2b60048140561c4846381259775e1bade4d8a212ad0f72c  requirements.lock" | sha256sum --check --quiet -
# The lock file is complete, so --no-deps is safe; torchvision and torchaudio are left out on purpose.
python -m pip install --no-deps --require-hashes -r requirements.lock
