// A run of the page: edges as columns of numbers, and the order of the edges with the most likely first.
//
// `decides` decides which edges are shown: the probability that an edge exists, or without evidence its probability.
// The probability of an edge that is not kept is NaN; `acts` has 0 there.
import { readLags } from "./lags.js";
import { isTall, upright } from "./portrait.js";
import { largestSpreads, readSituations } from "./situations.js";
import { roundToSixDigits, shared, unpack } from "./stored.js";
import { isolated, plotlyText, shortened } from "./text.js";

const LONGEST_LABEL = 60;

function unpackEdges(run, edges) {
  for (const name of Object.keys(shared.columns)) run[name] = null;
  for (const [name, packed] of Object.entries(edges)) {
    const values = unpack(packed);
    run[name] = values instanceof Float32Array ? Float64Array.from(values, roundToSixDigits) : values;
  }
  if (!run.source) {
    // all ordered pairs: a row per target, a column per source
    run.source = Uint32Array.from(run.probability, (_, edge) => edge % run.numNodes);
    run.target = Uint32Array.from(run.probability, (_, edge) => Math.floor(edge / run.numNodes));
  }
}

function addPlaces(run, places) {
  Object.assign(run, { x: unpack(places.x), y: unpack(places.y), places });
  if (places.kind === "layout" && isTall()) Object.assign(run, upright(run));
  run.drawnNodes = places.node || run.names.map((_, node) => node);
  run.placeOf = new Int32Array(run.numNodes).fill(-1);
  run.drawnNodes.forEach((node, place) => {
    run.placeOf[node] = place;
  });
}

// Compare two edges: the more likely, then the more probable, then the earlier one first.
export function compareEdges(run, a, b) {
  return run.decides[b] - run.decides[a] || run.acts[b] - run.acts[a] || a - b;
}

export function readRun(stored) {
  const run = { ...stored, names: stored.nodes, numNodes: stored.nodes.length };
  unpackEdges(run, stored.edges);
  run.numEdges = run.probability.length;
  for (const [name, texts] of Object.entries(stored.texts)) run[name] = new Map(texts); // from an edge to a text
  run.groups = run.group ?? new Map(); // from the first edge of a group of copied sources to the name of the group
  run.hasEvidence = run.exists !== null;
  run.acts = run.probability.map((value) => value || 0);
  run.decides = run.hasEvidence ? run.exists.map((value) => value || 0) : run.acts;
  run.between = run.source.map((source, edge) => source !== run.target[edge]);
  run.order = Uint32Array.from(run.probability.keys()).sort((a, b) => compareEdges(run, a, b));
  run.labels = run.names.map((name) => isolated(plotlyText(shortened(name, LONGEST_LABEL))));
  run.lowerNames = run.names.map((name) => name.toLowerCase());
  run.lagProfile = readLags(stored.lags);
  run.firstLag = stored.lags?.first;
  run.lagCount = stored.lags?.count ?? 0;
  run.situations = readSituations(stored.situations);
  run.spreads = largestSpreads(run.situations);
  addPlaces(run, stored.places);
  return run;
}
