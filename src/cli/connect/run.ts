import type { Hypervisor } from "../../api/index.ts";
import { type CreateDoctor, createDoctors } from "../../app/index.ts";
import { type Probe, probeEndpoint, type TlsTrust } from "../../drivers/proxmox/index.ts";
import { connectionProblems, type Diagnosis } from "../../hypervisor/index.ts";
import { sleep } from "../../kernel/clock.ts";
import { type Call, CommandError, exitCodes, usageError } from "../command.ts";
import { findHypervisors } from "../doctor/hypervisors.ts";
import { renderSection } from "../doctor/report.ts";
import { createPaint } from "../objects/colour.ts";
import { withServer } from "../objects/connect.ts";
import { discover } from "../objects/discovery.ts";
import type { Machine } from "../objects/machine.ts";
import type { Server } from "../objects/server.ts";
import { conflictOf } from "./conflicts.ts";
import { type Connecting, declareConnection } from "./declare.ts";
import { nameFor, readEndpoint, readName } from "./endpoints.ts";
import { type Person, systemPerson } from "./person.ts";
import { checkId, readToken } from "./token.ts";
import { settleTrust } from "./trust.ts";

/** What connecting does besides asking the server. Tests pass their own. */
export interface ConnectTools {
  readonly person: Person;
  readonly createDoctor: CreateDoctor;
  readonly probe: (url: string, tls: TlsTrust) => Promise<Probe>;
}

/** A person waits. */
const probeMs = 10_000;

export function systemTools({ clock }: Machine): ConnectTools {
  return {
    person: systemPerson,
    createDoctor: createDoctors(clock),
    probe: (url, tls) => probeEndpoint(url, { tls, clock, timeoutMs: probeMs }),
  };
}

/**
 * Certificate, token, diagnosis, objects: in this order, so that the token goes only to who was
 * recognised, and nothing is declared that a person would first have to mend.
 */
export function runConnect(call: Call, machine: Machine, tools: ConnectTools): Promise<number> {
  const [type = "", ...addresses] = call.arguments;
  if (type !== "proxmox") throw usageError(`this version connects proxmox only, not "${type}"`);
  const endpoints = [...new Set(addresses.map(readEndpoint))];
  const [first] = endpoints;
  if (first === undefined) throw usageError("the address is missing: https://HOST:8006");
  const name = readName(call.string("name") ?? nameFor(first, type));
  const tokenId = call.string("token-id");
  if (tokenId !== undefined) checkId(tokenId);
  return withServer(call, machine, async (server) => {
    const declared = await declaredHypervisors(server);
    const existing = declared.find(({ metadata }) => metadata.name === name);
    demandNoConflict({ name, type, endpoints, systemId: undefined }, declared);
    const before = existing?.spec.tls;
    const tls = await settleTrust(call, endpoints, { machine, before, ...tools });
    const token = await readToken(call, machine, tools.person);
    const connecting = { name, endpoints, tls, token, systemId: undefined, existing };
    const diagnosis = await examine(connecting, tools);
    printDiagnosis(call, machine, { name, diagnosis });
    const { systemId } = diagnosis;
    demandNoConflict({ name, type, endpoints, systemId }, declared);
    if (connectionProblems(diagnosis).length > 0 && !call.flag("force")) {
      throw new CommandError(
        "nothing was written: mend what is marked as a problem and run this again (or --force)",
      );
    }
    const done = await declareConnection(server, { ...connecting, systemId });
    for (const line of done) call.terminal.print(line);
    return await awaitReady(call, server, name);
  });
}

async function declaredHypervisors(server: Server): Promise<Hypervisor[]> {
  const served = await discover(server);
  if (!served.some(({ kind, group }) => kind === "Hypervisor" && group === "berth.dev")) {
    throw new CommandError(
      `${server.url} does not know Berth's kinds: bring them in with berth crds | kubectl apply -f -`,
    );
  }
  return await findHypervisors(server, served, []);
}

function demandNoConflict(
  wanted: Parameters<typeof conflictOf>[0],
  declared: readonly Hypervisor[],
): void {
  const conflict = conflictOf(wanted, declared);
  if (conflict !== undefined) throw new CommandError(conflict);
}

async function examine(
  { endpoints, tls, token, existing }: Connecting,
  { createDoctor }: ConnectTools,
): Promise<Diagnosis> {
  const { systemId, defaults } = existing?.spec ?? {};
  const { ca, fingerprints, serverName } = tls ?? {};
  const doctor = createDoctor(
    {
      type: "proxmox",
      endpoints: [...endpoints],
      tls: {
        ...(ca === undefined ? {} : { ca }),
        ...(fingerprints === undefined ? {} : { fingerprints: [...fingerprints] }),
        ...(serverName === undefined ? {} : { serverName }),
      },
      ...(systemId === undefined ? {} : { systemId }),
      ...(defaults === undefined ? {} : { defaults }),
    },
    { tokenId: token.id, tokenSecret: token.secret },
  );
  try {
    return await doctor.diagnose();
  } finally {
    doctor.close();
  }
}

function printDiagnosis(
  call: Call,
  machine: Machine,
  { name, diagnosis }: { readonly name: string; readonly diagnosis: Diagnosis },
): void {
  const section = { title: `Hypervisor ${name} (proxmox)`, lines: diagnosis.findings };
  for (const line of renderSection(section, createPaint(machine))) call.terminal.print(line);
  call.terminal.print("");
}

const readyWithinMs = 20_000;
const lookMs = 500;

/** Waits a while for the controllers' word: what is declared is not yet what is used. */
async function awaitReady(call: Call, server: Server, name: string): Promise<number> {
  const served = await discover(server);
  const untilMs = server.clock.monotonicMs() + readyWithinMs;
  for (;;) {
    const [hypervisor] = await findHypervisors(server, served, [name]);
    const why = hypervisor === undefined ? "it is gone" : whyNotReady(hypervisor);
    if (why === undefined) {
      call.terminal.print(`ready: Berth uses the Hypervisor ${name}`);
      return exitCodes.ok;
    }
    if (server.clock.monotonicMs() >= untilMs) {
      call.terminal.note(`not ready yet: ${why}. See berth why hypervisor/${name}`);
      return exitCodes.failed;
    }
    await sleep(server.clock, lookMs);
  }
}

function whyNotReady({ metadata, status }: Hypervisor): string | undefined {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  if (ready === undefined || status?.observedGeneration !== metadata.generation) {
    return "no controllers looked at it";
  }
  return ready.status === "True" ? undefined : ready.message.replace(/\.$/, "");
}
