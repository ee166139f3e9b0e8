import { sleep } from "../kernel/clock.ts";
import { upgradeClaims } from "./claims/index.ts";
import { readDigestKey } from "./digest-key.ts";
import { writeHome } from "./hypervisor/index.ts";
import { readInstallation } from "./installation.ts";
import type { ControllersOptions } from "./options.ts";
import { claimBroughtFiles } from "./vm-image/index.ts";

const retryMs = 2_000;

/** What a term has to know. */
export interface Prepared {
  readonly installation: string;
  readonly digestKey: string | undefined;
}

/**
 * What has to be known and done before anything of a term acts: the id of the installation, and
 * that every Claim is in the form of this release, also those of files. Resolves with what was
 * read, or with undefined if the term ended before. `client` shows Claims as they are stored.
 */
export async function prepareTerm(
  options: ControllersOptions,
  signal: AbortSignal,
): Promise<Prepared | undefined> {
  const { client, random } = options;
  const installation = await untilDone(options, signal, {
    make: () => readInstallation(client, random),
    failing: "the installation id cannot be read",
  });
  if (installation === undefined) return undefined;
  const isPlaced = await untilDone(options, signal, {
    make: () => recordPlace(options),
    failing: "the place of the installation cannot be recorded, so nothing is done",
  });
  if (isPlaced === undefined) return undefined;
  const isUpgraded = await untilDone(options, signal, {
    make: () => upgrade(options, installation),
    failing: "the Claims cannot be brought into the form of this release, so nothing is done",
  });
  if (isUpgraded === undefined) return undefined;
  return untilDone(options, signal, {
    make: async () => ({ installation, digestKey: await readDigestKey(client, random) }),
    failing: "the key of the digests of Secrets cannot be read",
  });
}

async function recordPlace({ client, place }: ControllersOptions): Promise<true> {
  if (place !== undefined) await writeHome(client, place.id);
  return true;
}

async function upgrade(
  { client, log, clock }: ControllersOptions,
  installation: string,
): Promise<true> {
  const { rewritten, refused } = await upgradeClaims(client);
  if (rewritten > 0) log("info", "Claims of an earlier release were rewritten", { rewritten });
  for (const { name, why } of refused) {
    log("error", "a Claim of an earlier release cannot be rewritten", { name, error: why });
  }
  const files = await claimBroughtFiles({ client, installation, nowMs: clock.nowMs() });
  if (files > 0)
    log("info", "Claims were written for image files of an earlier release", { files });
  return true;
}

/** The server may only be away for a while. */
async function untilDone<T>(
  { clock, log }: ControllersOptions,
  signal: AbortSignal,
  { make, failing }: { readonly make: () => Promise<T>; readonly failing: string },
): Promise<T | undefined> {
  while (!signal.aborted) {
    try {
      return await make();
    } catch (error) {
      log("error", failing, { error: String(error) });
      await sleep(clock, retryMs, signal).catch(() => undefined);
    }
  }
  return undefined;
}
