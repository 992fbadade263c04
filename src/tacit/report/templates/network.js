// The learned graph: a few traces by level of probability, an arrow on every edge that also answers the pointer.
// With evidence: as opaque as it is likely to exist, as wide as it acts often, coloured by the sign of its effect.
// More edges could not be told apart; where nodes are many there is room for more.
const mostDrawn = (run) => Math.min(500, Math.max(200, Math.round(2.5 * run.drawn.length)));
const LEVELS = [{ from: 0.9, width: 3.4, opacity: 0.95 }, { from: 0.75, width: 2.8, opacity: 0.85 }, { from: 0.5, width: 2.1, opacity: 0.7 }, { from: 0.25, width: 1.7, opacity: 0.62 }, { from: 0.1, width: 1.2, opacity: 0.5 }, { from: 0, width: 0.8, opacity: 0.36 }];
const BEND = 0.12, LINE_POINTS = 12, ARROW_AT = 0.62, LABELLED_UP_TO = 40, MOST_LABELS = 25;

const levelOf = (probability) => LEVELS.find((level) => probability >= level.from) || LEVELS.at(-1);

const isUntold = (run, edge) => !run.evident && run.identifiable !== null && run.identifiable[edge] === UNTOLD;

// Which edges are drawn, the most likely first; those of the chosen node before all others.
function drawnEdges(run, { threshold, chosen, untold }) {
  const most = mostDrawn(run), own = [], others = [];
  let above = 0, left = 0;
  for (const edge of run.order) {
    if (!run.between[edge]) continue;
    const hidden = isUntold(run, edge) && !untold;
    if (run.decides[edge] < threshold) continue;
    if (hidden) { left += 1; continue; }
    above += 1;
    if (run.placeOf[run.source[edge]] < 0 || run.placeOf[run.target[edge]] < 0) continue;
    const mine = chosen !== null && (run.source[edge] === chosen || run.target[edge] === chosen);
    if (mine) { if (own.length < most) own.push(edge); } else if (others.length < most) others.push(edge);
  }
  const edges = own.concat(others).slice(0, most);
  return { edges, own: Math.min(own.length, edges.length), above, possible: untold ? run.possible.all : run.possible.told, left };
}

// A point of the bent line from source to target, and its direction there in degrees from up.
function bent(run, edge, t) {
  const a = run.placeOf[run.source[edge]], b = run.placeOf[run.target[edge]], up = run.places.stretch;
  const ax = run.x[a], ay = run.y[a] * up, bx = run.x[b], by = run.y[b] * up;
  const cx = (ax + bx) / 2 + 2 * BEND * (by - ay), cy = (ay + by) / 2 - 2 * BEND * (bx - ax), s = 1 - t;
  const dx = s * (cx - ax) + t * (bx - cx), dy = s * (cy - ay) + t * (by - cy);
  return { x: s * s * ax + 2 * s * t * cx + t * t * bx, y: (s * s * ay + 2 * s * t * cy + t * t * by) / up, angle: (Math.atan2(dx, dy) * 180) / Math.PI };
}

