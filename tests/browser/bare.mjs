// Chromium without Playwright, which makes every page believe that it is in front: over the DevTools pipe, as far as
// tests of hidden pages need it.

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CHROMIUM } from "./chromium.mjs";

/** Starts a browser whose pages are hidden when another one is in front. */
export async function launchBare() {
  const profile = await mkdtemp(join(tmpdir(), "parlor-bare-"));
  const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-component-update", "--disable-sync"];
  const child = spawn(CHROMIUM, [...flags, `--user-data-dir=${profile}`, "--remote-debugging-pipe", "about:blank"], {
    stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
  });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const [, , , commands, answers] = child.stdio;
  const waiting = new Map();
  const loaded = new Map();
  let sent = 0;
  let read = "";
  answers.on("data", (bytes) => {
    read += bytes;
    const messages = read.split("\0");
    read = messages.pop();
    for (const { id, method, sessionId, result, error } of messages.map((message) => JSON.parse(message))) {
      if (method === "Page.loadEventFired") loaded.get(sessionId)?.();
      waiting.get(id)?.(error === undefined ? { result } : { error });
      waiting.delete(id);
    }
  });
  const call = (method, params = {}, sessionId = undefined) => {
    const id = ++sent;
    commands.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((resolve, reject) => {
      waiting.set(id, ({ result, error }) => (error === undefined ? resolve(result) : reject(new Error(`${method}: ${error.message}`))));
    });
  };

  /** Opens a page in front of the others. */
  async function newPage(url) {
    const { targetId } = await call("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await call("Target.attachToTarget", { targetId, flatten: true });
    await call("Page.enable", {}, sessionId);
    const isLoaded = new Promise((resolve) => loaded.set(sessionId, resolve));
    await call("Page.navigate", { url }, sessionId);
    await isLoaded;
    /** Runs a function in the page, and gives what it resolves with. */
    const evaluate = async (run, ...args) => {
      const expression = `(${run})(...${JSON.stringify(args)})`;
      const { result, exceptionDetails } = await call(
        "Runtime.evaluate",
        { expression, awaitPromise: true, returnByValue: true },
        sessionId,
      );
      if (exceptionDetails !== undefined) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
      return result.value;
    };
    return {
      evaluate,
      bringToFront: () => call("Page.bringToFront", {}, sessionId),
      /** `"frozen"` or `"active"`. */
      setLifecycle: (state) => call("Page.setWebLifecycleState", { state }, sessionId),
    };
  }

  return {
    newPage,
    async close() {
      await call("Browser.close").catch(() => {});
      await ended;
      await rm(profile, { recursive: true, force: true });
    },
  };
}
