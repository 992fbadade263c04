// The table of edges: sorted by any column, filtered, and shown a page at a time.
import { csvText } from "./csv.js";
import { directionWord } from "./edges.js";
import { onRedraw } from "./figures.js";
import { saveFile } from "./files.js";
import { lagChart, lagText } from "./lags.js";
import { shared } from "./stored.js";
import { firstColumn, isName, nameFilter, sortedEdges } from "./table_rows.js";
import { grouped, numberText, plural } from "./text.js";
import { isPrinting } from "./theme.js";
import { variesWord, varyingButton } from "./varying_cell.js";

const PAPER_ROWS = 40;

function cellText(run, column, edge) {
  if (column === "source" && run.groups.has(edge)) return run.groups.get(edge);
  if (isName(column)) return run.names[run[column][edge]];
  if (column === "varies") return variesWord(run, edge);
  if (column === "direction") return directionWord(run, edge);
  const { kind, labels, digits, signed } = shared.columns[column];
  if (kind === "text") return run[column].get(edge) ?? "–";
  return kind === "word" ? labels[run[column][edge]] || "–" : numberText(run[column][edge], digits, signed);
}

function newRow(run, columns, edge, showCurve) {
  const row = document.createElement("tr");
  for (const column of columns) {
    const cell = row.insertCell();
    cell.textContent = cellText(run, column, edge);
    if (isName(column)) cell.dir = "auto";
    if (["lag", "varies", "changed"].includes(column)) cell.dataset.column = column;
    if (column === "varies") cell.append(" ", varyingButton(run, edge, showCurve) ?? "");
    if (column !== "lag") continue;
    cell.title = lagText(run, edge);
    cell.append(lagChart(run, edge) ?? "");
  }
  return row;
}

// Show a page of the chosen edges. Return its number, which is inside the table.
function showRows(section, run, columns, { chosen, page: wantedPage, countText }, showCurve) {
  const find = (name) => section.querySelector(`.edges ${name}`);
  const size = isPrinting() ? PAPER_ROWS : shared.rows;
  const pages = Math.max(1, Math.ceil(chosen.length / size));
  const page = Math.min(Math.max(0, wantedPage), pages - 1);
  const edges = Array.from(chosen.slice(page * size, (page + 1) * size));
  find("tbody").replaceChildren(...edges.map((edge) => newRow(run, columns, edge, showCurve)));
  const from = page * size + 1;
  const to = Math.min(chosen.length, from + size - 1);
  const printed = isPrinting() && pages > 1 ? ` Rows ${grouped(from)} to ${grouped(to)} are printed.` : "";
  find(".rows").textContent = countText + printed;
  find(".pages").hidden = pages === 1;
  find(".page-number").textContent = `Page ${grouped(page + 1)} of ${grouped(pages)}`;
  for (const name of ["first", "previous"]) find(`[data-page=${name}]`).disabled = page === 0;
  for (const name of ["next", "last"]) find(`[data-page=${name}]`).disabled = page === pages - 1;
  return page;
}

// Return the edges that pass the filters, and how many in words.
function filterEdges(section, run, sorted) {
  const find = (name) => section.querySelector(`.edges ${name}`);
  const text = find(".filter").value;
  const least = find(".least");
  const hasName = text.trim() ? nameFilter(run, text) : () => true;
  const from = least.validity.badInput ? 0 : Number(least.value);
  const withLoops = find(".loops")?.checked ?? true;
  const passes = (edge) => run.decides[edge] >= from && (withLoops || run.between[edge]) && hasName(edge);
  const chosen = sorted.filter(passes);
  const loops = withLoops ? "" : ", without self-loops";
  const remedy = chosen.length ? "" : "; lower the probability or change the name";
  return { chosen, countText: `${plural(chosen.length, "edge")} of ${grouped(run.numEdges)}${loops}${remedy}.` };
}

function markSorted(heads, column, descending) {
  for (const head of heads) {
    if (head.dataset.column === column) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  }
}

// `showCurve` shows how an edge varies; null where edges do not.
export function showTable(section, run, showCurve) {
  const heads = [...section.querySelectorAll(".edge-table th")];
  const columns = heads.map((head) => head.dataset.column);
  const state = { column: firstColumn(run), descending: true, page: 0, sorted: run.order, chosen: run.order };
  const show = () => {
    state.page = showRows(section, run, columns, state, showCurve);
  };
  const filter = () => {
    Object.assign(state, filterEdges(section, run, state.sorted), { page: 0 });
    show();
  };
  const sortBy = (column) => {
    const ascendingFirst = isName(column) || column === "identifiable";
    state.descending = state.column === column ? !state.descending : !ascendingFirst;
    state.column = column;
    markSorted(heads, column, state.descending);
    state.sorted = sortedEdges(run, column, state.descending);
    filter();
  };
  const turn = { first: () => 0, previous: () => state.page - 1, next: () => state.page + 1, last: () => Infinity };
  for (const head of heads) {
    head.querySelector("button").addEventListener("click", () => sortBy(head.dataset.column));
  }
  for (const button of section.querySelectorAll(".pages button")) {
    button.addEventListener("click", () => {
      state.page = turn[button.dataset.page]();
      show();
    });
  }
  for (const input of section.querySelectorAll(".edges :is(.filter, .least, .loops)")) {
    input.addEventListener("input", filter);
  }
  const download = section.querySelector(".edges .download");
  download.addEventListener("click", () => saveFile("edges.csv", csvText(run, state.chosen), "text/csv;charset=utf-8"));
  onRedraw(show); // paper has more rows
  filter();
}
