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


def test_boxes_and_lines_of_a_graph_even_with_circles():
    root = ElementTree.fromstring(draw_graph.draw(DOT))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["all", "model", "benchmark: a<b", "data"]
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) == 3


def test_inputs_stand_above_what_is_made_of_them():
    root = ElementTree.fromstring(draw_graph.draw(DOT.replace("0 -> 2", "")))
    boxes = list(root.iter("{http://www.w3.org/2000/svg}rect"))[1:]
    tops = [float(box.get("y")) for box in boxes]
    assert tops[2] < tops[1] < tops[0]


def test_no_graph_is_said():
    with pytest.raises(ValueError, match="rulegraph"):
        draw_graph.draw("Nothing to be done.")
