// Colours by the system's light or dark; on paper always light. Okabe and Ito's, which colour-blind people can tell apart.
const darkness = matchMedia("(prefers-color-scheme: dark)");
let printing = false;
const coarse = matchMedia("(pointer: coarse)"); // a finger scrolls the page; buttons zoom

function colours() {
  return darkness.matches && !printing
    ? { ink: "#e8eaed", quiet: "#b3b8c0", line: "#363b42", paper: "#15171a", edge: "86,180,233", reads: "240,170,60", sends: "60,205,160", raises: "86,180,233", lowers: "240,140,60", node: "#e69f00", chosen: "#ffffff", best: "#56b4e9", others: "#6b727c", expected: "#e69f00" }
    : { ink: "#1a1c20", quiet: "#55595f", line: "#d4d8de", paper: "#ffffff", edge: "0,114,178", reads: "190,80,0", sends: "0,125,92", raises: "0,114,178", lowers: "213,94,0", node: "#d55e00", chosen: "#000000", best: "#0072b2", others: "#b5b9bf", expected: "#d55e00" };
}

// Matplotlib's magma, for errors: plotly has no scale of this name.
const MAGMA = ["#000004", "#180f3d", "#440f76", "#721f81", "#9e2f7f", "#cd4071", "#f1605d", "#fd9668", "#feca8d", "#fcfdbf"]
  .map((colour, place, all) => [place / (all.length - 1), colour]);

// A name as text: plotly takes some marks for formatting, and dollars for formulas.
const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("$", "&#36;");
const shortened = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);
const grouped = (number) => number.toLocaleString("en-US");
const plural = (number, word) => `${grouped(number)} ${word}${number === 1 ? "" : "s"}`;
