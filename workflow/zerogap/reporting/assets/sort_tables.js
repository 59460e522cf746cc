// A click on a column heading sorts the rows within each section: ascending, descending, original
// order. Snakemake's report shows a page in a frame that loads no other file, so every page carries
// this script itself.

// The key of a cell is its data-value, or its text; null for an empty cell.
function sortKey(cell) {
  if ("value" in cell.dataset) return Number(cell.dataset.value);
  return /^–?$/.test(cell.textContent) ? null : cell.textContent;
}

function compareKeys(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

// Empty cells come last in both directions.
function compareRows(a, b, sign) {
  if (sign === 0) return 0;
  if (a.key === null || b.key === null) return (a.key === null) - (b.key === null);
  return sign * compareKeys(a.key, b.key);
}

function sortBody(body, rows, column, sign) {
  let section = 0;
  const keyed = rows.map((row, index) => {
    const isHeading = row.classList.contains("section");
    section += isHeading;
    return { row, index, section, isHeading, key: isHeading ? null : sortKey(row.cells[column]) };
  });
  keyed.sort((a, b) => a.section - b.section || b.isHeading - a.isHeading
    || compareRows(a, b, sign) || a.index - b.index);
  body.append(...keyed.map((entry) => entry.row));
}

for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], rows = [...body.rows];
  const headings = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.append(...heading.childNodes);
    button.title = "sort";
    heading.append(button);
    button.onclick = () => {
      const next = { ascending: "descending", descending: "none" };
      const order = next[heading.ariaSort] ?? "ascending";
      for (const other of headings) other.ariaSort = "none";
      heading.ariaSort = order;
      sortBody(body, rows, column, { ascending: 1, descending: -1, none: 0 }[order]);
    };
  });
}
