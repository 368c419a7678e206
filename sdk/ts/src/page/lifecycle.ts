// What happens to a page: hidden and shown, offline and online, frozen and resumed, left.
//
// `beforeunload` and `unload` are not listened to: they keep pages out of the back-forward cache and are not fired on
// phones. Nothing is done on `freeze`.

/** What a room does about it. */
export interface PageEvents {
  /** The page was hidden or shown: who runs the steps is another. */
  visibility(): void;
  /** The page or the network is back. */
  back(): void;
  /** The page is being left. */
  hidden(): void;
}

interface Target {
  addEventListener(type: string, listener: () => void): void;
  removeEventListener(type: string, listener: () => void): void;
}

/** Listens until the returned function is called. Without a page there is nothing to listen to. */
export function watchPage(events: PageEvents): () => void {
  const page = globalThis as unknown as Target & { document?: Target & { hidden: boolean } };
  if (typeof page.addEventListener !== "function") return () => {};
  const { document } = page;
  const visibility = () => {
    events.visibility();
    if (document?.hidden === false) events.back();
  };
  const back = () => events.back();
  const hidden = () => events.hidden();
  const all: [Target | undefined, string, () => void][] = [
    [page, "online", back],
    // After a freeze some browsers fire one of these and not the others.
    [page, "pageshow", back],
    [page, "focus", back],
    [document, "resume", back],
    [document, "visibilitychange", visibility],
    [page, "pagehide", hidden],
  ];
  for (const [target, type, listener] of all) target?.addEventListener(type, listener);
  return () => {
    for (const [target, type, listener] of all) target?.removeEventListener(type, listener);
  };
}
