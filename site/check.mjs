// The check of links: each address in the pages of a folder leads to a file of it, and each anchor to an id there. What other
// tools made below `api/` is a target, and checked by them.

import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";

const OTHERS = ["api/rust", "api/ts"];

/** The dead links of a site, each as a sentence. */
export function deadLinks(folder) {
  const pages = readdirSync(folder, { recursive: true }).filter((path) => path.endsWith(".html") && !OTHERS.some((other) => path.startsWith(other)));
  const ids = new Map();
  const idsOf = (path) => {
    if (!ids.has(path)) ids.set(path, new Set([...readFileSync(join(folder, path), "utf8").matchAll(/\bid="([^"]*)"/g)].map(([, id]) => id)));
    return ids.get(path);
  };
  return pages.flatMap((page) => {
    const text = readFileSync(join(folder, page), "utf8");
    const targets = new Set([...text.matchAll(/\b(?:href|src)="([^"]*)"/g)].map(([, target]) => target.replaceAll("&amp;", "&")));
    return [...targets].filter((target) => !/^(?:[a-z]+:)/i.test(target)).flatMap((target) => {
      const [address, anchor] = target.split("#");
      const path = address === "" ? page : relative(folder, join(folder, dirname(page), decodeURI(address)));
      if (path.startsWith("..") || !existsSync(join(folder, path))) return [`${page}: the link to ${target} leads to no file of the site`];
      if (statSync(join(folder, path)).isDirectory()) return [`${page}: the link to ${target} leads to a folder: name its index.html`];
      if (anchor === undefined || anchor === "" || !path.endsWith(".html")) return [];
      return idsOf(path).has(decodeURIComponent(anchor)) ? [] : [`${page}: the link to ${target} leads to no section of ${path}`];
    });
  });
}
