// A run as graph and matrix show it: on average, or at one value of a variable. Edges that do not vary keep their
// average. Paper always has the average.
import { onRedraw } from "./figures.js";
import { compareEdges } from "./run.js";
import { NUMBERS } from "./situations.js";
import { isPrinting } from "./theme.js";

const CHANGED = [...NUMBERS, "acts", "decides", "order", "situation"];

// Return the columns of a run that differ from the average at one value of a variable.
function columnsAt(run, table, place) {
  const known = table.edges.filter((edge) => !Number.isNaN(table.numberAt("probability", edge, place)));
  const columns = {};
  for (const name of NUMBERS) {
    columns[name] = run[name]?.slice() ?? new Float64Array(run.numEdges).fill(Number.NaN);
    for (const edge of known) columns[name][edge] = table.numberAt(name, edge, place);
  }
  columns.acts = columns.probability.map((value) => value || 0);
  if (!run.hasEvidence) {
    columns.decides = columns.acts;
    columns.order = run.order.toSorted((a, b) => compareEdges(columns, a, b));
  }
  const edges = new Set(known);
  const words = table.words[place];
  const has = (edge) => edges.has(edge);
  const isOutlined = (edge) => table.kind !== "regime" && has(edge); // regimes concern all listed edges
  const situation = { table, place, words, average: run.probability, has, isOutlined };
  return { ...columns, situation };
}

// Return the view of a run, a function that chooses a table and a value (null for the average), and one that adds a
// listener to changes.
export function newSituation(run) {
  const view = Object.create(run); // what is not changed is that of the run
  const listeners = [];
  let chosen = null;
  let isWaiting = false;
  const apply = () => {
    for (const name of CHANGED) delete view[name];
    if (chosen && !isPrinting()) Object.assign(view, columnsAt(run, chosen.table, chosen.place));
    for (const listener of listeners) listener();
  };
  if (run.situations.length) onRedraw(apply); // before the drawings themselves
  const choose = (table, place) => {
    chosen = table && { table, place };
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => {
      isWaiting = false;
      apply();
    });
  };
  return { view, choose, onChange: (listener) => listeners.push(listener) };
}
