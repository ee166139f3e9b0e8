import type { Random } from "../../kernel/random.ts";
import type { ConfigReader } from "./config-reader.ts";
import type { Glance } from "./glance.ts";
import type { NodeClocks } from "./node-clocks.ts";
import type { Release } from "./release.ts";
import type { PveApi } from "./wire/api.ts";

/** What every part of the driver works with. */
export interface DriverContext {
  readonly api: PveApi;
  readonly clocks: NodeClocks;
  readonly configs: ConfigReader;
  readonly glance: Glance;
  /** The token's whole id, which every task of ours bears: `berth@pve!prod`. */
  readonly user: string;
  readonly random: Random;
  readonly settings: ProxmoxSettings;
  /** Who may clear locks, where anybody may. Used for that and for nothing else. */
  readonly unlock?: UnlockAccount | undefined;
  /** The version, once it was asked for; the newest until then. */
  readonly release: () => Release;
  /** The token's rights, as GET /access/permissions had them last; undefined until then. */
  readonly permissions: () => unknown;
}

/** What it takes to list tasks: their times are converted to Berth's clock. */
export type TaskSource = Pick<DriverContext, "api" | "clocks">;

/** An account with a password: what no API token can do needs root's own login. */
export interface UnlockAccount {
  readonly username: string;
  readonly password: string;
}

export interface ProxmoxSettings {
  /** The ids to choose from. */
  readonly idRange?: { readonly first: number; readonly last: number };
  /** Shared storages on which no other cluster keeps volumes. */
  readonly exclusiveStorages?: readonly string[];
}
