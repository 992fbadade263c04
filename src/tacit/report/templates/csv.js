// Edges as a CSV file, in the columns of edges.csv but the bagged estimate, and the truth where it is known.
const FLAGS = ["", "yes", "no"];

// A name that a spreadsheet would take for a formula gets an apostrophe before it; a plain number does not.
const harmless = (name) => (/^[=+\-@\t\r]/.test(name) && !/^[+-]?\d+(\.\d+)?$/.test(name) ? `'${name}` : name);
const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

function csvOf(run, rows) {
  const columns = ["exists", "probability", "std_error", "low", "high", "effect"], lines = [["source", "target", ...columns, "identifiable", ...(run.truth ? ["truth"] : [])].join(",")];
  for (const edge of rows) {
    const cells = [quoted(harmless(run.names[run.source[edge]])), quoted(harmless(run.names[run.target[edge]]))];
    for (const column of columns) cells.push(run[column] ? number(run[column][edge]) : "");
    cells.push(run.identifiable ? FLAGS[run.identifiable[edge]] : "");
    if (run.truth) cells.push(number(run.truth[edge]));
    lines.push(cells.join(","));
  }
  return lines.join("\n") + "\n";
}

function saveFile(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}
