// Who a player is, and how that is shown to a server: by the newest refresh token if there is one, else by the device or
// what the game passed.

import { ParlorError } from "../error.js";
import type { Ask, SignedIn, Signer } from "./connection.js";
import { given } from "./given.js";
import type { JsonObject } from "./operations.js";
import { isSignInOver } from "./refusal.js";
import type { Kept, SignInStore } from "./store.js";

/** How a player signs in. */
export type How =
  /** By a random id of this device, which is made at the first time. */
  | { device: true }
  /** By an e-mail address and its password. `create` makes the account if the address has none. */
  | { email: string; password: string; create?: boolean }
  /** By a refresh token that the game's own service got by `auth.custom`. */
  | {
      /** Gives that token, whenever one is needed. */
      custom: () => string | Promise<string>;
    };

/** The player, for one game at one server. */
export interface Who {
  app: string;
  environment: string | undefined;
  name: string | undefined;
}

/** Bytes of a device's id. */
const DEVICE_BYTES = 32;

/** Signs a player in. */
export class PlayerSigner implements Signer {
  /** The account was deleted: to sign in would make another one. */
  isDeleted = false;

  constructor(
    private readonly who: Who,
    private how: How | undefined,
    private readonly store: SignInStore,
  ) {}

  signIn(ask: Ask): Promise<SignedIn> {
    if (this.isDeleted) return Promise.reject(new ParlorError("no_such_account", "this account was deleted", "sign in anew for another one"));
    return this.store.exclusively(async () => {
      const { how } = this;
      // Another page may have used the token that this one knew.
      const kept = await this.store.read();
      const by = how === undefined ? (kept.by ?? "device") : byOf(how);
      // A password that was typed now counts more than who this page was before.
      const refresh = kept.by === by && !(how !== undefined && "password" in how) ? kept.refresh : undefined;
      const answer = await this.#signedIn(ask, by, refresh, kept);
      await this.store.write({ ...(await this.store.read()), refresh: answer.refresh_token, by });
      // From now on the refresh token says who this is.
      if (how !== undefined && "password" in how) this.how = undefined;
      return answer;
    });
  }

  /** Forgets the tokens; the id of the device stays. */
  forget(): Promise<void> {
    return this.store.exclusively(async () => {
      const { device } = await this.store.read();
      await this.store.write(device === undefined ? {} : { device });
    });
  }

  /** The refresh token to give back, and the id of this device, which is made if there is none. */
  secrets(): Promise<{ refresh: string | undefined; device: string }> {
    return this.store.exclusively(async () => ({ refresh: (await this.store.read()).refresh, device: await this.#device() }));
  }

  async #signedIn(ask: Ask, by: Kept["by"], refresh: string | undefined, kept: Kept): Promise<SignedIn> {
    if (refresh !== undefined) {
      try {
        return await this.#ask(ask, "auth.refresh", { refresh_token: refresh });
      } catch (thrown) {
        if (!(thrown instanceof ParlorError) || !isSignInOver(thrown.code)) throw thrown;
        // Over, or used by somebody who has a copy: the device is still the same.
        await this.store.write(kept.device === undefined ? {} : { device: kept.device });
      }
    }
    const name = given({ name: this.who.name });
    const { how } = this;
    if (by === "device") return this.#ask(ask, "auth.device", { device: await this.#device(), ...name });
    if (how !== undefined && "email" in how) {
      const { email, password, create = false } = how;
      return this.#ask(ask, "auth.email", { email, password, create, ...(create ? name : {}) });
    }
    if (how !== undefined && "custom" in how) return this.#ask(ask, "auth.refresh", { refresh_token: await how.custom() });
    throw new ParlorError("signed_out", "this player's sign-in is over", "sign in again, with the e-mail address and the password");
  }

  async #ask(ask: Ask, op: string, input: JsonObject): Promise<SignedIn> {
    const { app, environment } = this.who;
    const answer = (await ask(op, { app, ...given({ environment }), ...input })) as unknown as Partial<SignedIn>;
    const isWhole = typeof answer.access_token === "string" && typeof answer.refresh_token === "string" && typeof answer.account?.id === "string";
    if (!isWhole) throw new ParlorError("not_parlor", "the server speaks another version", "update the older of the game and the server");
    return answer as SignedIn;
  }

  /** The id of this device. */
  async #device(): Promise<string> {
    const kept = await this.store.read();
    if (kept.device !== undefined) return kept.device;
    const bytes = crypto.getRandomValues(new Uint8Array(DEVICE_BYTES));
    const device = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    await this.store.write({ ...kept, device });
    return device;
  }
}

function byOf(how: How): Kept["by"] {
  return "email" in how ? "email" : "custom" in how ? "custom" : "device";
}
