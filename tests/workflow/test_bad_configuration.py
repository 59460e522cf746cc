"""Snakemake with mistakes in the configuration: it stops, or warns, before anything runs."""

import pytest

from helpers.dry_runs import snakemake


@pytest.mark.parametrize(
    ("overlay", "message"),
    [
        ("nonsense: 1", "overlay.yaml: nonsense: unknown key"),
        ("models: { llama2: null }", "config.yaml: primary_setting.model"),
        ("strategies: { railcap: { class: railcup } }", "overlay.yaml: strategies.railcap.class"),
        ("seed: 1\nseed: 2", "line 2: duplicate key seed"),
        ("strategies: { railcap: { class: 'os:abort' } }", "is not a class with a method prepare"),
        ("strategies: { railcap: { parameters: { ngram: 4 } } }", "keyword argument 'ngram'"),
    ],
)
def test_snakemake_stops_before_anything_runs(tmp_path, overlay, message):
    (tmp_path / "overlay.yaml").write_text(overlay)
    process = snakemake("-n", "--configfile", tmp_path / "overlay.yaml")
    assert process.returncode != 0
    text = process.stdout + process.stderr
    assert message in text
    assert "Traceback" not in text


def test_unlikely_values_are_warnings_and_the_run_continues(tmp_path):
    (tmp_path / "overlay.yaml").write_text("metrics: { bins: 60 }")
    resources = ("decode_greedy:runtime=2-0", "train_lora:runtime=2d", "merge_shards:runtime=5")
    process = snakemake(
        *("-n", "--profile", "profiles/quick", "--configfile", "profiles/quick/quick.yaml"),
        *(tmp_path / "overlay.yaml", "--set-resources", *resources, "sample_response:runtime=9h"),
        *("--", "table_main"),
    )
    assert process.returncode == 0
    text = process.stdout + process.stderr
    for warning in (
        "metrics.bins is 60, more than sampling.num_samples (20)",
        "set-resources: the runtime 2-0 of decode_greedy is 2 min, too short for a job on a GPU",
        "set-resources: there is no rule 'sample_response'; did you mean sample_responses",
    ):
        assert text.count(warning) == 1
    assert text.count("set-resources: ") == 2
