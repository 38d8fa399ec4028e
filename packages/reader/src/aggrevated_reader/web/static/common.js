// What all pages share: asking the server, saying how it went, making elements, saving files.

/** What the server answers; an Error with its sentence where it refuses, `offline` where nobody answers. */
export async function ask(path, { body, headers } = {}) {
  let response;
  try {
    response = await fetch(path, body === undefined ? {} : { method: "POST", body, headers });
  } catch {
    throw Object.assign(new Error("nobody answers: is the command still running? Nothing is lost."), { offline: true });
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  throw Object.assign(new Error(told.error || `the server answered ${response.status}`), { status: response.status });
}

/** The same for JSON both ways. */
export async function askFor(path, facts) {
  const sent = facts === undefined ? {} : { body: JSON.stringify(facts), headers: { "content-type": "application/json" } };
  return (await ask(path, sent)).json();
}

/** The element of that id. */
export const the = (id) => document.getElementById(id);

/** A new element with attributes and children; `on…` are listeners, `text` is its text. */
export function make(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** The same in SVG. */
export function makeSvg(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("aria-")) element.setAttribute(name, value); // where true and false are words
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

/** Say something where screen readers hear it; `bad` things stay until something else is said. */
export function say(sentence, bad = false) {
  const status = the("status");
  if (status.textContent !== sentence) status.textContent = sentence;
  status.classList.toggle("bad", bad);
}

/** Let the browser save a file. */
export function download(name, content, type) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = make("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** Copy text; where the browser does not let us, say so. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied.");
  } catch {
    say("The browser does not let this page copy; select the text yourself.", true);
  }
}

export const still = matchMedia("(prefers-reduced-motion: reduce)");
