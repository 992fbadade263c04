// The table of edges: sorted by any column, filtered, a page at a time, so that many thousand rows stay quick.
const ROWS = 25, PAPER_ROWS = 40;
const FLAG_WORDS = ["held fixed", "yes", "no"], FLAG_ORDER = [1, 0, 2];

// For each edge a number to sort by; names by their order in words, with numbers inside them as numbers.
function sortValues(run, column) {
  if (column !== "source" && column !== "target") return column === "identifiable" ? run.identifiable.map((code) => FLAG_ORDER[code]) : run[column].map((value) => (Number.isNaN(value) ? -Infinity : value));
  if (!run.rank) {
    const compare = new Intl.Collator("en", { numeric: true }).compare, order = run.names.map((_, node) => node).sort((a, b) => compare(run.names[a], run.names[b]) || a - b);
    run.rank = new Uint32Array(run.numNodes);
    order.forEach((node, place) => { run.rank[node] = place; });
  }
  return Uint32Array.from(run[column], (node) => run.rank[node]);
}

const firstColumn = (run) => (run.evident ? "exists" : "probability");

function sortedEdges(run, column, descending) {
  if (column === firstColumn(run) && descending) return run.order;
  const values = sortValues(run, column), sign = descending ? -1 : 1;
  return run.order.toSorted((a, b) => sign * (values[a] - values[b]) || run.decides[b] - run.decides[a] || run.acts[b] - run.acts[a] || a - b);
}

// Which nodes may be source and target: one text for either, or "source → target".
function nameFilter(run, text) {
  const [first, second] = text.toLowerCase().split(/→|->/).map((part) => part.trim());
  const has = (part) => Uint8Array.from(run.lower, (name) => (name.includes(part) ? 1 : 0));
  const left = has(first);
  if (second === undefined) return (edge) => left[run.source[edge]] || left[run.target[edge]];
  const right = has(second);
  const fits = (edge) => left[run.source[edge]] && right[run.target[edge]];
  return run.symmetric ? (edge) => fits(edge) || (right[run.source[edge]] && left[run.target[edge]]) : fits;
}

function showTable(section, run) {
  const find = (name) => section.querySelector(`.edges ${name}`);
  const body = find("tbody"), rows = find(".rows"), filter = find(".filter"), least = find(".least"), loops = find(".loops"), heads = [...section.querySelectorAll(".edge-table th")];
  const columns = heads.map((head) => head.dataset.column), state = { column: firstColumn(run), descending: true, page: 0 };
  let sorted = run.order, chosen = run.order, words = "";

  const cell = (column, edge) => {
    if (column === "source" || column === "target") return run.names[run[column][edge]];
    if (column === "effect") return signed(run.effect[edge]);
    return column === "identifiable" ? FLAG_WORDS[run.identifiable[edge]] : threeDigits(run[column][edge]);
  };
  const show = () => {
    const size = printing ? PAPER_ROWS : ROWS, pages = Math.max(1, Math.ceil(chosen.length / size));
    state.page = Math.min(Math.max(0, state.page), pages - 1);
    body.replaceChildren(...Array.from(chosen.slice(state.page * size, (state.page + 1) * size), (edge) => {
      const row = document.createElement("tr");
      for (const column of columns) {
        const made = row.insertCell();
        made.textContent = cell(column, edge);
        if (column === "source" || column === "target") made.dir = "auto";
      }
      return row;
    }));
    const from = state.page * size + 1, to = Math.min(chosen.length, from + size - 1);
    rows.textContent = words + (printing && pages > 1 ? ` Rows ${grouped(from)} to ${grouped(to)} are printed.` : "");
    find(".page-number").textContent = `Page ${grouped(state.page + 1)} of ${grouped(pages)}`;
    for (const name of ["first", "previous"]) find(`[data-page=${name}]`).disabled = state.page === 0;
    for (const name of ["next", "last"]) find(`[data-page=${name}]`).disabled = state.page === pages - 1;
  };
  const choose = () => {
    const named = filter.value.trim() ? nameFilter(run, filter.value) : null, from = least.validity.badInput ? 0 : Number(least.value), all = !loops || loops.checked;
    chosen = sorted.filter((edge) => run.decides[edge] >= from && (all || run.between[edge]) && (!named || named(edge)));
    words = `${plural(chosen.length, "edge")} of ${grouped(run.count)}${all ? "" : ", without loops"}${chosen.length ? "" : "; lower the probability or change the name"}.`;
    state.page = 0;
    show();
  };
  const sortBy = (column) => {
    const text = column === "source" || column === "target" || column === "identifiable";
    state.descending = state.column === column ? !state.descending : !text;
    state.column = column;
    for (const head of heads) {
      if (head.dataset.column === column) head.setAttribute("aria-sort", state.descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    sorted = sortedEdges(run, column, state.descending);
    choose();
  };
  const turn = { first: () => 0, previous: () => state.page - 1, next: () => state.page + 1, last: () => Infinity };
  for (const head of heads) head.querySelector("button").addEventListener("click", () => sortBy(head.dataset.column));
  for (const button of section.querySelectorAll(".pages button")) button.addEventListener("click", () => { state.page = turn[button.dataset.page](); show(); });
  filter.addEventListener("input", choose);
  least.addEventListener("input", choose);
  if (loops) loops.addEventListener("change", choose);
  find(".download").addEventListener("click", () => saveFile("edges.csv", csvOf(run, chosen)));
  drawings.push(show); // on paper more rows
  choose();
}
