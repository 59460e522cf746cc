#!/bin/sh
# As zerogap.post-deploy.sh, with the lock file of vLLM.
set -e
echo "a35e4f2a5090d18ec1befa813e7f79ccbd6d44e125f3b92bd4c827b86d5b8d4c  envs/vllm.lock" | sha256sum --check --quiet -
python -m pip install --no-deps --require-hashes -r envs/vllm.lock
