import json

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
    stages = {"Responses": {"torch": "2.13.0"}}
    page = provenance_page.to_html(stages, CONFIG, "N = 3 questions.", {})
    for text in ("<td>torch</td>", "2.13.0", "N = 3 questions."):
        assert text in page
    shown = page.split("<pre>")[1].split("</pre>")[0].replace("&amp;", "&")
    assert yaml.safe_load(shown) == CONFIG


def test_questions_that_do_not_leak_for_lack_of_a_paraphrase_are_listed():
    left_out = {"PQ": ["test-0002", "test-0007"]}
    page = provenance_page.to_html({}, CONFIG, "N = 3 questions.", left_out)
    assert "PQ: 2 questions have no valid paraphrase" in page
    assert "test-0002, test-0007" in page
    assert json.loads(provenance_page.to_json({}, CONFIG, left_out))["left_out"] == left_out
    assert "paraphrase" not in provenance_page.to_html({}, CONFIG, "N = 3 questions.", {})
