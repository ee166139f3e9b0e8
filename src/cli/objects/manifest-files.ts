import { type Call, CommandError, type Option, usageError } from "../command.ts";
import type { Machine } from "./machine.ts";
import { type Manifest, readManifests } from "./manifests.ts";

/** How a command is told which files declare its objects. */
export const fileOptions: Readonly<Record<string, Option>> = {
  filename: {
    type: "strings",
    value: "FILE",
    short: "f",
    description: "a file, a folder, or - for standard input; may be repeated",
  },
  recursive: { type: "boolean", short: "R", description: "also the folders in a folder" },
};

/** What the named files declare. Refuses where none is named, and where nothing is in them. */
export async function readDeclared(
  call: Call,
  machine: Machine,
  usage: string,
): Promise<Manifest[]> {
  const sources = call.strings("filename");
  if (sources.length === 0) throw usageError(`-f FILE is missing. Usage: berth ${usage}`);
  const manifests = await readNamedFiles(call, machine);
  if (manifests.length === 0) throw new CommandError(`${sources.join(", ")}: no objects in it`);
  return manifests;
}

/** The same, for a command that can do without: nothing where no file is named. */
export async function readNamedFiles(call: Call, machine: Machine): Promise<Manifest[]> {
  return await readManifests(machine, call.strings("filename"), {
    directory: call.terminal.directory,
    isRecursive: call.flag("recursive"),
  });
}
