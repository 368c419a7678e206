// Writes the types of a server's operations, as its own OpenAPI document has them:
//
//   node scripts/operations.mjs [FILE]      default: src/online/operations.ts
//
// It asks the built server (target/debug/parlor, or PARLOR_BIN). A test compares the file with what comes out.

import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { documentOf } from "./openapi.mjs";

/** A name as a key, in quotes only if it needs them. */
const key = (name) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name));

/** The name of a type in TypeScript, if the document's would hide one of its own. */
const named = (ref) => ref.slice(ref.lastIndexOf("/") + 1).replace(/^Error$/, "Refusal");

/** A type in TypeScript. */
function typeOf(schema) {
  if (schema === true || schema === undefined) return "Json";
  if (schema.$ref !== undefined) return named(schema.$ref);
  if ("const" in schema) return JSON.stringify(schema.const);
  const either = schema.anyOf ?? schema.oneOf;
  if (either !== undefined) return either.map(typeOf).join(" | ");
  if (schema.enum !== undefined) return schema.enum.map((it) => JSON.stringify(it)).join(" | ");
  const types = Array.isArray(schema.type) ? schema.type : [schema.type];
  return types.map((type) => simple(type, schema)).join(" | ");
}

function simple(type, schema) {
  switch (type) {
    case "string":
    case "boolean":
    case "null":
      return type;
    case "integer":
    case "number":
      return "number";
    case "array": {
      const item = typeOf(schema.items);
      return item.includes(" ") ? `(${item})[]` : `${item}[]`;
    }
    case "object":
      return schema.properties === undefined ? mapOf(schema) : fieldsOf(schema);
    default:
      return "Json";
  }
}

function mapOf({ additionalProperties: of }) {
  const item = typeof of === "object" ? typeOf(of) : "Json";
  return item === "Json" ? "JsonObject" : `{ [name: string]: ${item} }`;
}

function fieldsOf(schema) {
  const required = new Set(schema.required ?? []);
  const fields = Object.entries(schema.properties).map(([name, it]) => `${key(name)}${required.has(name) ? "" : "?"}: ${typeOf(it)}`);
  return fields.length === 0 ? "Record<never, never>" : `{ ${fields.join("; ")} }`;
}

/** The names that a text of types mentions. */
const mentions = (text) => new Set(text.match(/\b[A-Z]\w*\b/g) ?? []);

/** The file: what players may ask, and the types of that. */
export function operationsOf(document) {
  const operations = [];
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const operation of Object.values(methods)) {
      const roles = operation["x-roles"];
      if (roles !== undefined && roles !== null && !roles.includes("player")) continue;
      const body = operation.requestBody?.content?.["application/json"]?.schema;
      const given = (operation.parameters ?? []).filter(({ in: place }) => place === "path" || place === "query");
      const input = {
        type: "object",
        properties: { ...Object.fromEntries(given.map((it) => [it.name, it.schema])), ...(body?.properties ?? {}) },
        required: [...given.filter((it) => it.required).map((it) => it.name), ...(body?.required ?? [])],
      };
      const output = operation.responses["200"].content["application/json"].schema;
      const text = `  /** ${operation.summary}. \`${path}\` over HTTP. */\n  ${JSON.stringify(operation.operationId)}: { in: ${typeOf(input)}; out: ${typeOf(output)} };`;
      operations.push([operation.operationId, text]);
    }
  }
  operations.sort(([a], [b]) => (a < b ? -1 : 1));
  const table = operations.map(([, text]) => text).join("\n");
  const schemas = new Map(Object.entries(document.components.schemas).map(([name, schema]) => [named(name), typeOf(schema)]));
  const used = new Set();
  const use = (text) => {
    for (const name of mentions(text)) {
      if (!schemas.has(name) || used.has(name)) continue;
      used.add(name);
      use(schemas.get(name));
    }
  };
  use(table);
  const types = [...used].sort().map((name) => {
    const said = document.components.schemas[name]?.description?.split("\n")[0];
    const text = schemas.get(name);
    const isOne = document.components.schemas[name]?.properties !== undefined;
    const fields = isOne ? text.slice(2, -2) : undefined;
    const head = said === undefined ? "" : `/** ${said} */\n`;
    return fields === undefined ? `${head}export type ${name} = ${text};` : `${head}export interface ${name} {\n  ${splitFields(fields).join(";\n  ")};\n}`;
  });
  return `// Made by scripts/operations.mjs from a server's /v1/openapi.json. docs/online.md says what each operation does.

/** What JSON can hold. */
export type Json = null | boolean | number | string | Json[] | JsonObject;
/** An object of JSON. */
export type JsonObject = { [name: string]: Json };

${types.join("\n\n")}

/** What a player may ask of a server, by its name: its input and its output. */
export interface Operations {
${table}
}
`;
}

/** Splits fields at the semicolons that are not within another object. */
function splitFields(text) {
  const fields = [];
  let [depth, from] = [0, 0];
  for (let at = 0; at < text.length; at++) {
    if (text[at] === "{") depth += 1;
    else if (text[at] === "}") depth -= 1;
    else if (text[at] === ";" && depth === 0) {
      fields.push(text.slice(from, at).trim());
      from = at + 1;
    }
  }
  return [...fields, text.slice(from).trim()];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const to = process.argv[2] ?? fileURLToPath(new URL("../src/online/operations.ts", import.meta.url));
  writeFileSync(to, operationsOf(await documentOf()));
}
