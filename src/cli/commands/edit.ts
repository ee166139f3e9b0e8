import { isJsonObject, jsonEqual, type JsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { ApiError } from "../../kernel/status.ts";
import { type Call, type Command, CommandError, exitCodes } from "../command.ts";
import { namespaceOption, serverOptions, withServer } from "../objects/connect.ts";
import { discover } from "../objects/discovery.ts";
import { shownName } from "../objects/kinds.ts";
import { type Machine, systemMachine } from "../objects/machine.ts";
import { readDocuments } from "../objects/manifests.ts";
import { toYaml, withoutManagedFields } from "../objects/output.ts";
import { type ObjectAt, objectPath } from "../objects/paths.ts";
import { getObject } from "../objects/read-objects.ts";
import type { Server } from "../objects/server.ts";
import { readTargets } from "../objects/targets.ts";

export const edit: Command = {
  name: "edit",
  summary: "change one object in your editor",
  description:
    "Opens the object as YAML in $KUBE_EDITOR, $VISUAL, $EDITOR or vi, and writes what you saved. " +
    "Unchanged, nothing is written.\n\n" +
    "If the server refuses it, or somebody else changed the object meanwhile, what you wrote is kept " +
    "in a file that is named, and nothing is written.",
  usage: "edit KIND NAME | KIND/NAME [-n NS]",
  options: { ...namespaceOption, ...serverOptions },
  arguments: ["KIND", "NAME?"],
  examples: ["berth edit vm web", "EDITOR='code --wait' berth edit vm/web"],
  run: (call) => runEdit(call, systemMachine),
};

export function runEdit(call: Call, machine: Machine): Promise<number> {
  return withServer(call, machine, async (server) => {
    const targets = readTargets(await discover(server), call.arguments, edit.usage);
    const [target, ...others] = targets;
    const name = target?.names[0];
    if (target === undefined || name === undefined || others.length > 0) {
      throw new CommandError(`name one object. Usage: berth ${edit.usage}`, { exitCode: 64 });
    }
    const at = { kind: target.kind, namespace: server.namespace, name };
    return editObject({ call, machine, server, at });
  });
}

interface Editing {
  readonly call: Call;
  readonly machine: Machine;
  readonly server: Server;
  readonly at: ObjectAt;
}

const note = [
  "# Change the object below and save it; lines that begin with a # are left out.",
  "# Saved unchanged or empty, nothing is written.",
  "",
].join("\n");

async function editObject({ call, machine, server, at }: Editing): Promise<number> {
  const before = withoutManagedFields(await getObject(server, at));
  const shown = shownName(at.kind, at.name);
  const file = machine.writeTemporary(`${at.name}.yaml`, `${note}${toYaml(before)}\n`);
  const editor = editorOf(machine);
  const code = await machine.runEditor(editor, file);
  if (code !== 0) {
    throw new CommandError(`${editor} ended with ${code}; nothing was written. It is in ${file}`);
  }
  const after = readEdited(machine.readFile(file) ?? "", file);
  if (after === undefined || jsonEqual(after, before)) {
    machine.removeTemporary(file);
    call.terminal.print(`${shown} unchanged`);
    return exitCodes.ok;
  }
  refuseOther(before, after, file);
  await write(server, at, { before, after, file });
  machine.removeTemporary(file);
  call.terminal.print(`${shown} edited`);
  return exitCodes.ok;
}

function editorOf(machine: Machine): string {
  const names = ["KUBE_EDITOR", "VISUAL", "EDITOR"];
  return (
    names.map((name) => machine.environment(name)).find((value) => value !== undefined) ?? "vi"
  );
}

/** The edited object; undefined for an empty file. */
function readEdited(text: string, file: string): JsonObject | undefined {
  const [manifest, ...others] = readDocuments(text, file);
  if (manifest === undefined) return undefined;
  if (others.length > 0) throw kept("it must be one document", file);
  if ("fault" in manifest) throw kept(manifest.fault, file);
  return manifest.object;
}

function refuseOther(before: KubeObject, after: JsonObject, file: string): void {
  const metadata = isJsonObject(after["metadata"]) ? after["metadata"] : {};
  const isSame =
    after["kind"] === before.kind &&
    after["apiVersion"] === before.apiVersion &&
    metadata["name"] === before.metadata.name &&
    metadata["namespace"] === before.metadata.namespace;
  if (!isSame) throw kept("kind, apiVersion, name and namespace cannot be changed", file);
}

/** Controllers write the status all the time; so often is a new one taken along. */
const attemptsMax = 5;

/** The resourceVersion in the text makes the server refuse what was edited from an old state. */
async function write(
  server: Server,
  at: ObjectAt,
  { before, after, file }: { before: KubeObject; after: JsonObject; file: string },
): Promise<void> {
  const query = { fieldManager: "berth-edit", fieldValidation: "Strict" };
  let body = after;
  for (let attempt = 1; ; attempt++) {
    try {
      await server.ask({ method: "PUT", path: objectPath(at), query, body });
      return;
    } catch (error) {
      if (!(error instanceof ApiError)) throw kept(messageOf(error), file);
      if (error.reason !== "Conflict") throw kept(error.message, file);
    }
    const latest = await getObject(server, at);
    if (attempt >= attemptsMax || !jsonEqual(declaredPart(latest), declaredPart(before))) {
      throw kept("somebody else changed the object meanwhile: edit it anew", file);
    }
    body = onTopOf(latest, after);
  }
}

/** What people declare of an object: not its status, nor what the server counts. */
function declaredPart(object: KubeObject): object {
  const { status: _status, metadata, ...rest } = object;
  const { resourceVersion: _version, managedFields: _fields, ...declared } = metadata;
  return { ...rest, metadata: declared };
}

function onTopOf(latest: KubeObject, after: JsonObject): JsonObject {
  const metadata = isJsonObject(after["metadata"]) ? after["metadata"] : {};
  const { resourceVersion = "" } = latest.metadata;
  return { ...after, metadata: { ...metadata, resourceVersion } };
}

function kept(why: string, file: string): CommandError {
  return new CommandError(`${why}. What you wrote is kept in ${file}`);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
