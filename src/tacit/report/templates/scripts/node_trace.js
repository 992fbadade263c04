// Nodes as one plotly trace: names where there is space for them, the chosen node as a diamond.
import { hasArrow } from "./edges.js";
import { shared } from "./stored.js";
import { plotlyText, shortened } from "./text.js";
import { colours } from "./theme.js";

const MOST_LABELS = 25;
const MOST_INPUTS = 6; // in the text for the pointer
const LONGEST_NAME = 22;

export const hasAllLabels = (run) => run.drawnNodes.length <= shared.labelledUpTo;

// Return the strongest drawn inputs of each node, as text.
function inputsOf(run, edges) {
  const inputs = new Map();
  const add = (target, source, edge) => {
    const list = inputs.get(target) || [];
    inputs.set(target, list);
    if (list.length < MOST_INPUTS) list.push(`${run.labels[source]} ${run.decides[edge].toFixed(2)}`);
  };
  for (const edge of edges) {
    add(run.target[edge], run.source[edge], edge);
    if (!hasArrow(run, edge)) add(run.source[edge], run.target[edge], edge);
  }
  return inputs;
}

// Return the chosen node and the nodes that its edges link.
function labelledNodes(run, chosenNode, { edges, numOwn }) {
  const nodes = new Set(chosenNode === null ? [] : [chosenNode]);
  for (const edge of edges.slice(0, numOwn)) {
    if (nodes.size < MOST_LABELS) nodes.add(run.source[edge]).add(run.target[edge]);
  }
  return nodes;
}

function markersOf(run, chosenNode) {
  const colour = colours();
  const numDrawn = run.drawnNodes.length;
  const size = numDrawn <= 60 ? 11 : numDrawn <= 300 ? 8 : 5.5;
  const fill = run.effect ? colour.quiet : colour.node;
  const forNode = (chosen, other) => run.drawnNodes.map((node) => (node === chosenNode ? chosen : other));
  return {
    size: forNode(size + 7, size),
    color: forNode(colour.chosen, fill),
    symbol: forNode("diamond", "circle"),
    line: { width: 1, color: colour.paper },
    opacity: 1,
  };
}

export function nodeTrace(run, { chosenNode }, found) {
  const inputs = inputsOf(run, found.edges);
  const labelled = labelledNodes(run, chosenNode, found);
  const all = hasAllLabels(run);
  const side = ([right, up]) => `${up > 0 ? "top" : "bottom"} ${right > 0 ? "right" : "left"}`;
  const label = (node) => (all || labelled.has(node) ? plotlyText(shortened(run.names[node], LONGEST_NAME)) : "");
  const linked = run.symmetric || run.undirected?.some(Boolean) ? "linked with" : "depends on";
  const hover = (node) => `${run.labels[node]}<br>${linked} ${inputs.get(node)?.join("<br>") ?? "no drawn node"}`;
  return {
    type: "scatter",
    name: "nodes",
    mode: all || labelled.size ? "markers+text" : "markers",
    x: Array.from(run.x),
    y: Array.from(run.y),
    customdata: run.drawnNodes,
    text: run.drawnNodes.map(label),
    textposition: all ? run.places.sides.map(side) : "top center",
    hovertext: run.drawnNodes.map(hover),
    hoverinfo: "text",
    cliponaxis: false,
    marker: markersOf(run, chosenNode),
  };
}
