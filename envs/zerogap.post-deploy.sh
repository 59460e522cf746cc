#!/bin/sh
# Snakemake runs this in the new environment, and makes it again when this file changes: the digest
# of requirements.lock, which `make lock` writes here, makes both the same.
set -e
echo "14a3a51acf3f98acce53e937664267fd5c975bbbdc7f03698451af7e54073118  requirements.lock" | sha256sum --check --quiet -
# The lock file is complete, so --no-deps is safe; torchvision and torchaudio are left out on purpose.
python -m pip install --no-deps --require-hashes -r requirements.lock
