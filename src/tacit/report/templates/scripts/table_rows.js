// Which edges the table shows, in which order.

import { hasArrow } from "./edges.js";
import { compareEdges } from "./run.js";
import { shared } from "./stored.js";
import { variesOrder } from "./varying_cell.js";

const FLAG_ORDER = ["yes", "", "no"];

export const isName = (column) => column === "source" || column === "target";
export const firstColumn = (run) => (run.hasEvidence ? "exists" : "probability");

// Return the rank of each node by name; numbers inside names are compared as numbers.
function nameRanks(run) {
  const { compare } = new Intl.Collator("en", { numeric: true });
  const order = run.names.map((_, node) => node).sort((a, b) => compare(run.names[a], run.names[b]) || a - b);
  const ranks = new Uint32Array(run.numNodes);
  order.forEach((node, rank) => {
    ranks[node] = rank;
  });
  return ranks;
}

// Return a number for each edge to sort by.
function sortValues(run, column) {
  if (isName(column)) {
    run.nameRanks ??= nameRanks(run);
    return Uint32Array.from(run[column], (node) => run.nameRanks[node]);
  }
  const { kind, words } = shared.columns[column] ?? {};
  if (column === "identifiable") return run.identifiable.map((code) => FLAG_ORDER.indexOf(words[code]));
  if (column === "varies") return Float64Array.from(run.order.keys(), (edge) => variesOrder(run, edge));
  if (kind === "text") {
    const texts = [...new Set(run[column].values())].sort(new Intl.Collator("en", { numeric: true }).compare);
    return Float64Array.from(run.order.keys(), (edge) => texts.indexOf(run[column].get(edge)));
  }
  return run[column].map((value) => (Number.isNaN(value) ? -Infinity : value));
}

export function sortedEdges(run, column, descending) {
  if (column === firstColumn(run) && descending) return run.order;
  const values = sortValues(run, column);
  const sign = descending ? -1 : 1;
  return run.order.toSorted((a, b) => sign * (values[a] - values[b]) || compareEdges(run, a, b));
}

// Return a test of edges for a filter: a part of either name, or "source → target".
export function nameFilter(run, text) {
  const [first, second] = text
    .toLowerCase()
    .split(/→|->/)
    .map((part) => part.trim());
  const nodesWith = (part) => Uint8Array.from(run.lowerNames, (name) => (name.includes(part) ? 1 : 0));
  const left = nodesWith(first);
  if (second === undefined) return (edge) => left[run.source[edge]] || left[run.target[edge]];
  const right = nodesWith(second);
  const fits = (edge) => left[run.source[edge]] && right[run.target[edge]];
  return (edge) => fits(edge) || (!hasArrow(run, edge) && right[run.source[edge]] && left[run.target[edge]]);
}
