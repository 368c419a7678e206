// Pages of a game called dots that tests play with the SDK, each in a tab.

/** Only a hang takes so long. */
export const HANG_MS = 120_000;

const EVENTS = [
  "playerJoined", "playerLeft", "playerLost", "playerBack", "message", "connectionLost", "reconnected", "hostMigration", "hostChanged", "closed",
];

/** Loads the SDK, and puts into the page what tests use of it: `parlor`, and `play`, which keeps a room and its events. */
export async function withSdk(page) {
  await page.evaluate(async (types) => {
    globalThis.parlor = await import("/sdk/index.js");
    globalThis.play = (room) => {
      globalThis.room = room;
      globalThis.events = [];
      for (const type of types) room.on(type, (it) => events.push({ type, ...JSON.parse(JSON.stringify(it)) }));
      return { code: room.code, me: room.me, link: room.link, isHost: room.isHost };
    };
  }, EVENTS);
}

/** What pages of a place do. Options without `via` are for WebSocket. */
export function dotsIn({ browser, site, server }) {
  const given = (options) => ({ server: server.url, via: "websocket", ...options });
  return {
    /** A page with the SDK, in a context of its own or in one that is given. */
    async openPage({ context, url = site.url } = {}) {
      const page = await (context ?? (await browser.newContext())).newPage();
      page.setDefaultTimeout(HANG_MS);
      page.faults = [];
      page.on("pageerror", (error) => page.faults.push(String(error)));
      await page.goto(url);
      await withSdk(page);
      return page;
    },
    host: (page, options = {}) => page.evaluate(async (options) => play(await parlor.host("dots", options)), given(options)),
    join: (page, code, options = {}) =>
      page.evaluate(async ([code, options]) => play(await parlor.join("dots", code, options)), [code, given(options)]),
    rejoin: (page, options = {}) =>
      page.evaluate(async (options) => play(await parlor.rejoin("dots", options)), { via: "websocket", ...options }),
  };
}

/** The events of a type that a page had. */
export const eventsOf = (page, type) => page.evaluate((type) => events.filter((event) => event.type === type), type);
