"""Draw a graph that Snakemake prints (--rulegraph dot, --dag dot) as SVG, without Graphviz."""

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import networkx

CHARACTER_WIDTH, LINE_HEIGHT, PADDING = 6.4, 14, 10  # pixels at a font size of 11
COLUMN_GAP, ROW_GAP, MARGIN = 14, 46, 10
N_SWEEPS = 24


@dataclass
class Box:
    """A node of the graph: its lines of text, and the centre of its box in pixels."""

    lines: list[str]
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        """Width in pixels."""
        return max(map(len, self.lines)) * CHARACTER_WIDTH + 2 * PADDING

    @property
    def height(self) -> float:
        """Height in pixels."""
        return len(self.lines) * LINE_HEIGHT + PADDING


def draw(dot: str) -> str:
    """Draw a graph in layers, inputs at the top.

    Args:
        dot: The graph as Snakemake prints it, in the DOT language.

    Returns:
        An SVG document.

    Raises:
        ValueError: The text has no node.
    """
    labels = dict(re.findall(r'^\s*(\d+)\s*\[label = "([^"]*)"', dot, re.M))
    if not labels:
        raise ValueError("no graph on standard input; pipe `snakemake --rulegraph dot` into this")
    edges = re.findall(r"^\s*(\d+)\s*->\s*(\d+)", dot, re.M)
    boxes = {name: Box(label.split("\\n")) for name, label in labels.items()}
    _place(boxes, _without_cycles(labels, edges))
    connections = [(boxes[start], boxes[end]) for start, end in edges if start != end]
    return _svg(list(boxes.values()), connections)


def _without_cycles(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> networkx.DiGraph:
    """The graph without edges that close a cycle: a rule of a rule graph can depend on itself."""
    graph = networkx.DiGraph()
    graph.add_nodes_from(names)
    for start, end in edges:
        if not networkx.has_path(graph, end, start):
            graph.add_edge(start, end)
    return graph


def _place(boxes: dict[str, Box], graph: networkx.DiGraph) -> None:
    """Set the centre of every box.

    Every box of a layer is sorted by the mean position of its neighbours, alternately those above
    and below, until few edges cross.
    """
    layers = [list(layer) for layer in networkx.topological_generations(graph)]
    for sweep in range(N_SWEEPS):
        downwards = sweep % 2 == 1
        neighbours = graph.predecessors if downwards else graph.successors
        for layer in layers if downwards else layers[::-1]:
            _sort_layer(layer, boxes, neighbours)
    top = 0.0
    for layer in layers:
        height = max(boxes[name].height for name in layer)
        for name in layer:
            boxes[name].y = top + height / 2
        top += height + ROW_GAP


def _sort_layer(
    layer: list[str], boxes: dict[str, Box], neighbours: Callable[[str], list[str]]
) -> None:
    mean_position = {}
    for name in layer:
        positions = [boxes[neighbour].x for neighbour in neighbours(name)]
        mean_position[name] = sum(positions) / len(positions) if positions else boxes[name].x
    layer.sort(key=mean_position.__getitem__)
    left = -(sum(boxes[name].width for name in layer) + COLUMN_GAP * (len(layer) - 1)) / 2
    for name in layer:
        boxes[name].x = left + boxes[name].width / 2
        left += boxes[name].width + COLUMN_GAP


def _svg(boxes: Sequence[Box], connections: Sequence[tuple[Box, Box]]) -> str:
    left = min(box.x - box.width / 2 for box in boxes) - MARGIN
    width = max(box.x + box.width / 2 for box in boxes) + MARGIN - left
    height = max(box.y + box.height / 2 for box in boxes) + 2 * MARGIN
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="{left:.0f} -{MARGIN} {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-family="sans-serif" font-size="11">',
        f'<rect x="{left:.0f}" y="-{MARGIN}" width="{width:.0f}" height="{height:.0f}" '
        'fill="white"/>',
    ]
    parts += [_curve(start, end) for start, end in connections]
    for box in boxes:
        parts += _rectangle(box)
    return "\n".join([*parts, "</svg>\n"])


def _curve(start: Box, end: Box) -> str:
    y1, y2 = start.y + start.height / 2, end.y - end.height / 2
    middle = (y1 + y2) / 2
    return (
        f'<path d="M{start.x:.1f} {y1:.1f} C{start.x:.1f} {middle:.1f} {end.x:.1f} {middle:.1f} '
        f'{end.x:.1f} {y2:.1f}" fill="none" stroke="#9aa5b1"/>'
    )


def _rectangle(box: Box) -> list[str]:
    parts = [
        f'<rect x="{box.x - box.width / 2:.1f}" y="{box.y - box.height / 2:.1f}" '
        f'width="{box.width:.1f}" height="{box.height:.1f}" rx="4" fill="#eef4fb" '
        'stroke="#3b6ea5"/>'
    ]
    first_baseline = box.y - (len(box.lines) - 1) * LINE_HEIGHT / 2 + 4
    for index, line in enumerate(box.lines):
        parts.append(
            f'<text x="{box.x:.1f}" y="{first_baseline + index * LINE_HEIGHT:.1f}" '
            f'text-anchor="middle">{escape(line)}</text>'
        )
    return parts


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: snakemake --rulegraph dot | draw_graph.py OUTPUT.svg")
    output = Path(sys.argv[1])
    output.parent.mkdir(parents=True, exist_ok=True)
    try:
        output.write_text(draw(sys.stdin.read()))
    except ValueError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
