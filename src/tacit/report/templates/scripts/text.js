// Names and numbers as text.

// Plotly reads some characters as markup, and dollars as formulas.
const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", $: "&#36;" };
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that XML does not have
const NOT_IN_XML = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;

// Return a text without what XML does not have, for GraphML and SVG.
export const xmlText = (text) => text.toWellFormed().replace(NOT_IN_XML, "\ufffd");
export const plotlyText = (text) => xmlText(text).replace(/[&<>$]/g, (letter) => ENTITIES[letter]);
export const shortened = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);
export const grouped = (count) => count.toLocaleString("en-US");
export const plural = (count, word) => `${grouped(count)} ${word}${count === 1 ? "" : "s"}`;

// A name that is written from right to left must not change the direction of the text beside it.
export const isolated = (name) => (RIGHT_TO_LEFT.test(name) ? `\u2068${name}\u2069` : name);

export const sixDigits = (value) => (Number.isNaN(value) ? "" : String(Number(value.toPrecision(6))));
const withSign = (value, digits) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}`;
export const numberText = (value, digits, isSigned) =>
  Number.isNaN(value) ? "–" : isSigned ? withSign(value, digits) : value.toFixed(digits);
export const threeDigits = (value) => numberText(value, 3, false);
export const signed = (value) => numberText(value, 3, true);
