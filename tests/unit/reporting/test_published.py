"""The published numbers are consistent with each other and with the paper's definitions."""

from zerogap.published import printed, protocol_differences, published


def pivot(place):
    rows = published()
    return rows[rows["place"] == place].pivot(index="strategy", columns="metric", values="value")


def test_ratios_of_the_text_follow_from_the_tables():
    table = pivot("Table 2")
    lne, railcap = table.loc["lne_blocking"], table.loc["railcap"]
    ratios = {
        "delta_minus_ratio_lne_railcap": lne["delta_minus"] / railcap["delta_minus"],
        "g_app_ratio_railcap_lne": railcap["g_app"] / lne["g_app"],
    }
    for metric, ratio in ratios.items():
        assert round(ratio, 1) == printed(metric)[0]
    assert round(lne["sa_ppg"] / lne["g_app"]) == printed("verdict_factor_lne")[0]
    g_ap = pivot("Table 1").loc["lne_blocking", "g_ap"]
    assert round(lne["g_app"] - g_ap, 4) == printed("g_app_minus_g_ap_lne")[0]
    railcap = pivot("Table 4").loc["railcap"]
    parity = railcap["s_delta_plus"] - railcap["s_delta_minus"]
    assert round(parity, 4) == printed("s_delta_difference_railcap")[0]
    assert printed("nothing_of_the_kind") is None


def test_protocol_differences_names_what_differs_from_the_paper():
    same = {
        "questions": "",
        "base_model": {"llama2": "folder/llama-2-7b-hf", "mine": "gpt2"},
        "test_questions": [1319],
        "epochs": [5, 5],
        "learning_rate": [2.0e-4, 2.0e-4],
    }
    assert protocol_differences(same) == protocol_differences({}) == ()
    other = {"questions": "generated", "base_model": {"pythia": "pythia-70m"}, "epochs": [5, 10]}
    assert protocol_differences(same | other) == (
        "questions generated, not GSM8K's",
        "base model pythia-70m, not Pythia-12B",
        "epochs 5 and 10, not 5",
    )
