import type { Hypervisor } from "../../api/index.ts";
import type { CreateDoctor } from "../../app/index.ts";
import type { Credentials } from "../../controllers/index.ts";
import type { Diagnosis } from "../../hypervisor/index.ts";
import { isJsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { ApiError } from "../../kernel/status.ts";
import { CommandError } from "../command.ts";
import { kindOfObject } from "../objects/kinds.ts";
import type { ServedKind } from "../objects/discovery.ts";
import { listObjects } from "../objects/read-objects.ts";
import type { Server } from "../objects/server.ts";
import type { Line } from "./report.ts";

/** The Hypervisors that are there; of those named, each, or a refusal. */
export async function findHypervisors(
  server: Server,
  served: readonly ServedKind[],
  names: readonly string[],
): Promise<Hypervisor[]> {
  const kind = kindOfObject(served, { apiVersion: "berth.dev/v1alpha1", kind: "Hypervisor" });
  if (kind === undefined) return [];
  const { items } = await listObjects(server, { kind });
  const all = items.map(toHypervisor);
  if (names.length === 0) return all;
  return names.map((name) => {
    const found = all.find(({ metadata }) => metadata.name === name);
    if (found !== undefined) return found;
    const known = all.map(({ metadata }) => metadata.name ?? "").join(", ");
    throw new CommandError(
      `there is no Hypervisor ${name}${known === "" ? "" : `: there are ${known}`}`,
    );
  });
}

function toHypervisor(object: KubeObject): Hypervisor {
  // cast: the server admits nothing as a Hypervisor that is none.
  return object as unknown as Hypervisor;
}

/** One Hypervisor, examined: its object as Berth sees it, and the system as its doctor does. */
export interface Examined {
  readonly hypervisor: Hypervisor;
  readonly lines: readonly Line[];
  readonly diagnosis?: Diagnosis;
}

export async function examineHypervisor(
  server: Server,
  hypervisor: Hypervisor,
  createDoctor: CreateDoctor,
): Promise<Examined> {
  const status = statusLine(hypervisor);
  const credentials = await readCredentials(server, hypervisor);
  if ("check" in credentials) return { hypervisor, lines: [status, credentials] };
  const doctor = createDoctor(hypervisor.spec, credentials.values);
  try {
    const diagnosis = await doctor.diagnose();
    return { hypervisor, lines: [status, ...diagnosis.findings], diagnosis };
  } finally {
    doctor.close();
  }
}

/** What the controllers make of it, which a doctor does not know. */
function statusLine({ metadata, status }: Hypervisor): Line {
  const check = "Status";
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  if (ready === undefined || status?.observedGeneration !== metadata.generation) {
    const message = "the controllers have not looked at it yet, as it is declared now";
    return { check, level: "warning", message };
  }
  if (ready.status === "True") return { check, level: "ok", message: "Berth uses it" };
  return {
    check,
    level: "problem",
    message: `Berth does not use it: ${ready.reason}: ${ready.message}`,
    remedy: `More about it: berth why hypervisor/${metadata.name ?? ""}`,
  };
}

/** What the Secret holds, or the line that says why it cannot be read. */
export async function readCredentials(
  server: Server,
  { spec }: Hypervisor,
): Promise<{ readonly values: Credentials } | Line> {
  const ref = spec.credentials?.secretRef;
  if (ref === undefined) return { values: {} };
  const path = `/api/v1/namespaces/${ref.namespace}/secrets/${ref.name}`;
  const problem = { check: "Credentials", level: "problem" } as const;
  try {
    const secret = await server.ask({ path });
    return { values: decoded(isJsonObject(secret) ? secret["data"] : undefined) };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.code === 404) {
      const message = `there is no Secret ${ref.namespace}/${ref.name}`;
      return { ...problem, message, remedy: "Create it, or run berth connect again." };
    }
    if (error.code !== 403) throw error;
    const message = `you may not read the Secret ${ref.namespace}/${ref.name}`;
    const remedy = "Run the doctor as an administrator: what its system says is not examined.";
    return { check: "Credentials", level: "warning", message, remedy };
  }
}

function decoded(data: unknown): Credentials {
  const entries = Object.entries(isJsonObject(data) ? data : {});
  return Object.fromEntries(
    entries.flatMap(([key, value]) => {
      return typeof value === "string" ? [[key, Buffer.from(value, "base64").toString()]] : [];
    }),
  );
}
