// Edges as a CSV file: the columns of edges.csv that the page has, and the truth where it is known. A group of copied
// sources is one row, that of its first edge, with the `exists` of the group.
import { shared } from "./stored.js";
import { sixDigits } from "./text.js";

const FORMULA = /^[=+\-@\t\r]/;
const PLAIN_NUMBER = /^[+-]?\d+(\.\d+)?$/;

// A name that a spreadsheet would run as a formula gets an apostrophe in front.
const harmless = (name) => (FORMULA.test(name) && !PLAIN_NUMBER.test(name) ? `'${name}` : name);
const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

function cellText(run, column, edge) {
  if (column === "source" || column === "target") return quoted(harmless(run.names[run[column][edge]]));
  if (!run[column]) return "";
  const { kind, words } = shared.columns[column];
  if (kind === "text") return quoted(harmless(run[column].get(edge) ?? ""));
  return kind === "word" ? words[run[column][edge]] : sixDigits(run[column][edge]);
}

export function csvText(run, edges) {
  const columns = Object.keys(shared.columns).filter((column) => shared.columns[column].inFile);
  if (run.truth) columns.push("truth");
  const lines = [columns.join(",")];
  for (const edge of edges) lines.push(columns.map((column) => cellText(run, column, edge)).join(","));
  return `${lines.join("\n")}\n`;
}
