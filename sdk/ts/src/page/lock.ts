// Locks between the pages of one origin: Web Locks. A program without them has locks of its own process.

/** Web Locks, as far as the SDK uses them. */
interface Locks {
  request(name: string, options: { signal?: AbortSignal }, held: () => Promise<void>): Promise<unknown>;
}

function locks(): Locks | undefined {
  return (globalThis.navigator as { locks?: Locks } | undefined)?.locks;
}

/** Whether pages can keep each other out. */
export function hasLocks(): boolean {
  return locks() !== undefined;
}

/** The last holder of each lock of this process. */
const ofProcess = new Map<string, Promise<void>>();

/** Takes a lock of this process, behind all who asked before. One who gave up lets the next one in. */
function requestHere(name: string, { signal }: { signal?: AbortSignal }, held: () => Promise<void>): Promise<unknown> {
  const before = ofProcess.get(name) ?? Promise.resolve();
  const mine = before.then(() => (signal?.aborted === true ? undefined : held()));
  ofProcess.set(name, mine);
  return mine.finally(() => {
    if (ofProcess.get(name) === mine) ofProcess.delete(name);
  });
}

/** Takes a lock. Resolves with what releases it; undefined if somebody else has it for longer than `patienceMs`. */
export function lock(name: string, patienceMs: number): Promise<(() => void) | undefined> {
  const manager = locks() ?? { request: requestHere };
  return new Promise((resolve) => {
    const patience = new AbortController();
    const timer = setTimeout(() => {
      patience.abort();
      resolve(undefined);
    }, patienceMs);
    const held = () =>
      new Promise<void>((release) => {
        clearTimeout(timer);
        resolve(release);
      });
    manager.request(name, { signal: patience.signal }, held).catch(() => {
      clearTimeout(timer);
      resolve(undefined);
    });
  });
}
