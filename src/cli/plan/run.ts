import type { KubeObject } from "../../kernel/object.ts";
import { ApiError } from "../../kernel/status.ts";
import { applyManifest } from "../objects/apply-manifest.ts";
import type { ServedKind } from "../objects/discovery.ts";
import { kindOfObject, shownName } from "../objects/kinds.ts";
import type { Manifest } from "../objects/manifests.ts";
import { findObject } from "../objects/read-objects.ts";
import type { Server } from "../objects/server.ts";
import { dependentsOf, type Edited } from "./dependents.ts";
import { createLook, lookBeyond } from "./look.ts";
import { prospectOf } from "./preview.ts";
import type { Prospect, Run } from "./prospect.ts";
import { lacksRight } from "./rights.ts";

/** The prospect of one object, by its name. */
export interface Planned extends Prospect {
  readonly name: string;
  /** Where it is not the namespace that was asked for. */
  readonly namespace?: string;
  /** What changes it, where no document of its own does. */
  readonly because?: string;
}

export interface RunOptions {
  readonly server: Server;
  readonly served: readonly ServedKind[];
  readonly manifests: readonly Manifest[];
  readonly nowMs: number;
}

/**
 * What applying these documents together would do: to the objects that they declare, and to
 * machines that take a part of their form from one of these.
 */
export async function planRun(options: RunOptions): Promise<Planned[]> {
  const { server, served, manifests, nowMs } = options;
  const checked: Checked[] = [];
  for (const manifest of manifests) checked.push(await check(options, manifest));
  const edited = checked.filter((one) => "after" in one);
  const look = createLook(server, served);
  const beyond = lookBeyond(
    look,
    edited.map(({ after }) => after),
  );
  const run: Run = { server, served, look, lookBeyond: beyond, nowMs };
  const planned: Planned[] = [];
  for (const one of checked) {
    if (!("after" in one)) planned.push(one);
    else planned.push({ name: one.name, ...(await prospectOf({ ...run, ...one })) });
  }
  return [...planned, ...(await planDependents(run, edited))];
}

interface Admitted extends Edited {
  readonly name: string;
}

/** A document that the server would store; or all that there is to say of it. */
type Checked = Admitted | Planned;

async function check({ server, served }: RunOptions, manifest: Manifest): Promise<Checked> {
  const applied = await applyManifest(server, { manifest, served, isDryRun: true });
  if (applied.how === "refused") {
    const { why, code } = applied;
    const isUnknown = code === 403 && (await lacksRightTo(server, served, manifest));
    return { name: manifest.where, how: isUnknown ? "unknown" : "refused", why };
  }
  const { kind, object: after } = applied;
  const { namespace = server.namespace, name = "" } = after.metadata;
  const isNew = applied.how === "created";
  const before = isNew ? undefined : await findObject(server, { kind, namespace, name });
  return { name: shownName(kind, name), before, after };
}

async function lacksRightTo(
  server: Server,
  served: readonly ServedKind[],
  manifest: Manifest,
): Promise<boolean> {
  if ("fault" in manifest) return false;
  const kind = kindOfObject(served, manifest);
  const { name, namespace = server.namespace } = manifest;
  return kind !== undefined && lacksRight(server, { kind, namespace, name });
}

/** A machine that others change, and which of them. */
interface Dependent {
  readonly vm: KubeObject;
  readonly causes: readonly string[];
}

/** Machines that no document declares and that change all the same; each is told once. */
async function planDependents(run: Run, edited: readonly Admitted[]): Promise<Planned[]> {
  const declared = new Set(edited.map(({ after }) => keyOf(after)));
  const dependents = new Map<string, Dependent>();
  const planned: Planned[] = [];
  for (const one of edited) {
    const found = await readDependents(run, one);
    if (!Array.isArray(found)) planned.push(found);
    for (const vm of Array.isArray(found) ? found : []) {
      const { causes } = dependents.get(keyOf(vm)) ?? { causes: [] };
      if (declared.has(keyOf(vm))) continue;
      dependents.set(keyOf(vm), { vm, causes: [...causes, one.name] });
    }
  }
  for (const { vm, causes } of dependents.values()) {
    const prospect = await prospectOf({ ...run, before: vm, after: vm });
    if (prospect.how === "unchanged" && prospect.why === undefined) continue;
    planned.push({ ...nameOf(run, vm), ...prospect, because: causes.join(" and ") });
  }
  return planned;
}

async function readDependents(run: Run, edited: Admitted): Promise<KubeObject[] | Planned> {
  try {
    return await dependentsOf(run, edited);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 403) throw error;
    const why = `the machines that it changes cannot be listed: ${error.message}`;
    return { name: edited.name, how: "unknown", why };
  }
}

function nameOf({ server, served }: Run, vm: KubeObject): Pick<Planned, "name" | "namespace"> {
  const { name = "", namespace = server.namespace } = vm.metadata;
  const kind = served.find((candidate) => candidate.kind === vm.kind);
  const shown = kind === undefined ? name : shownName(kind, name);
  return { name: shown, ...(namespace === server.namespace ? {} : { namespace }) };
}

function keyOf({ kind, metadata: { namespace = "", name = "" } }: KubeObject): string {
  return [kind, namespace, name].join("/");
}
