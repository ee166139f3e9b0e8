import type { KubeObject } from "../../kernel/object.ts";
import { ApiError } from "../../kernel/status.ts";
import type { ServedKind } from "../objects/discovery.ts";
import type { Found } from "../objects/found.ts";
import { shownName } from "../objects/kinds.ts";
import { findObject } from "../objects/read-objects.ts";
import type { Server } from "../objects/server.ts";
import { type Finding, findingsOf } from "./findings.ts";
import { type Reference, referencesOf } from "./references.ts";

/** One object on the way to the cause, and what is the matter with it. */
export interface Suspect {
  readonly name: string;
  /** Undefined where it is not there. */
  readonly object: KubeObject | undefined;
  readonly findings: readonly Finding[];
}

/** How far references are followed: image, hypervisor, its Secret, and some to spare. */
const depthMax = 6;
/** Objects that are looked at. A set of hundreds of disks must not ask the server for ever. */
const objectsMax = 60;

/**
 * The object and everything that it depends on, as far as something is the matter with it: what
 * lies deepest, and so is the likeliest cause, first; the object itself last.
 */
export async function diagnose(
  server: Server,
  served: readonly ServedKind[],
  root: Found,
): Promise<Suspect[]> {
  const seen = new Set<string>([keyOf(root.kind, root.object.metadata)]);
  /** Everything found so far: what two objects refer to is looked at, and told, only once. */
  const told: Finding[] = [];
  return visit(root, 0);

  async function visit({ kind, object }: Found, depth: number): Promise<Suspect[]> {
    const deeper: Suspect[] = [];
    const references = depth < depthMax ? referencesOf(object) : [];
    for (const reference of references) deeper.push(...(await follow(reference, depth)));
    const findings = findingsOf(object).map((finding) => {
      return followsFrom(finding, deeper, told) ? { ...finding, follows: true } : finding;
    });
    told.push(...findings);
    const name = shownName(kind, object.metadata.name ?? "");
    const causes = deeper.filter((suspect) => !isAnswered(suspect, findings));
    return findings.length === 0 ? deeper : [...causes, { name, object, findings }];
  }

  async function follow(reference: Reference, depth: number): Promise<Suspect[]> {
    const kind = served.find((candidate) => candidate.kind === reference.kind);
    if (kind === undefined) return [];
    const namespace = reference.namespace ?? server.namespace;
    const key = keyOf(kind, { ...reference, namespace });
    if (seen.has(key) || seen.size >= objectsMax) return [];
    seen.add(key);
    const name = shownName(kind, reference.name);
    try {
      const object = await findObject(server, { kind, namespace, name: reference.name });
      if (object !== undefined) return await visit({ kind, object }, depth + 1);
      return [{ name, object: undefined, findings: [absence(reference, kind, namespace)] }];
    } catch (error) {
      // Who may not read it (a Secret, mostly) is not told that it is at fault.
      if (error instanceof ApiError && error.code === 403) return [];
      throw error;
    }
  }
}

/** Whether something deeper explains it: then there is nothing to do about it here. */
function followsFrom(
  { reason, cause }: Finding,
  deeper: readonly Suspect[],
  told: readonly Finding[],
): boolean {
  const below = deeper.flatMap(({ findings }) => findings);
  if (reason === "DependencyNotReady") return below.length > 0;
  if (reason === "ImageNotFound") return below.some((finding) => finding.reason === "NotFound");
  return cause !== undefined && told.some((finding) => finding.cause === cause);
}

/** An image that the hypervisor does not list may exist: whoever looked for the file knows more. */
function isAnswered(suspect: Suspect, findings: readonly Finding[]): boolean {
  const isLookedFor = findings.some(({ reason }) => reason === "ImageNotFound");
  return isLookedFor && suspect.findings.every(({ reason }) => reason === "NotListed");
}

function keyOf(kind: ServedKind, meta: { namespace?: string | undefined; name?: string }): string {
  return `${kind.plural}/${kind.namespaced ? (meta.namespace ?? "") : ""}/${meta.name ?? ""}`;
}

function absence(reference: Reference, kind: ServedKind, namespace: string): Finding {
  const place = kind.namespaced ? ` in namespace ${namespace}` : "";
  return {
    reason: "NotFound",
    message: `${reference.field} names it, and there is none${place}`,
    details: [],
    advice: ["Create it (berth apply), or correct the name."],
  };
}
