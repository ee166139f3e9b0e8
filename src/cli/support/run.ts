import { closeSync, openSync, readdirSync, statSync, writeSync } from "node:fs";
import { arch, platform, release, totalmem } from "node:os";
import { join, relative, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { formatTime } from "../../kernel/clock.ts";
import type { JsonObject } from "../../kernel/json.ts";
import { type Call, CommandError, exitCodes } from "../command.ts";
import { type DoctorTools, examine, forPrograms, systemTools } from "../doctor/run.ts";
import { withServer } from "../objects/connect.ts";
import { discover } from "../objects/discovery.ts";
import type { Machine } from "../objects/machine.ts";
import { version } from "../version.ts";
import {
  type Collected,
  collectLog,
  collectMetrics,
  collectObjects,
  jsonText,
  messageOf,
} from "./collect.ts";
import { type ArchivedFile, tarOf } from "./tar.ts";

/** What the bundle needs of the machine besides its server. Tests pass their own. */
export interface SupportTools {
  readonly doctor: DoctorTools;
  /** Every file below a folder with its size; undefined where there is no such folder. */
  readonly fileSizes: (path: string) => Readonly<Record<string, number>> | undefined;
  /** Writes a new private file; throws where there is one already. */
  readonly writeNew: (path: string, content: Uint8Array) => void;
  readonly system: () => JsonObject;
}

export function systemSupportTools(machine: Machine): SupportTools {
  return { doctor: systemTools(machine), fileSizes, writeNew, system };
}

/** Where everything lies inside of the archive. */
const root = "berth-support";

export async function runSupport(
  call: Call,
  machine: Machine,
  tools: SupportTools,
): Promise<number> {
  const name = call.string("out") ?? defaultName(machine.clock.nowMs());
  const folder = resolve(call.terminal.directory, call.string("data") ?? ".berth");
  const parts = [
    { path: "versions.json", content: jsonText(versionsOf(machine, tools)) },
    ...(await askServer(call, machine)),
    await askDoctor(call, machine, tools),
    collectLog([`${folder}/berth.log.1`, `${folder}/berth.log`].map((at) => machine.readFile(at))),
    sizesOf(folder, tools),
  ];
  const present = parts.flatMap((part) => ("content" in part ? [part] : []));
  const index = indexOf(parts);
  const files = [{ path: "CONTENTS.txt", content: `${index.join("\n")}\n` }, ...present];
  writeArchive({ call, machine, tools }, name, files);
  for (const line of index) call.terminal.print(line);
  call.terminal.print(`\nAll of it is in ${name}. Look into it before you send it to anybody.`);
  return exitCodes.ok;
}

function defaultName(nowMs: number): string {
  return `berth-support-${formatTime(nowMs).replaceAll(":", "")}.tar.gz`;
}

/** What is in it, and what is not and why: a line each. */
function indexOf(parts: readonly Collected[]): string[] {
  const width = Math.max(...parts.map(({ path }) => path.length));
  return parts.map((part) => {
    const path = part.path.padEnd(width);
    if ("missing" in part) return `${path}  not there: ${part.missing}`;
    return `${path}  ${Buffer.byteLength(part.content)} bytes`;
  });
}

function versionsOf(machine: Machine, tools: SupportTools): object {
  return { berth: version(), at: formatTime(machine.clock.nowMs()), ...tools.system() };
}

/** A server that does not answer is why people ask for help: the rest is collected all the same. */
async function askServer(call: Call, machine: Machine): Promise<Collected[]> {
  try {
    return await withServer(call, machine, async (server) => {
      const served = await discover(server);
      const answer = await server.ask({ path: "/version" });
      const config = { server: server.url, namespace: server.namespace, version: answer };
      return [
        { path: "server.json", content: jsonText(config) },
        ...(await collectObjects(server, served)),
        await collectMetrics(server),
      ];
    });
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return [{ path: "server.json", missing: messageOf(error) }];
  }
}

async function askDoctor(call: Call, machine: Machine, tools: SupportTools): Promise<Collected> {
  const path = "doctor.json";
  try {
    const report = await examine(call, machine, tools.doctor);
    return { path, content: jsonText(forPrograms(report)) };
  } catch (error) {
    return { path, missing: messageOf(error) };
  }
}

function sizesOf(folder: string, { fileSizes: read }: SupportTools): Collected {
  const sizes = read(folder);
  if (sizes === undefined) return { path: "files.json", missing: `there is no folder ${folder}` };
  return { path: "files.json", content: jsonText(sizes) };
}

function writeArchive(
  { call, machine, tools }: { call: Call; machine: Machine; tools: SupportTools },
  name: string,
  files: readonly ArchivedFile[],
): void {
  const inside = files.map(({ path, content }) => ({ path: `${root}/${path}`, content }));
  const archive = gzipSync(tarOf(inside, machine.clock.nowMs()));
  const path = resolve(call.terminal.directory, name);
  try {
    tools.writeNew(path, archive);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "EEXIST") throw new CommandError(`${path} exists: name another by --out FILE`);
    if (code === "ENOENT") throw new CommandError(`there is no folder for ${path}`);
    throw error;
  }
}

function writeNew(path: string, content: Uint8Array): void {
  const file = openSync(path, "wx", 0o600);
  try {
    writeSync(file, content);
  } finally {
    closeSync(file);
  }
}

function fileSizes(path: string): Record<string, number> | undefined {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return undefined;
  const names = readdirSync(path, { recursive: true, withFileTypes: true });
  const files = names.filter((entry) => entry.isFile());
  return Object.fromEntries(
    files.map((entry) => {
      const at = join(entry.parentPath, entry.name);
      return [relative(path, at), statSync(at, { throwIfNoEntry: false })?.size ?? 0];
    }),
  );
}

function system(): JsonObject {
  return {
    node: process.version,
    platform: platform(),
    architecture: arch(),
    kernel: release(),
    memoryBytes: totalmem(),
  };
}