function networkTraces(run, state, found) {
  const colour = colours(), thin = run.drawn.length > 200 ? 0.65 : 1, lines = new Map(), arrows = { x: [], y: [], angle: [], size: [], color: [], text: [] };
  found.edges.toReversed().forEach((edge) => { // the most likely last, on top
    const level = levelOf(run.acts[edge]), { opacity } = levelOf(run.decides[edge]);
    const dash = isUntold(run, edge) ? "dot" : run.evident && !isListed(run, edge) ? "dash" : "solid";
    const role = state.chosen === null ? "edge" : run.target[edge] === state.chosen ? "reads" : run.source[edge] === state.chosen ? "sends" : "faint";
    const hue = run.effect ? (run.effect[edge] < 0 ? "lowers" : "raises") : role === "faint" ? "edge" : role;
    const shade = `rgba(${colour[hue]},${role === "faint" ? 0.12 : opacity})`;
    const key = `${role} ${hue} ${level.from} ${opacity} ${dash}`;
    if (!lines.has(key)) {
      lines.set(key, { type: "scatter", mode: "lines", x: [], y: [], hoverinfo: "skip", meta: { edges: 0, role }, line: { color: shade, width: role === "faint" ? 0.8 : thin * level.width, dash } });
    }
    const line = lines.get(key);
    line.meta.edges += 1;
    for (let step = 0; step <= LINE_POINTS; step += 1) {
      const point = bent(run, edge, step / LINE_POINTS);
      line.x.push(point.x);
      line.y.push(point.y);
    }
    line.x.push(null);
    line.y.push(null);
    const at = bent(run, edge, run.symmetric ? 0.5 : ARROW_AT);
    arrows.x.push(at.x);
    arrows.y.push(at.y);
    arrows.angle.push(at.angle);
    arrows.size.push((run.symmetric ? 0.5 : 1) * (role === "faint" ? 5 : thin * (5 + 1.8 * level.width)));
    arrows.color.push(shade);
    arrows.text.push(edgeWords(run, edge));
  });
  const marks = { type: "scatter", mode: "markers", name: "arrows", x: arrows.x, y: arrows.y, hovertext: arrows.text, hoverinfo: "text", marker: { symbol: run.symmetric ? "circle" : "triangle-up", angle: arrows.angle, size: arrows.size, color: arrows.color, line: { width: 0 } } };
  return [...lines.values(), marks, nodeTrace(run, state, found, colour)];
}

function nodeTrace(run, { chosen }, found, colour) {
  const reads = new Map(), near = new Set(chosen === null ? [] : [chosen]);
  found.edges.forEach((edge, place) => {
    const read = (target, source) => {
      const list = reads.get(target) || [];
      reads.set(target, list);
      if (list.length < 6) list.push(`${run.shown[source]} ${run.decides[edge].toFixed(2)}`);
    };
    read(run.target[edge], run.source[edge]);
    if (run.symmetric) read(run.source[edge], run.target[edge]);
    if (place < found.own && near.size < MOST_LABELS) near.add(run.source[edge]).add(run.target[edge]);
  });
  const all = run.drawn.length <= LABELLED_UP_TO, size = run.drawn.length <= 60 ? 11 : run.drawn.length <= 300 ? 8 : 5.5;
  const side = ([right, up]) => `${up > 0 ? "top" : "bottom"} ${right > 0 ? "right" : "left"}`;
  return {
    type: "scatter", name: "nodes", x: Array.from(run.x), y: Array.from(run.y), customdata: run.drawn, hoverinfo: "text", cliponaxis: false,
    mode: all || near.size ? "markers+text" : "markers",
    text: run.drawn.map((node) => (all || near.has(node) ? plain(shortened(run.names[node], 22)) : "")),
    textposition: all ? run.places.sides.map(side) : "top center",
    hovertext: run.drawn.map((node) => `${run.shown[node]}<br>${run.symmetric ? "linked with" : "reads"} ${reads.has(node) ? reads.get(node).join("<br>") : "no other here"}`),
    marker: { size: run.drawn.map((node) => (node === chosen ? size + 7 : size)), color: run.drawn.map((node) => (node === chosen ? colour.chosen : run.effect ? colour.quiet : colour.node)), symbol: run.drawn.map((node) => (node === chosen ? "diamond" : "circle")), line: { width: 1, color: colour.paper }, opacity: 1 },
  };
}

// The whole graph with room for names at its sides.
function wholeRange(run, values, share) {
  const low = values.reduce((a, b) => Math.min(a, b), Infinity), high = values.reduce((a, b) => Math.max(a, b), -Infinity);
  const room = share * (high - low || 1);
  return run.drawn.length ? [low - room, high + room] : [-1, 1];
}

