import { apiVersion } from "../../api/index.ts";
import { isJsonObject, type JsonObject } from "../../kernel/json.ts";
import { ApiError } from "../../kernel/status.ts";
import { type Call, type Command, CommandError, exitCodes, usageError } from "../command.ts";
import { namespaceOption, serverOptions, withServer } from "../objects/connect.ts";
import { discover } from "../objects/discovery.ts";
import type { Found } from "../objects/found.ts";
import { resolveKind } from "../objects/kinds.ts";
import { type Machine, systemMachine } from "../objects/machine.ts";
import { toYaml } from "../objects/output.ts";
import { getObject } from "../objects/read-objects.ts";
import { textOf } from "../objects/text.ts";
import { planLines } from "../plan/lines.ts";
import { statusOf } from "../why/findings.ts";
import { nameOf, readNamed, say } from "../words/say.ts";

export const adopt: Command = {
  name: "adopt",
  summary: "take over a machine that stands already, as its plan says",
  description:
    "With KIND/NAME: shows what taking over the machine of this object would change, and says yes to " +
    "exactly that, by writing the plan's hash as berth.dev/approve. If the machine or the object " +
    "changes meanwhile, the hash is another and nothing is done. --print only shows it.\n\n" +
    "With --restamp: the machine has the right id and UUID, and people edited Berth's mark out of " +
    "its description. Your word that it is this object's machine writes the mark back, and nothing " +
    "else.\n\n" +
    "With an id and --hypervisor: prints a manifest to begin with. Apply it, and berth adopt it. " +
    "Where no server can be asked whether there is such a Hypervisor, it says so and prints it.",
  usage: "adopt KIND/NAME [--print] [--restamp] [-n NS] | ID --hypervisor NAME [--name NAME]",
  options: {
    print: { type: "boolean", description: "only show what would change" },
    restamp: { type: "boolean", description: "write back a mark that people edited away" },
    hypervisor: { type: "string", value: "NAME", description: "where the machine with the id is" },
    name: { type: "string", value: "NAME", description: "the name of the new object" },
    ...namespaceOption,
    ...serverOptions,
  },
  arguments: ["KIND/NAME", "NAME?"],
  examples: [
    "berth adopt vm/web --print",
    "berth adopt vm/web",
    "berth adopt vm/web --restamp",
    "berth adopt 500 --hypervisor pve --name old | berth apply -f -",
  ],
  run: (call) => runAdopt(call, systemMachine),
};

export async function runAdopt(call: Call, machine: Machine): Promise<number> {
  if (call.string("hypervisor") !== undefined) return printManifest(call, machine);
  return withServer(call, machine, async (server) => {
    const options = { usage: adopt.usage, kinds: ["VirtualMachine"] };
    const [found, ...others] = await readNamed(call, server, options);
    if (found === undefined || others.length > 0) {
      throw usageError(`name one object. Usage: berth ${adopt.usage}`);
    }
    const plan = planOf(found, call.flag("restamp"));
    if (plan === undefined) {
      call.terminal.print(`${nameOf(found)} has nothing to approve`);
      return exitCodes.ok;
    }
    for (const line of planLines(plan)) call.terminal.print(line);
    if (call.flag("print")) return exitCodes.ok;
    const hash = textOf(plan["hash"]);
    await say(server, found, { approve: hash });
    call.terminal.print(`${nameOf(found)} approved: ${hash}`);
    return exitCodes.ok;
  });
}

/** The plan that waits for approval. A restamp is asked for by its own word, and only so. */
function planOf(found: Found, isRestamp: boolean): JsonObject | undefined {
  const { plan } = statusOf(found.object);
  if (!isJsonObject(plan)) {
    if (!isRestamp) return undefined;
    throw new CommandError(`the mark of ${nameOf(found)} is not missing: see berth why`);
  }
  const [first] = Array.isArray(plan["changes"]) ? plan["changes"] : [];
  const isMark = isJsonObject(first) && first["field"] === "mark";
  if (isMark && !isRestamp) {
    throw new CommandError(
      `the mark of ${nameOf(found)} was edited away. If it is this object's machine: --restamp`,
    );
  }
  if (!isMark && isRestamp) {
    throw new CommandError(`the plan of ${nameOf(found)} is another one: berth adopt --print`);
  }
  return plan;
}

async function printManifest(call: Call, machine: Machine): Promise<number> {
  const [externalId = "", ...more] = call.arguments;
  if (externalId.includes("/") || more.length > 0) {
    throw usageError(`name one id. Usage: berth ${adopt.usage}`);
  }
  const hypervisor = call.string("hypervisor") ?? "";
  await demandHypervisor(call, machine, hypervisor);
  const namespace = call.string("namespace");
  const manifest = {
    apiVersion,
    kind: "VirtualMachine",
    metadata: {
      name: call.string("name") ?? `vm-${externalId}`,
      ...(namespace === undefined ? {} : { namespace }),
    },
    spec: {
      hypervisorRef: { name: hypervisor },
      externalId,
      adopt: "Only",
      deletionPolicy: "Retain",
    },
  };
  call.terminal.print(toYaml(manifest));
  return exitCodes.ok;
}

/** Refuses a Hypervisor that the server does not have. Without a server it is taken on trust. */
async function demandHypervisor(call: Call, machine: Machine, name: string): Promise<void> {
  let isReached = false;
  try {
    await withServer(call, machine, async (server) => {
      const kinds = await discover(server);
      isReached = true;
      await getObject(server, { kind: resolveKind(kinds, "hypervisors"), namespace: "", name });
    });
  } catch (error) {
    const isForbidden = error instanceof ApiError && error.code === 403;
    const isOffline = error instanceof CommandError && !isReached && !isServerNamed(call);
    if (!isForbidden && !isOffline) throw error;
    call.terminal.note(`berth: not known whether there is a Hypervisor ${name}: ${error.message}`);
  }
}

function isServerNamed(call: Call): boolean {
  return ["kubeconfig", "context", "data"].some((option) => call.string(option) !== undefined);
}
