import { claimKind, currentClaim, isOldClaim } from "../../api/index.ts";
import type { Claim, ClaimSpec } from "../../api/index.ts";
import type { Client } from "../../client/index.ts";
import { isJsonObject, jsonEqual } from "../../kernel/json.ts";
import { ApiError } from "../../kernel/status.ts";
import { hasOwnerLabel, withOwnerLabel } from "./owner-label.ts";
import { probeClaim } from "./probe.ts";
import { demandWhole } from "./whole.ts";

/** How often a Claim that somebody else writes at the same time is read and tried again. */
const triesMax = 5;

/** How many Claims were rewritten, and those that the server refuses in their new form. */
export interface Upgraded {
  readonly rewritten: number;
  readonly refused: readonly { readonly name: string; readonly why: string }[];
}

/**
 * Writes every Claim back in today's form. To be done when a term begins, before anything acts on
 * what Claims say; safe to repeat. Rejects, and has then written nothing that loses anything, where
 * the server does not store a Claim as this release writes it.
 *
 * `client` has to show Claims as they are stored.
 */
export async function upgradeClaims(client: Client): Promise<Upgraded> {
  const objects = client.of(claimKind);
  await proveStored(client);
  const refused: { name: string; why: string }[] = [];
  let rewritten = 0;
  for (const claim of (await objects.list()).items.filter(isOld)) {
    const { name = "" } = claim.metadata;
    const outcome = await rewrite(client, claim);
    if (outcome === "rewritten") rewritten += 1;
    else if (outcome !== "gone") refused.push({ name, why: outcome.refused });
  }
  return { rewritten, refused };
}

/** 0.1 labelled no Claim. */
function isOld(claim: Claim): boolean {
  demandWhole(claim);
  return isOldClaim(claim.spec) || !hasOwnerLabel(claim);
}

type Rewriting = "rewritten" | "gone" | { readonly refused: string };

async function rewrite(client: Client, stored: Claim): Promise<Rewriting> {
  let claim: Claim | undefined = stored;
  for (let tries = 1; claim !== undefined && isOld(claim); tries += 1) {
    const outcome = await writeBack(client, claim);
    if (!(outcome instanceof ApiError)) return outcome;
    // Somebody else wrote it in the same moment.
    if (tries >= triesMax) throw outcome;
    claim = await readUnlessGone(client, claim.metadata.name ?? "");
  }
  return claim === undefined ? "gone" : "rewritten";
}

async function writeBack(client: Client, claim: Claim): Promise<Rewriting | ApiError> {
  try {
    await client.of(claimKind).update(withOwnerLabel({ ...claim, spec: currentClaim(claim.spec) }));
    return "rewritten";
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.code === 404) return "gone";
    // It goes on being read as what it is; the others must not wait for it.
    if (error.code === 422) return { refused: error.message };
    if (error.code === 409) return error;
    throw error;
  }
}

async function readUnlessGone(client: Client, name: string): Promise<Claim | undefined> {
  try {
    return await client.of(claimKind).get({ name });
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 404) throw error;
    return undefined;
  }
}

/**
 * On Kubernetes the CRDs are applied by a person, and a field that the CRD does not have is dropped
 * without a word. A Claim that lost what it says of the past would let a VM be recreated or destroy
 * a stranger's volume, so it is asked before whether all of it would be stored.
 */
async function proveStored(client: Client): Promise<void> {
  const probe = probeClaim();
  const stored = await dryRun(client, probe);
  const lost = lostFields(probe.spec, stored.spec);
  if (lost.length > 0) throw new Error(`${crdRemedy} (it would drop: ${lost.join(", ")})`);
}

async function dryRun(client: Client, probe: Claim): Promise<Claim> {
  try {
    return await client.of(claimKind).create(probe, { dryRun: true });
  } catch (error) {
    // An older CRD may also refuse a value that it does not know.
    if (!(error instanceof ApiError) || error.code !== 422) throw error;
    throw new Error(`${crdRemedy}: ${error.message}`, { cause: error });
  }
}

const crdRemedy =
  "the CustomResourceDefinition of Claim is of another release: apply the ones of this release " +
  "(berth crds | kubectl apply -f -)";

function lostFields(wanted: ClaimSpec, stored: unknown): string[] {
  const there = isJsonObject(stored) ? stored : {};
  return Object.entries(wanted).flatMap(([field, value]) => {
    return jsonEqual(value, there[field]) ? [] : [field];
  });
}