function countWords(run, { threshold, untold }, found) {
  const what = run.evident ? "exist with probability" : "at", verb = run.evident && found.above === 1 ? "exists with probability" : what;
  const said = [`${plural(found.above, "edge")} of ${grouped(found.possible)} ${verb} ${threshold.toFixed(2)} or more, ${grouped(found.edges.length)} drawn`];
  if (run.evident && !found.above && threshold >= 1) said.push("no edge is listed: move the slider down to see candidates");
  if (found.edges.length < found.above) said.push(found.edges.length === mostDrawn(run) ? `more than ${mostDrawn(run)} could not be told apart: these are the most ${run.evident ? "likely" : "probable"}` : "the others link nodes that are not drawn");
  if (found.left) said.push(`${grouped(found.left)} more cannot be told from the data and ${found.left === 1 ? "is" : "are"} left out`);
  if (untold) said.push("dotted: cannot be told from the data");
  return said.join("; ") + ".";
}

function showNetwork(section, run) {
  const element = section.querySelector(".network"), count = section.querySelector(".graph .count");
  const slider = section.querySelector(".threshold"), field = section.querySelector(".threshold-number"), check = section.querySelector(".untold");
  const state = { threshold: run.threshold, chosen: null, untold: false }, axis = { visible: run.places.kind === "map" };
  const names = run.places.kind === "map" ? ["longitude", "latitude"] : ["", ""];
  const whole = { x: wholeRange(run, run.x, run.drawn.length <= LABELLED_UP_TO ? 0.16 : 0.04), y: wholeRange(run, run.y, BEND) };
  const slim = ((whole.y[1] - whole.y[0]) * run.places.stretch) / (whole.x[1] - whole.x[0]);
  element.style.height = `${Math.round(Math.min(640, 0.8 * Math.max(innerHeight, 600), Math.max(320, slim * element.clientWidth + 54)))}px`;
  let found = drawnEdges(run, state), waiting = false;
  const draw = drawing(element, () => ({
    data: networkTraces(run, state, found),
    layout: { uirevision: "stays", margin: run.places.kind === "map" ? { l: 50, r: 16, t: 10, b: 44 } : { l: 10, r: 10, t: 10, b: 10 }, xaxis: { ...axis, range: whole.x, title: { text: names[0] } }, yaxis: { ...axis, range: whole.y, title: { text: names[1] }, scaleanchor: "x", scaleratio: run.places.stretch } },
  }));
  const say = () => {
    count.textContent = countWords(run, state, found);
    element.setAttribute("aria-label", `The learned graph of ${plural(run.drawn.length, "node")}: ${count.textContent} The table of edges below holds the same numbers.`);
  };
  const update = (change) => {
    Object.assign(state, change);
    found = drawnEdges(run, state);
    say();
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  };
  say();
  slider.addEventListener("input", () => { field.value = Number(slider.value).toFixed(2); update({ threshold: Number(slider.value) }); });
  field.addEventListener("input", () => {
    if (field.value === "" || !field.validity.valid && (field.validity.badInput || field.validity.rangeOverflow || field.validity.rangeUnderflow)) return;
    slider.value = field.value;
    update({ threshold: Number(field.value) });
  });
  field.addEventListener("change", () => { // what is no probability becomes the nearest
    const value = field.validity.badInput || field.value === "" ? state.threshold : Math.min(1, Math.max(0, Number(field.value)));
    field.value = value.toFixed(2);
    slider.value = field.value;
    update({ threshold: Number(field.value) });
  });
  if (check) check.addEventListener("change", () => update({ untold: check.checked }));
  zoomControls(section.querySelector(".graph .zoom"), [element], (act) => {
    if (act === "reset") { Plotly.relayout(element, { "xaxis.range": [...whole.x], "yaxis.range": [...whole.y] }); return; }
    const [right, down] = Array.isArray(act) ? act : [0, 0], [low, high] = element.layout.xaxis.range;
    if (act === "out" && high - low > 3 * (whole.x[1] - whole.x[0])) return; // far enough to see all of it
    Plotly.relayout(element, { "xaxis.range": zoomedRange(element.layout.xaxis.range, act, right), "yaxis.range": zoomedRange(element.layout.yaxis.range, act, -down) });
  });
  return { choose: (node) => update({ chosen: node }), state, element, edges: () => found };
}
