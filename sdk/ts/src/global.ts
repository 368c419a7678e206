// For <script>: all entries in one global, but React's, whose pages have a bundler.

export * from "./index.js";
export * from "./actions/index.js";
export * from "./impair.js";
export * as math from "./math/index.js";
export * from "./netgraph.js";
export * from "./online/index.js";
export * from "./own/index.js";
export * from "./recording/index.js";
export * from "./rollback/index.js";
