// What tests of the SDK's pages need: a browser, a site of a game on an origin of its own, and a server that names it.

import { launch } from "./chromium.mjs";
import { startServer } from "./server.mjs";
import { startSite } from "./site.mjs";

/** `options` are the server's. */
export async function startPlace(...options) {
  const [browser, site] = await Promise.all([launch(), startSite()]);
  const server = await startServer("--web-origins", site.url.slice(0, -1), ...options);
  return { browser, site, server, stop: () => Promise.all([browser.close(), server.stop(), site.stop()]) };
}
