/** The switches beside the arena: what makes a game feel right, each to be switched off; and a bad network. */

import type { Impairment } from "parlor/impair";
import { byId } from "../../shared/page.ts";

/** Networks to choose from, each way. */
const NETWORKS: Record<string, Impairment> = {
  real: {},
  fair: { latencyMs: 30, jitterMs: 10, loss: 0.005 },
  poor: { latencyMs: 75, jitterMs: 20, loss: 0.02 },
  awful: { latencyMs: 150, jitterMs: 60, loss: 0.08 },
};
const KEYS: Record<string, string> = { KeyP: "prediction", KeyI: "interpolation", KeyL: "lag" };

export class Switches {
  readonly #boxes = {
    prediction: byId("prediction", HTMLInputElement),
    interpolation: byId("interpolation", HTMLInputElement),
    lag: byId("lag", HTMLInputElement),
  };
  readonly #network = byId("network", HTMLSelectElement);

  get prediction(): boolean {
    return this.#boxes.prediction.checked;
  }

  get interpolation(): boolean {
    return this.#boxes.interpolation.checked;
  }

  get impairment(): Impairment {
    return NETWORKS[this.#network.value] ?? {};
  }

  /** Calls when a switch is turned, by hand or by its key. */
  listen(turned: { network(): void; lag(isOn: boolean): void }, signal: AbortSignal): void {
    this.#network.addEventListener("change", () => {
      turned.network();
      // Arrow keys drive: they must not choose another network.
      this.#network.blur();
    }, { signal });
    for (const box of Object.values(this.#boxes)) box.addEventListener("change", () => box.blur(), { signal });
    this.#boxes.lag.addEventListener("change", () => turned.lag(this.#boxes.lag.checked), { signal });
    addEventListener("keydown", (event) => {
      const types = event.target instanceof HTMLInputElement && event.target.type !== "checkbox";
      if (types || event.repeat || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      const name = KEYS[event.code];
      if (name !== undefined) byId(name).click();
      if (event.code !== "KeyN") return;
      this.#network.selectedIndex = (this.#network.selectedIndex + 1) % this.#network.options.length;
      turned.network();
    }, { signal });
  }

  /** Shows what the host has set: only the host may turn it. */
  showLag(isOn: boolean, isHost: boolean): void {
    this.#boxes.lag.disabled = !isHost;
    this.#boxes.lag.checked = isOn;
  }
}
