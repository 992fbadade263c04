// The edges that an export holds: those that reach the threshold of the drawing, with the numbers that are known.
import { hasArrow, isHidden } from "./edges.js";

const NUMBERS = ["exists", "probability", "std_error", "low", "high", "effect", "lag"];

export const exportedEdges = (run, { threshold, showHidden }) =>
  run.order.filter(
    (edge) => run.between[edge] && run.decides[edge] >= threshold && (showHidden || !isHidden(run, edge)),
  );

export const exportedNumbers = (run) => NUMBERS.filter((name) => run[name]);

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
    const group = run.groups.has(edge) ? { group: run.groups.get(edge) } : {};
    const attributes = { ...edgeNumbers(run, edge), ...(isOpen ? { direction: "open" } : {}), ...group };
    rows.push([source, target, attributes]);
    if (isOpen) rows.push([target, source, attributes]);
  }
  return rows;
}
