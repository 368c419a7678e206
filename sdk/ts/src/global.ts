// For <script>: all entries in one global.

export * from "./index.js";
export * as math from "./math/index.js";
export * from "./own/index.js";
export * from "./recording/index.js";
export * from "./rollback/index.js";
