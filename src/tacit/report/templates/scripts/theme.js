// Colours of the system's light or dark mode; paper is always light.
import { shared } from "./stored.js";

export const darkMode = matchMedia("(prefers-color-scheme: dark)");
export const coarsePointer = matchMedia("(pointer: coarse)"); // a finger scrolls the page; buttons zoom

let printing = false;

export const isPrinting = () => printing;

export function setPrinting(value) {
  printing = value;
}

export const colours = () => shared.palettes[darkMode.matches && !printing ? "dark" : "light"];

// Return "#rrggbb" with an opacity.
export function translucent(colour, opacity) {
  const [red, green, blue] = [1, 3, 5].map((place) => Number.parseInt(colour.slice(place, place + 2), 16));
  return `rgba(${red},${green},${blue},${opacity})`;
}
