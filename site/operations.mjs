// The page of the HTTP operations, from the server's own OpenAPI document.

import { escape } from "./markdown.mjs";

/** A description, whose words between backticks are code. */
const described = (text = "") => escape(text).replace(/`([^`]+)`/g, "<code>$1</code>");

/** The type of a schema in a few words. */
function typeOf(schema) {
  if (schema === undefined || schema === true) return "any";
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.enum) return schema.enum.map((it) => JSON.stringify(it)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  const any = schema.anyOf ?? schema.oneOf;
  if (any) return any.map(typeOf).join(" | ");
  if (schema.type === "array") return `${typeOf(schema.items)}[]`;
  return Array.isArray(schema.type) ? schema.type.join(" | ") : (schema.type ?? "object");
}

function fields(names) {
  if (names.length === 0) return "";
  const rows = names.map(({ name, schema, required }) => `<tr><td><code>${escape(name)}</code>${required ? "" : " (optional)"}</td><td><code>${escape(typeOf(schema))}</code></td><td>${described(schema?.description)}</td></tr>`);
  return `<div class="table"><table><tr><th>input</th><th>type</th><th></th></tr>${rows.join("")}</table></div>`;
}

/** What an operation takes: parameters of the path and the query, and fields of the body. */
function inputs(operation, document) {
  const parameters = (operation.parameters ?? []).map(({ name, schema, required }) => ({ name, schema, required }));
  const body = resolved(operation.requestBody?.content?.["application/json"]?.schema, document);
  const properties = Object.entries(body?.properties ?? {}).map(([name, schema]) => ({ name, schema, required: body.required?.includes(name) }));
  return [...parameters, ...properties];
}

function resolved(schema, document) {
  if (!schema?.$ref) return schema;
  return schema.$ref.split("/").slice(1).reduce((at, name) => at[name], document);
}

/** The page of all operations, grouped by the first word of their names. */
export function operationsPage(document) {
  const all = Object.entries(document.paths).flatMap(([path, methods]) => Object.entries(methods).filter(([, it]) => it.operationId).map(([method, it]) => ({ path, method, ...it })));
  all.sort((a, b) => a.operationId.localeCompare(b.operationId, "en"));
  const groups = grouped(all);
  const headings = [...groups.keys()].map((group) => ({ level: 2, id: group, title: group }));
  const body = [...groups].map(([group, operations]) => `<h2 id="${group}">${group}</h2>\n${operations.map((it) => section(it, document)).join("\n")}`);
  return {
    address: "api/http.html",
    title: "HTTP operations",
    headings,
    body: `<p>${all.length} operations, each over HTTP and over the JSON socket (<a href="../docs/online.html#over-http">how to call them</a>). This page is made from the document that a server answers at <code>/v1/openapi.json</code>: <a href="openapi.json" download>download it</a>.</p>\n${body.join("\n")}`,
    sections: all.map(({ operationId, summary, description }) => ({ page: `api/http.html#${operationId}`, title: operationId, text: summary ?? description ?? "" })),
  };
}

const groupOf = ({ operationId }) => operationId.split(".")[0];

function grouped(all) {
  const groups = new Map();
  for (const it of all) groups.set(groupOf(it), [...(groups.get(groupOf(it)) ?? []), it]);
  return groups;
}

function section(operation, document) {
  const roles = operation["x-roles"] ? `<p>For: ${escape(operation["x-roles"].join(", "))}.</p>` : "";
  return `<h3 id="${escape(operation.operationId)}">${escape(operation.operationId)}<a class="anchor" href="#${escape(operation.operationId)}" aria-label="link to this section">#</a></h3>
<p><code>${operation.method.toUpperCase()} ${escape(operation.path)}</code></p><p>${described(operation.summary ?? operation.description)}</p>${roles}${fields(inputs(operation, document))}`;
}
