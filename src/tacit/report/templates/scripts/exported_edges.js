// The edges that an export holds: those that reach the threshold of the drawing, with the numbers that are known.
import { hasArrow, isHidden } from "./edges.js";
import { shared } from "./stored.js";

const exportedOf = (run, kind) =>
  Object.keys(shared.columns).filter((name) => {
    const column = shared.columns[name];
    return column.exported && column.kind === kind && run[name];
  });
export const exportedEdges = (run, { threshold, showHidden }) =>
  run.order.filter(
    (edge) => run.between[edge] && run.decides[edge] >= threshold && (showHidden || !isHidden(run, edge)),
  );

export const exportedNumbers = (run) => exportedOf(run, "number");
export const exportedTexts = (run) => exportedOf(run, "text");

// Return the numbers of an edge; those that are not known are left out.
export function edgeNumbers(run, edge) {
  const known = exportedNumbers(run).map((name) => [name, run[name][edge]]);
  return Object.fromEntries(known.filter(([, value]) => !Number.isNaN(value)));
}

// Return [source, target, attributes] of each edge. A pair whose direction is open is there in both directions.
export function edgeRows(run, edges) {
  const rows = [];
  for (const edge of edges) {
    const [source, target] = [run.source[edge], run.target[edge]];
    const isOpen = !run.symmetric && !hasArrow(run, edge);
    const texts = exportedTexts(run).filter((name) => run[name].has(edge));
    const named = Object.fromEntries(texts.map((name) => [name, run[name].get(edge)]));
    const attributes = { ...edgeNumbers(run, edge), ...(isOpen ? { direction: "open" } : {}), ...named };
    rows.push([source, target, attributes]);
    if (isOpen) rows.push([target, source, attributes]);
  }
  return rows;
}
