// What was thrown, as a sentence, and as what a wait rejects with.

/** Turns whatever was thrown into a sentence. */
export function sentence(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** What a wait that its signal ended rejects with: the signal's own reason, as the platform's calls do. */
export function abortReason(signal: AbortSignal): unknown {
  return signal.reason;
}
