// Where links of a document lead on the site: to another page, or to a file of the repository at its host.

import { existsSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";

/** The address of a document's page, from the top of the site. */
export function pageOf(path) {
  if (path === "README.md") return "index.html";
  if (path === "SECURITY.md") return "security-policy.html";
  return path.replace(/\/README\.md$/, ".md").replace(/\.md$/, ".html").toLowerCase();
}

/** The way from one page to another, or to a file of the site. */
export function between(from, to) {
  const way = posix.relative(posix.dirname(from), to);
  return way === "" ? posix.basename(to) : way;
}

/** Where the repository is: what Cargo.toml says for all packages. Undefined if it says nothing. */
export function repositoryOf(root) {
  const [, section] = /^\[workspace\.package\]\n((?:(?!\[).*\n)*)/m.exec(readFileSync(join(root, "Cargo.toml"), "utf8")) ?? [];
  return /^repository = "(.*?)\/?"$/m.exec(section ?? "")?.[1];
}

/**
 * Gives a function for `render`: the address for a target of a link in `document`. Targets that lead to no file are told to
 * `dead`. A file without a page is one of the repository; without a known host it has no address.
 */
export function linker({ root, document, documents, repository, dead }) {
  const page = pageOf(document);
  return (target) => {
    if (/^[a-z]+:/i.test(target) || target.startsWith("#")) return target;
    const [file, anchor] = target.split("#");
    const hash = anchor === undefined ? "" : `#${anchor}`;
    const path = posix.join(dirname(document), file).replace(/\/$/, "");
    if (path.startsWith("..") || !existsSync(join(root, path))) dead(`${document}: the link to ${target} leads to no file of the repository`);
    if (documents.has(path)) return `${between(page, pageOf(path))}${hash}`;
    return repository && `${repository}/blob/HEAD/${path}${hash}`;
  };
}
