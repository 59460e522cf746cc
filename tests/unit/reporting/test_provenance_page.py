import json

import yaml

import write_provenance as origin_script
from helpers.synthetic_run import solve_tables
from zerogap.io import parquet
from zerogap.reporting import provenance_page

CONFIG = {"run": "tiny", "models": {"llama2": {"label": "Llama & 2", "family": "llama"}}}


def test_files_of_one_stage_made_by_two_versions_show_both():
    made = [
        {"commit": "a", "device": "cpu", "packages": {"torch": "1", "peft": None}},
        {"commit": "b", "device": "cpu", "packages": {"torch": "1", "peft": None}},
    ]
    assert provenance_page.versions(made) == {"commit": "a, b", "device": "cpu", "torch": "1"}


def test_page_holds_the_configuration_as_it_was():
    page = provenance_page.to_html({"Responses": {"torch": "2.13.0"}}, CONFIG, "N = 3 questions.")
    assert "<td>torch</td>" in page and "2.13.0" in page and "N = 3 questions." in page
    shown = page.split("<pre>")[1].split("</pre>")[0].replace("&amp;", "&")
    assert yaml.safe_load(shown) == CONFIG


def test_script_reads_what_the_files_tell(tmp_path):
    path = tmp_path / "solve.parquet"
    parquet.write(
        path, solve_tables(n=4)[0], "solve", {"commit": "abc", "packages": {"torch": "1"}}
    )
    common = ["--responses", str(path), "--readings", str(path), "--config", json.dumps(CONFIG)]
    origin_script.main([*common, "--output", str(tmp_path / "provenance")])
    kept = json.loads((tmp_path / "provenance.json").read_text())
    assert kept["config"] == CONFIG
    assert kept["software"]["Responses"] == {"commit": "abc", "torch": "1"}
    assert kept["software"]["Report"]["python"]
    assert "abc" in (tmp_path / "provenance.html").read_text()
