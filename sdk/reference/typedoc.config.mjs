// How TypeDoc makes the reference: from the comments of each entry of the package.

import { readFileSync } from "node:fs";

const { exports } = JSON.parse(readFileSync(new URL("../ts/package.json", import.meta.url), "utf8"));
/** The source of an entry's types. */
const source = ({ types }) => types.replace("./dist/types/", "../ts/src/").replace(".d.ts", ".ts");

/** @type {Partial<import("typedoc").TypeDocOptions>} */
export default {
  name: "parlor",
  tsconfig: "../ts/tsconfig.json",
  out: "../../target/reference",
  readme: "../ts/README.md",
  entryPoints: Object.values(exports).filter(({ types }) => types !== undefined).map(source),
  disableSources: true,
  // The types that infer others are no part of the reference.
  validation: { notDocumented: true, notExported: false, invalidLink: true },
  requiredToBeDocumented: ["Class", "Interface", "Function", "TypeAlias", "Variable"],
  treatWarningsAsErrors: true,
};
