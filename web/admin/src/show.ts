/** Tables and figures on the page. Names come from strangers, so all that is shown is set as text. */

import type { Figure } from "./figures.ts";

/** A column: its head, and what stands there for a row. Numbers stand to the right. */
export interface Column<T> {
  head: string;
  cell: (row: T) => string | number | HTMLElement;
}

function element<K extends keyof HTMLElementTagNameMap>(name: K, content: string | number | HTMLElement, className = ""): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  made.append(typeof content === "number" ? content.toLocaleString("en-US") : content);
  if (className !== "") made.className = className;
  return made;
}

export function button(text: string, press: () => void): HTMLButtonElement {
  const made = element("button", text);
  made.type = "button";
  made.addEventListener("click", press);
  return made;
}

/** Shows rows, or that there are none, and whether the server has more of them. */
export function showTable<T>(place: HTMLElement, columns: Column<T>[], rows: T[], hasMore = false): void {
  if (rows.length === 0) {
    place.replaceChildren(element("p", hasMore ? "None of the first ones." : "None.", "none"));
    return;
  }
  const cells = rows.map((row) => columns.map(({ cell }) => cell(row)));
  const kind = (at: number) => (cells.every((row) => typeof row[at] === "number") ? "number" : "");
  const table = document.createElement("table");
  table.createTHead().insertRow().append(...columns.map(({ head }, at) => element("th", head, kind(at))));
  const body = table.createTBody();
  // A button that has the focus keeps it: the page is drawn anew every two seconds.
  const focused = document.activeElement instanceof HTMLButtonElement && place.contains(document.activeElement) ? document.activeElement.textContent : null;
  for (const row of cells) body.insertRow().append(...row.map((cell, at) => element("td", cell, kind(at))));
  place.replaceChildren(table, ...(hasMore ? [element("p", `The first ${rows.length}; there are more.`, "more")] : []));
  if (focused !== null) [...place.querySelectorAll("button")].find((it) => it.textContent === focused)?.focus();
}

export function showFigures(place: HTMLElement, figures: Figure[]): void {
  place.replaceChildren(...figures.map(({ name, text, isBad }) => {
    const made = element("div", element("b", text), isBad ? "bad" : "");
    made.append(element("span", name));
    return made;
  }));
}
