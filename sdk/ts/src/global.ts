// For <script>: all entries in one global.

export * from "./index.js";
export * from "./rollback/index.js";
export * as math from "./math/index.js";
