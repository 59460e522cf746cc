"""Draw a graph that Snakemake prints (--rulegraph dot, --dag dot) as SVG, without Graphviz."""

import argparse
import re
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path

import networkx

CHARACTER, LINE, PADDING = 6.4, 14, 10  # pixels at a font size of 11
BETWEEN, ROW_GAP = 14, 46
SWEEPS = 24


@dataclass
class Box:
    """A node: its text, its size and, once laid out, the middle of its place."""

    lines: list[str]
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        return max(map(len, self.lines)) * CHARACTER + 2 * PADDING

    @property
    def height(self) -> float:
        return len(self.lines) * LINE + PADDING


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path, help="SVG; the graph is read from standard input")
    args = parser.parse_args(argv)
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(draw(sys.stdin.read()))


def draw(dot: str) -> str:
    """The SVG of a graph in DOT, laid out in layers from top to bottom.

    Raises:
        ValueError: no node in the text.
    """
    labels = dict(re.findall(r'^\s*(\d+)\s*\[label = "([^"]*)"', dot, re.M))
    if not labels:
        raise ValueError("no graph on standard input; pipe `snakemake --rulegraph dot` into this")
    graph = networkx.DiGraph()
    graph.add_nodes_from(labels)
    edges = re.findall(r"^\s*(\d+)\s*->\s*(\d+)", dot, re.M)
    for start, end in edges:  # a graph of rules has circles: a model is trained from another
        if not networkx.has_path(graph, end, start):
            graph.add_edge(start, end)
    boxes = {name: Box(label.split("\\n")) for name, label in labels.items()}
    rows = [list(row) for row in networkx.topological_generations(graph)]
    # Each row in the order of its neighbours' middles, up and down, until it settles.
    for sweep in range(SWEEPS):
        for row in rows if sweep % 2 else rows[::-1]:
            near = graph.predecessors if sweep % 2 else graph.successors
            middle = {
                name: sum(boxes[other].x for other in near(name)) / len(list(near(name)))
                if list(near(name))
                else boxes[name].x
                for name in row
            }
            row.sort(key=middle.get)
            _spread([boxes[name] for name in row])
    top = 0.0
    for row in rows:
        height = max(boxes[name].height for name in row)
        for name in row:
            boxes[name].y = top + height / 2
        top += height + ROW_GAP
    return _svg(list(boxes.values()), [(boxes[a], boxes[b]) for a, b in edges if a != b])


def _spread(row: list[Box]) -> None:
    """Side by side around 0."""
    place = -(sum(box.width for box in row) + BETWEEN * (len(row) - 1)) / 2
    for box in row:
        box.x = place + box.width / 2
        place += box.width + BETWEEN


def _svg(boxes: list[Box], edges: list[tuple[Box, Box]]) -> str:
    left = min(box.x - box.width / 2 for box in boxes) - 10
    width = max(box.x + box.width / 2 for box in boxes) + 10 - left
    height = max(box.y + box.height / 2 for box in boxes) + 20
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="{left:.0f} -10 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-family="sans-serif" font-size="11">',
        f'<rect x="{left:.0f}" y="-10" width="{width:.0f}" height="{height:.0f}" fill="white"/>',
    ]
    for start, end in edges:
        y1, y2 = start.y + start.height / 2, end.y - end.height / 2
        bend = (y1 + y2) / 2
        parts.append(
            f'<path d="M{start.x:.1f} {y1:.1f} C{start.x:.1f} {bend:.1f} {end.x:.1f} {bend:.1f} '
            f'{end.x:.1f} {y2:.1f}" fill="none" stroke="#9aa5b1"/>'
        )
    for box in boxes:
        parts.append(
            f'<rect x="{box.x - box.width / 2:.1f}" y="{box.y - box.height / 2:.1f}" '
            f'width="{box.width:.1f}" height="{box.height:.1f}" rx="4" fill="#eef4fb" '
            'stroke="#3b6ea5"/>'
        )
        first = box.y - (len(box.lines) - 1) * LINE / 2 + 4
        for number, line in enumerate(box.lines):
            parts.append(
                f'<text x="{box.x:.1f}" y="{first + number * LINE:.1f}" text-anchor="middle">'
                f"{escape(line)}</text>"
            )
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    main()
