import { defineConfig } from "vitest/config";

const sdk = (entry: string) => new URL(`../sdk/ts/src/${entry}.ts`, import.meta.url).pathname;

export default defineConfig({
  // Pages are tested with the SDK's sources, as they are checked with them.
  resolve: {
    alias: [
      { find: /^parlor$/, replacement: sdk("slim") },
      { find: /^parlor\/(impair|netgraph)$/, replacement: sdk("$1") },
      { find: /^parlor\/online$/, replacement: sdk("online/index") },
    ],
  },
  // Only a hang takes this long.
  test: { allowOnly: false, testTimeout: 60_000 },
});
