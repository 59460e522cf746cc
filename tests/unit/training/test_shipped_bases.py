"""The toy bases in workflow/resources/bases."""

import hashlib
import json

from helpers.paths import ROOT


def test_the_shipped_weights_have_the_hash_in_their_provenance():
    folders = sorted((ROOT / "workflow/resources/bases").glob("*/"))
    assert [folder.name for folder in folders] == ["gemma", "llama2", "llama2_varied", "pythia"]
    for folder in folders:
        weights = (folder / "model.safetensors").read_bytes()
        provenance = json.loads((folder / "provenance.json").read_text())
        assert hashlib.sha256(weights).hexdigest() == provenance["weights_sha256"]
