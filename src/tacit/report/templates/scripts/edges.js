// What is known of one edge, as text for the pointer.
import { lagText } from "./lags.js";
import { shared } from "./stored.js";
import { plotlyText, shortened, signed, threeDigits } from "./text.js";

const FLAG_SENTENCES = {
  "": "fixed, not learned",
  yes: "identifiable from the data",
  no: "not identifiable from the data",
};

const DIRECTION_SENTENCES = {
  time: "direction: it acts after the step",
  learned: "direction learned from non-Gaussian noise",
  "lagged parents": "direction from lagged parents",
  open: "direction within the step is open; an effect after the step gives it",
};
const flagOf = (run, edge) => shared.columns.identifiable.words[run.identifiable[edge]];
const OPEN_SENTENCE = "direction open: either direction fits the data";

// How the direction is known, in a word; pairs whose direction is open are said to have no arrow.
export function directionWord(run, edge) {
  const word = shared.columns.direction.words[run.direction[edge]];
  if (word !== "open") return word || "–";
  return run.undirected[edge] ? "open (no arrow)" : "later effect";
}

// Edges without direction, and pairs whose direction is open, have no arrow.
export const hasArrow = (run, edge) => !run.symmetric && !run.undirected?.[edge];

export const isListed = (run, edge) => run.hasEvidence && run.decides[edge] >= run.listedFrom;

// With evidence all edges are drawn, whether they are identifiable or not.
export const isHidden = (run, edge) => !run.hasEvidence && run.identifiable !== null && flagOf(run, edge) === "no";

// In which situation the shown probability holds; nothing where edges do not depend on it.
function situationText(run, edge) {
  if (!run.situations.length) return "";
  if (!run.situation?.has(edge)) return " on average";
  const words = plotlyText(shortened(run.situation.words, 60));
  return ` ${words} (average ${threeDigits(run.situation.average[edge])})`;
}

function probabilityLines(run, edge) {
  const probability = run.probability[edge];
  const shown = `${probability.toFixed(3)}${situationText(run, edge)}`;
  if (!run.hasEvidence) return [`probability ${shown}`];
  const acts = Number.isNaN(probability) ? "how often it acts was not estimated" : `acts ${shown}`;
  return [`exists ${threeDigits(run.exists[edge])}, ${isListed(run, edge) ? "listed" : "not listed"}`, acts];
}

function directionLines(run, edge) {
  const word = run.direction && shared.columns.direction.words[run.direction[edge]];
  if (!word) return [];
  const within = Number.isNaN(run.within_step[edge])
    ? []
    : [`acts within the step ${threeDigits(run.within_step[edge])}`];
  return [...within, run.undirected[edge] ? OPEN_SENTENCE : DIRECTION_SENTENCES[word]];
}

export function edgeText(run, edge) {
  const arrow = hasArrow(run, edge) ? "→" : "—";
  const group = run.groups.get(edge);
  const source = group ? plotlyText(shortened(group, 60)) : run.labels[run.source[edge]];
  const lines = [`${source} ${arrow} ${run.labels[run.target[edge]]}`];
  lines.push(...probabilityLines(run, edge));
  if (run.std_error && !Number.isNaN(run.std_error[edge])) {
    const interval = `${run.low[edge].toFixed(3)} to ${run.high[edge].toFixed(3)}`;
    lines.push(`standard error ${run.std_error[edge].toFixed(3)}, 95% interval ${interval}`);
  }
  if (run.effect) {
    const effect = signed(run.effect[edge]);
    lines.push(`effect ${effect} standard deviations of the target per standard deviation of the source`);
  }
  if (lagText(run, edge)) lines.push(lagText(run, edge));
  lines.push(...directionLines(run, edge));
  if (run.truth) lines.push(`truth ${run.truth[edge].toFixed(3)}, error ${run.error[edge].toFixed(3)}`);
  if (!Number.isNaN(run.probability[edge])) {
    const flag = run.identifiable && FLAG_SENTENCES[flagOf(run, edge)];
    lines.push(flag ?? "identifiability was not tested");
  }
  return lines.join("<br>");
}
