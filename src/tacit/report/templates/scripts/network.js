// The drawing of the learned graph, with its slider, check box and zoom.
import { chooseEdges, countText } from "./drawn_edges.js";
import { edgeTraces } from "./edge_traces.js";
import { addDrawing } from "./figures.js";
import { hasAllLabels, nodeTrace } from "./node_trace.js";
import { isTall, tallHeight } from "./portrait.js";
import { shared } from "./stored.js";
import { plural } from "./text.js";
import { addZoomControls, zoomedRange } from "./zoom.js";

const LABEL_SPACE = 0.16; // beside the graph, as a share of its width
const NO_LABEL_SPACE = 0.04;
const FARTHEST = 3; // zoom out up to so many widths of the graph

function fullRange(run, values, share) {
  if (!run.drawnNodes.length) return [-1, 1];
  const low = values.reduce((a, b) => Math.min(a, b), Infinity);
  const high = values.reduce((a, b) => Math.max(a, b), -Infinity);
  const space = share * (high - low || 1);
  return [low - space, high + space];
}

// Return the ranges that show the whole graph.
function fullView(run) {
  const x = fullRange(run, run.x, hasAllLabels(run) ? LABEL_SPACE : NO_LABEL_SPACE);
  return { x, y: fullRange(run, run.y, shared.bend) };
}

function heightOf(run, view, width) {
  if (isTall() && run.places.kind === "layout") return tallHeight();
  const slope = ((view.y[1] - view.y[0]) * run.places.stretch) / (view.x[1] - view.x[0]);
  return Math.round(Math.min(640, 0.8 * Math.max(innerHeight, 600), Math.max(320, slope * width + 54)));
}

function networkLayout(run, view) {
  const isMap = run.places.kind === "map";
  const { x, y } = isMap ? shared.labels.map : { x: "", y: "" };
  return {
    uirevision: "stays",
    margin: isMap ? { l: 50, r: 16, t: 10, b: 44 } : { l: 10, r: 10, t: 10, b: 10 },
    xaxis: { visible: isMap, range: view.x, title: { text: x } },
    yaxis: { visible: isMap, range: view.y, title: { text: y }, scaleanchor: "x", scaleratio: run.places.stretch },
  };
}

// Slider and number field show the same threshold.
function addThresholdControls(section, state, update) {
  const slider = section.querySelector(".threshold");
  const field = section.querySelector(".threshold-number");
  slider.addEventListener("input", () => {
    field.value = Number(slider.value).toFixed(2);
    update({ threshold: Number(slider.value) });
  });
  field.addEventListener("input", () => {
    const { badInput, rangeOverflow, rangeUnderflow } = field.validity;
    if (field.value === "" || badInput || rangeOverflow || rangeUnderflow) return;
    slider.value = field.value;
    update({ threshold: Number(field.value) });
  });
  field.addEventListener("change", () => {
    // a number outside 0 to 1 becomes the nearest probability
    const isNumber = !field.validity.badInput && field.value !== "";
    const value = isNumber ? Math.min(1, Math.max(0, Number(field.value))) : state.threshold;
    field.value = value.toFixed(2);
    slider.value = field.value;
    update({ threshold: Number(field.value) });
  });
}

function addNetworkZoom(section, element, view) {
  addZoomControls(section.querySelector(".graph .zoom"), [element], (act) => {
    const { xaxis, yaxis } = element.layout;
    const [right, down] = Array.isArray(act) ? act : [0, 0];
    const width = xaxis.range[1] - xaxis.range[0];
    if (act === "out" && width > FARTHEST * (view.x[1] - view.x[0])) return;
    const isReset = act === "reset";
    const x = isReset ? [...view.x] : zoomedRange(xaxis.range, act, right);
    const y = isReset ? [...view.y] : zoomedRange(yaxis.range, act, -down);
    Plotly.relayout(element, { "xaxis.range": x, "yaxis.range": y });
  });
}

// Return the element, a function that chooses a node, and one that shows the edges again after a change of the run.
export function showNetwork(section, run) {
  const element = section.querySelector(".network");
  const count = section.querySelector(".graph .count");
  const state = { threshold: run.threshold, chosenNode: null, showHidden: false };
  const view = fullView(run);
  element.style.height = `${heightOf(run, view, element.clientWidth)}px`;
  let found = chooseEdges(run, state);
  let isWaiting = false;
  const draw = addDrawing(element, () => ({
    data: [...edgeTraces(run, state, found), nodeTrace(run, state, found)],
    layout: networkLayout(run, view),
  }));
  const describe = () => {
    count.textContent = countText(run, state, found);
    const nodes = plural(run.drawnNodes.length, "node");
    const shown = run.situation ? ` ${run.situation.words}` : "";
    const learned = `The learned graph of ${nodes}${shown}`;
    element.ariaLabel = `${learned}: ${count.textContent} The table of edges has the same numbers.`;
  };
  const update = (change) => {
    Object.assign(state, change);
    found = chooseEdges(run, state);
    describe();
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => {
      isWaiting = false;
      draw();
    });
  };
  describe();
  addThresholdControls(section, state, update);
  const check = section.querySelector(".show-hidden");
  check?.addEventListener("change", () => update({ showHidden: check.checked }));
  addNetworkZoom(section, element, view);
  return { element, state, chooseNode: (node) => update({ chosenNode: node }), refresh: () => update({}) };
}
