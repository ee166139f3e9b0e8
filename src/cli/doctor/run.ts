import { closeSync, openSync, writeSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Hypervisor } from "../../api/index.ts";
import { type CreateDoctor, createDoctors, folderFormat } from "../../app/index.ts";
import { type Call, CommandError, exitCodes, usageError } from "../command.ts";
import { createPaint } from "../objects/colour.ts";
import { withServer } from "../objects/connect.ts";
import { discover } from "../objects/discovery.ts";
import type { Machine } from "../objects/machine.ts";
import { readOutput } from "../objects/output.ts";
import type { Server } from "../objects/server.ts";
import { examineControlPlane, type FolderView } from "./control-plane.ts";
import {
  type Examined,
  examineHypervisor,
  findHypervisors,
  readCredentials,
} from "./hypervisors.ts";
import { countLevels, type Line, renderCounts, renderSection, type Section } from "./report.ts";

/** What the doctor does besides asking the server. Tests pass their own. */
export interface DoctorTools {
  readonly createDoctor: CreateDoctor;
  readonly folderFormat: typeof folderFormat;
  /** Writes a new private file; throws where there is one already. */
  readonly writeNew: (path: string, content: string) => void;
}

export function systemTools(machine: Machine): DoctorTools {
  return { createDoctor: createDoctors(machine.clock), folderFormat, writeNew };
}

function writeNew(path: string, content: string): void {
  const file = openSync(path, "wx", 0o600);
  try {
    writeSync(file, content);
  } finally {
    closeSync(file);
  }
}

export interface Report {
  readonly controlPlane: readonly Line[];
  readonly hypervisors: readonly Examined[];
}

export async function runDoctor(call: Call, machine: Machine, tools: DoctorTools): Promise<number> {
  const write = readForm(call);
  if (call.string("snapshot") !== undefined) return await writeSnapshot(call, machine, tools);
  const report = await examine(call, machine, tools);
  const sections = sectionsOf(report);
  const counts = countLevels(sections);
  if (write !== undefined) call.terminal.print(write({ ...forPrograms(report), ...counts }));
  else print(call, machine, sections);
  return counts.problems === 0 ? exitCodes.ok : exitCodes.failed;
}

function readForm(call: Call): ((value: unknown) => string) | undefined {
  const text = call.string("output");
  if (text === undefined) return undefined;
  const output = readOutput(text);
  if (output.form === "text") return output.write;
  throw usageError("-o must be json, yaml or jsonpath=…");
}

/** A control plane that does not answer is a finding like any other: the first one. */
export async function examine(call: Call, machine: Machine, tools: DoctorTools): Promise<Report> {
  let isReached = false;
  try {
    return await withServer(call, machine, async (server) => {
      const served = await discover(server);
      isReached = true;
      const found = await findHypervisors(server, served, call.arguments);
      return {
        controlPlane: await examineControlPlane(server, served, folderOf(call, machine, tools)),
        hypervisors: await Promise.all(
          found.map((each) => examineHypervisor(server, each, tools.createDoctor)),
        ),
      };
    });
  } catch (error) {
    if (isReached || !(error instanceof CommandError)) throw error;
    const line: Line = { check: "API", level: "problem", message: error.message };
    return { controlPlane: [line], hypervisors: [] };
  }
}

/** The data folder, where the server is found through it. */
function folderOf(call: Call, machine: Machine, tools: DoctorTools): FolderView | undefined {
  if (call.string("kubeconfig") !== undefined) return undefined;
  const path = call.string("data") ?? ".berth";
  const folder = resolve(call.terminal.directory, path);
  if (machine.readFile(join(folder, "kubeconfig")) === undefined) return undefined;
  const found = tools.folderFormat(folder);
  return found === undefined ? undefined : { path, ...found };
}

function sectionsOf({ controlPlane, hypervisors }: Report): Section[] {
  return [
    { title: "Control plane", lines: controlPlane },
    ...hypervisors.map(({ hypervisor, lines }) => ({ title: titleOf(hypervisor), lines })),
  ];
}

export function titleOf({ metadata, spec }: Pick<Hypervisor, "metadata" | "spec">): string {
  return `Hypervisor ${metadata.name ?? ""} (${spec.type})`;
}

function print(call: Call, machine: Machine, sections: readonly Section[]): void {
  const paint = createPaint(machine);
  for (const section of sections) {
    for (const line of renderSection(section, paint)) call.terminal.print(line);
    call.terminal.print("");
  }
  if (sections.length === 1) call.terminal.print("There are no Hypervisors: see berth connect.");
  call.terminal.print(renderCounts(countLevels(sections)));
}

/** The report as data. */
export function forPrograms({ controlPlane, hypervisors }: Report): object {
  return {
    controlPlane: { findings: controlPlane },
    hypervisors: hypervisors.map(({ hypervisor, lines, diagnosis }) => ({
      name: hypervisor.metadata.name,
      type: hypervisor.spec.type,
      ...(diagnosis?.version === undefined ? {} : { version: diagnosis.version }),
      ...(diagnosis?.systemId === undefined ? {} : { systemId: diagnosis.systemId }),
      findings: lines,
    })),
  };
}

function writeSnapshot(call: Call, machine: Machine, tools: DoctorTools): Promise<number> {
  const file = call.string("snapshot") ?? "";
  if (file === "") throw usageError("--snapshot needs the name of a file");
  const path = resolve(call.terminal.directory, file);
  return withServer(call, machine, async (server) => {
    const found = await findHypervisors(server, await discover(server), call.arguments);
    const [hypervisor, ...others] = found;
    if (hypervisor === undefined) throw new CommandError("there are no Hypervisors to take it of");
    if (others.length > 0) {
      const names = found.map(({ metadata }) => metadata.name ?? "").join(", ");
      throw usageError(`--snapshot is of one Hypervisor: name one of ${names}`);
    }
    const inventory = await takeSnapshot(server, hypervisor, tools);
    writeOrExplain(tools, path, `${JSON.stringify(inventory, undefined, 2)}\n`);
    const name = hypervisor.metadata.name ?? "";
    const { missing } = inventory;
    for (const text of Array.isArray(missing) ? missing : [])
      call.terminal.note(`left out: ${text}`);
    call.terminal.print(
      `the inventory of ${name} is in ${file}: berth sim ${hypervisor.spec.type} --from ${file}`,
    );
    return exitCodes.ok;
  });
}

async function takeSnapshot(
  server: Server,
  hypervisor: Hypervisor,
  tools: DoctorTools,
): Promise<Readonly<Record<string, unknown>>> {
  const credentials = await readCredentials(server, hypervisor);
  if ("check" in credentials) throw new CommandError(credentials.message);
  const doctor = tools.createDoctor(hypervisor.spec, credentials.values);
  try {
    const taken = await doctor.snapshot();
    if (taken.ok) return taken.value;
    const { message, cause } = taken.failure;
    const detail = cause === undefined || message.includes(cause) ? "" : ` (${cause})`;
    const name = hypervisor.metadata.name ?? "";
    throw new CommandError(`${message}${detail}: berth doctor ${name} says more`);
  } finally {
    doctor.close();
  }
}

function writeOrExplain({ writeNew: write }: DoctorTools, path: string, text: string): void {
  try {
    write(path, text);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "EEXIST") throw new CommandError(`${path} exists: name another file`);
    if (code === "ENOENT") throw new CommandError(`there is no folder ${dirname(path)}`);
    throw error;
  }
}
