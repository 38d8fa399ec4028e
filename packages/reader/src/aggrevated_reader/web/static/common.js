// Shared by all pages: requests, status messages, elements, downloads.

/** Return the server's response; throw an Error with its message, or with `offline` if there is no response. */
export async function ask(path, { body, headers } = {}) {
  let response;
  try {
    response = await fetch(path, body === undefined ? {} : { method: "POST", body, headers });
  } catch {
    throw Object.assign(new Error("no answer: is the command still running? Nothing is lost."), { offline: true });
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  throw Object.assign(new Error(told.error || `the server answered ${response.status}`), { status: response.status });
}

/** Send JSON and return JSON. */
export async function askFor(path, facts) {
  const sent = facts === undefined ? {} : { body: JSON.stringify(facts), headers: { "content-type": "application/json" } };
  return (await ask(path, sent)).json();
}

/** Return the element with that id. */
export const the = (id) => document.getElementById(id);

/** Return a new element with attributes and children; `on…` are listeners, `text` is its text. */
export function make(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** Return a new SVG element, as `make` does for HTML. */
export function makeSvg(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("aria-")) element.setAttribute(name, value); // these take the words true and false
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

/** Show a status message that screen readers announce; `bad` marks an error. */
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

/** Copy text, or report that the browser refuses. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied.");
  } catch {
    say("The browser does not let this page copy; select the text yourself.", true);
  }
}

export const still = matchMedia("(prefers-reduced-motion: reduce)");
