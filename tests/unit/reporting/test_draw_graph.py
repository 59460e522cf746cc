import xml.etree.ElementTree as ElementTree

import pytest

import draw_graph

DOT = r"""digraph snakemake_dag {
    0[label = "all", color = "0"];
    1[label = "model\nbenchmark: a<b", color = "0"];
    2[label = "data", color = "0"];
    1 -> 0
    2 -> 1
    1 -> 1
    0 -> 2
}"""


def test_a_graph_with_cycles_has_one_box_per_node_and_one_curve_per_edge():
    root = ElementTree.fromstring(draw_graph.draw(DOT))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["all", "model", "benchmark: a<b", "data"]
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) == 3


def test_inputs_are_above_their_outputs():
    root = ElementTree.fromstring(draw_graph.draw(DOT.replace("0 -> 2", "")))
    boxes = list(root.iter("{http://www.w3.org/2000/svg}rect"))[1:]
    tops = [float(box.get("y")) for box in boxes]
    assert tops[2] < tops[1] < tops[0]


def test_text_without_a_graph_is_an_error():
    with pytest.raises(ValueError, match="rulegraph"):
        draw_graph.draw("Nothing to be done.")
