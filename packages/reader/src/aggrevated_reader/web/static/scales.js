// Scales: ticks, conversion from values to pixels, number formats, axes, and swatches of lines.

import { makeSvg } from "./common.js";

const SHORT = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const LARGE = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** Return whether a number is given. */
export const known = (value) => value !== null && value !== undefined;

/** Format a return; a dash for a missing one. */
export const shown = (value) => (!known(value) ? "–" : SHORT.format(value).replace("-", "−"));

/** Format a count. */
export const counted = (value) => (!known(value) ? "–" : WHOLE.format(value));

/** Format a number at a tick; large ones are abbreviated. */
export const ticked = (value) => (Math.abs(value) >= 10000 ? LARGE.format(value) : SHORT.format(value)).replace("-", "−");

/** Format a difference with its sign. */
export const signed = (value) => (value > 0 ? "+" : "") + shown(value);

/** Return about `about` round numbers that cover a range. */
export function ticks(low, high, about) {
  const span = high - low || Math.abs(high) || 1;
  const power = 10 ** Math.floor(Math.log10(span / about));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => span / one <= about) || 10 * power;
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** Return the powers of ten in a range; if they are few, also twice and five times these. */
export function logTicks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const one of Math.log10(high / low) < 2.5 ? [1, 2, 5] : [1]) found.push(one * 10 ** power);
  }
  return found.filter((one) => one >= low * 0.999 && one <= high * 1.001);
}

/** Return a function from values to pixels; `invert` is its inverse, `ticks` are the values with labels. */
export function scale([low, high], [from, to], log, about) {
  const place = log ? (value) => Math.log(Math.max(value, low)) : (value) => value;
  const start = place(low);
  const span = place(high) - start || 1;
  const pixels = (value) => from + ((place(value) - start) / span) * (to - from);
  pixels.invert = (pixel) => {
    const at = start + ((pixel - from) / (to - from)) * span;
    return log ? Math.exp(at) : at;
  };
  pixels.ticks = log ? logTicks(low, high) : ticks(low, high, about);
  return pixels;
}

/** Round to a tenth of a pixel. */
export const round = (value) => Math.round(value * 10) / 10;

/** Return the axes of a figure: x and y are scales, `title` labels the x axis. */
export function axes(x, y, { width, height, margin, title }) {
  const [bottom, right] = [height - margin.bottom, width - margin.right];
  const across = y.ticks.flatMap((value) => [
    makeSvg("path", { class: "grid", d: `M${margin.left},${round(y(value))}H${right}` }),
    makeSvg("text", { x: margin.left - 6, y: round(y(value)) + 4, "text-anchor": "end", text: ticked(value) }),
  ]);
  const along = x.ticks.flatMap((value) => {
    const anchor = x(value) > width - 26 ? "end" : "middle"; // keep the number on the paper
    return [
      makeSvg("path", { class: "axis", d: `M${round(x(value))},${bottom}v4` }),
      makeSvg("text", { x: round(x(value)), y: bottom + 17, "text-anchor": anchor, text: ticked(value) }),
    ];
  });
  const line = makeSvg("path", { class: "axis", d: `M${margin.left},${bottom}H${right}` });
  const below = makeSvg("text", { x: (margin.left + right) / 2, y: height - 6, "text-anchor": "middle", text: title });
  return [...across, ...along, line, below];
}

/** Return a swatch of a line for a legend, with marks on it. */
export function sign(kind, ...marks) {
  const line = makeSvg("path", { class: `curve ${kind}`, d: "M1,7H35" });
  return makeSvg("svg", { class: "swatch", viewBox: "0 0 36 14", "aria-hidden": "true" }, line, ...marks);
}
