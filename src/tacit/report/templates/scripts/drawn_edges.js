// Which edges the drawing shows, and how many, in words.
import { isHidden } from "./edges.js";
import { grouped, plural } from "./text.js";

// More edges could not be distinguished; a drawing of many nodes has space for more.
export const mostDrawn = (run) => Math.min(500, Math.max(200, Math.round(2.5 * run.drawnNodes.length)));

// Return the edges to draw, those of the chosen node first, then the most likely; and how many there are.
export function chooseEdges(run, { threshold, chosenNode, showHidden }) {
  const most = mostDrawn(run);
  const own = [];
  const others = [];
  let numAbove = 0;
  let numHidden = 0;
  for (const edge of run.order) {
    const source = run.source[edge];
    const target = run.target[edge];
    if (!run.between[edge] || run.decides[edge] < threshold) continue;
    if (isHidden(run, edge) && !showHidden) {
      numHidden += 1;
      continue;
    }
    numAbove += 1;
    if (run.placeOf[source] < 0 || run.placeOf[target] < 0) continue;
    const list = chosenNode !== null && (source === chosenNode || target === chosenNode) ? own : others;
    if (list.length < most) list.push(edge);
  }
  const edges = own.concat(others).slice(0, most);
  const numPossible = showHidden ? run.possible.all : run.possible.identifiable;
  return { edges, numOwn: Math.min(own.length, edges.length), numAbove, numPossible, numHidden };
}

function aboveText(run, threshold, { numAbove, numPossible, edges }) {
  const verb = numAbove === 1 ? "exists" : "exist";
  const what = run.hasEvidence ? `${verb} with probability` : "with probability";
  const edgesText = `${plural(numAbove, "edge")} of ${grouped(numPossible)}`;
  return `${edgesText} ${what} ${threshold.toFixed(2)} or more, ${grouped(edges.length)} drawn`;
}

export function countText(run, { threshold, showHidden }, found) {
  const parts = [aboveText(run, threshold, found)];
  const { edges, numAbove, numHidden } = found;
  if (run.hasEvidence && !numAbove && threshold >= 1) {
    parts.push("no edge is listed: lower the probability to see candidates");
  }
  if (edges.length < numAbove) {
    const isFull = edges.length === mostDrawn(run);
    const likely = run.hasEvidence ? "likely" : "probable";
    parts.push(isFull ? `only the ${grouped(edges.length)} most ${likely} are drawn` : "the others link hidden nodes");
  }
  if (numHidden) {
    parts.push(`${grouped(numHidden)} more ${numHidden === 1 ? "is" : "are"} not identifiable and not drawn`);
  }
  if (showHidden) parts.push("dotted: not identifiable from the data");
  return `${parts.join("; ")}.`;
}
