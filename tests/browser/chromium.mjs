// Chromium from the system's packages, as a player has it: background throttling stays on.

import { chromium } from "playwright-core";

/** The browser: what CHROMIUM names, else Debian's. */
export const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

export function launch() {
  return chromium.launch({
    executablePath: CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-component-update", "--disable-sync"],
    // Playwright switches throttling off, and no player does.
    ignoreDefaultArgs: [
      "--disable-background-timer-throttling",
      "--disable-backgrounding-occluded-windows",
      "--disable-renderer-backgrounding",
    ],
  });
}
