// A layout on a screen that is narrow and high, as that of a phone: it is turned, and stretched to use the height.
const NARROW = 600; // pixels
const SHARE = 0.72; // of the height of the screen, for the drawing
const MOST_STRETCHED = 2;

export const isTall = () => innerWidth < NARROW && innerHeight > innerWidth;
export const tallHeight = () => Math.round(SHARE * innerHeight);

const extent = (values) => Math.max(...values) - Math.min(...values) || 1;

// Return the places turned by a right angle: right becomes down. A unit up is then `stretch` times as long.
export function upright({ x, y, places }) {
  const turned = { x: y, y: x.map((value) => -value) };
  const needed = (tallHeight() * extent(turned.x)) / (innerWidth * extent(turned.y));
  const stretch = Math.min(MOST_STRETCHED, Math.max(1, needed));
  const middle = Math.min(...turned.x) + extent(turned.x) / 2;
  const sides = places.sides.map(([right], node) => [turned.x[node] > middle ? -1 : 1, -right]); // names point inwards
  return { ...turned, places: { ...places, stretch, sides } };
}
