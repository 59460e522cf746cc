import yaml

from zerogap.reporting import provenance_page

CONFIG = {"run": "tiny", "models": {"llama2": {"label": "Llama & 2", "family": "llama"}}}


def test_a_stage_written_by_two_versions_lists_both():
    provenances = [
        {"commit": "a", "device": "cpu", "packages": {"torch": "1", "peft": None}},
        {"commit": "b", "device": "cpu", "packages": {"torch": "1", "peft": None}},
    ]
    versions = provenance_page.collect_versions(provenances)
    assert versions == {"commit": "a, b", "device": "cpu", "torch": "1"}


def test_page_has_the_configuration_as_yaml():
    page = provenance_page.to_html({"Responses": {"torch": "2.13.0"}}, CONFIG, "N = 3 questions.")
    for text in ("<td>torch</td>", "2.13.0", "N = 3 questions."):
        assert text in page
    shown = page.split("<pre>")[1].split("</pre>")[0].replace("&amp;", "&")
    assert yaml.safe_load(shown) == CONFIG
