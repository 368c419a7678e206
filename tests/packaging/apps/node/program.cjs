const { host, join } = require("parlor");
const { WebSocket } = require("ws");
const { main } = require("./main.js");

main({ host, join }, globalThis.WebSocket === undefined ? { WebSocket } : {});
