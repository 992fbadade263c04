// The runs of the page: edges as columns of numbers, the most likely first in `order`. Whether an edge exists decides
// what is shown; in a run without evidence its probability does. An edge that is not kept has no probability (NaN).
const FIXED = 0, UNTOLD = 2;
const ARRAYS = { "<f4": Float32Array, "<u2": Uint16Array, "<u4": Uint32Array, "<u1": Uint8Array };

function unpacked(text, kind) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let place = 0; place < bytes.length; place += 1) bytes[place] = letters.charCodeAt(place);
  return new ARRAYS[kind](bytes.buffer);
}

// Six digits, as in edges.csv: 0.7 as stored in 32 bits is a little less than 0.7.
function sixDigits(value) {
  if (value > 1 || value < 0.001) return Number(value.toPrecision(6));
  const scale = value >= 0.1 ? 1e6 : value >= 0.01 ? 1e7 : 1e8;
  return Math.round(value * scale) / scale;
}

function readRun(stored) {
  const { edges, nodes, places } = stored, run = { ...stored, names: nodes, numNodes: nodes.length };
  for (const name of ["probability", "std_error", "low", "high", "truth", "exists", "effect"]) run[name] = edges[name] ? Float64Array.from(unpacked(edges[name], "<f4"), sixDigits) : null;
  run.identifiable = edges.identifiable ? unpacked(edges.identifiable, "<u1") : null;
  run.count = run.probability.length;
  if (edges.source) {
    run.source = unpacked(edges.source, edges.kind);
    run.target = unpacked(edges.target, edges.kind);
  } else { // all ordered pairs: row receives, column sends
    run.source = Uint32Array.from(run.probability, (_, edge) => edge % run.numNodes);
    run.target = Uint32Array.from(run.probability, (_, edge) => Math.floor(edge / run.numNodes));
  }
  run.evident = run.exists !== null;
  run.acts = run.probability.map((value) => value || 0);
  run.decides = run.evident ? run.exists.map((value) => value || 0) : run.acts;
  run.error = run.truth && Float64Array.from(run.truth, (truth, edge) => Math.abs(truth - run.acts[edge]));
  run.between = run.source.map((source, edge) => source !== run.target[edge]);
  run.order = Uint32Array.from(run.probability.keys()).sort((a, b) => run.decides[b] - run.decides[a] || run.acts[b] - run.acts[a] || a - b);
  const drawn = places.node || nodes.map((_, node) => node);
  run.x = unpacked(places.x, "<f4");
  run.y = unpacked(places.y, "<f4");
  run.drawn = drawn; // nodes that have a place
  run.placeOf = new Int32Array(run.numNodes).fill(-1);
  drawn.forEach((node, place) => { run.placeOf[node] = place; });
  run.shown = nodes.map((name) => isolated(plain(shortened(name, 60)))); // names for plotly, made plain once
  return run;
}

// A name from right to left would turn the line round: it is set apart from what is beside it.
const TURNS = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
const isolated = (name) => (TURNS.test(name) ? `\u2068${name}\u2069` : name);

const number = (value) => (Number.isNaN(value) ? "" : String(Number(value.toPrecision(6))));
const threeDigits = (value) => (Number.isNaN(value) ? "–" : value.toFixed(3));
const signed = (value) => (Number.isNaN(value) ? "–" : `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3)}`);
const isListed = (run, edge) => run.evident && run.decides[edge] >= run.listedFrom;

// What is known of an edge, for the pointer.
function edgeWords(run, edge) {
  const arrow = run.symmetric ? "—" : "→";
  const lines = [`${run.shown[run.source[edge]]} ${arrow} ${run.shown[run.target[edge]]}`], kept = !Number.isNaN(run.probability[edge]);
  if (run.evident) lines.push(`exists ${threeDigits(run.exists[edge])}, ${isListed(run, edge) ? "listed" : "not listed"}`, kept ? `acts ${run.probability[edge].toFixed(3)}` : "how often it acts was not learned");
  else lines.push(`probability ${run.probability[edge].toFixed(3)}`);
  if (run.std_error && !Number.isNaN(run.std_error[edge])) lines.push(`standard error ${run.std_error[edge].toFixed(3)}, 95% interval ${run.low[edge].toFixed(3)} to ${run.high[edge].toFixed(3)}`);
  if (run.effect) lines.push(`effect ${signed(run.effect[edge])} deviations of the target per deviation of the source`);
  if (run.truth) lines.push(`truth ${run.truth[edge].toFixed(3)}, error ${run.error[edge].toFixed(3)}`);
  if (kept) lines.push(identifiableWords(run, edge));
  return lines.join("<br>");
}

function identifiableWords(run, edge) {
  if (!run.identifiable) return "whether it can be told from the data was not looked at";
  const code = run.identifiable[edge];
  return code === FIXED ? "not learned: held fixed" : code === UNTOLD ? "cannot be told from the data" : "can be told from the data";
}

