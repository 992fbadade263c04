// Search for a node: its edges stand out, in words and in the drawing.
const MOST_NAMES = 2000;

function matchesOf(run, text) {
  const wanted = text.trim().toLowerCase(), names = run.lower;
  const exact = run.names.indexOf(text.trim()), same = names.indexOf(wanted);
  const some = [];
  names.forEach((name, node) => { if (name.includes(wanted)) some.push(node); });
  some.sort((a, b) => Number(names[b].startsWith(wanted)) - Number(names[a].startsWith(wanted)) || a - b);
  return { exact: exact >= 0 ? exact : same, some };
}

function nodeWords(run, node) {
  const reads = [], sends = [];
  for (const edge of run.order) {
    if (!run.between[edge] || isUntold(run, edge) || (run.evident && !isListed(run, edge))) continue;
    if (run.target[edge] === node && reads.length < 3) reads.push(`${isolated(run.names[run.source[edge]])} ${run.decides[edge].toFixed(2)}`);
    if (run.source[edge] === node && sends.length < 3) sends.push(`${isolated(run.names[run.target[edge]])} ${run.decides[edge].toFixed(2)}`);
    if (reads.length + sends.length === 6) break;
  }
  const place = run.placeOf[node] < 0 ? " It is not among the drawn nodes." : "";
  const name = isolated(run.names[node]);
  if (run.symmetric) {
    const linked = reads.concat(sends).sort((a, b) => Number(b.split(" ").at(-1)) - Number(a.split(" ").at(-1)));
    return `${name} is linked ${run.evident ? "by listed edges" : "most probably"} with ${linked.slice(0, 3).join(", ") || "no other"}.${place}`;
  }
  if (run.evident) return `${name} reads by listed edges ${reads.join(", ") || "no other"}; it is read by listed edges by ${sends.join(", ") || "no other"}.${place}`;
  return `${name} reads most probably ${reads.join(", ") || "no other"} (orange); it is read most probably by ${sends.join(", ") || "no other"} (green).${place}`;
}

function showSearch(section, run, graph) {
  const input = section.querySelector(".search"), found = section.querySelector(".graph .found");
  const options = section.querySelector("datalist");
  run.lower = run.names.map((name) => name.toLowerCase());
  options.append(...run.names.slice(0, MOST_NAMES).map((name) => Object.assign(document.createElement("option"), { value: name })));
  const choose = (node, words) => { found.textContent = words; graph.choose(node !== null && run.placeOf[node] < 0 ? null : node); };
  const look = (final) => {
    if (!input.value.trim()) { choose(null, ""); return; }
    const { exact, some } = matchesOf(run, input.value);
    const node = exact >= 0 ? exact : final && some.length ? some[0] : null;
    if (node !== null) choose(node, nodeWords(run, node));
    else if (!some.length) choose(null, `No node has a name that contains “${input.value.trim()}”.`);
    else choose(null, `${plural(some.length, "node")} ${some.length === 1 ? "has a name" : "have names"} that contain${some.length === 1 ? "s" : ""} this; press Enter for ${isolated(run.names[some[0]])}.`);
  };
  input.addEventListener("input", () => look(false));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") look(true);
    if (event.key === "Escape") { input.value = ""; look(false); }
  });
  section.querySelector(".clear-search").addEventListener("click", () => { input.value = ""; look(false); input.focus(); });
  graph.element.on("plotly_click", ({ points }) => {
    const node = points[0].customdata;
    if (node === undefined) return;
    input.value = run.names[node];
    look(true);
  });
}
