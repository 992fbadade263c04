// The matrix of probabilities, beside truth and error where they are known; all show the same part.
const MOST_CELLS = 160; // along a side; where there are more nodes, a cell stands for a block and shows its largest value

function cellsOf(run, view, values) {
  const block = Math.max(1, Math.ceil(Math.max(view.x[1] - view.x[0], view.y[1] - view.y[0]) / MOST_CELLS));
  const wide = Math.ceil((view.x[1] - view.x[0]) / block), high = Math.ceil((view.y[1] - view.y[0]) / block);
  const z = Array.from({ length: high }, () => new Array(wide).fill(null)), best = Array.from({ length: high }, () => new Array(wide).fill(-1));
  const put = (source, target, edge) => {
    if (Number.isNaN(values[edge])) return; // not kept
    if (source < view.x[0] || source >= view.x[1] || target < view.y[0] || target >= view.y[1]) return;
    const row = Math.floor((target - view.y[0]) / block), column = Math.floor((source - view.x[0]) / block);
    if (z[row][column] === null || values[edge] > z[row][column]) { z[row][column] = values[edge]; best[row][column] = edge; }
  };
  for (let edge = 0; edge < run.count; edge += 1) {
    put(run.source[edge], run.target[edge], edge);
    if (run.symmetric) put(run.target[edge], run.source[edge], edge);
  }
  return { z, best, block };
}

function axisTicks(run, [low, high], room) {
  const step = Math.max(1, Math.ceil((high - low) / Math.max(2, Math.floor(room / 18)))), values = [];
  for (let node = low; node < high; node += step) values.push(node);
  return { tickmode: "array", tickvals: values, ticktext: values.map((node) => plain(shortened(run.names[node], 14))), tickfont: { size: 10.5 } };
}

function clampedView(run, [low, high]) {
  const size = Math.min(run.numNodes, Math.max(Math.min(2, run.numNodes), Math.round(high - low)));
  const from = Math.min(run.numNodes - size, Math.max(0, Math.round(low)));
  return [from, from + size];
}

function showMatrices(section, run) {
  const elements = [...section.querySelectorAll(".matrix")], seen = section.querySelector(".matrices .seen");
  const whole = () => ({ x: [0, run.numNodes], y: [0, run.numNodes] });
  const view = whole(), titles = { exists: "exists", probability: run.evident ? "acts" : "learned probability", truth: "true probability", error: "absolute error" };
  const largest = (values) => (values ? values.reduce((top, value, edge) => (run.between[edge] && value > top ? value : top), 0) : 0);
  const strongest = Math.max(largest(run.decides), largest(run.acts), largest(run.truth)), bright = strongest >= 0.5 || !strongest ? 1 : Math.ceil(10 * strongest) / 10;
  const top = run.error ? Math.max(1e-3, run.error.reduce((a, b) => Math.max(a, b), 0)) : 1;
  const longest = run.names.reduce((most, name) => Math.max(most, Math.min(14, name.length)), 1), turned = longest > 3;
  const words = new Array(run.count); // of an edge are made once, for all panels
  const wordsOf = (edge) => (words[edge] ??= edgeWords(run, edge));
  const draws = elements.map((element) => drawing(element, () => {
    const shows = element.dataset.shows, { z, best, block } = cellsOf(run, view, run[shows]);
    const text = best.map(() => []); // filled when the pointer comes: most of the words are never read
    element.fillWords = () => {
      best.forEach((row, y) => text[y].push(...row.map((edge) => (edge < 0 ? "" : block === 1 ? wordsOf(edge) : `largest in this block:<br>${wordsOf(edge)}`))));
      element.fillWords = null;
    };
    const room = element.clientWidth - 110;
    return {
      data: [{ type: "heatmap", z, x0: view.x[0] + (block - 1) / 2, dx: block, y0: view.y[0] + (block - 1) / 2, dy: block, zmin: 0, zmax: shows === "error" ? top : bright, colorscale: shows === "error" ? MAGMA : "Viridis", text, hoverinfo: "text", hoverongaps: false, colorbar: { thickness: 10, outlinewidth: 0, tickfont: { size: 10 } } }],
      layout: {
        title: titles[shows], margin: { l: 36 + 6.5 * longest, r: 6, t: 34, b: turned ? 40 + 6.5 * longest : 48 },
        xaxis: { title: { text: "source (sends)", standoff: 4 }, range: [view.x[0] - 0.5, view.x[1] - 0.5], showgrid: false, tickangle: turned ? -90 : 0, ...axisTicks(run, view.x, room) },
        yaxis: { title: { text: "target (reads)", standoff: 4 }, range: [view.y[1] - 0.5, view.y[0] - 0.5], showgrid: false, ...axisTicks(run, view.y, 290) },
      },
    };
  }));
  const say = () => {
    const part = ([low, high]) => (high - low === run.numNodes ? `all ${grouped(run.numNodes)}` : `${grouped(low + 1)} to ${grouped(high)} of ${grouped(run.numNodes)}`);
    seen.textContent = `Sources ${part(view.x)}, targets ${part(view.y)}.${bright < 1 ? ` Colours end at ${bright.toFixed(1)}, above the most probable edge.` : ""}`;
  };
  const look = (x, y) => {
    Object.assign(view, { x: clampedView(run, x), y: clampedView(run, y) });
    say();
    draws.forEach((draw) => draw());
  };
  for (const element of elements) {
    element.addEventListener("pointermove", () => element.fillWords?.(), { capture: true });
    element.on("plotly_relayout", (change) => {
      if (!("xaxis.range[0]" in change) && !("yaxis.range[0]" in change)) return;
      const between = (axis, old) => (`${axis}.range[0]` in change ? [change[`${axis}.range[0]`], change[`${axis}.range[1]`]].sort((a, b) => a - b).map((end) => end + 0.5) : old);
      look(between("xaxis", view.x), between("yaxis", view.y));
    });
  }
  zoomControls(section.querySelector(".matrices .zoom"), elements, (act) => {
    const [right, down] = Array.isArray(act) ? act : [0, 0], all = whole();
    if (act === "reset") look(all.x, all.y); else look(zoomedRange(view.x, act, right), zoomedRange(view.y, act, down));
  });
  say();
}
