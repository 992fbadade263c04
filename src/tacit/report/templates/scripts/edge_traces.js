// Edges as plotly traces: one trace of lines for each look, and one trace of arrows, which show text for the pointer.
// With evidence the opacity is `exists`, the width is how often the edge acts, the colour is the sign of the effect.
import { edgeText, hasArrow, isHidden, isListed } from "./edges.js";
import { shared } from "./stored.js";
import { colours, translucent } from "./theme.js";

const LEVELS = [
  { from: 0.9, width: 3.4, opacity: 0.95 },
  { from: 0.75, width: 2.8, opacity: 0.85 },
  { from: 0.5, width: 2.1, opacity: 0.7 },
  { from: 0.25, width: 1.7, opacity: 0.62 },
  { from: 0.1, width: 1.2, opacity: 0.5 },
  { from: 0, width: 0.8, opacity: 0.36 },
];
const FAINT = { width: 0.8, opacity: 0.12, arrow: 5 };
const UNKNOWN = 0.5; // how often an edge without an arrow acts is not estimated: it is drawn with a middle width
const LINE_POINTS = 12;
const ARROW_AT = 0.62; // share of the line
const MANY_NODES = 200; // with more, lines are thinner

const levelOf = (probability) => LEVELS.find((level) => probability >= level.from) || LEVELS.at(-1);

// Return a point of the curve from source to target, and its direction there in degrees from up.
function curvePoint(run, edge, t) {
  const a = run.placeOf[run.source[edge]];
  const b = run.placeOf[run.target[edge]];
  const stretch = run.places.stretch;
  const [ax, ay, bx, by] = [run.x[a], run.y[a] * stretch, run.x[b], run.y[b] * stretch];
  const cx = (ax + bx) / 2 + 2 * shared.bend * (by - ay);
  const cy = (ay + by) / 2 - 2 * shared.bend * (bx - ax);
  const s = 1 - t;
  const dx = s * (cx - ax) + t * (bx - cx);
  const dy = s * (cy - ay) + t * (by - cy);
  return {
    x: s * s * ax + 2 * s * t * cx + t * t * bx,
    y: (s * s * ay + 2 * s * t * cy + t * t * by) / stretch,
    angle: (Math.atan2(dx, dy) * 180) / Math.PI,
  };
}

// The role of an edge for the chosen node: it enters, it leaves, or it is drawn faintly.
function roleOf(run, edge, chosenNode) {
  if (chosenNode === null) return "edge";
  if (run.target[edge] === chosenNode) return "incoming";
  return run.source[edge] === chosenNode ? "outgoing" : "faint";
}

function lookOf(run, edge, chosenNode) {
  const role = roleOf(run, edge, chosenNode);
  const isUnknown = run.undirected?.[edge] && Number.isNaN(run.probability[edge]);
  const { width, from } = levelOf(isUnknown ? UNKNOWN : run.acts[edge]);
  const opacity = role === "faint" ? FAINT.opacity : levelOf(run.decides[edge]).opacity;
  let hue = role === "faint" ? "edge" : role;
  if (run.effect) hue = run.effect[edge] < 0 ? "lowers" : "raises";
  let dash = "solid";
  if (isHidden(run, edge)) dash = "dot";
  else if (run.hasEvidence && !isListed(run, edge)) dash = "dash";
  const thin = run.drawnNodes.length > MANY_NODES ? 0.65 : 1;
  return {
    role,
    dash,
    colour: translucent(colours()[hue], opacity),
    width: role === "faint" ? FAINT.width : thin * width,
    arrow: (hasArrow(run, edge) ? 1 : 0.5) * (role === "faint" ? FAINT.arrow : thin * (5 + 1.8 * width)),
    key: `${role} ${hue} ${from} ${opacity} ${dash}`,
  };
}

function newLines({ role, colour, width, dash }) {
  const line = { color: colour, width, dash };
  return { type: "scatter", mode: "lines", x: [], y: [], hoverinfo: "skip", meta: { edges: 0, role }, line };
}

function addLine(trace, run, edge) {
  trace.meta.edges += 1;
  for (let step = 0; step <= LINE_POINTS; step += 1) {
    const point = curvePoint(run, edge, step / LINE_POINTS);
    trace.x.push(point.x);
    trace.y.push(point.y);
  }
  trace.x.push(null); // a gap before the next line
  trace.y.push(null);
}

export function edgeTraces(run, { chosenNode }, { edges }) {
  const traces = new Map();
  const marker = {
    opacity: 1, // sizes that differ would make them translucent
    symbol: [],
    angle: [],
    size: [],
    color: [],
    line: { width: run.situation ? [] : 0, color: colours().ink },
  };
  const meta = { edgeOf: edges.toReversed() };
  const arrows = { type: "scatter", mode: "markers", name: "arrows", x: [], y: [], hovertext: [], marker, meta };
  for (const edge of meta.edgeOf) {
    // the most likely last, on top
    const look = lookOf(run, edge, chosenNode);
    if (!traces.has(look.key)) traces.set(look.key, newLines(look));
    addLine(traces.get(look.key), run, edge);
    const at = curvePoint(run, edge, hasArrow(run, edge) ? ARROW_AT : 0.5);
    arrows.x.push(at.x);
    arrows.y.push(at.y);
    arrows.hovertext.push(edgeText(run, edge));
    marker.symbol.push(hasArrow(run, edge) ? "triangle-up" : "circle");
    marker.angle.push(at.angle);
    marker.size.push(look.arrow);
    marker.color.push(look.colour);
    if (run.situation) marker.line.width.push(run.situation.isOutlined(edge) ? 1.5 : 0); // this edge varies
  }
  return [...traces.values(), { ...arrows, hoverinfo: "text" }];
}
