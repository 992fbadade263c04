// The effect of an edge at each lag: a small bar chart in the table, and words.
import { unpack } from "./stored.js";
import { signed } from "./text.js";

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 26;
const WIDEST = 96;
const WIDEST_BAR = 7;

// Return a function from edges to profiles: effects and shares by lag, the newest first, without lags that were not
// estimated. An edge without a profile has null.
export function readLags(stored) {
  if (!stored) return () => null;
  const [edges, effects, shares] = [stored.edge, stored.effects, stored.shares].map(unpack);
  const rowOf = new Map(Array.from(edges, (edge, row) => [edge, row]));
  const lags = Array.from({ length: stored.count }, (_, place) => stored.first + place);
  return (edge) => {
    const row = rowOf.get(edge);
    if (row === undefined) return null;
    const at = (place) => row * stored.count + place;
    const known = lags.map((_, place) => place).filter((place) => !Number.isNaN(effects[at(place)]));
    return known.map((place) => ({ lag: lags[place], effect: effects[at(place)], share: shares[at(place)] }));
  };
}

const largest = (profile) => profile.reduce((a, b) => (Math.abs(b.effect) > Math.abs(a.effect) ? b : a));

// Return how sure the dominant lag is, in words.
export function lagText(run, edge) {
  const profile = run.lagProfile(edge);
  if (!profile) return "";
  const { lag, share } = largest(profile);
  const often = Number.isNaN(share) ? "" : `, the largest in ${Math.round(100 * share)}% of resamples`;
  return `lag ${lag}${often}`;
}

function bar(x, width, effect, top, isLargest) {
  const half = HEIGHT / 2;
  const size = Math.max(0.5, ((half - 1) * Math.abs(effect)) / top);
  const rect = document.createElementNS(SVG, "rect");
  const place = { x, width, y: effect < 0 ? half : half - size, height: size };
  for (const [name, value] of Object.entries(place)) rect.setAttribute(name, value.toFixed(2));
  rect.setAttribute("class", `${effect < 0 ? "lowers" : "raises"}${isLargest ? " largest" : ""}`);
  return rect;
}

// Return the chart of an edge: a bar per lag, the newest on the left, up where the source raises the target.
export function lagChart(run, edge) {
  const profile = run.lagProfile(edge);
  if (!profile || run.lagCount < 2) return null;
  const step = Math.min(WIDEST_BAR, WIDEST / run.lagCount);
  const chart = document.createElementNS(SVG, "svg");
  const best = largest(profile);
  chart.setAttribute("class", "lags");
  chart.setAttribute("width", (step * run.lagCount).toFixed(0));
  chart.setAttribute("height", HEIGHT);
  chart.setAttribute("role", "img");
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("d", `M0 ${HEIGHT / 2}H${step * run.lagCount}`);
  const words = document.createElementNS(SVG, "title");
  words.textContent = profile.map(({ lag, effect }) => `lag ${lag}: ${signed(effect)}`).join("\n");
  const gap = step > 3 ? 1 : 0;
  const top = Math.abs(best.effect) || 1;
  const bars = profile.map((one) => bar((one.lag - run.firstLag) * step, step - gap, one.effect, top, one === best));
  chart.append(words, line, ...bars);
  return chart;
}
