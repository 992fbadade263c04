// Whether an edge varies, for a cell of the table: a word or a range, and a small curve.
import { shared } from "./stored.js";

const SVG = "http://www.w3.org/2000/svg";
const [WIDEST, NARROWEST, POINT, HEIGHT] = [60, 24, 12, 22];

function newShape(name, attributes) {
  const shape = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) shape.setAttribute(key, value);
  return shape;
}

function rangeText({ table, lowest, highest }) {
  const said = ({ probability, place }) => `${probability.toFixed(2)} ${table.words[place]}`;
  return `from ${said(lowest)} to ${said(highest)}`;
}

// Return "yes", "no", or a dash where the edge was not tested; of regimes the lowest and the highest probability.
export function variesWord(run, edge) {
  if (run.varies) return shared.columns.varies.words[run.varies[edge]] || "–";
  const found = run.spreads.get(edge);
  return found ? `${found.lowest.probability.toFixed(2)} to ${found.highest.probability.toFixed(2)}` : "–";
}

// Return a number to sort by: edges that vary most first, then those that do not, then those that were not tested.
export function variesOrder(run, edge) {
  const spread = run.spreads.get(edge)?.spread;
  if (spread !== undefined) return 1 + spread;
  return run.varies?.[edge] ? 0 : -1;
}

function chart({ table, curve }) {
  const width = table.isOrdered ? WIDEST : Math.min(WIDEST, Math.max(NARROWEST, POINT * table.count));
  const svg = newShape("svg", { class: "vary", width, height: HEIGHT, "aria-hidden": "true" });
  const x = (place) => 3 + ((width - 6) * place) / Math.max(1, table.count - 1);
  const y = (probability) => 2 + (HEIGHT - 4) * (1 - probability);
  const points = curve.map(({ place, probability }) => [x(place).toFixed(1), y(probability).toFixed(1)]);
  svg.append(newShape("path", { d: `M0 ${HEIGHT - 1}H${width}`, class: "base" }));
  if (table.isOrdered) svg.append(newShape("path", { d: `M${points.map((at) => at.join(" ")).join("L")}` }));
  else svg.append(...points.map(([cx, cy]) => newShape("circle", { cx, cy, r: 2.5 })));
  return svg;
}

// Return a button that shows the curve of an edge; null for an edge without one.
export function varyingButton(run, edge, show) {
  const found = run.spreads.get(edge);
  if (!found || !show) return null;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "show-curve";
  button.title = rangeText(found);
  button.ariaLabel = `${button.title}; show the curve`;
  button.append(chart(found));
  button.addEventListener("click", () => show(edge));
  return button;
}
