import { ApiError } from "../../kernel/status.ts";
import { type Call, type Command, exitCodes, usageError } from "../command.ts";
import { serverOptions, withServer } from "../objects/connect.ts";
import { type Deletion, deleteObject, waitUntilGone } from "../objects/delete-object.ts";
import { discover, type ServedKind } from "../objects/discovery.ts";
import { findAll, type Found, refuseContradictions, selectOptions } from "../objects/found.ts";
import { readDurationMs } from "../objects/go-duration.ts";
import { untilStopped } from "../objects/interrupt.ts";
import { kindOfObject, shownName, typeName } from "../objects/kinds.ts";
import { type Machine, systemMachine } from "../objects/machine.ts";
import { fileOptions, readNamedFiles } from "../objects/manifest-files.ts";
import type { Manifest } from "../objects/manifests.ts";
import { findObject } from "../objects/read-objects.ts";
import type { Server } from "../objects/server.ts";
import { readTargets } from "../objects/targets.ts";

const usage = "delete KIND NAME... | KIND -l SELECTOR | KIND --all | -f FILE [--wait=false]";

export const deleteCommand: Command = {
  name: "delete",
  summary: "delete objects, and with them what they stand for",
  description:
    "Deletes objects by name, by selector, or as files name them, and waits until they are gone. " +
    "Deleting a VirtualMachine deletes its machine unless its deletionPolicy is Retain.\n\n" +
    "Ctrl-C ends the waiting, not the deletion.",
  usage,
  options: {
    ...fileOptions,
    all: { type: "boolean", description: "all objects of the kind in the namespace" },
    wait: { type: "boolean", default: "true", description: "wait until they are gone" },
    timeout: {
      type: "string",
      value: "DURATION",
      default: "0",
      description: "how long to wait for each; 0 is for ever",
    },
    cascade: {
      type: "string",
      value: "HOW",
      default: "background",
      description: "what becomes of objects that these own: background, foreground or orphan",
    },
    "dry-run": { type: "string", value: "server", description: "ask the server, change nothing" },
    "ignore-not-found": { type: "boolean", description: "what is not there is no error" },
    ...selectOptions,
    ...serverOptions,
  },
  arguments: ["KIND?", "NAME..."],
  examples: [
    "berth delete vm web",
    "berth delete -f examples/first-vm.yaml",
    "berth delete vm -l app=test --wait=false",
  ],
  run: (call) => runDelete(call, systemMachine),
};

export async function runDelete(call: Call, machine: Machine): Promise<number> {
  const deletion = readDeletion(call);
  const timeoutMs = readDurationMs(call.string("timeout") ?? "0", "timeout");
  const manifests = await manifestsOf(call, machine);
  return withServer(call, machine, async (server) => {
    const served = await discover(server);
    const { found, missing } = await (manifests === undefined
      ? findNamed(call, server, served)
      : findDeclared(server, served, manifests));
    if (found.length === 0 && missing.length === 0) call.terminal.note("No resources found.");
    const deleted = await deleteEach(call, server, { found, deletion });
    const isGone = await waitForAll({ call, machine, server, found: deleted, deletion, timeoutMs });
    const isAllGone = isGone && deleted.length === found.length;
    const faults = call.flag("ignore-not-found") ? [] : missing;
    for (const sentence of faults) call.terminal.note(`berth: ${sentence}`);
    return isAllGone && faults.length === 0 ? exitCodes.ok : exitCodes.failed;
  });
}

/** Those that the server let go. A refusal is told, and the others are still deleted. */
async function deleteEach(
  call: Call,
  server: Server,
  { found, deletion }: { found: readonly Found[]; deletion: Deletion },
): Promise<Found[]> {
  const suffix = deletion.isDryRun ? " (server dry run)" : "";
  const deleted: Found[] = [];
  for (const one of found) {
    try {
      await deleteObject(server, one, deletion);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code === 401) throw error;
      call.terminal.note(`berth: ${error.message}`);
      continue;
    }
    deleted.push(one);
    call.terminal.print(
      `${typeName(one.kind)} "${one.object.metadata.name ?? ""}" deleted${suffix}`,
    );
  }
  return deleted;
}

function readDeletion(call: Call): Deletion {
  const policies = {
    background: "Background",
    foreground: "Foreground",
    orphan: "Orphan",
  } as const;
  const asked = call.string("cascade") ?? "background";
  const policy = Object.entries(policies).find(([name]) => name === asked)?.[1];
  if (policy === undefined) {
    throw usageError(`--cascade must be background, foreground or orphan, not "${asked}"`);
  }
  const dryRun = call.string("dry-run") ?? "none";
  if (dryRun !== "server" && dryRun !== "none") {
    throw usageError(`--dry-run must be server or none, not "${dryRun}"`);
  }
  return { propagationPolicy: policy, isDryRun: dryRun === "server" };
}

async function manifestsOf(call: Call, machine: Machine): Promise<Manifest[] | undefined> {
  if (call.strings("filename").length === 0) return undefined;
  if (call.arguments.length > 0) throw usageError("name objects, or a file of them: not both");
  return await readNamedFiles(call, machine);
}

interface ToDelete {
  readonly found: readonly Found[];
  readonly missing: readonly string[];
}

async function findNamed(
  call: Call,
  server: Server,
  served: readonly ServedKind[],
): Promise<ToDelete> {
  const targets = readTargets(served, call.arguments, usage);
  refuseContradictions(call, targets);
  const selects = call.string("selector") ?? call.string("field-selector");
  const isOpen = targets.some(({ names }) => names.length === 0);
  if (isOpen && selects === undefined && !call.flag("all")) {
    throw usageError("say which: by NAME, -l SELECTOR, or --all");
  }
  if (!isOpen && call.flag("all")) throw usageError("name objects, or take --all: not both");
  return findAll(call, server, targets);
}

async function findDeclared(
  server: Server,
  served: readonly ServedKind[],
  manifests: readonly Manifest[],
): Promise<ToDelete> {
  const found: Found[] = [];
  const missing: string[] = [];
  for (const manifest of manifests) {
    const read = await findOne(manifest);
    if (typeof read === "string") missing.push(`${manifest.where}: ${read}`);
    else found.push(read);
  }
  return { found, missing };

  async function findOne(manifest: Manifest): Promise<Found | string> {
    if ("fault" in manifest) return manifest.fault;
    const kind = kindOfObject(served, manifest);
    if (kind === undefined) return `the server has no kind ${manifest.kind}`;
    const { name, namespace = server.namespace } = manifest;
    const at = { kind, namespace, name };
    const object = await findObject(server, at);
    return object === undefined ? `${shownName(kind, name)} is not there` : { kind, object };
  }
}

interface Waiting {
  readonly call: Call;
  readonly machine: Machine;
  readonly server: Server;
  readonly found: readonly Found[];
  readonly deletion: Deletion;
  readonly timeoutMs: number;
}

/** Whether all are gone, or nobody asked to wait. */
async function waitForAll(waiting: Waiting): Promise<boolean> {
  const { call, machine, server, found, deletion, timeoutMs } = waiting;
  if (!call.flag("wait") || deletion.isDryRun || found.length === 0) return true;
  const limit = timeoutMs > 0 ? { withinMs: timeoutMs } : {};
  const ending = await untilStopped(
    call.terminal,
    { clock: machine.clock, ...limit },
    async (signal) => {
      await Promise.all(found.map((one) => waitUntilGone(server, one, signal)));
    },
  );
  if (ending.how === "late") {
    call.terminal.note("berth: not gone yet; it goes on being deleted. See berth why");
  }
  return ending.how === "done";
}
