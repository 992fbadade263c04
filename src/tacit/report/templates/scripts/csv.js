// Edges as a CSV file: the columns of edges.csv but bagged and exists_either, and the truth where it is known. A group
// of copied sources is one row, that of its first edge, with the `exists` of the group.
import { shared } from "./stored.js";
import { sixDigits } from "./text.js";

const FORMULA = /^[=+\-@\t\r]/;
const PLAIN_NUMBER = /^[+-]?\d+(\.\d+)?$/;

// A name that a spreadsheet would run as a formula gets an apostrophe in front.
const harmless = (name) => (FORMULA.test(name) && !PLAIN_NUMBER.test(name) ? `'${name}` : name);
const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

function cellText(run, column, edge) {
  if (column === "source" || column === "target") return quoted(harmless(run.names[run[column][edge]]));
  if (column === "group") return quoted(harmless(run.groups.get(edge) ?? ""));
  if (!run[column]) return "";
  if (column === "changed") return quoted(run.changed.get(edge) ?? "");
  if (column === "varies") return run.variesWords[run.varies[edge]];
  if (column === "direction") return shared.directions[run.direction[edge]];
  return column === "identifiable" ? shared.flags[run.identifiable[edge]] : sixDigits(run[column][edge]);
}

export function csvText(run, edges) {
  const columns = [...shared.csvColumns, ...["varies", "changed", "truth"].filter((column) => run[column])];
  const lines = [columns.join(",")];
  for (const edge of edges) lines.push(columns.map((column) => cellText(run, column, edge)).join(","));
  return `${lines.join("\n")}\n`;
}
