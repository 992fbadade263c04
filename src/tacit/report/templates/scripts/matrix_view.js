// A part of the matrix as cells: where there are many nodes, a cell shows the largest value of a block.
import { hasArrow } from "./edges.js";
import { plotlyText, shortened } from "./text.js";

const MOST_CELLS = 160; // along a side
const LONGEST_TICK = 14; // letters
const TICK_SPACE = 18; // pixels

const sizeOf = ([low, high]) => high - low;

// Return values and edges of the visible cells, and how many nodes a cell has along a side.
export function visibleCells(run, view, values) {
  const block = Math.max(1, Math.ceil(Math.max(sizeOf(view.x), sizeOf(view.y)) / MOST_CELLS));
  const [width, height] = [view.x, view.y].map((range) => Math.ceil(sizeOf(range) / block));
  const newRows = (fill) => Array.from({ length: height }, () => new Array(width).fill(fill));
  const z = newRows(null);
  const edges = newRows(-1);
  const put = (source, target, edge) => {
    if (source < view.x[0] || source >= view.x[1] || target < view.y[0] || target >= view.y[1]) return;
    const row = Math.floor((target - view.y[0]) / block);
    const column = Math.floor((source - view.x[0]) / block);
    if (z[row][column] === null || values[edge] > z[row][column]) {
      z[row][column] = values[edge];
      edges[row][column] = edge;
    }
  };
  for (let edge = 0; edge < run.numEdges; edge += 1) {
    if (Number.isNaN(values[edge])) continue; // not kept
    put(run.source[edge], run.target[edge], edge);
    if (!hasArrow(run, edge)) put(run.target[edge], run.source[edge], edge);
  }
  return { z, edges, block };
}

export const fullMatrix = (run) => ({ x: [0, run.numNodes], y: [0, run.numNodes] });

// Return whole numbers of nodes inside the matrix, two or more.
export function clampedRange(run, [low, high]) {
  const size = Math.min(run.numNodes, Math.max(Math.min(2, run.numNodes), Math.round(high - low)));
  const from = Math.min(run.numNodes - size, Math.max(0, Math.round(low)));
  return [from, from + size];
}

// Return names of nodes along an axis, as many as there is space for.
export function axisTicks(run, [low, high], space) {
  const step = Math.max(1, Math.ceil((high - low) / Math.max(2, Math.floor(space / TICK_SPACE))));
  const nodes = [];
  for (let node = low; node < high; node += step) nodes.push(node);
  const names = nodes.map((node) => plotlyText(shortened(run.names[node], LONGEST_TICK)));
  return { tickmode: "array", tickvals: nodes, ticktext: names, tickfont: { size: 10.5 } };
}

export const longestTick = (run) =>
  run.names.reduce((most, name) => Math.max(most, Math.min(LONGEST_TICK, name.length)), 1);
