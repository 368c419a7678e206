// Firefox ESR from the system's packages, driven by WebDriver BiDi: as much of that as a smoke test needs.

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WebSocket } from "ws";

/** The browser: what FIREFOX names, else Debian's. */
export const FIREFOX = process.env.FIREFOX ?? "/usr/bin/firefox-esr";
export const isThere = existsSync(FIREFOX);

const STARTS_WITHIN_MS = 120_000;

/** Starts Firefox with a profile of its own, without a window. */
export async function launchFirefox() {
  const profile = mkdtempSync(join(tmpdir(), "parlor-firefox-"));
  const child = spawn(FIREFOX, ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0"], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, HOME: profile },
  });
  process.once("exit", () => child.kill("SIGKILL"));
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const url = await new Promise((resolve, reject) => {
    let said = "";
    const late = setTimeout(() => reject(new Error(`Firefox did not start within ${STARTS_WITHIN_MS} ms: ${said}`)), STARTS_WITHIN_MS);
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`Firefox ended with ${code}: ${said}`)));
    child.stderr.on("data", (bytes) => {
      said += bytes;
      const found = /WebDriver BiDi listening on (ws:\S+)/.exec(said);
      if (found === null) return;
      clearTimeout(late);
      resolve(found[1]);
    });
  });
  const session = await connect(`${url}/session`);
  const { capabilities } = await session.ask("session.new", { capabilities: {} });
  return {
    version: capabilities.browserVersion,
    /** Opens a page in a context of its own: nothing of another page is in its storage. */
    async open(url) {
      const { userContext } = await session.ask("browser.createUserContext", {});
      const { context } = await session.ask("browsingContext.create", { type: "window", userContext });
      await session.ask("browsingContext.navigate", { context, url, wait: "complete" });
      return pageOf(session, context);
    },
    async close() {
      // Firefox may be gone before it has answered.
      await Promise.race([session.ask("browser.close", {}).catch(() => {}), ended]);
      await ended;
      rmSync(profile, { recursive: true, force: true });
    },
  };
}

function pageOf(session, context) {
  const page = {
    /** Runs a function in the page with arguments that JSON can hold. */
    async evaluate(run, ...args) {
      const expression = `(async () => JSON.stringify({ value: await (${run})(...${JSON.stringify(args)}) }))()`;
      const said = await session.ask("script.evaluate", { expression, target: { context }, awaitPromise: true });
      if (said.type === "exception") throw new Error(`in Firefox: ${said.exceptionDetails.text}`);
      return JSON.parse(said.result.value).value;
    },
    /** Waits until a function in the page returns something true. */
    async waitFor(run, ...args) {
      while (!(await page.evaluate(run, ...args))) await new Promise((resolve) => setTimeout(resolve, 50));
    },
    /** A picture of the page, as PNG. */
    async screenshot() {
      const { data } = await session.ask("browsingContext.captureScreenshot", { context });
      return Buffer.from(data, "base64");
    },
    close: () => session.ask("browsingContext.close", { context }),
  };
  return page;
}

/** A connection on which each command has a number, and its answer the same. */
async function connect(url) {
  const socket = new WebSocket(url, { perMessageDeflate: false });
  const waiting = new Map();
  let last = 0;
  socket.on("message", (bytes) => {
    const { id, type, result, error, message } = JSON.parse(bytes);
    const answer = waiting.get(id);
    waiting.delete(id);
    if (type === "success") answer?.resolve(result);
    else answer?.reject(new Error(`${error}: ${message}`));
  });
  socket.on("close", () => {
    for (const { reject } of waiting.values()) reject(new Error("Firefox closed the connection"));
    waiting.clear();
  });
  await new Promise((resolve, reject) => {
    socket.once("open", resolve);
    socket.once("error", reject);
  });
  socket.on("error", () => {});
  return {
    ask: (method, params) =>
      new Promise((resolve, reject) => {
        last += 1;
        waiting.set(last, { resolve, reject });
        socket.send(JSON.stringify({ id: last, method, params }));
      }),
  };
}
